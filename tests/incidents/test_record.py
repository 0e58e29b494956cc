"""The record read back: decisions in order, and traces as trees."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from observant_host.config import TelemetrySettings
from observant_host.errors import RpcError
from observant_host.incidents.record import (
    read_decisions,
    read_timeline,
    read_trace,
    render_trace,
)
from observant_host.telemetry import setup
from observant_host.telemetry.vocabulary import (
    EraDecide,
    EraDropped,
    HostLifecycle,
    Request,
    RoutedCall,
)

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.telemetry.facade import Telemetry

EVIDENCE = {
    "step": "discover",
    "version": "2026-07-28",
    "outcome": "timeout",
    "rpc_code": None,
    "http_status": None,
    "content_type": None,
    "excerpt": None,
    "elapsed_ms": 5001.5,
    "timeout_ms": 5000.0,
    "late": False,
}


def recording(folder: Path, instance: str = "one") -> Telemetry:
    return setup.build(TelemetrySettings(), state_dir=folder, record=True, instance=instance)


def decide(telemetry: Telemetry, peer: str, *, selected: str = "unknown") -> str:
    fact = EraDecide(peer=peer, generation=3, trigger="boot", previous="modern")
    with telemetry.operation(fact) as op:
        probe = Request(peer=peer, method="server/discover", era="unknown", purpose="era")
        with telemetry.operation(probe) as request:
            request.note(probe_outcome="timeout")
            request.end_as("timeout", "timeout")
        op.note(
            selected=selected,
            direction="none",
            reason="ambiguous_timeout",
            expected=True,
            detail="It stayed silent.",
            evidence=(EVIDENCE,),
        )
        op.end_as("unavailable", "ambiguous_timeout")
    return op.context.trace_hex


async def test_a_decision_comes_back_as_explain_shows_it(tmp_path: Path) -> None:
    telemetry = recording(tmp_path)
    trace_id = decide(telemetry, "archive")
    await telemetry.close()
    (decision,) = read_decisions([tmp_path])
    assert decision.pop("time").endswith("Z")
    assert decision == {
        "server": "archive",
        "direction": "none",
        "expected": True,
        "from": "modern",
        "to": "unknown",
        "version": None,
        "reason": "ambiguous_timeout",
        "detail": "It stayed silent.",
        "generation": 3,
        "evidence": [EVIDENCE],
        "trace_id": trace_id,
    }
    json.dumps(decision)


async def test_decisions_of_several_folders_are_merged_in_order_and_asked_for_by_server(
    tmp_path: Path,
) -> None:
    one, two = recording(tmp_path / "1"), recording(tmp_path / "2", "two")
    ids = [decide(one, "a"), decide(two, "a"), decide(one, "b"), decide(two, "a")]
    await one.close()
    await two.close()
    folders = [tmp_path / "2", tmp_path / "1", tmp_path / "absent"]
    assert [d["trace_id"] for d in read_decisions(folders)] == ids
    of_a = [d["trace_id"] for d in read_decisions(folders, server="a")]
    assert of_a == [ids[0], ids[1], ids[3]]
    since = max(span.end_ns for span in read_timeline(folders))
    assert [d["trace_id"] for d in read_decisions(folders, since_ns=since)] == [ids[-1]]


async def test_other_decisions_are_in_the_timeline_not_among_the_eras(tmp_path: Path) -> None:
    telemetry = recording(tmp_path)
    telemetry.count(HostLifecycle(what="published"))
    telemetry.count(EraDropped(peer="a", generation=1, era="modern", why="exit"))
    decide(telemetry, "a")
    await telemetry.close()
    assert len(read_decisions([tmp_path])) == 1
    names = [span.name for span in read_timeline([tmp_path])]
    assert names == [
        "observant_host.host.lifecycle",
        "observant_host.era.drop",
        "observant_host.era.decide",
    ]
    assert len(read_timeline([tmp_path], server="a")) == 2


async def test_compressed_torn_and_foreign_lines_are_survived(tmp_path: Path) -> None:
    telemetry = recording(tmp_path)
    decide(telemetry, "a")
    await telemetry.close()
    folder = tmp_path / "decisions"
    (written,) = folder.glob("*.jsonl")
    line = written.read_bytes()
    (folder / "19990101.jsonl.gz").write_bytes(gzip.compress(line * 2))
    (folder / "19990102.jsonl.gz").write_bytes(gzip.compress(line * 50)[:-9])
    (folder / "19990103.jsonl").write_bytes(
        b"\xff\xfe\n{}\n[]\nobservant_host.era.decide\n"
        + line.replace(b'"startTimeUnixNano":"1', b'"startTimeUnixNano":"x')
        + line[: len(line) // 2]
    )
    (folder / "19990104.jsonl.gz.tmp").write_bytes(b"half")
    (folder / "README.txt").write_text("not ours")
    found = read_decisions([tmp_path])
    assert len(found) >= 3
    assert {decision["reason"] for decision in found} == {"ambiguous_timeout"}


async def test_a_trace_is_read_as_a_tree_across_both_streams(tmp_path: Path) -> None:
    telemetry = recording(tmp_path)
    trace_id = decide(telemetry, "archive")
    decide(telemetry, "other")
    await telemetry.close()
    (root,) = read_trace([tmp_path], trace_id.upper())
    assert root.span.name == "observant_host.era.decide"
    assert [child.span.name for child in root.children] == ["server/discover"]
    assert root.children[0].span.error
    assert root.span.instance == "one"
    assert read_trace([tmp_path], "f" * 32) == []


async def test_a_tree_is_told_with_names_durations_and_outcomes(tmp_path: Path) -> None:
    telemetry = recording(tmp_path)
    call = RoutedCall(name="a/search", method="tools/call", peer="a", local_name="search")
    with pytest.raises(RpcError), telemetry.operation(call) as op:  # noqa: PT012 - the second attempt fails
        for attempt in (1, 2):
            request = Request(
                peer="a", method="tools/call", era="modern", target="search", attempt=attempt
            )
            with telemetry.operation(request):
                if attempt == 2:
                    raise RpcError(-32602, "bad")
    await telemetry.close()
    text = render_trace(read_trace([tmp_path], op.context.trace_hex))
    lines = text.splitlines()
    assert lines[0].startswith("observant_host.call [a]  ")
    assert lines[0].endswith(" ms  rpc_error")
    assert lines[1].startswith("  tools/call search  ")
    assert lines[1].endswith(" ms  ok")
    assert lines[2].endswith(" ms  rpc_error (-32602)")


async def test_a_span_whose_parent_is_not_recorded_is_a_root(tmp_path: Path) -> None:
    from observant_host.telemetry.facade import TraceContext

    telemetry = recording(tmp_path)
    far = TraceContext(0xABC, 0xDEF)
    for name in ("first", "second"):
        with telemetry.operation(RoutedCall(name=name, method="tools/call"), parent=far):
            pass
    await telemetry.close()
    roots = read_trace([tmp_path], f"{0xABC:032x}")
    exposed = "observant_host.route.exposed_name"
    assert [root.span.attributes[exposed] for root in roots] == ["first", "second"]


def test_what_a_collector_wrote_is_read_too(tmp_path: Path) -> None:
    span = {
        "traceId": "A" * 32,
        "spanId": "b" * 16,
        "name": "x",
        "startTimeUnixNano": 5,
        "attributes": [
            {"key": "list", "value": {"arrayValue": {"values": [{"intValue": "3"}, {}]}}},
            {"key": "empty", "value": {"arrayValue": {}}},
            {"key": "number", "value": {"doubleValue": 1}},
            {"key": "nothing"},
        ],
        "links": [{"traceId": "c" * 32, "spanId": "d" * 16}],
        "status": {"code": "STATUS_CODE_ERROR"},
    }
    (tmp_path / "traces").mkdir()
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    (tmp_path / "traces" / "x.jsonl").write_text(json.dumps(request).replace("A" * 32, "a" * 32))
    (root,) = read_trace([tmp_path], "a" * 32)
    assert root.span.attributes == {
        "list": [3, None],
        "empty": [],
        "number": 1.0,
        "nothing": None,
    }
    assert root.span.error
    assert root.span.links == (("c" * 32, "d" * 16, {}),)
