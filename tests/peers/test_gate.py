"""So many calls at once, the others in a short fair line."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from observant_host.errors import CallTimeout, RateLimited, Unavailable
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


def ask(one: Gate, principal: str | None, order: list[str]) -> asyncio.Task[None]:
    async def waiting() -> None:
        await one.enter(budget_s=60, method="tools/call", principal=principal)
        order.append(str(principal))

    return asyncio.create_task(waiting())


async def test_a_chatty_principal_does_not_keep_another_from_its_turn() -> None:
    clock = ManualClock()
    one, _ = gate(clock, queue_max=10)
    assert one.try_enter()
    order: list[str] = []
    tasks = [ask(one, "chatty", order) for _ in range(8)]
    await clock.settle()
    tasks += [ask(one, "quiet", order), ask(one, None, order)]
    for _ in tasks:
        await clock.settle()
        one.leave()
    await asyncio.gather(*tasks)
    assert order[:4] == ["chatty", "quiet", "None", "chatty"]
    assert order.count("chatty") == 8


async def test_a_line_full_of_one_principals_calls_gives_another_a_place() -> None:
    clock = ManualClock()
    one, _ = gate(clock, queue_max=4)
    assert one.try_enter()
    order: list[str] = []
    chatty = [ask(one, "chatty", order) for _ in range(4)]
    await clock.settle()
    quiet = [ask(one, "quiet", order) for _ in range(3)]
    await clock.settle()
    assert [task.done() for task in chatty] == [False, False, True, True]
    assert [task.done() for task in quiet] == [False, False, True], "an even share is all there is"
    for full in (*chatty[2:], quiet[2]):
        with pytest.raises(Unavailable, match="queue_max"):
            await full
    assert one.queued == 4
    for task in (*chatty[:2], *quiet[:2]):
        task.cancel()
    await clock.settle()
    assert one.queued == 0


async def test_places_that_were_added_go_to_those_who_wait_at_once() -> None:
    clock = ManualClock()
    one, _ = gate(clock)
    assert one.try_enter()
    tasks = [wait(one), wait(one)]
    await clock.settle()
    one.configure(max_in_flight=2, queue_max=2, queue_timeout_s=30)
    await clock.settle()
    assert [task.done() for task in tasks] == [True, False]
    one.configure(max_in_flight=1, queue_max=2, queue_timeout_s=30)
    one.leave()
    await clock.settle()
    assert not tasks[1].done()
    one.leave()
    await tasks[1]
    one.leave()
    assert one.try_enter()
    assert not one.try_enter()


# a server that asks to be left alone


async def test_a_pause_holds_calls_back_until_it_is_over() -> None:
    clock = ManualClock()
    one, _ = gate(clock, max_in_flight=2)
    assert one.try_enter()
    one.pause(5)
    assert not one.try_enter()
    task = wait(one)
    await clock.settle()
    one.leave()
    await clock.advance(4.9)
    assert not task.done(), "a place that is freed meanwhile lets nobody in"
    await clock.advance(0.2)
    await task
    assert one.try_enter()
    assert clock.waiting == 0


async def test_a_pause_that_nobody_waits_for_ends_without_a_timer() -> None:
    clock = ManualClock()
    one, _ = gate(clock)
    one.pause(5)
    assert clock.waiting == 0
    await clock.advance(5)
    await one.enter(budget_s=1, method="tools/call")
    assert one.in_flight == 1


async def test_a_call_that_cannot_wait_for_the_end_of_a_pause_is_told_at_once() -> None:
    clock = ManualClock()
    one, told = gate(clock)
    one.pause(40)
    one.pause(20)
    for budget_s in (39.0, 60.0):  # the caller's time, or queue_timeout_s
        with pytest.raises(RateLimited, match="left alone for another 40 s") as caught:
            await one.enter(budget_s=budget_s, method="tools/call")
        assert (caught.value.delivery, caught.value.fault) == ("not_sent", "peer")
        assert caught.value.retry_after_s == 40
    assert told == []
    assert one.queued == 0


async def test_a_long_pause_is_told_in_whole_seconds() -> None:
    one, _ = gate(ManualClock())
    one.pause(3600)
    with pytest.raises(RateLimited, match="left alone for another 3600 s"):
        await one.enter(budget_s=5, method="tools/call")


async def test_whoever_leaves_during_a_pause_leaves_no_timer_behind() -> None:
    clock = ManualClock()
    one, _ = gate(clock)
    one.pause(5)
    gone, failed = wait(one), wait(one)
    await clock.settle()
    gone.cancel()
    await clock.settle()
    one.fail_waiting(lambda: Unavailable("gone"))
    with pytest.raises(Unavailable, match="gone"):
        await failed
    assert clock.waiting == 0


async def test_time_that_passed_in_a_pause_is_the_servers() -> None:
    clock = ManualClock()
    one, _ = gate(clock)
    assert one.try_enter()
    task = wait(one, 5)
    await clock.settle()
    one.pause(60)
    await clock.advance(5.1)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert (caught.value.scope, caught.value.fault) == ("queue", "peer")


async def test_places_that_are_added_go_to_those_who_wait_and_fewer_hold_from_then_on() -> None:
    clock = ManualClock()
    one, _ = gate(clock, queue_max=4)
    assert one.try_enter()
    waiting = [wait(one) for _ in range(3)]
    await clock.settle()
    one.configure(max_in_flight=3, queue_max=4, queue_timeout_s=30.0)
    await clock.settle()
    assert [task.done() for task in waiting] == [True, True, False]
    assert (one.in_flight, one.queued) == (3, 1)
    one.configure(max_in_flight=1, queue_max=4, queue_timeout_s=30.0)
    one.leave()
    one.leave()
    await clock.settle()
    assert not waiting[2].done(), "one is still in flight, and one is what is allowed by now"
    one.leave()
    await clock.settle()
    assert waiting[2].done()
    assert not one.try_enter()


async def test_each_in_line_waits_no_longer_than_its_own_time() -> None:
    clock = ManualClock()
    one, told = gate(clock, queue_timeout_s=60.0, queue_max=3)
    assert one.try_enter()
    late, early, longest = wait(one, 5.0), wait(one, 2.0), wait(one, 30.0)
    await clock.settle()
    await clock.advance(2.5)
    assert (early.done(), late.done(), longest.done()) == (True, False, False)
    await clock.advance(3.0)
    assert (late.done(), longest.done()) == (True, False)
    one.leave()
    await longest
    budgets = [done.fact.budget_ms for done in told if isinstance(done.fact, DeadlineExpired)]
    assert budgets == [2000, 5000]
    with pytest.raises(CallTimeout):
        await early
    with pytest.raises(CallTimeout):
        await late
    assert clock.waiting == 0
