"""What is left of a host that was asked, that crashed, and that a fatal signal ended."""

from __future__ import annotations

import asyncio
import json
import signal
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from observant_host import Host
from observant_host.host.core import Core
from observant_host.incidents.otlp import spans_of_line
from observant_host.telemetry import flight
from observant_host.telemetry.facade import Telemetry
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.otlp_json import OtlpJson
from observant_host.telemetry.propagation import TraceContext
from observant_host.telemetry.vocabulary import DeadlineExpired, HostLifecycle
from tests.support.hosts import add
from tests.support.running import PATIENCE_S, config_of, file_in, running

if TYPE_CHECKING:
    from observant_host.timing.tasks import Signal

CRASHING = """
import sys
from observant_host.host.core import Core
async def crash(self, stop):
    raise RuntimeError("a defect")
Core._serve = crash
from observant_host.cli.main import main
main()
"""


def names_in(path: Path) -> list[str]:
    return [span.name for line in path.open("rb") for span in spans_of_line(line)]


async def test_a_running_host_dumps_its_last_decisions_when_it_is_asked(tmp_path: Path) -> None:
    file_in(tmp_path).write_text(config_of(tmp_path, {"a": {"tools": "echo"}}))
    async with running(tmp_path) as host:
        for turn in range(2):
            before = len(host.events)
            host.signal(signal.SIGUSR1)
            line = await host.until(
                "host_lifecycle", what="flight_recorder_dumped", after=before if turn else 0
            )
        path = Path(line["detail"])
        async with host.client() as client:
            recent = json.loads(await client.recent())["recent"]
    assert path.parent == tmp_path / "state"
    assert path.name.startswith("flight-recorder-")
    assert path.name.endswith("-asked.jsonl")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {"observant_host.era.decide", "observant_host.peer.state"} <= set(names_in(path))
    decided = next(one for one in recent if one["name"] == "observant_host.era.decide")
    assert decided["server"] == "a"
    assert decided["attributes"]["observant_host.era.selected"] == "modern"
    assert [event["name"] for event in decided["events"]] == ["evidence"]
    assert [one["time"] for one in recent] == sorted(one["time"] for one in recent)


async def test_a_host_that_crashes_leaves_its_decisions_and_says_where(tmp_path: Path) -> None:
    file_in(tmp_path).write_text(config_of(tmp_path, {"a": {"tools": "echo"}}))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CRASHING, "run", "-c", str(file_in(tmp_path))),
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        _, said = await process.communicate()
    assert process.returncode == 1
    (path,) = (tmp_path / "state").glob("flight-recorder-*-crash.jsonl")
    assert "observant_host.era.decide" in names_in(path)
    assert f"its last decisions are in {path}" in said.decode()
    crashed = next(json.loads(line) for line in said.decode().splitlines() if '"crashed"' in line)
    assert "RuntimeError: a defect" in crashed["detail"]
    assert str(path) in crashed["detail"]
    assert list((tmp_path / "state").glob("fatal-signal-*")) == []


async def test_a_fatal_signal_leaves_the_stacks_and_the_next_start_says_where(
    tmp_path: Path,
) -> None:
    file_in(tmp_path).write_text(config_of(tmp_path, {"a": {"tools": "echo"}}))
    async with running(tmp_path) as host:
        host.signal(signal.SIGSEGV)
        assert await host.ended() == -signal.SIGSEGV
    async with running(tmp_path) as host:
        line = await host.until("host_lifecycle", what="crashed_before")
    kept = Path(line["detail"])
    assert "Segmentation fault" in kept.read_text()
    assert kept.name.startswith("crash-")
    assert list((tmp_path / "state").glob("fatal-signal-*")) == []


async def test_a_library_that_crashes_leaves_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(self: Core, stop: Signal) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(Core, "_serve", crash)
    host = Host(state_dir=tmp_path, startup_deadline_s=PATIENCE_S)
    add(host, "a", {"tools": "echo"})
    await host.open()
    async with asyncio.timeout(PATIENCE_S):
        await host.over.wait()
    with pytest.raises(RuntimeError, match="a defect"):
        await host.close()
    assert host.black_box is not None
    assert "observant_host.era.decide" in names_in(host.black_box)


def recorder() -> flight.FlightRecorder:
    cleaner = Cleaner(Masker(["hunter22"]))
    return flight.FlightRecorder(
        encoder=lambda: OtlpJson({"service.name": "x"}, version="1", cleaner=cleaner),
        cleaner=cleaner,
    )


def test_a_storm_of_deadlines_pushes_out_no_decision_and_nothing_grows() -> None:
    recorded = recorder()
    telemetry = Telemetry(starter=OwnIds(), sinks=[recorded])
    telemetry.count(HostLifecycle(what="published", detail="hunter22"))
    for _ in range(2 * flight.EACH):
        telemetry.count(DeadlineExpired(peer="a", scope="call", budget_ms=1, elapsed_ms=2))
    recent = recorded.recent()
    assert len(recent) == flight.EACH + 1
    assert recent[0]["name"] == "observant_host.host.lifecycle"
    assert recent[0]["attributes"]["observant_host.host.detail"] == "***"
    assert TraceContext(int(recent[0]["trace_id"], 16), int(recent[0]["span_id"], 16)).trace_id


def test_only_the_newest_dumps_are_kept(tmp_path: Path) -> None:
    recorded = recorder()
    for number in range(flight.DUMPS_KEPT + 3):
        (tmp_path / f"flight-recorder-2000010{number % 10}T{number:06d}Z-1-asked.jsonl").touch()
    newest = recorded.dump(tmp_path, "asked")
    left = sorted(tmp_path.glob("*.jsonl"))
    assert len(left) == flight.DUMPS_KEPT
    assert left[-1] == newest
