"""The mission's stories about eras, with real processes."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from observant_host import Host, StdioServer, errors
from observant_host.decisions.budget import WAKES
from observant_host.incidents.record import read_decisions, read_timeline
from observant_host.telemetry.vocabulary import EraDecide, EraDropped, PeerRestart, Request
from tests.support.hosts import QUICK, add, decided, facts, quick_host, reach, until
from tests.support.peers import received, scripted
from tests.support.processes import eventually

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_modern_server_is_ready_and_never_sent_initialize(tmp_path: Path) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    add(host, "m", {"era": "dual", "log": log}, allow_legacy=True)
    async with host:
        view = host.servers["m"]
        assert (view.state, view.era, view.version) == ("ready", "modern", "2026-07-28")
        result = await host.call_tool("echo", {"text": "hi"})
        assert "hi" in result.text
    assert received(log, "initialize") == []


async def test_a_refused_legacy_server_gets_zero_initialize_bytes_however_often_it_is_probed(
    tmp_path: Path,
) -> None:
    host, told = quick_host()
    log = tmp_path / "log"
    add(host, "old", {"era": "legacy", "log": log})
    async with host:
        first = host.servers["old"]
        assert (first.state, first.cause, first.reason) == (
            "unavailable",
            "policy",
            "ambiguous_error",
        )
        assert "allow_legacy" in first.detail
        for _ in range(3):
            await host.probe("old")
        later = host.servers["old"]
    assert later.since == first.since
    assert later.generation == 1
    assert received(log, "initialize") == []
    assert len(received(log, "server/discover")) >= 4
    assert {(one.peer, one.reason) for one in decided(told)} == {("old", "ambiguous_error")}


async def test_an_allowlisted_legacy_server_is_served(tmp_path: Path) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    add(host, "old", {"era": "legacy", "log": log}, allow_legacy=True)
    async with host:
        view = host.servers["old"]
        assert (view.state, view.era, view.reason) == ("ready", "legacy", "initialize_ok")
        assert "x" in (await host.call_tool("echo", {"text": "x"})).text
    assert len(received(log, "initialize")) == 1


async def test_an_allowance_given_anew_counts_at_once_for_a_server_that_runs() -> None:
    host, _ = quick_host()
    add(host, "old", {"era": "legacy"})
    async with host:
        served = await host.allow("old", for_s=600, reason="for now", principal="ann")
        await host.allow("old", for_s=0.5, reason="not so long", principal="ann")
        over = await until(host, "old", lambda view: view.reason == "allowance_expired")
        assert (over.state, over.generation) == ("degraded", 1)
        view = await host.allow("old", for_s=600, reason="longer", principal="ann")
        assert (view.state, view.reason, view.pid) == ("ready", "initialize_ok", served.pid)


async def test_a_crashed_legacy_server_loses_its_era_before_it_is_asked_again(
    tmp_path: Path,
) -> None:
    host, told = quick_host()
    log = tmp_path / "log"
    add(host, "archive", {"era": "legacy", "tools": "echo,kill", "log": log}, allow_legacy=True)
    async with host:
        with pytest.raises(Exception, match="ended while the call was open"):
            await host.call_tool("kill", {})
        await until(host, "archive", lambda view: view.generation == 2)
        await reach(host, "archive", "ready")
        assert (await host.call_tool("echo", {"text": "back"})).text
    methods = [message.get("method") for message in received(log)]
    assert methods.count("initialize") == 2
    assert methods.index("server/discover", methods.index("initialize")) > 0
    order = [
        type(one.fact).__name__
        for one in told
        if isinstance(one.fact, EraDropped | PeerRestart)
        or (isinstance(one.fact, EraDecide) and one.fact.trigger == "restart")
    ]
    assert order[:3] == ["EraDropped", "PeerRestart", "EraDecide"]
    dropped = facts(told, EraDropped)[0]
    assert (dropped.era, dropped.generation) == ("legacy", 1)
    probes = [one for one in facts(told, Request) if one.method == "server/discover"]
    assert {one.generation for one in probes} == {1, 2}


async def test_a_slow_modern_server_joins_late_and_is_never_downgraded(tmp_path: Path) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    add(
        host,
        "slow",
        {"discover": "late:2", "log": log},
        probe_timeout_s=0.4,
        reprobe_max_s=60,
        restart_initial_s=60,
    )
    async with host:
        waiting = host.servers["slow"]
        assert (waiting.state, waiting.reason) == ("unavailable", "ambiguous_timeout")
        view = await reach(host, "slow", "ready")
        assert (view.era, view.generation) == ("modern", 1)
        assert view.evidence[-1]["late"] is True
        assert [tool.server for tool in host.catalogue.tools] == ["slow"]
    assert received(log, "initialize") == []


async def test_a_server_that_answers_discover_after_initialize_gets_a_fresh_process(
    tmp_path: Path,
) -> None:
    host, told = quick_host()
    log = tmp_path / "log"
    add(
        host,
        "two",
        {"discover": "late:1.5", "initialize": "ok", "log": log, "state": tmp_path / "n"},
        allow_legacy=True,
        probe_timeout_s=0.3,
    )
    async with host:
        view = await until(host, "two", lambda view: view.generation == 2)
        view = await reach(host, "two", "ready")
        assert view.era == "modern"
        assert {one.reason for one in facts(told, PeerRestart)} == {"late_modern_evidence"}
    assert len(received(log, "initialize")) == 1


async def test_a_server_once_modern_is_refused_until_a_person_allows_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rolled_back = tmp_path / "rolled_back"
    launch = ["/bin/sh", "-c", _switching(rolled_back, log)]
    host, _ = quick_host(state_dir=tmp_path / "state")
    host.add_server("s", StdioServer(launch), allow_legacy=True, **QUICK)
    async with host:
        assert host.servers["s"].era == "modern"

    rolled_back.touch()
    host, _ = quick_host(state_dir=tmp_path / "state")
    host.add_server("s", StdioServer(launch), allow_legacy=True, **QUICK)
    async with host:
        view = host.servers["s"]
        assert (view.state, view.cause, view.reason) == ("unavailable", "policy", "was_modern")
        assert received(log, "initialize") == []
        view = await host.allow("s", reason="rolled back on purpose", principal="ann")
        assert (view.state, view.era) == ("ready", "legacy")
        decided = await host.explain("s")
        assert (decided[-1]["from"], decided[-1]["to"]) == ("modern", "legacy")
        assert (decided[-1]["direction"], decided[-1]["expected"]) == ("downgrade", True)
    assert len(received(log, "initialize")) == 1


async def test_a_round_that_the_host_itself_cuts_short_decides_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    host = Host(state_dir=tmp_path, record=True)
    add(host, "mute", {"discover": "silent"})
    await host.open()
    await eventually(lambda: host.servers["mute"].pid)
    await host.close()
    assert read_timeline([tmp_path], server="mute")
    assert read_decisions([tmp_path]) == []
    metrics, _ = await host.metrics()
    assert b"observant_host_era_decisions_by_reason_total{" not in metrics
    assert "era_decided" not in caplog.text


ALLOWS_AND_DIES = """
import asyncio, os, signal, sys
from observant_host import Host, StdioServer

