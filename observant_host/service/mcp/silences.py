"""Who has said nothing for a while: one timer for all exchanges, since a timer each would cost a
call more than writing its answer does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from observant_host.timing.deadline import Sweep

if TYPE_CHECKING:
    from observant_host.timing.clock import Clock

KEEP_ALIVE_S: Final = 15.0
"""Between two comments on a silent stream, and before an answer becomes one: common proxies cut a
silent connection off after 30 or 60 seconds."""


class Silent(Protocol):
    def too_long(self) -> None:
        """Nothing was said for `after_s`."""


class Silences:
    """`begin` and `end` are on the path of every request. All wait equally long, so that whoever
    began first is the next: a request holds one entry while it is open."""

    def __init__(self, clock: Clock, *, after_s: float = KEEP_ALIVE_S) -> None:
        self.after_s = after_s
        self._clock = clock
        self._since: dict[Silent, float] = {}
        self._sweep = Sweep(clock, self._due)
        self._watched = False

    def begin(self, one: Silent) -> None:
        until = self._since[one] = self._clock.monotonic() + self.after_s
        if not self._watched:
            self._watched = True
            self._sweep.arm(until)

    def end(self, one: Silent) -> None:
        """Idempotent."""
        self._since.pop(one, None)

    def _due(self, now: float) -> float | None:
        for one, until in list(self._since.items()):
            if until > now:
                return until
            del self._since[one]
            one.too_long()
        self._watched = False
        return None
