"""How late the event loop is: a blocked loop makes every timeout a lie, so it is measured, and a
stall that may have made one is kept with the decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.telemetry.vocabulary import HostLevel, LoopStalled
from observant_host.timing.tasks import wait_any

if TYPE_CHECKING:
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal

INTERVAL_S: Final = 0.25
"""Four wake-ups a second: a stall of that length is always seen, and idling costs nothing."""
STALL_S: Final = 0.5
"""From here on a stall can be what a deadline was missed by; below it is a busy machine."""
TOLD_EVERY_S: Final = 10.0
"""A loop that stalls all the time fills no record: at most six lines a minute."""

_LAG: Final = HostLevel(metric="event_loop_lag_seconds")


async def watch_lag(
    stop: Signal, *, clock: Clock, telemetry: Telemetry, interval_s: float = INTERVAL_S
) -> None:
    """Runs until `stop`: the body of an OwnerTask."""
    stalls = _Stalls(telemetry)
    asked = clock.monotonic() + interval_s
    while await wait_any(clock, interval_s, stop) is None:
        now = clock.monotonic()
        lag = max(0.0, now - asked)
        telemetry.level(_LAG, lag)
        stalls.seen(lag, now)
        asked = now + interval_s


class _Stalls:
    """Tells a first stall at once, those that follow together."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._longest = 0.0
        self._count = 0
        self._told: float | None = None

    def seen(self, lag: float, now: float) -> None:
        if lag >= STALL_S:
            self._count += 1
            self._longest = max(self._longest, lag)
        if self._count and (self._told is None or now - self._told >= TOLD_EVERY_S):
            self._telemetry.count(LoopStalled(lag_ms=self._longest * 1000, stalls=self._count))
            self._longest, self._count, self._told = 0.0, 0, now
