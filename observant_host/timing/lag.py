"""How late the event loop is: a blocked loop makes every timeout a lie, so it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.telemetry.vocabulary import HostLevel

if TYPE_CHECKING:
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal

INTERVAL_S: Final = 0.25
"""Four wake-ups a second: a stall of that length is always seen, and idling costs nothing."""

_LAG: Final = HostLevel(metric="event_loop_lag_seconds")


async def watch_lag(
    stop: Signal, *, clock: Clock, telemetry: Telemetry, interval_s: float = INTERVAL_S
) -> None:
    """Runs until `stop`: the body of an OwnerTask."""
    while not stop.is_set():
        asked = clock.monotonic() + interval_s
        await clock.sleep(interval_s)
        telemetry.level(_LAG, max(0.0, clock.monotonic() - asked))
