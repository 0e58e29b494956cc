"""An event stream of a legacy session, which outlives the connections that carry it.

What was sent is kept for a while, in bounds, so that a client which lost its connection reads on
from the last event that it saw. What nobody has read yet is in the same place: a slow reader costs
one bounded buffer, out of which the oldest notifications fall.

Source: MCP 2025-11-25 basic/transports › Resumability and Redelivery.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from observant_host.service.mcp.outlet import Part

MAX_WAITING: Final = 256
MAX_WAITING_BYTES: Final = 512 * 1024
"""Of one stream, unread: hundreds of progress notes."""
MAX_KEPT: Final = 32
MAX_KEPT_BYTES: Final = 32 * 1024
"""Of one stream, after it was sent: what a connection may hold when it breaks."""


class Event:
    """`vital`: an answer or a question, which no storm of notifications may push out."""

    __slots__ = ("number", "parts", "size", "vital")

    def __init__(self, number: int, parts: tuple[Part, ...], *, vital: bool) -> None:
        self.number = number
        self.parts = parts
        self.size = sum(len(part) for part in parts)
        self.vital = vital


class Stream:
    """`number` is its place in the session. `ended`: nothing will follow. `holder` is the
    connection that carries it now; another one takes it over."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.ended = False
        self.more = Signal()
        self.holder: object | None = None
        self.lost = 0
        self._events: deque[Event] = deque()
        self._last = 0
        self._sent = 0

    @property
    def unsent_after(self) -> int:
        """The number of the last event that went out; 0 before the first."""
        return self._sent

    def put(self, *parts: Part, vital: bool = False) -> None:
        """One message. Never waits."""
        self._last += 1
        self._events.append(Event(self._last, parts, vital=vital))
        self._drop(MAX_WAITING, MAX_WAITING_BYTES, sent_only=False)
        self.more.set()

    def end(self) -> None:
        """Nothing follows. Idempotent."""
        self.ended = True
        self.more.set()

    def after(self, number: int) -> Event | None:
        """The first event later than that."""
        return next((one for one in self._events if one.number > number), None)

    def sent(self, number: int) -> None:
        """All up to that event went out; the last of them are kept."""
        self._sent = max(self._sent, number)
        self._drop(MAX_KEPT, MAX_KEPT_BYTES, sent_only=True)

    def has_lost_since(self, number: int) -> bool:
        """Whether a client that saw that event last has missed one that is no longer here."""
        first = self._events[0].number if self._events else self._last + 1
        return number + 1 < first

    def name_of(self, number: int) -> str:
        """An event's id: unique in the session."""
        return f"{self.number}-{number}"

    def _drop(self, count: int, size: int, *, sent_only: bool) -> None:
        """Of the oldest, until the rest fits; the newest stays, and what is vital until it was
        sent."""
        events = self._events
        there = [one for one in events if one.number <= self._sent] if sent_only else list(events)
        number, total = len(there), sum(one.size for one in there)
        for one in there if sent_only else there[:-1]:
            if number <= count and total <= size:
                return
            if one.vital and one.number > self._sent:
                continue
            events.remove(one)
            self.lost += one.number > self._sent
            number, total = number - 1, total - one.size


def place_of(event_id: str | None) -> tuple[int, int] | None:
    """(stream, event) out of a Last-Event-ID of ours, else None."""
    stream, _, number = (event_id or "").partition("-")
    if not (stream.isascii() and stream.isdigit() and number.isascii() and number.isdigit()):
        return None
    return (int(stream), int(number)) if len(stream) + len(number) <= MAX_DIGITS else None


MAX_DIGITS: Final = 30
