"""What telemetry lost is recorded."""

from __future__ import annotations

from observant_host.telemetry import setup
from observant_host.telemetry.vocabulary import TelemetryLost
from observant_host.timing.losses import tell_losses
from observant_host.timing.tasks import OwnerTask, Signal
from tests.support.clock import ManualClock


async def test_losses_are_told_from_the_first_moment_once_each_and_at_the_end() -> None:
    telemetry, told = setup.capturing()
    lost = {"decisions": 0, "traces": 0}
    telemetry.losses = lambda: dict(lost)
    clock = ManualClock()

    async def run(stop: Signal) -> None:
        await tell_losses(stop, clock=clock, telemetry=telemetry)

    owner = OwnerTask("losses", run)
    owner.start()
    await clock.advance(6)
    lost["traces"] = 7
    await clock.advance(20)
    lost["decisions"] = 1
    owner.stop()
    await owner.wait()
    assert [one.fact for one in told] == [
        TelemetryLost(stream="decisions", spans=0),
        TelemetryLost(stream="traces", spans=0),
        TelemetryLost(stream="traces", spans=7),
        TelemetryLost(stream="decisions", spans=1),
    ]


async def test_a_telemetry_that_cannot_lose_anything_says_nothing() -> None:
    telemetry, told = setup.capturing()
    clock, stop = ManualClock(), Signal()
    stop.set()
    await tell_losses(stop, clock=clock, telemetry=telemetry)
    assert told == []
