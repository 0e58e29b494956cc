"""Deadlines bound work, are counted when they pass, and are never mistaken for a cancellation."""

from __future__ import annotations

import asyncio

import pytest

from observant_host.telemetry.setup import capturing
from observant_host.telemetry.vocabulary import DeadlineExpired, PeerStart
from observant_host.timing.clock import SystemClock
from observant_host.timing.deadline import DeadlinePassed, Sweep, deadline
from observant_host.timing.tasks import spawn
from tests.support.clock import ManualClock


async def test_work_within_its_deadline_is_not_noticed() -> None:
    telemetry, told = capturing()
    clock = ManualClock()
    async with deadline(5, scope="list", peer="a", telemetry=telemetry, clock=clock):
        await clock.settle()
    assert told == []
    assert clock.waiting == 0


async def test_a_deadline_that_passes_is_counted_and_raised() -> None:
    telemetry, told = capturing()
    clock = ManualClock()

    async def work() -> None:
        async with deadline(
            5, scope="list", peer="a", telemetry=telemetry, method="tools/list", clock=clock
        ):
            await clock.sleep(60)

    task = spawn("work", work(), on_error=lambda *_: None)
    await clock.advance(5)
    with pytest.raises(DeadlinePassed, match="list deadline of 5 s") as caught:
        await task
    assert (caught.value.scope, caught.value.budget_s, caught.value.elapsed_s) == ("list", 5, 5)
    assert [done.fact for done in told] == [
        DeadlineExpired(
            peer="a", scope="list", budget_ms=5000, elapsed_ms=5000, method="tools/list"
        )
    ]


async def test_it_is_an_ordinary_timeout_for_the_operation_around_it() -> None:
    telemetry, told = capturing()
    fact = PeerStart(peer="a", generation=1, trigger="boot", transport="stdio")
    with pytest.raises(TimeoutError), telemetry.operation(fact):
        async with deadline(0.01, scope="connect", peer="a", telemetry=telemetry):
            await asyncio.Event().wait()
    assert told[-1].outcome == "timeout"
    assert [event.name for event in told[-1].events] == ["deadline.exceeded"]


async def test_a_cancellation_from_outside_stays_one() -> None:
    telemetry, told = capturing()
    clock = ManualClock()
    entered = asyncio.Event()

    async def work() -> None:
        async with deadline(5, scope="list", peer="a", telemetry=telemetry, clock=clock):
            entered.set()
            await asyncio.Event().wait()

    task = spawn("work", work())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told == []
    assert clock.waiting == 0


async def test_an_error_inside_passes_through() -> None:
    telemetry, told = capturing()
    with pytest.raises(KeyError):
        async with deadline(5, scope="list", peer="a", telemetry=telemetry):
            raise KeyError("x")
    assert told == []


async def test_the_outer_of_two_deadlines_is_the_one_that_is_named() -> None:
    telemetry, told = capturing()
    clock = ManualClock()

    async def work() -> None:
        async with (
            deadline(1, scope="call", peer="a", telemetry=telemetry, clock=clock),
            deadline(5, scope="attempt", peer="a", telemetry=telemetry, clock=clock),
        ):
            await asyncio.Event().wait()

    task = spawn("work", work(), on_error=lambda *_: None)
    await clock.advance(1)
    with pytest.raises(DeadlinePassed) as caught:
        await task
    assert caught.value.scope == "call"
    assert [done.fact.scope for done in told] == ["call"]


async def test_no_seconds_is_no_deadline() -> None:
    telemetry, _ = capturing()
    clock = ManualClock()
    async with deadline(None, scope="call", peer="a", telemetry=telemetry, clock=clock):
        assert clock.waiting == 0


class Table:
    """Entries with deadlines, as a peer's pending requests are."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.open: dict[str, float] = {}
        self.expired: list[tuple[str, float]] = []
        self.scans = 0
        self.sweep = Sweep(clock, self.due)

    def add(self, name: str, seconds: float) -> None:
        self.open[name] = self.clock.monotonic() + seconds
        self.sweep.arm(self.open[name])

    def due(self, now: float) -> float | None:
        self.scans += 1
        for name in [name for name, when in self.open.items() if when <= now]:
            del self.open[name]
            self.expired.append((name, now))
        return min(self.open.values(), default=None)


async def test_one_timer_serves_every_deadline_in_order() -> None:
    clock = ManualClock(start=0)
    table = Table(clock)
    for name, seconds in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("d", 30.0)):
        table.add(name, seconds)
    assert clock.waiting == 1
    await clock.advance(3)
    assert table.expired == [("a", 1.0), ("b", 2.0), ("c", 3.0)]
    assert clock.waiting == 1


async def test_deadlines_close_together_share_a_scan_and_are_at_most_ten_ms_late() -> None:
    clock = ManualClock(start=0)
    table = Table(clock)
    for number in range(100):
        table.add(str(number), 1 + number / 1000)
    await clock.advance(2)
    assert len(table.expired) == 100
    assert table.scans <= 12
    assert all(at - (1 + int(name) / 1000) <= 0.0101 for name, at in table.expired)


async def test_calls_that_end_in_time_cost_no_scan() -> None:
    clock = ManualClock(start=0)
    table = Table(clock)
    for number in range(1000):
        table.add(str(number), 30)
        del table.open[str(number)]
    assert clock.waiting == 1
    assert table.scans == 0


async def test_a_closed_sweep_is_silent() -> None:
    clock = ManualClock(start=0)
    table = Table(clock)
    table.add("a", 1)
    table.sweep.close()
    await clock.advance(5)
    assert table.expired == []
    assert clock.waiting == 0


async def test_the_real_clock_calls_back_and_can_be_stopped() -> None:
    clock = SystemClock()
    called = asyncio.Event()
    clock.call_at(clock.monotonic() + 60, called.set).cancel()
    clock.call_at(clock.monotonic() - 1, called.set)
    async with asyncio.timeout(5):
        await called.wait()
        await clock.sleep(0)
    assert clock.wall_ns() > 1_700_000_000 * 10**9
