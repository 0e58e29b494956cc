"""So many calls at once, the others in a short fair line."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from observant_host.errors import CallTimeout, Unavailable
from observant_host.peers.gate import Gate
from observant_host.telemetry.setup import capturing
from observant_host.telemetry.vocabulary import DeadlineExpired
from tests.support.clock import ManualClock


def gate(clock: ManualClock, **bounds: Any) -> tuple[Gate, list[Any]]:
    telemetry, told = capturing()
    bounds = {"max_in_flight": 1, "queue_max": 2, "queue_timeout_s": 30.0, **bounds}
    return Gate("tested", telemetry=telemetry, clock=clock, **bounds), told


def wait(one: Gate, budget_s: float = 60.0) -> asyncio.Task[None]:
    return asyncio.create_task(one.enter(budget_s=budget_s, method="tools/call"))


async def test_the_free_way_in_needs_no_waiting() -> None:
    one, _ = gate(ManualClock(), max_in_flight=2)
    assert one.try_enter()
    assert one.try_enter()
    assert not one.try_enter()
    one.leave()
    assert one.try_enter()
    assert (one.in_flight, one.queued) == (2, 0)


async def test_the_line_is_served_in_order_and_nobody_jumps_it() -> None:
    clock = ManualClock()
    one, _ = gate(clock)
    assert one.try_enter()
    first, second = wait(one), wait(one)
    await clock.settle()
    assert one.queued == 2
    one.leave()
    assert not one.try_enter()
    await clock.settle()
    assert (first.done(), second.done()) == (True, False)
    one.leave()
    await second
    one.leave()
    assert one.in_flight == 0


async def test_a_full_line_refuses_at_once() -> None:
    one, _ = gate(ManualClock(), queue_max=0)
    assert one.try_enter()
    with pytest.raises(Unavailable, match="queue_max") as caught:
        await one.enter(budget_s=60, method="tools/call")
    assert (caught.value.delivery, caught.value.fault) == ("not_sent", "host")


@pytest.mark.parametrize(("queue_s", "budget_s"), [(5.0, 60.0), (60.0, 5.0)])
async def test_waiting_ends_with_the_queue_timeout_or_the_calls_own(
    queue_s: float, budget_s: float
) -> None:
    clock = ManualClock()
    one, told = gate(clock, queue_timeout_s=queue_s)
    assert one.try_enter()
    task = wait(one, budget_s)
    await clock.settle()
    await clock.advance(5.1)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert (caught.value.scope, caught.value.delivery) == ("queue", "not_sent")
    assert caught.value.fault == "host"
    assert [done.fact.scope for done in told if isinstance(done.fact, DeadlineExpired)] == ["queue"]
    one.leave()
    assert (one.in_flight, one.queued) == (0, 0)


async def test_a_cancelled_waiter_leaves_the_line_and_loses_no_place() -> None:
    clock = ManualClock()
    one, _ = gate(clock)
    assert one.try_enter()
    gone, granted, last = wait(one), wait(one), None
    await clock.settle()
    gone.cancel()
    await clock.settle()
    one.leave()
    granted.cancel()  # the place was given in this very instant
    await clock.settle()
    last = one.try_enter()
    assert last
    assert (one.in_flight, one.queued) == (1, 0)


async def test_the_end_of_a_life_fails_everybody_in_line() -> None:
    clock = ManualClock()
    one, _ = gate(clock)
    assert one.try_enter()
    tasks = [wait(one), wait(one)]
    await clock.settle()
    one.fail_waiting(lambda: Unavailable("gone"))
    for task in tasks:
        with pytest.raises(Unavailable, match="gone"):
            await task
    one.leave()
    assert one.in_flight == 0
