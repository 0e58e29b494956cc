"""The sessions of legacy clients over HTTP: found by an id that nobody can guess, bounded, and gone
when nobody uses them.

Source: MCP 2025-11-25 basic/transports › Session Management.
"""

from __future__ import annotations

import secrets
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final

from observant_host.service.mcp.legacy_streams import Stream
from observant_host.timing.deadline import Sweep

if TYPE_CHECKING:
    from observant_host.service.mcp.legacy_exchange import Exchange
    from observant_host.service.mcp.legacy_session import Session
    from observant_host.timing.clock import Clock

MAX_SESSIONS: Final = 1024
MAX_OF_ONE: Final = 256
"""Sessions of one principal; without tokens all callers are one. A new one ends the one that was
unused for longest."""
IDLE_S: Final = 1800.0
"""Without a request and without a stream: a client that comes later begins anew."""
MAX_STREAMS: Final = 8
"""Of answers that are kept for a client which lost its connection."""
ID_BYTES: Final = 24


class Seat:
    """One session with the streams that carry it. Stream 0 is the one that GET opens."""

    def __init__(self, session: Session, *, key: str) -> None:
        self.session = session
        self.key = key
        self.general = Stream(0)
        self.used_s = 0.0
        self.connections = 0
        self.exchanges: list[Exchange] = []
        self._streams: OrderedDict[int, Stream] = OrderedDict()
        self._made = 0

    @property
    def in_use(self) -> bool:
        return self.connections > 0 or self.session.busy

    def new_stream(self) -> Stream:
        """For the answer to one POST."""
        self._made += 1
        stream = self._streams[self._made] = Stream(self._made)
        while len(self._streams) > MAX_STREAMS:
            over = next((n for n, one in self._streams.items() if one.ended), None)
            if over is None:
                break
            del self._streams[over]
        return stream

    def find_stream(self, number: int) -> Stream | None:
        return self.general if number == 0 else self._streams.get(number)

    def log(self, message: bytes) -> None:
        """A log message: beside the newest request that is open, else on the general stream, once
        the client has opened it."""
        if self.exchanges and not self.exchanges[-1].done:
            self.exchanges[-1].say(message)
        elif self.general.holder is not None:
            self.general.put(message)

    def end(self) -> None:
        """Cancel and close everything of it."""
        self.session.end()
        for stream in (self.general, *self._streams.values()):
            stream.end()


class Table:
    """All sessions, the one that was used last at the end."""

    def __init__(self, *, clock: Clock, most: int = MAX_SESSIONS, of_one: int = MAX_OF_ONE) -> None:
        self._clock = clock
        self._most = most
        self._of_one = of_one
        self._seats: OrderedDict[str, Seat] = OrderedDict()
        self._counts: Counter[str] = Counter()
        self._sweep = Sweep(clock, self._expire)

    def __len__(self) -> int:
        return len(self._seats)

    def add(self, session: Session) -> Seat:
        """A new session; another one may have to end for it."""
        self._make_room(session.caller.principal)
        seat = Seat(session, key=secrets.token_urlsafe(ID_BYTES))
        self._seats[seat.key] = seat
        self._counts[session.caller.principal] += 1
        self._touch(seat)
        return seat

    def find(self, key: str, principal: str) -> Seat | None:
        """The principal's session with that id; somebody else's does not exist for it."""
        seat = self._seats.get(key)
        if seat is None or seat.session.caller.principal != principal:
            return None
        self._seats.move_to_end(key)
        self._touch(seat)
        return seat

    def end(self, seat: Seat) -> None:
        """Idempotent."""
        if self._seats.pop(seat.key, None) is None:
            return
        principal = seat.session.caller.principal
        self._counts[principal] -= 1
        if self._counts[principal] <= 0:
            del self._counts[principal]
        seat.end()

    def close(self) -> None:
        """End all of them. Idempotent."""
        self._sweep.close()
        for seat in tuple(self._seats.values()):
            self.end(seat)

    def _touch(self, seat: Seat) -> None:
        seat.used_s = self._clock.monotonic()
        self._sweep.arm(seat.used_s + IDLE_S)

    def _make_room(self, principal: str) -> None:
        if self._counts[principal] >= self._of_one:
            own = [one for one in self._seats.values() if one.session.caller.principal == principal]
            self.end(_least_used(own))
        while len(self._seats) >= self._most:
            self.end(_least_used(list(self._seats.values())))

    def _expire(self, now: float) -> float | None:
        for seat in tuple(self._seats.values()):
            if seat.in_use:
                seat.used_s = now
            elif now - seat.used_s >= IDLE_S:
                self.end(seat)
        return min((seat.used_s + IDLE_S for seat in self._seats.values()), default=None)


def _least_used(seats: list[Seat]) -> Seat:
    """The first in their order that has nothing open, else the first."""
    return next((one for one in seats if not one.in_use), seats[0])
