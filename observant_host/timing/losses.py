"""What telemetry lost is itself recorded, so that an absence in the record can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.telemetry.vocabulary import HostLifecycle, TelemetryLost
from observant_host.timing.tasks import wait_any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal

INTERVAL_S: Final = 5.0
"""A loss is told within the minutes around an incident, and at most twelve times a minute."""


async def tell_losses(
    stop: Signal, *, clock: Clock, telemetry: Telemetry, interval_s: float = INTERVAL_S
) -> None:
    """Runs until `stop`: the body of an OwnerTask. Tells what was lost last when it ends, and
    whenever a way out (a sink) is down or up again."""
    before = dict.fromkeys(telemetry.losses(), 0)
    down: frozenset[str] = frozenset()
    for stream in before:
        telemetry.count(TelemetryLost(stream=stream, spans=0))
    ended = False
    while not ended:
        ended = await wait_any(clock, interval_s, stop) is not None
        before = _told(telemetry, before)
        down = _told_down(telemetry, down)


def _told(telemetry: Telemetry, before: Mapping[str, int]) -> dict[str, int]:
    now = dict(telemetry.losses())
    for stream, total in now.items():
        if total > before.get(stream, 0):
            telemetry.count(TelemetryLost(stream=stream, spans=total - before.get(stream, 0)))
    return now


def _told_down(telemetry: Telemetry, before: frozenset[str]) -> frozenset[str]:
    now = telemetry.down()
    for sink, why in now.items():
        if sink not in before:
            detail = f"{sink}: {why}" if why else sink
            telemetry.count(HostLifecycle(what="sink_down", detail=detail))
    for sink in sorted(before - now.keys()):
        telemetry.count(HostLifecycle(what="sink_up", detail=sink))
    return frozenset(now)
