"""A budget of things that may be done again: so many at once, so many a second over time.

Whatever a server provokes (restarts, re-lists, re-listens, re-probes, retried calls) is taken from
one of these, so that nothing it does can make a storm of this host.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Rate(msgspec.Struct, frozen=True, gc=False):
    """At most `burst` at once; one more every `every_s` seconds."""

    burst: int
    every_s: float


RETRIES: Final = Rate(burst=10, every_s=2.0)
"""Calls to one server that are sent again. Sustained, a retry every two seconds is no load."""
WAKES: Final = Rate(burst=3, every_s=20.0)
"""Starts of one server before its time because a call wants it."""
RESTARTS: Final = Rate(burst=20, every_s=6.0)
"""Lives begun after one that had an era. The backoff is far slower; this holds whatever the
configuration calls healthy, and however often a good start is followed by an end."""
REPROBES: Final = Rate(burst=20, every_s=6.0)
"""Rounds that follow one without an era."""
RELISTENS: Final = Rate(burst=10, every_s=6.0)
"""Streams of changes opened with one server, over all its lives. Its own pauses grow to a minute;
this bounds what else asks for another: wishes that come and go, doubts, lives that do not last."""
DOUBTS: Final = Rate(burst=2, every_s=60.0)
"""Streams replaced because something else failed: a tool that always times out costs no more."""
LAST_CHANGES: Final = Rate(burst=10, every_s=10.0)
"""Lists read before their spacing is over because their server fell silent after a change."""
STALE_LISTS: Final = Rate(burst=10, every_s=3.0)
"""Lists read because a session was renewed, or the server refused what they said."""

CHECKS: Final = Rate(burst=3, every_s=10.0)
"""Health probes of one life: callers with deadlines that it cannot meet would ask for ever."""
ONE: Final = 1.0 - 1e-9
"""Sums of fractions may fall short of it, by less than any clock can wait for."""


class Budget(msgspec.Struct, eq=False, gc=False):
    """Mutable, of one owner. Times are monotonic seconds, never smaller than the last one given."""

    _rate: Rate
    _left: float = 0.0
    _then: float | None = None

    def __post_init__(self) -> None:
        self._left = float(self._rate.burst)

    def take(self, now_s: float) -> bool:
        """Spend one if there is one."""
        self._fill(now_s)
        if self._left < ONE:
            return False
        self._left -= 1.0
        return True

    def reserve(self, now_s: float) -> float:
        """Spend one that may not be there yet; the seconds until it is. What was reserved and not
        waited for (a person was faster) is owed, but never more than the burst."""
        self._fill(now_s)
        self._left = max(self._left - 1.0, -float(self._rate.burst))
        return max(0.0, -self._left * self._rate.every_s)

    def wait_s(self, now_s: float) -> float:
        """Seconds until there is one to spend; 0 where there is."""
        self._fill(now_s)
        return 0.0 if self._left >= ONE else (1.0 - self._left) * self._rate.every_s

    def _fill(self, now_s: float) -> None:
        if self._then is not None:
            self._left = min(
                float(self._rate.burst), self._left + (now_s - self._then) / self._rate.every_s
            )
        self._then = now_s
