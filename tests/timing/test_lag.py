"""The loop's lateness is measured."""

from __future__ import annotations

from observant_host.telemetry import setup
from observant_host.telemetry.facade import Telemetry
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.metrics import MetricSink
from observant_host.timing.lag import watch_lag
from observant_host.timing.tasks import OwnerTask, Signal
from tests.support.clock import ManualClock


async def test_a_stall_of_the_loop_is_seen_in_the_metric() -> None:
    sink = MetricSink()
    telemetry = Telemetry(starter=OwnIds(), sinks=[sink], metrics=sink)
    clock = ManualClock()

    async def run(stop: Signal) -> None:
        await watch_lag(stop, clock=clock, telemetry=telemetry)

    owner = OwnerTask("lag", run)
    owner.start()
    await clock.advance(0.75)
    clock._now += 0.5  # the loop was busy: nobody was woken in time
    await clock.advance(0.25)
    owner.stop()
    await owner.wait()
    text = (await telemetry.render())[0].decode()
    assert 'observant_host_event_loop_lag_seconds_bucket{le="0.1"} 4.0' in text
    assert 'observant_host_event_loop_lag_seconds_bucket{le="+Inf"} 5.0' in text


async def test_a_long_stall_is_recorded_and_a_loop_that_stalls_all_the_time_only_now_and_then() -> (
    None
):
    telemetry, told = setup.capturing()
    clock = ManualClock()

    async def run(stop: Signal) -> None:
        await watch_lag(stop, clock=clock, telemetry=telemetry)

    owner = OwnerTask("lag", run)
    owner.start()
    for late in (0.1, 2.0, 0.6, 3.0):
        await clock.advance(0.2)
        clock._now += 0.05 + late
        await clock.advance(0.25)
    await clock.advance(10)
    owner.stop()
    await owner.wait()
    assert [(round(one.fact.lag_ms), one.fact.stalls) for one in told] == [(2000, 1), (3000, 2)]
