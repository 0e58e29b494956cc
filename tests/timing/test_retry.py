"""Doing it again: as often as was decided, never unobserved."""

from __future__ import annotations

import pytest

from observant_host.telemetry.setup import capturing
from observant_host.telemetry.vocabulary import RetryDenied, RetryScheduled
from observant_host.timing.retry import Again, Denied, retrying
from observant_host.timing.tasks import spawn
from tests.support.clock import ManualClock


async def test_it_is_done_again_after_the_delay_that_was_decided() -> None:
    telemetry, told = capturing()
    clock = ManualClock(start=0)
    attempts: list[tuple[int, float]] = []

    async def act(attempt: int) -> str:
        attempts.append((attempt, clock.monotonic()))
        if attempt < 3:
            raise OSError("not yet")
        return "done"

    def decide(error: Exception, attempt: int) -> Again:
        return Again("not_sent", delay_s=float(attempt))

    task = spawn("act", retrying(act, decide, clock=clock, telemetry=telemetry, peer="a"))
    await clock.advance(10)
    assert await task == "done"
    assert attempts == [(1, 0.0), (2, 1.0), (3, 3.0)]
    assert [done.fact for done in told] == [
        RetryScheduled(peer="a", reason="not_sent", attempt=2, delay_ms=1000.0),
        RetryScheduled(peer="a", reason="not_sent", attempt=3, delay_ms=2000.0),
    ]


@pytest.mark.parametrize(
    ("verdict", "facts"),
    [(None, []), (Denied("budget"), [RetryDenied(peer="a", reason="budget")])],
)
async def test_it_is_not_done_again_where_that_was_decided(
    verdict: Denied | None, facts: list[object]
) -> None:
    telemetry, told = capturing()
    calls = []

    async def act(attempt: int) -> None:
        calls.append(attempt)
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        await retrying(act, lambda *_: verdict, clock=ManualClock(), telemetry=telemetry, peer="a")
    assert calls == [1]
    assert [done.fact for done in told] == facts
