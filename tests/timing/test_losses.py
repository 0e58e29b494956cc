"""What telemetry lost is recorded."""

from __future__ import annotations

from observant_host.telemetry import setup
from observant_host.telemetry.vocabulary import HostLifecycle, TelemetryLost
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


async def test_a_sink_that_is_down_is_told_once_and_so_is_its_return() -> None:
    telemetry, told = setup.capturing()
    down: dict[str, str] = {}
    telemetry.down = lambda: dict(down)
    clock = ManualClock()

    async def run(stop: Signal) -> None:
        await tell_losses(stop, clock=clock, telemetry=telemetry)

    owner = OwnerTask("losses", run)
    owner.start()
    await clock.advance(6)
    down |= {"recorder": "No space left on device", "otlp": ""}
    await clock.advance(20)
    del down["recorder"]
    await clock.advance(20)
    owner.stop()
    await owner.wait()
    assert [one.fact for one in told] == [
        HostLifecycle(what="sink_down", detail="recorder: No space left on device"),
        HostLifecycle(what="sink_down", detail="otlp"),
        HostLifecycle(what="sink_up", detail="recorder"),
    ]
