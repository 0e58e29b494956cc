"""A person operates a host that runs: with real processes, over restarts of the host."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from observant_host import StdioServer, errors
from observant_host.incidents.record import read_timeline
from observant_host.telemetry.vocabulary import NameDecision, OperatorAct, PeerRestart
from tests.support.hosts import NEVER_AGAIN, PATIENCE_S, add, facts, quick_host, reach, until
from tests.support.peers import received
from tests.support.processes import alive, eventually

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_server_that_is_disabled_is_gone_and_its_names_are_nobody_elses(
    tmp_path: Path,
) -> None:
    host, told = quick_host(rename_grace_s=0)
    add(host, "first", {"tools": "echo,only"})
    add(host, "second", {"tools": "echo"})
    async with host:
        pid = host.servers["first"].pid
        assert pid is not None
        view = await host.act("first", "disable", reason="it leaks", principal="ann")
        assert (view.state, view.pid) == ("disabled", None)
        assert not alive(pid)
        await eventually(lambda: not host.catalogue.lookup["echo"].routable)
        assert host.catalogue.lookup["echo"].server == "first"
        with pytest.raises(errors.Unavailable, match="disabled by ann: it leaks") as refused:
            await host.call_tool("only", {})
        assert (refused.value.fault, refused.value.delivery) == ("policy", "not_sent")
        assert (await host.call_tool("second/echo", {"text": "x"})).text == "x"
        view = await host.act("first", "enable", principal="ann")
        assert view.state == "ready"
        assert (await host.call_tool("echo", {"text": "back"})).call.server == "first"
    moved = [one for one in facts(told, NameDecision) if one.what in ("given_up", "moved")]
    assert moved == []
    acts = [(one.verb, one.principal, one.reason) for one in facts(told, OperatorAct)]
    assert acts == [("disable", "ann", "it leaks"), ("enable", "ann", "")]


async def test_what_a_person_said_stands_in_the_next_run_of_the_host(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for run in range(2):
        host, _ = quick_host(state_dir=tmp_path / "state")
        add(host, "first", {"log": log})
        add(host, "second")
        async with host:
            if not run:
                assert host.catalogue.lookup["echo"].server == "first"
                await host.act("first", "disable", for_s=3600, reason="moved", principal="ann")
                await host.act("second", "hold", principal="bob")
                continue
            first = host.servers["first"]
            assert first.state == "disabled"
            assert "disabled by ann until" in first.detail
            assert "held by bob" in host.servers["second"].detail
            assert host.servers["second"].state == "ready"
            assert "echo" not in host.catalogue.lookup
            assert host.catalogue.idle_tools["echo"].owner == "first"
            assert [one.server for one in host.catalogue.missing] == ["first"]
            with pytest.raises(errors.Unavailable, match="disabled by ann"):
                await host.call_tool("echo", {})
            assert (await host.act("first", "enable", principal="ann")).state == "ready"
            await reach(host, "first", "ready")
            assert host.catalogue.lookup["echo"].server == "first"
    assert len(received(log, "server/discover")) == 2


async def test_an_act_is_on_the_record_with_who_and_why(tmp_path: Path) -> None:
    host, _ = quick_host(telemetry=None, state_dir=tmp_path, record=True)
    add(host, "s")
    async with host:
        await host.act("s", "hold", for_s=60, reason="looking into it", principal="cli:ann")
    told = [one for one in read_timeline([tmp_path], server="s") if "operator" in str(one)]
    assert "looking into it" in str(told)
    assert "cli:ann" in str(told)


async def test_a_restart_by_a_person_happens_at_once_whatever_the_backoff_is(
    tmp_path: Path,
) -> None:
    host, told = quick_host()
    add(host, "s", {"tools": "echo,kill"}, **NEVER_AGAIN)
    async with host:
        first = host.servers["s"].pid
        view = await host.act("s", "restart", principal="ann", reason="leaks")
        assert (view.state, view.generation) == ("ready", 2)
        assert view.pid != first
        assert [one.reason for one in facts(told, PeerRestart)] == ["operator"]
        with pytest.raises(errors.CallError):
            await host.call_tool("kill", {})
        await reach(host, "s", "backoff")
        assert (await host.act("s", "retry", principal="ann")).state == "ready"


async def test_a_missing_command_is_tried_again_when_a_person_says_so(tmp_path: Path) -> None:
    command = tmp_path / "server"
    host, _ = quick_host()
    host.add_server("s", StdioServer([str(command)]), restart_initial_s=0.02, reprobe_max_s=0.05)
    async with host:
        view = host.servers["s"]
        assert (view.state, view.cause, view.reason) == ("unavailable", "process", "spawn_failed")
        command.write_text("#!/bin/sh\nexit 3\n")
        command.chmod(0o700)
        assert not await host.core.fleet.get("s").wake(1e12)  # type: ignore[union-attr]
        assert host.servers["s"].reason == "spawn_failed"
        view = await host.act("s", "retry", principal="ann")
        assert view.reason == "ambiguous_closed"


async def test_draining_loses_no_call(tmp_path: Path) -> None:
    host, _ = quick_host()
    add(host, "s", {"tools": "slow,pid"})
    async with host:
        pid = host.servers["s"].pid
        gate = host.core.fleet.get("s").peer.gate  # type: ignore[union-attr]
        call = asyncio.create_task(host.call_tool("slow", {"s": 0.5, "tag": "done"}))
        await eventually(lambda: gate.in_flight == 1)
        view = await host.act("s", "drain", principal="ann", reason="a new disk")
        assert "done" in (await call).text
        assert view.state == "disabled"
        assert view.detail.startswith("drained by ann: a new disk")
        assert pid is not None
        assert not alive(pid)


async def test_a_held_server_that_dies_stays_down_until_its_time_is_over(tmp_path: Path) -> None:
    host, _ = quick_host()
    add(host, "s", {"tools": "echo,kill"})
    async with host:
        await host.act("s", "hold", for_s=600, principal="ann")
        with pytest.raises(errors.CallError):
            await host.call_tool("kill", {})
        down = await until(host, "s", lambda view: view.state == "backoff")
        assert "not started again by itself while it is held" in down.detail
        await host.act("s", "hold", for_s=0.3, principal="ann")
        async with asyncio.timeout(PATIENCE_S):
            assert (await host.wait_for("s", "ready")).generation == 2


@pytest.mark.parametrize(
    ("act", "keys", "said"),
    [
        ("explode", {}, "there are: probe, retry"),
        ("retry", {"for_s": 5}, "takes no time"),
        ("disable", {"until": 1.0}, "over already"),
        ("disable", {"until": 1.0, "for_s": 1.0}, "not both"),
        ("disable", {"for_s": float("nan")}, "numbers of seconds"),
    ],
)
async def test_an_act_that_cannot_be_meant_is_refused(
    act: str, keys: dict[str, float], said: str
) -> None:
    host, told = quick_host()
    add(host, "s")
    async with host:
        with pytest.raises(errors.InvalidCall, match=said):
            await host.act("s", act, **keys)  # type: ignore[arg-type]  # numbers, by name
        assert host.servers["s"].state == "ready"
    assert facts(told, OperatorAct) == []


async def test_an_act_that_makes_no_sense_says_which_one_does() -> None:
    host, _ = quick_host()
    add(host, "off", enabled=False)
    add(host, "s")
    async with host:
        with pytest.raises(errors.InvalidCall, match="enabled = true"):
            await host.act("off", "enable")
        with pytest.raises(errors.InvalidCall, match="there are: off, s") as unknown:
            await host.act("nobody", "hold")
        assert unknown.value.unknown
        await host.act("s", "disable")
        assert (await host.act("s", "disable", reason="again")).state == "disabled"
        with pytest.raises(errors.InvalidCall, match="observant-host enable s"):
            await host.act("s", "restart")
        assert (await host.probe("s")).state == "disabled"


async def test_a_held_or_disabled_server_is_expected_by_no_alert() -> None:
    host, _ = quick_host(telemetry=None)
    for name in ("up", "held", "off"):
        add(host, name)
    async with host:
        await host.act("held", "hold")
        await host.act("off", "disable")
        lines = (await host.metrics())[0].decode().splitlines()
    found = {line for line in lines if line.startswith("observant_host_peer_expected{")}
    assert {line.rpartition(" ")[2] for line in found if '"up"' in line} == {"1.0"}
    for name in ("held", "off"):
        told = {line.rpartition(" ")[2] for line in found if f'"{name}"' in line}
        assert told <= {"0.0"}
