"""Whatever a server does, in every minute it is started and asked a bounded number of times."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from observant_host.decisions.budget import REPROBES, RESTARTS, WAKES, Rate
from tests.supervision.stage import (
    DISCOVERED,
    INITIALIZED,
    UNKNOWN,
    Script,
    Stage,
    result,
    say,
    tools,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.supervision.stage import Message, Reply

MINUTES = 10
"""The bursts are over after one of them, and the rates give the same in each one after it."""

CARELESS: dict[str, Any] = {
    "restart_initial_s": 0.01,
    "restart_max_s": 0.01,
    "reprobe_max_s": 0.01,
    "healthy_after_s": 0.001,
    "silent_restart_s": 0.01,
    "probe_timeout_s": 0.1,
    "legacy_probe_timeout_ms": 100,
}
"""A configuration that bounds nothing by itself: what is left are the host's own budgets."""


def in_a_minute(rate: Rate) -> float:
    """The most that this rate gives in the worst minute."""
    return rate.burst + 60 / rate.every_s


TRIES = in_a_minute(RESTARTS) + in_a_minute(REPROBES)
"""Rounds of negotiation: after a life that had an era, and after one that had none."""


def then(script: Script, reply: Reply, act: Callable[[], object]) -> Reply:
    """`reply`, and `act` after it was sent."""
    asyncio.get_running_loop().call_soon(act)
    return reply


def dies_after_a_good_handshake() -> Script:
    script = Script(**{"server/discover": result(DISCOVERED)})
    script["tools/list"] = lambda _: then(script, tools("echo"), lambda: script.link.end("exit"))
    return script


def answers_and_closes() -> Script:
    script = Script()
    script["server/discover"] = lambda _: then(
        script, result(DISCOVERED), lambda: script.link.end("exit")
    )
    return script


def dies_at_once() -> Script:
    script = Script()
    script["server/discover"] = lambda _: then(script, None, lambda: script.link.end("exit"))
    script["initialize"] = lambda _: then(script, None, lambda: script.link.end("exit"))
    return script


def old_and_dies() -> Script:
    script = Script(**{"server/discover": UNKNOWN, "initialize": result(INITIALIZED)})
    script["tools/list"] = lambda _: then(script, tools("echo"), lambda: script.link.end("exit"))
    return script


def modern_after_all() -> Script:
    """Each life is silent until `initialize`, and then answers the discover that came before."""
    script = Script(**{"server/discover": None})

    def late(message: Message) -> Reply:
        first = {"id": script.first_id("server/discover"), **(result(DISCOVERED) or {})}
        return then(script, result(INITIALIZED), lambda: say(script.link, first))

    script["initialize"] = late
    return script


def mute() -> Script:
    return Script(**{"server/discover": None, "initialize": None})


class Case(NamedTuple):
    script: Callable[[], Script]
    keys: Mapping[str, Any] = MappingProxyType({})


CASES = {
    "dies after a good handshake": Case(dies_after_a_good_handshake),
    "answers and closes": Case(answers_and_closes),
    "dies at once": Case(dies_at_once),
    "dies at once, allowed": Case(dies_at_once, {"allow_legacy": True}),
    "is old and dies": Case(old_and_dies, {"allow_legacy": True}),
    "late modern evidence": Case(modern_after_all, {"allow_legacy": True}),
    "late modern evidence, not remembered": Case(
        modern_after_all, {"allow_legacy": True, "remember_modern": False}
    ),
    "says nothing": Case(mute),
    "says nothing, allowed": Case(mute, {"allow_legacy": True}),
}


OVER_HTTP = (
    "dies after a good handshake",
    "is old and dies",
    "late modern evidence, not remembered",
)


@pytest.mark.parametrize(
    ("name", "url"), [*((name, False) for name in CASES), *((name, True) for name in OVER_HTTP)]
)
async def test_the_tries_of_every_minute_are_bounded(name: str, *, url: bool) -> None:
    case = CASES[name]
    async with Stage(case.script(), **{**CARELESS, **case.keys}, url=url) as stage:
        for asked in await minutes(stage):
            assert asked["lives"] <= 2 * TRIES  # a round may need a second process for initialize
            assert asked["server/discover"] <= TRIES
            assert asked["initialize"] <= TRIES
            assert asked["tools/list"] <= TRIES


async def test_a_server_that_flaps_costs_almost_nothing_by_the_usual_configuration() -> None:
    async with Stage(dies_after_a_good_handshake()) as stage:
        first, *others = await minutes(stage, 60)
        assert first["lives"] <= 8
        assert max(asked["lives"] for asked in others) <= 3


@pytest.mark.parametrize("script", [dies_after_a_good_handshake, dies_at_once])
async def test_calls_without_end_add_no_more_tries_than_their_budget(
    script: Callable[[], Script],
) -> None:
    async with Stage(script(), restart_initial_s=3600, restart_max_s=3600) as stage:
        wanting = [asyncio.ensure_future(wants(stage)) for _ in range(3)]
        for asked in await minutes(stage):
            assert asked["lives"] <= in_a_minute(WAKES) + 2
        for one in wanting:
            one.cancel()


async def wants(stage: Stage) -> None:
    """A caller that never gives up."""
    while True:
        await stage.peer.wake(stage.clock.monotonic() + 5)
        await stage.clock.sleep(4)


async def minutes(stage: Stage, count: int = MINUTES) -> list[Counter[str]]:
    """What each minute cost: lives begun, and requests by method."""
    found, before = [], Counter[str]()
    for _ in range(count):
        await stage.pass_time(60)
        now = Counter(m["method"] for life in stage.script.heard for m in life)
        now["lives"] = len(stage.script.lives)
        found.append(now - before)
        before = now
    return found
