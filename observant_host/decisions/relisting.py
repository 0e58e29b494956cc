"""When to read the lists again: at once for the first change, ever rarer for a chatty server, and
always soon after the last one: what a server said before it fell silent must not wait.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.budget import LAST_CHANGES, Budget
from observant_host.decisions.freshness import is_fresh

if TYPE_CHECKING:
    from observant_host.decisions.catalogue import Listing

FIRST_SPACING_S: Final = 0.1
MAX_SPACING_S: Final = 30.0
"""A server that says "changed" without end costs at most one list in this time."""
CHATTY_SPACING_S: Final = 3.0
"""A spacing that is only reached by five changes without a quiet time between them."""
SILENT_S: Final = 1.5
"""Without a further change for so long, the last one is read whatever the spacing has grown to."""
QUIET_S: Final = 60.0
"""Without a change for so long, the next one is read at once again."""


REST_S: Final = 1.0
"""Lists that were read within this second are taken as they are, also where their server calls
them stale at once: whoever looks twice in a moment gets one reading."""


def is_due(listing: Listing, now_s: float) -> bool:
    """Whether lists that somebody looks at are to be read anew first. Never while a list fails:
    then it is read again by itself, and what was good is shown meanwhile."""
    rested = now_s >= listing.read_s + REST_S
    return listing.complete and rested and not is_fresh(listing.fresh_until_s, now_s)


def runs_out_s(listing: Listing) -> float:
    """When a look at these lists is to have them read anew behind its back (monotonic seconds):
    only where the server gave them a time at all. Else whoever wants them new has to ask."""
    had_time = listing.complete and listing.fresh_until_s > listing.read_s
    return listing.fresh_until_s if had_time else math.inf


class Relisting(msgspec.Struct, frozen=True):
    """`last_s` is when the lists were last read (monotonic), `spacing_s` the least gap after it."""

    last_s: float
    spacing_s: float = FIRST_SPACING_S

    def wait_s(self, now_s: float) -> float:
        """Seconds until the lists may be read again; 0 where they may now."""
        return max(0.0, self.last_s + self.spacing_s - now_s)

    @property
    def chatty(self) -> bool:
        """Whether the server says so often that its lists changed that a person should know."""
        return self.spacing_s >= CHATTY_SPACING_S

    def read(self, now_s: float) -> Relisting:
        """After one more reading that a change asked for."""
        if now_s - self.last_s >= QUIET_S:
            return Relisting(now_s)
        return Relisting(now_s, min(self.spacing_s * 2, MAX_SPACING_S))


class Relists:
    """The readings that one life's changes ask for. Mutable, of one owner; monotonic seconds.

    A server that says "changed" again just as often as SILENT_S passes would get a reading each
    time: those have a budget, beyond which only the spacing counts until it has filled again.
    """

    def __init__(self) -> None:
        self._state = Relisting(-math.inf)
        self._last_changes = Budget(LAST_CHANGES)

    @property
    def chatty(self) -> bool:
        return self._state.chatty

    def wait_s(self, now_s: float, *, changed_s: float) -> float:
        """Seconds until lists may be read that last changed then; 0 where they may now."""
        silent_s = max(0.0, changed_s + SILENT_S - now_s)
        return min(self._state.wait_s(now_s), max(silent_s, self._last_changes.wait_s(now_s)))

    def began(self, now_s: float) -> None:
        """They are being read now."""
        if self._state.wait_s(now_s) > 0:
            self._last_changes.take(now_s)
        self._state = self._state.read(now_s)
