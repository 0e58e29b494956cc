"""A budget of things that may be done again: so many at once, so many a second over time.

Whatever a server provokes (restarts, re-lists, re-listens, re-probes, retried calls) is taken from
one of these, so that nothing it does can make a storm of this host.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Rate(msgspec.Struct, frozen=True):
    """At most `burst` at once; one more every `every_s` seconds."""

    burst: int
    every_s: float


RETRIES: Final = Rate(burst=10, every_s=2.0)
"""Calls to one server that are sent again. Sustained, a retry every two seconds is no load."""
WAKES: Final = Rate(burst=3, every_s=20.0)
"""Starts of one server before its time because a call wants it."""


class Budget:
    """Mutable, of one owner. Times are monotonic seconds, never smaller than the last one given."""

    __slots__ = ("_left", "_rate", "_then")

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._left = float(rate.burst)
        self._then: float | None = None

    def take(self, now_s: float) -> bool:
        """Spend one if there is one."""
        self._fill(now_s)
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    def wait_s(self, now_s: float) -> float:
        """Seconds until there is one to spend; 0 where there is."""
        self._fill(now_s)
        return max(0.0, (1.0 - self._left) * self._rate.every_s)

    def _fill(self, now_s: float) -> None:
        if self._then is not None:
            self._left = min(
                float(self._rate.burst), self._left + (now_s - self._then) / self._rate.every_s
            )
        self._then = now_s