async def main():
    host = Host(state_dir=sys.argv[1])
    host.add_server("old", StdioServer(sys.argv[2:]))
    async with host:
        await host.allow("old", reason="checked", principal="ann")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_persons_decision_outlives_a_host_that_is_killed_right_after_it(
    tmp_path: Path,
) -> None:
    old, state = scripted(era="legacy"), tmp_path / "state"
    dying = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ALLOWS_AND_DIES, str(state), *old
    )
    assert await dying.wait() == -signal.SIGKILL
    host, _ = quick_host(state_dir=state)
    host.add_server("old", StdioServer(old), **QUICK)
    async with host:
        view = host.servers["old"]
        assert (view.state, view.era, view.allow_legacy) == ("ready", "legacy", True)


async def test_a_call_to_a_server_that_went_down_begins_its_next_start_and_goes_through() -> None:
    host, told = quick_host()
    add(host, "s", {"tools": "echo,kill"}, restart_initial_s=600, restart_max_s=600)
    async with host:
        with pytest.raises(errors.Unavailable):
            await host.call_tool("kill", {})
        await reach(host, "s", "backoff")
        calls = [host.call_tool("echo", {"text": str(n)}) for n in range(5)]
        assert [one.text for one in await asyncio.gather(*calls)] == ["0", "1", "2", "3", "4"]
        assert host.servers["s"].generation == 2
    assert [one.trigger for one in facts(told, EraDecide)] == ["boot", "wake"]


async def test_a_call_that_may_begin_no_start_is_told_what_happened_and_when_there_is_one() -> None:
    host, _ = quick_host()
    add(host, "s", {"tools": "echo,kill"}, restart_initial_s=600, restart_max_s=600)
    async with host:
        supervisor = host.core.fleet.get("s")
        assert supervisor is not None
        for _ in range(WAKES.burst + 1):
            with pytest.raises(errors.Unavailable):
                await host.call_tool("kill", {})
            view = await reach(host, "s", "backoff")
            await supervisor.wake(1e12)
        with pytest.raises(errors.Unavailable) as refused:
            await host.call_tool("echo", {"text": "x"})
    assert view.reason == "discover_ok"
    said = str(refused.value)
    assert said.startswith("server s is down and waits for its next start (process): ")
    assert "was ended by signal 9 (SIGKILL)" in said
    assert re.search(
        r"it is started again in [0-9.]+ s, at 2[0-9T:.-]+Z; nothing was executed", said
    )


def _switching(rolled_back: Path, log: Path) -> str:
    old = shlex.join(scripted(era="legacy", log=log))
    new = shlex.join(scripted(era="modern", log=log))
    return f"if [ -e {shlex.quote(str(rolled_back))} ]; then exec {old}; else exec {new}; fi"
