"""What changes on a running host, as it changes: for `GET /api/v1/events` and whoever paints it.

    event: server      data: the server's object, or {"name", "removed": true}
    event: catalogue   data: {"version", "digest"}
    event: decision    data: a decision, as in `recent` of /api/v1/decisions
    event: call        data: a call that did not end ok, as in `recent` of /api/v1/calls
    event: reload      data: {}: what came before is not known any more; read everything again

A reader is a position in one bounded ring, never a queue: one that reads too slowly, or comes back
too late, is told "reload". Ids are of one run of the host: those of another one mean "reload" too.
"""

from __future__ import annotations

import secrets
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.slices import ALL
from observant_host.errors import Unavailable
from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.decisions.slices import Slice
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock

KEPT: Final = 512
"""Events for somebody who comes back: minutes of a burning fleet."""
MAX_READERS: Final = 64
"""Each is a connection that stays: tabs, terminals, one or two programs."""


class Event(msgspec.Struct, frozen=True):
    """`number` counts in this run. A server's data is made when it is told: the newest."""

    number: int
    kind: str
    data: Any


class Reader:
    """`news` is set while there is something to take."""

    def __init__(self, events: Events, position: int, *, lost: bool, part: Slice) -> None:
        self._events = events
        self._part = part
        self._position = position
        self._lost = lost
        self.news = Signal()
        if lost or position < events.last:
            self.news.set()

    def take(self) -> list[bytes]:
        """What to write, in server-sent form; several events of one server as one."""
        self.news.clear()
        position, self._position = self._position, self._events.last
        first = self._events.first
        if self._lost or position < first - 1:
            self._lost = False
            return [self._events.reload()]
        return self._events.since(position, self._part)

    def leave(self) -> None:
        """Idempotent."""
        self._events.left(self)


class Events:
    """Of one host. It follows it from the first reader on."""

    def __init__(self, host: Served, *, clock: Clock) -> None:
        self._host = host
        self.clock = clock
        self._run = secrets.token_hex(4)
        self._ring: deque[Event] = deque(maxlen=KEPT)
        self._readers: set[Reader] = set()
        self._stops: list[Callable[[], None]] = []
        self.last = 0

    @property
    def first(self) -> int:
        """The number of the oldest one that is kept, or of the next."""
        return self._ring[0].number if self._ring else self.last + 1

    def join(self, last_event_id: str | None = None, *, part: Slice = ALL) -> Reader:
        """Hear of everything from now on, or after the event of that id; with `part` only of what
        exists there. Leave it.

        Raises Unavailable where the host does not run, or too many listen.
        """
        if len(self._readers) >= MAX_READERS:
            raise Unavailable(f"{MAX_READERS} listen to events already", fault="host")
        if not self._stops:
            self._follow()
        position = self.last if last_event_id is None else self._number(last_event_id)
        begin = self.last if position is None else position
        reader = Reader(self, begin, lost=position is None, part=part)
        self._readers.add(reader)
        return reader

    def _follow(self) -> None:
        host = self._host
        self._stops = [
            host.follow_servers(lambda name: self._add("server", name)),
            host.follow_catalogue(
                lambda now: self._add("catalogue", {"version": now.version, "digest": now.digest})
            ),
            host.follow_decisions(lambda decision: self._add("decision", decision)),
            host.follow_failed_calls(lambda call: self._add("call", call)),
        ]

    def _add(self, kind: str, data: Any) -> None:
        self.last += 1
        self._ring.append(Event(self.last, kind, data))
        for reader in self._readers:
            reader.news.set()

    def _number(self, event_id: str) -> int | None:
        run, _, number = event_id.rpartition("-")
        known = run == self._run and number.isascii() and number.isdigit()
        position = int(number) if known and len(number) < 20 else -1
        return position if 0 <= position <= self.last else None

    def since(self, position: int, part: Slice) -> list[bytes]:
        """All after it, written out; of several about one server only the last."""
        events = [e for e in self._ring if e.number > position and _concerns(e, part)]
        newest = {event.data: event.number for event in events if event.kind == "server"}
        return [
            self._written(event.number, event.kind, self._data(event))
            for event in events
            if event.kind != "server" or newest[event.data] == event.number
        ]

    def reload(self) -> bytes:
        """For a reader who lost the thread; it goes on from here."""
        return self._written(self.last, "reload", {})

    def _data(self, event: Event) -> Any:
        if event.kind != "server":
            return event.data
        view = self._host.servers.get(event.data)
        return view if view is not None else {"name": event.data, "removed": True}

    def _written(self, number: int, kind: str, data: Any) -> bytes:
        head = f"id: {self._run}-{number}\nevent: {kind}\ndata: ".encode()
        return head + msgspec.json.encode(data) + b"\n\n"

    def left(self, reader: Reader) -> None:
        self._readers.discard(reader)

    def close(self) -> None:
        """Follow the host no more."""
        stops, self._stops = self._stops, []
        for stop in stops:
            stop()


def _concerns(event: Event, part: Slice) -> bool:
    """What is about no server concerns everybody."""
    match event.kind:
        case "server":
            server = event.data
        case "call":
            server = event.data.server
        case "decision":
            server = event.data["server"]
        case _:
            server = None
    return not server or part.has_server(server)
