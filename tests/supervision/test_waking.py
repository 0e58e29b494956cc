"""A call that wants a server which is down begins its next try, and any number of calls one try."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.decisions.budget import WAKES
from observant_host.state_files import Memory, ProvenModern
from observant_host.supervision.waking import WAKE_WAIT_S
from observant_host.telemetry.vocabulary import PeerRestart, PeerStart
from tests.supervision.stage import DISCOVERED, INITIALIZED, UNKNOWN, Script, Stage, result, say

if TYPE_CHECKING:
    from collections.abc import Callable

FAR: dict[str, Any] = {"restart_initial_s": 600, "restart_max_s": 600, "reprobe_max_s": 600}
"""Nothing begins by itself within these tests."""


def modern() -> Script:
    return Script(**{"server/discover": result(DISCOVERED)})


async def woken(stage: Stage, within_s: float = 60.0) -> bool:
    """The answer of `wake`, the clock standing still."""
    task = asyncio.ensure_future(stage.peer.wake(stage.clock.monotonic() + within_s))
    for _ in range(4):
        await stage.clock.settle()
    assert task.done()
    return await task


async def down(stage: Stage) -> None:
    stage.script.link.end("exit")
    await stage.clock.settle()
    assert stage.state[0] == "backoff"


async def test_a_call_to_a_server_in_backoff_begins_its_next_life_at_once() -> None:
    async with Stage(modern(), **FAR) as stage:
        assert await woken(stage)
        await down(stage)
        assert await woken(stage)
        assert (stage.state[0], len(stage.script.lives)) == ("ready", 2)
        assert stage.facts(PeerStart)[-1].trigger == "wake"


async def test_a_hundred_calls_begin_one_try_and_hear_what_came_of_it() -> None:
    async with Stage(modern(), **FAR) as stage:
        await down(stage)
        stage.script["server/discover"] = UNKNOWN
        until = stage.clock.monotonic() + 60
        tasks = [asyncio.ensure_future(stage.peer.wake(until)) for _ in range(100)]
        for _ in range(4):
            await stage.clock.settle()
        assert [await task for task in tasks] == [False] * 100
        assert len(stage.script.lives) == 2
        assert stage.state == ("unavailable", "policy", "ambiguous_error")


async def test_a_woken_try_forgets_no_failure() -> None:
    async with Stage(modern(), restart_initial_s=100, restart_max_s=10_000) as stage:
        for expected in (100, 200, 400):
            await down(stage)
            assert stage.facts(PeerRestart)[-1].backoff_ms == expected * 1000
            assert await woken(stage)


async def test_calls_may_begin_no_more_tries_than_their_budget() -> None:
    async with Stage(modern(), **FAR) as stage:
        for _ in range(WAKES.burst):
            await down(stage)
            assert await woken(stage)
        await down(stage)
        assert not await woken(stage)
        await stage.pass_time(WAKES.every_s)
        assert await woken(stage)


async def test_a_call_that_may_begin_no_try_waits_for_one_that_is_due_anyway() -> None:
    async with Stage(modern(), restart_initial_s=4, restart_max_s=4) as stage:
        for _ in range(WAKES.burst):
            await down(stage)
            assert await woken(stage)
        await down(stage)
        short = asyncio.ensure_future(stage.peer.wake(stage.clock.monotonic() + 3))
        long = asyncio.ensure_future(stage.peer.wake(stage.clock.monotonic() + 5))
        await stage.pass_time(4)
        assert not await short
        assert await long


async def test_a_call_waits_for_a_server_that_is_being_started_within_its_deadline() -> None:
    script = Script(**{"server/discover": None})
    async with Stage(script, probe_timeout_s=30) as stage:
        short = asyncio.ensure_future(stage.peer.wake(stage.clock.monotonic() + 2))
        patient = asyncio.ensure_future(stage.peer.wake(stage.clock.monotonic() + 60))
        await stage.pass_time(2)
        assert short.done()
        assert not await short
        await stage.pass_time(WAKE_WAIT_S - 3)
        assert not patient.done()
        say_discovered(stage)
        await stage.clock.settle()
        await stage.clock.settle()
        assert await patient
        assert len(script.lives) == 1


async def test_a_call_waits_no_longer_than_a_healthy_start_takes() -> None:
    async with Stage(Script(**{"server/discover": None}), probe_timeout_s=30) as stage:
        task = asyncio.ensure_future(stage.peer.wake(stage.clock.monotonic() + 1000))
        await stage.pass_time(WAKE_WAIT_S)
        assert not await task


async def test_a_call_wakes_an_outage_but_asks_the_same_process_where_it_is_kept() -> None:
    memory = Memory()
    script = Script(**{"server/discover": None})
    async with Stage(script, memory=memory, expect_era="modern", probe_timeout_s=5, **FAR) as stage:
        await stage.pass_time(5)
        assert stage.state == ("unavailable", "process", "ambiguous_timeout")
        script["server/discover"] = result(DISCOVERED)
        assert await woken(stage)
        assert len(script.lives) == 1


def refused_by_policy() -> Script:
    return Script(**{"server/discover": UNKNOWN})


def once_modern() -> Script:
    return Script(**{"server/discover": UNKNOWN, "initialize": result(INITIALIZED)})


@pytest.mark.parametrize("script", [refused_by_policy, once_modern])
async def test_no_call_begins_a_round_where_a_person_decides(
    script: Callable[[], Script],
) -> None:
    memory = Memory()
    allowed = script is once_modern
    async with Stage(script(), memory=memory, **FAR) as probe:
        memory.modern[probe.peer.server.fingerprint] = ProvenModern("peer", None, 0.0)
    async with Stage(script(), memory=memory, allow_legacy=allowed, **FAR) as stage:
        assert stage.state[:2] == ("unavailable", "policy")
        heard = len(stage.script.methods())
        assert not await woken(stage)
        assert len(stage.script.methods()) == heard


async def test_no_call_replaces_a_process_that_may_be_downloading_itself() -> None:
    script = Script(**{"server/discover": UNKNOWN, "initialize": None})
    async with Stage(script, allow_legacy=True, silent_restart_s=500, **FAR) as stage:
        await stage.pass_time(5)
        assert stage.state == ("unavailable", "process", "legacy_probe_timeout")
        assert not await woken(stage)
        assert len(script.lives) == 1


async def test_nobody_waits_for_a_server_that_is_off_or_whose_host_has_ended() -> None:
    async with Stage(modern(), enabled=False) as stage:
        assert not await woken(stage)
    async with Stage(modern()) as stage:
        pass
    assert not await woken(stage)


def say_discovered(stage: Stage) -> None:
    first = stage.script.first_id("server/discover")
    say(stage.script.link, {"id": first, **(result(DISCOVERED) or {})})
