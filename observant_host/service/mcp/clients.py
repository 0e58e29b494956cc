"""How many clients there are, by era.

A legacy one has a session and is counted while that lasts. A modern one holds nothing between its
requests: it counts for a while after each, as one for each caller and program.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.timing.clock import Clock

HEARD_S: Final = 300.0
"""For which a modern client counts after its last request: longer than an agent usually thinks."""
MAX_HEARD: Final = 4096
"""Modern clients that are told apart: what a client calls itself can be anything."""

Known = tuple[str, str | None, str | None]
"""Principal, and the program's name and version as it says itself."""


class Clients:
    """`heard` is on the path of every request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard: OrderedDict[Known, float] = OrderedDict()
        self._sessions = 0

    def heard(self, principal: str, name: str | None, version: str | None) -> None:
        """A modern client asked something."""
        heard = self._heard
        key = (principal, name, version)
        heard[key] = self._clock.monotonic()
        heard.move_to_end(key)
        if len(heard) > MAX_HEARD:
            heard.popitem(last=False)

    def began(self) -> None:
        """A session of a legacy client."""
        self._sessions += 1

    def ended(self) -> None:
        """One that began."""
        self._sessions -= 1

    def count(self) -> Mapping[str, int]:
        """By era, now."""
        heard, since = self._heard, self._clock.monotonic() - HEARD_S
        while heard and next(iter(heard.values())) < since:
            heard.popitem(last=False)
        return {"modern": len(heard), "legacy": self._sessions}
