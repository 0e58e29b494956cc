"""Processes that live and say nothing: found, said, healed or begun again; the slow are left alone.

All times here are short, and nothing depends on how long anything takes: what must come is awaited,
what must not come is looked for at the end.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import errors
from observant_host.telemetry.vocabulary import HealthVerdict, PeerRestart, PeerStateChanged
from tests.scenarios.http import UNTOLD, add_url
from tests.support.hosts import add, facts, quick_host, reach, until
from tests.support.processes import alive, eventually
from tests.support.serving import serving

if TYPE_CHECKING:
    from observant_host import Host
    from observant_host.supervision.peer_state import ServerView

SHORT: dict[str, Any] = {"probe_timeout_s": 0.5}
BEGUN_AGAIN: dict[str, Any] = {**SHORT, "silent_restart_s": 1.0}
LEFT_ALONE: dict[str, Any] = {**SHORT, "silent_restart_s": 600.0}
ANSWERING: dict[str, Any] = {"probe_timeout_s": 10.0, "silent_restart_s": 0.1}
"""For servers that are never silent, however slow the machine is."""


def pid(view: ServerView) -> int:
    assert view.pid is not None
    return view.pid


async def time_out(host: Host, name: str, **arguments: Any) -> None:
    with pytest.raises(errors.CallTimeout):
        await host.call_tool(name, arguments, deadline_s=0.2)


def routable(host: Host, server: str) -> bool:
    return all(tool.routable for tool in host.catalogue.tools if tool.server == server)


async def echoes(host: Host, name: str) -> bool:
    return (await host.call_tool(name, {"text": "x"}, deadline_s=10)).text == "x"


@pytest.mark.parametrize("how", ["hush", "stall", "stop"])
async def test_a_process_that_says_nothing_is_degraded_then_begun_again_and_no_other_peer_notices(
    how: str,
) -> None:
    host, told = quick_host()
    add(host, "s", {"tools": "echo,hush,stall"}, **BEGUN_AGAIN)
    add(host, "ok", {"tools": "echo"}, **SHORT)
    async with host:
        before = await reach(host, "s", "ready")
        await reach(host, "ok", "ready")
        if how == "stop":
            os.kill(pid(before), signal.SIGSTOP)
        else:
            await host.call_tool(f"s/{how}", {}, deadline_s=10)
        await time_out(host, "s/echo", text="x")
        silent = await until(host, "s", lambda view: view.state == "degraded")
        assert "it does not answer" in silent.detail
        await eventually(lambda: not routable(host, "s"))
        assert routable(host, "ok")
        assert silent.layers.transport == "failing"
        assert silent.layers.process == ("failing" if how == "stop" else "ok")
        assert ("SIGSTOP" in silent.detail) == (how == "stop")
        assert await echoes(host, "ok/echo")
        await until(host, "s", lambda view: view.generation == 2)
        after = await reach(host, "s", "ready")
        assert not alive(pid(before))
        assert after.pid != before.pid
        assert await echoes(host, "s/echo")
        await eventually(lambda: routable(host, "s"))
        assert [one.reason for one in facts(told, PeerRestart)] == ["unresponsive"]
        assert {one.peer for one in facts(told, HealthVerdict)} == {"s"}
        assert facts(told, HealthVerdict)[-1].verdict == "hopeless"
        assert host.servers["ok"].generation == 1


async def test_a_server_that_reads_no_more_input_is_found_though_nothing_can_be_written() -> None:
    host, _ = quick_host()
    add(host, "s", {"tools": "echo,stall"}, **LEFT_ALONE)
    async with host:
        await reach(host, "s", "ready")
        await host.call_tool("stall", {}, deadline_s=10)
        big = {"text": "z" * (1 << 20)}
        with pytest.raises(errors.CallTimeout):
            await host.call_tool("echo", big, deadline_s=0.2)
        view = await until(host, "s", lambda view: view.state == "degraded")
        assert "it does not read its input" in view.detail


async def test_a_stopped_process_that_is_continued_heals_without_a_restart() -> None:
    host, told = quick_host()
    add(host, "s", {"tools": "echo"}, **LEFT_ALONE)
    async with host:
        before = await reach(host, "s", "ready")
        os.kill(pid(before), signal.SIGSTOP)
        await time_out(host, "echo", text="x")
        await until(host, "s", lambda view: view.state == "degraded")
        os.kill(pid(before), signal.SIGCONT)
        healed = await until(host, "s", lambda view: view.state == "ready")
        assert (healed.pid, healed.generation) == (before.pid, 1)
        assert await echoes(host, "echo")
        states = [one.state for one in facts(told, PeerStateChanged)]
        assert states[states.index("ready") :] == ["ready", "degraded", "ready"]
        assert facts(told, PeerRestart) == []


async def test_while_it_is_silent_callers_are_told_at_once_and_one_may_try() -> None:
    host, _ = quick_host()
    add(host, "s", {"tools": "echo,hush"}, **LEFT_ALONE)
    async with host:
        await reach(host, "s", "ready")
        await host.call_tool("hush", {}, deadline_s=10)
        await time_out(host, "echo", text="x")
        await until(host, "s", lambda view: view.state == "degraded")
        trial = asyncio.create_task(host.call_tool("echo", {"text": "x"}, deadline_s=60))
        gate = host.core.fleet.get("s").peer.gate  # type: ignore[union-attr]
        await eventually(lambda: gate.in_flight == 1)
        for _ in range(20):
            with pytest.raises(errors.Unavailable) as refused:
                await host.call_tool("echo", {"text": "x"}, deadline_s=60)
            assert "a trial call is under way" in str(refused.value)
            assert (refused.value.delivery, refused.value.fault) == ("not_sent", "peer")
        assert gate.in_flight == 1
        trial.cancel()


async def test_a_slow_tool_whose_server_answers_others_is_never_a_reason_to_restart() -> None:
    host, told = quick_host()
    add(host, "s", {"tools": "echo,mute"}, **ANSWERING)
    async with host:
        before = await reach(host, "s", "ready")
        for _ in range(10):
            await time_out(host, "mute")
            assert await echoes(host, "echo")
        assert (host.servers["s"].pid, host.servers["s"].state) == (before.pid, "ready")
        assert facts(told, HealthVerdict) == []
        assert facts(told, PeerRestart) == []


async def test_a_server_that_does_one_thing_at_a_time_comes_back_when_it_is_done() -> None:
    host, told = quick_host()
    add(host, "s", {"tools": "echo,busy"}, **LEFT_ALONE)
    async with host:
        before = await reach(host, "s", "ready")
        await time_out(host, "busy", s=4)
        await until(host, "s", lambda view: view.state == "degraded")
        healed = await until(host, "s", lambda view: view.state == "ready")
        assert healed.pid == before.pid
        assert facts(told, PeerRestart) == []


async def test_a_call_that_somebody_still_waits_for_keeps_its_server_alive() -> None:
    host, told = quick_host()
    add(host, "s", {"tools": "echo,busy"}, **{**SHORT, "silent_restart_s": 0.1})
    async with host:
        await reach(host, "s", "ready")
        patient = asyncio.create_task(host.call_tool("busy", {"s": 3}, deadline_s=60))
        await eventually(lambda: host.core.fleet.get("s").peer.gate.in_flight == 1)  # type: ignore[union-attr]
        await time_out(host, "echo", text="x")
        assert (await patient).text == "done"
        assert "degraded" in [one.state for one in facts(told, PeerStateChanged)]
        assert facts(told, PeerRestart) == []


async def test_a_server_behind_a_url_that_hangs_loses_its_life_and_is_probed_until_it_is_back() -> (
    None
):
    host, told = quick_host()
    async with serving(tools="echo", capabilities=UNTOLD) as web:
        add_url(host, "s", web.url, **BEGUN_AGAIN)
        async with host:
            await reach(host, "s", "ready")
            os.kill(web.pid, signal.SIGSTOP)
            await time_out(host, "echo", text="x")
            silent = await until(host, "s", lambda view: view.state == "degraded")
            assert "it does not answer" in silent.detail
            assert silent.layers.transport == "failing"
            ended = await reach(host, "s", "backoff", "unavailable")
            assert ended.cause == "network"
            assert [one.reason for one in facts(told, PeerRestart)] == ["unresponsive"]
            os.kill(web.pid, signal.SIGCONT)
            await reach(host, "s", "ready")
            assert await echoes(host, "echo")


async def test_a_server_behind_a_url_that_has_become_another_is_gone_at_once() -> None:
    host, told = quick_host()
    async with serving(tools="mute", discover_then="error:-32000", capabilities=UNTOLD) as web:
        add_url(host, "s", web.url, **ANSWERING)
        async with host:
            await reach(host, "s", "ready")
            await time_out(host, "mute")
            await reach(host, "s", "unavailable")
            assert [one.verdict for one in facts(told, HealthVerdict)] == ["gone"]
