"""What stands on stderr: every decision, every failed call, nothing of what went well."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from typing import Any

import pytest
from blockbuster import blockbuster_ctx

from observant_host.errors import RpcError
from observant_host.telemetry.facade import Telemetry
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.log_lines import StderrLines, as_console, as_plain, to_logging
from observant_host.telemetry.logs import (
    BURST,
    LogSink,
    release_library_logs,
    take_over_library_logs,
)
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.rules import RULES
from observant_host.telemetry.vocabulary import (
    EraDecide,
    FrameDropped,
    HostLifecycle,
    PeerRestart,
    Request,
    RoutedCall,
)
from tests.telemetry.facts import MOMENTS

CALL = RoutedCall(name="x", method="tools/call", peer="a", local_name="x")


class Lines:
    def __init__(self, **changes: Any) -> None:
        self.now = 0.0
        self.raw: list[tuple[str, str]] = []
        secrets = changes.pop("secrets", ())
        self.sink = LogSink(
            write=lambda level, line: self.raw.append((level, line)),
            cleaner=Cleaner(Masker(secrets)),
            monotonic=lambda: self.now,
            **changes,
        )
        self.telemetry = Telemetry(starter=OwnIds(), sinks=[self.sink], closing=[self.sink])

    @property
    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for _, line in self.raw]

    def fail(self, *, peer: str = "a", code: int = -32000) -> None:
        with (
            pytest.raises(RpcError),
            self.telemetry.operation(
                RoutedCall(name="x", method="tools/call", peer=peer, local_name="x")
            ),
        ):
            raise RpcError(code, "text of the peer")


def test_a_call_that_ends_ok_says_nothing() -> None:
    lines = Lines(level="debug")
    with (
        lines.telemetry.operation(CALL),
        lines.telemetry.operation(Request(peer="a", method="tools/call", era="modern")),
    ):
        pass
    assert lines.raw == []


def test_every_decision_is_a_line_of_the_same_fields() -> None:
    lines = Lines()
    for fact in MOMENTS:
        place = lines.telemetry.count(fact)
        rule = RULES[type(fact)]
        if rule.stream != "decisions":
            continue
        line = lines.all[-1]
        assert line["event"] == rule.log
        assert line["trace_id"] == place.trace_hex
        assert line["span_id"] == place.span_hex
        assert line["trace_flags"] == "01"
        assert line["logger"] == "observant_host"
        assert line["service.name"] == "observant-host"
        assert line["timestamp"].endswith("+00:00")


def test_a_downgrade_and_a_refusal_are_warnings_an_ordinary_decision_is_not() -> None:
    lines = Lines()
    fact = EraDecide(peer="a", generation=1, trigger="boot", previous="modern")
    for direction, outcome in (("first", "ok"), ("downgrade", "ok"), ("none", "unavailable")):
        with lines.telemetry.operation(fact) as op:
            op.note(direction=direction)
            op.end_as(outcome)
    assert [line["level"] for line in lines.all] == ["info", "warning", "warning"]


def test_a_failed_call_is_one_line_without_the_peers_text() -> None:
    lines = Lines()
    lines.fail()
    line = lines.all[0]
    assert line["event"] == "call_failed"
    assert line["level"] == "warning"
    assert line["peer"] == "a"
    assert (line["outcome"], line["error_type"], line["fault"]) == (
        "rpc_error",
        "rpc_error",
        "peer",
    )
    assert line["duration_ms"] >= 0
    assert "text of the peer" not in lines.raw[0][1]


def test_a_flood_of_failures_is_a_few_lines_and_a_count() -> None:
    lines = Lines()
    for _ in range(100):
        lines.fail()
    lines.fail(peer="b")
    assert [line["peer"] for line in lines.all] == ["a"] * 5 + ["b"]
    lines.now = 10.0
    lines.fail()
    assert lines.all[-1]["suppressed"] == 95
    assert sum(line.get("suppressed", 0) for line in lines.all) == 95


def test_what_was_suppressed_is_said_by_whoever_speaks_next() -> None:
    lines = Lines()
    for _ in range(8):
        lines.fail()
    lines.now = 11.0
    lines.telemetry.count(HostLifecycle(what="drains"))
    assert (
        lines.all[-1]
        | {
            "event": "call_failed",
            "peer": "a",
            "outcome": "rpc_error",
            "suppressed": 3,
        }
        == lines.all[-1]
    )


async def test_what_was_suppressed_is_said_at_the_end_at_the_latest() -> None:
    lines = Lines()
    for _ in range(8):
        lines.fail()
    await lines.telemetry.close()
    assert lines.all[-1]["suppressed"] == 3


def test_decisions_are_never_suppressed() -> None:
    lines = Lines()
    for _ in range(50):
        lines.telemetry.count(HostLifecycle(what="x"))
    assert len(lines.raw) == 50


def test_the_level_is_respected_and_can_change_while_running() -> None:
    lines = Lines()
    noise = FrameDropped(peer="a", kind="late_reply", excerpt="hello")
    lines.telemetry.count(noise)
    assert lines.raw == []
    lines.sink.level = "debug"
    lines.telemetry.count(noise)
    assert lines.all[0]["excerpt"] == "hello"
    lines.sink.level = "error"
    lines.fail()
    assert len(lines.raw) == 1


def test_a_server_that_logs_to_stdout_is_warned_about_a_few_times_and_masked() -> None:
    lines = Lines(secrets=["hunter22"])
    for kind in ("not_json", "not_a_message"):
        for _ in range(50):
            lines.telemetry.count(FrameDropped(peer="a", kind=kind, excerpt="using hunter22"))
    assert len(lines.all) == BURST
    first = lines.all[0]
    assert (first["level"], first["event"], first["kind"]) == (
        "warning",
        "frame_dropped",
        "not_json",
    )
    assert first["excerpt"] == "using ***"


def test_secrets_are_masked_wherever_they_stand() -> None:
    lines = Lines(secrets=["hunter22"])
    lines.telemetry.count(
        PeerRestart(
            peer="a",
            reason="exit",
            generation=1,
            attempt=1,
            backoff_ms=1.0,
            stderr_tail="TOKEN=hunter22",
        )
    )
    with lines.telemetry.operation(
        EraDecide(
            peer="a",
            generation=1,
            trigger="boot",
            previous="unknown",
            evidence=({"excerpt": "hunter22"},),
        )
    ):
        pass
    assert "hunter22" not in str(lines.raw)
    assert lines.all[0]["stderr_tail"] == "TOKEN=***"


def test_a_line_for_people_is_short_and_has_no_colours() -> None:
    lines = Lines(render=as_console)
    lines.fail()
    text = lines.raw[0][1]
    assert "call_failed" in text
    assert "\x1b" not in text
    assert "schema" not in text


def test_a_library_speaks_through_the_programs_own_logging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = LogSink(write=to_logging, cleaner=Cleaner(Masker()), render=as_plain)
    with caplog.at_level(logging.INFO, "observant_host"):
        Telemetry(starter=OwnIds(), sinks=[sink]).count(HostLifecycle(what="published"))
    assert caplog.records[0].name == "observant_host"
    assert caplog.records[0].getMessage().startswith("event='host_lifecycle'")


def test_warnings_of_libraries_become_lines_of_ours_and_are_given_back() -> None:
    lines = Lines(secrets=["hunter22"])
    take_over_library_logs(lines.sink)
    try:
        for _ in range(20):
            logging.getLogger("opentelemetry.exporter").warning("cannot reach hunter22")
        logging.getLogger("x").info("nothing")
    finally:
        release_library_logs(lines.sink)
    logging.getLogger("x").warning("no longer")
    assert len(lines.raw) == 5
    assert (
        lines.all[0]
        | {
            "event": "library_log",
            "library": "opentelemetry.exporter",
            "message": "cannot reach ***",
        }
        == lines.all[0]
    )


async def test_lines_reach_stderr_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    out = StderrLines()
    for number in range(100):
        out("info", f"line {number}")
    await out.flush()
    assert capsys.readouterr().err.splitlines() == [f"line {n}" for n in range(100)]
    await out.close()


async def test_a_stderr_that_nobody_reads_stops_nobody() -> None:
    """A real pipe, full after 64 KiB: telling goes on, and what does not fit is counted."""
    reading, writing = os.pipe()
    stream = os.fdopen(writing, "w")
    out = StderrLines(stream)
    with blockbuster_ctx("observant_host"):
        async with asyncio.timeout(5):
            for _ in range(12_000):
                out("info", "x" * 200)
            await asyncio.sleep(0)
    assert out.lost > 0
    drain = threading.Thread(target=_drain, args=(reading,))
    drain.start()
    await out.close()
    stream.close()
    await asyncio.to_thread(drain.join, 5)


def _drain(fd: int) -> None:
    while os.read(fd, 1 << 16):
        pass
    os.close(fd)


async def test_a_stderr_that_is_gone_is_counted_and_known() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    out = StderrLines(stream)
    out("warning", "hello")
    await out.flush()
    assert not out.up
    assert out.lost == 1
    await out.close()
