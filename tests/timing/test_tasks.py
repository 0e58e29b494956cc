"""Tasks have names and owners, start with nobody's context, and never fail in silence."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from observant_host.timing.clock import SystemClock
from observant_host.timing.tasks import (
    IN_ONE_TURN,
    EndlessTaskReturned,
    Latch,
    OwnerTask,
    Signal,
    ended_by,
    in_turns,
    spawn,
    wait_any,
)
from tests.support.clock import ManualClock

somebody: contextvars.ContextVar[str] = contextvars.ContextVar("somebody", default="nobody")


async def test_a_task_starts_in_an_empty_context_and_carries_its_name() -> None:
    somebody.set("me")

    async def look() -> tuple[str, str]:
        task = asyncio.current_task()
        assert task is not None
        return somebody.get(), task.get_name()

    assert await spawn("look around", look()) == ("nobody", "look around")


async def test_a_task_that_fails_is_reported_to_its_owner() -> None:
    failed: list[tuple[str, BaseException]] = []

    async def fail() -> None:
        raise KeyError("x")

    task = spawn("fails", fail(), on_error=lambda name, error: failed.append((name, error)))
    with pytest.raises(KeyError):
        await task
    assert [(name, type(error)) for name, error in failed] == [("fails", KeyError)]


async def test_a_task_that_fails_without_an_owner_is_reported_to_the_loop() -> None:
    seen: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context))

    async def fail() -> None:
        raise KeyError("x")

    task = spawn("fails", fail())
    await asyncio.wait({task})
    await asyncio.sleep(0)
    assert seen[0]["message"] == "task fails failed"


async def test_a_cancelled_task_has_not_failed() -> None:
    failed: list[object] = []
    task = spawn("waits", asyncio.Event().wait(), on_error=lambda *what: failed.append(what))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    await asyncio.sleep(0)
    assert failed == []


async def test_an_owner_task_runs_until_it_is_told_to_stop() -> None:
    async def run(stop: Signal) -> None:
        await stop.wait()

    owner = OwnerTask("owner", run)
    assert not owner.started
    await owner.wait()
    owner.start()
    assert owner.started
    assert not owner.done
    owner.stop()
    owner.stop()
    await asyncio.gather(owner.wait(), owner.wait())
    assert owner.done
    assert owner.name == "owner"
    with pytest.raises(RuntimeError, match="started already"):
        owner.start()


async def test_an_endless_task_that_returns_is_an_error() -> None:
    failed: list[BaseException] = []

    async def run(stop: Signal) -> None:
        await asyncio.sleep(0)

    owner = OwnerTask("owner", run, on_error=lambda _, error: failed.append(error))
    owner.start()
    with pytest.raises(EndlessTaskReturned, match="owner"):
        await owner.wait()
    assert [type(error) for error in failed] == [EndlessTaskReturned]


async def test_cancelling_a_waiter_leaves_the_task_alone() -> None:
    async def run(stop: Signal) -> None:
        await stop.wait()

    owner = OwnerTask("owner", run)
    owner.start()
    waiter = asyncio.ensure_future(owner.wait())
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert not owner.done
    owner.stop()
    await owner.wait()


async def test_a_task_that_no_longer_listens_can_be_cancelled() -> None:
    async def run(stop: Signal) -> None:
        await asyncio.Event().wait()

    owner = OwnerTask("owner", run)
    owner.start()
    await asyncio.sleep(0)
    owner.cancel()
    await owner.wait()
    assert owner.done


async def test_a_signal_wakes_everybody_and_stays_until_cleared() -> None:
    signal = Signal()
    waiters = [asyncio.ensure_future(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    signal.set()
    async with asyncio.timeout(5):
        await asyncio.gather(*waiters)
        await signal.wait()
    signal.clear()
    assert not signal.is_set()


async def test_a_latch_takes_its_first_value_for_ever() -> None:
    latch: Latch[str] = Latch()
    assert latch.value is None
    assert latch.release("first")
    assert not latch.release("second")
    async with asyncio.timeout(5):
        await latch.wait()
    assert latch.value == "first"
    with pytest.raises(RuntimeError, match="never cleared"):
        latch.clear()


async def test_waiting_for_several_gives_the_first_in_their_order() -> None:
    clock, one, two = ManualClock(), Signal(), Signal()
    two.set()
    assert await wait_any(clock, 5, one, two) is two
    one.set()
    assert await wait_any(clock, None, one, two) is one
    assert clock.waiting == 0


async def test_waiting_for_several_is_woken_by_any_and_leaves_nothing_behind() -> None:
    clock, one, two = ManualClock(), Signal(), Signal()
    waiter = asyncio.ensure_future(wait_any(clock, 5, one, two))
    await clock.settle()
    assert clock.waiting == 1
    two.set()
    two.set()
    assert await waiter is two
    assert clock.waiting == 0
    assert not one._waiters
    assert not two._waiters


async def test_waiting_for_several_ends_with_the_clock() -> None:
    clock, one = ManualClock(), Signal()
    waiter = asyncio.ensure_future(wait_any(clock, 5, one))
    await clock.advance(4.9)
    assert not waiter.done()
    await clock.advance(0.2)
    assert await waiter is None
    assert await wait_any(clock, 0, one) is None
    assert await wait_any(SystemClock(), 0.001, one) is None


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    clock, one = ManualClock(), Signal()
    waiter = asyncio.ensure_future(wait_any(clock, 5, one))
    await clock.settle()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert clock.waiting == 0
    assert not one._waiters


async def test_a_scope_ends_with_the_first_of_its_signals_and_only_while_it_is_open() -> None:
    first, second = Signal(), Signal()
    reached = False
    with ended_by(first, second) as scope:
        asyncio.get_running_loop().call_soon(second.set)
        await asyncio.Event().wait()
    assert scope.cancelled_caught
    with ended_by(first, second) as scope:  # already set
        await asyncio.Event().wait()
    assert scope.cancelled_caught
    with ended_by(first) as scope:
        reached = True
    first.set()
    await asyncio.sleep(0)
    assert reached
    assert not scope.cancelled_caught
    assert not first._waiters


async def test_much_work_is_done_in_order_and_lets_others_have_their_turns() -> None:
    done: list[int] = []
    seen: list[int] = []

    async def other() -> None:
        while len(done) < 3 * IN_ONE_TURN:
            seen.append(len(done))
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    await in_turns(range(3 * IN_ONE_TURN), done.append)
    await beside
    assert done == list(range(3 * IN_ONE_TURN))
    assert {IN_ONE_TURN, 2 * IN_ONE_TURN} <= set(seen)


async def test_of_many_that_wait_for_one_signal_all_are_woken_but_those_who_left() -> None:
    signal = Signal()
    waiting = [asyncio.create_task(signal.wait()) for _ in range(4)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.wait({waiting[1]})
    signal.unwatch(asyncio.get_running_loop().create_future())  # who never waited
    signal.set()
    await asyncio.gather(*waiting[:1], *waiting[2:])
    assert waiting[1].cancelled()
    assert not signal._waiters
