"""How late the event loop is: a blocked loop makes every timeout a lie, so it is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.telemetry.vocabulary import HostLevel
from observant_host.timing.tasks import wait_any

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
    asked = clock.monotonic() + interval_s
    while await wait_any(clock, interval_s, stop) is None:
        now = clock.monotonic()
        telemetry.level(_LAG, max(0.0, now - asked))
        asked = now + interval_s
