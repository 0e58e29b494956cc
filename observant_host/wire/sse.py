"""Server-sent events out of a byte stream, in linear time and bounded memory.

A line ends at CR, LF or CRLF and nowhere else: U+2028 and U+0085 are content. A CR ends its line at
once, so that no event waits for the next chunk. What an event's end has not closed when the stream
ends is no event. An event over the bound is dropped without being kept, but for an excerpt from
which its id may be recovered.

Source: WHATWG HTML › Server-sent events › Parsing an event stream, Interpreting an event stream;
MCP 2026-07-28 basic/transports/streamable-http › Receiving Messages.
"""

from __future__ import annotations

from typing import Final

import msgspec

from observant_host.wire.ndjson import (
    ELLIPSIS,
    EXCERPT_HEAD,
    EXCERPT_TAIL,
    MAX_OVERSIZED,
)

DEFAULT_EVENT: Final = "message"

MAX_NAME_BYTES: Final = 1024
"""Of an event's name or id: the protocol's names are words, and an id goes back in a header."""

MAX_RETRY_DIGITS: Final = 9
"""A pause of more than eleven days is no pause."""

MAX_PIECES: Final = 64
"""Pieces of one line kept apart before they are put together: a peer that dribbles a line byte by
byte would otherwise cost an object for each."""

_BOM: Final = b"\xef\xbb\xbf"


class Event(msgspec.Struct, frozen=True, gc=False):
    """One event that had any field at all.

    `data` is b"" where it had none or only an empty one: that is no message (it primes `id`), or
    tells `retry_ms`. `id` and `retry_ms` are None where this event has no such field; an id stays
    the stream's last one until another comes.
    """

    event: str
    data: bytes
    id: str | None = None
    retry_ms: int | None = None


class EventSplitter:
    """Feed chunks, get whole events.

    `max_event_bytes` bounds one event on the decoded stream, field names included; what is buffered
    never exceeds it by more than one chunk. `comments` counts the lines that only keep a connection
    alive.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self.comments = 0
        self._max_bytes = max_event_bytes
        self._line = _Pieces(b"")
        self._data = _Pieces(b"\n")
        self._after_cr = False
        self._at_start = True
        self._oversized: list[bytes] = []
        self._begin()

    def feed(self, data: bytes) -> list[Event]:
        """Take a chunk; return the events that it completes, in order."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *ended, rest = data.split(b"\n")
        events: list[Event] = []
        for piece in ended:
            self._take(piece)
            self._end_line(events)
        self._take(rest)
        return events

    def take_oversized(self) -> list[bytes]:
        """Excerpts (at most 512 bytes: head, mark, tail) of the events dropped since the last call.

        `jsonrpc.recover` reads the id out of one.
        """
        taken, self._oversized = self._oversized, []
        return taken

    def _begin(self) -> None:
        """Nothing is known of the next event yet."""
        self._event = b""
        self._id: str | None = None
        self._retry_ms: int | None = None
        self._has_fields = False
        self._size = 0
        self._in_comment = False
        self._head: bytes | None = None  # set while an oversized event is being skipped
        self._tail = b""

    def _take(self, piece: bytes) -> None:
        """Part of the line that is going on."""
        if not piece or self._in_comment:
            return
        if self._line.size == 0 and piece.startswith(b":"):
            self._in_comment = True
        elif self._head is not None:
            self._line.size += len(piece)
            self._tail = (self._tail + piece[-EXCERPT_TAIL:])[-EXCERPT_TAIL:]
        else:
            self._line.append(piece)
            if self._size + self._line.size > self._max_bytes:
                self._skip()

    def _skip(self) -> None:
        """The event is over the bound: keep how it begins, forget the rest."""
        line = self._line.take()
        self._line.size = len(line)
        if before := self._data.take():
            self._head, self._tail = before[:EXCERPT_HEAD], line[-EXCERPT_TAIL:]
        else:
            value = line.removeprefix(b"data:").lstrip()
            self._head, self._tail = value[:EXCERPT_HEAD], value[EXCERPT_HEAD:][-EXCERPT_TAIL:]

    def _end_line(self, events: list[Event]) -> None:
        if self._in_comment:
            self._in_comment = False
            self.comments += 1
        elif self._head is not None:
            if self._line.size == 0:
                self._drop(self._head)
            self._line.size = 0
        else:
            line = self._line.take()
            if self._at_start:
                line = line.removeprefix(_BOM)
            if line:
                self._field(line)
            else:
                self._dispatch(events)
        self._at_start = False

    def _drop(self, head: bytes) -> None:
        if len(self._oversized) < MAX_OVERSIZED:
            self._oversized.append(head + ELLIPSIS + self._tail)
        self._begin()

    def _field(self, line: bytes) -> None:
        self._size += len(line) + 1
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._data.append(value)
            case b"event":
                self._event = value[:MAX_NAME_BYTES]
            case b"id":
                if b"\0" in value or len(value) > MAX_NAME_BYTES:
                    return
                self._id = value.decode(errors="replace")
            case b"retry":
                if not value.isdigit() or len(value) > MAX_RETRY_DIGITS:
                    return
                self._retry_ms = int(value)
            case b"":
                self.comments += 1  # the very first line, behind a byte order mark
                return
            case _:
                return
        self._has_fields = True

    def _dispatch(self, events: list[Event]) -> None:
        if self._has_fields:
            name = self._event.decode(errors="replace") or DEFAULT_EVENT
            events.append(Event(name, self._data.take(), self._id, self._retry_ms))
        self._begin()


class _Pieces:
    """Bytes that come in pieces, put together now and then: a peer that dribbles would otherwise
    cost an object for each byte. `size` leaves out what joins them."""

    def __init__(self, between: bytes) -> None:
        self._between = between
        self._gathered: bytearray | None = None
        self._parts: list[bytes] = []
        self.size = 0

    def append(self, piece: bytes) -> None:
        self._parts.append(piece)
        self.size += len(piece)
        if len(self._parts) > MAX_PIECES:
            self._gather()

    def take(self) -> bytes:
        """All of it; the next begins. One piece alone is not copied."""
        if self._gathered is None:
            whole = self._between.join(self._parts)
        else:
            self._gather()
            whole = bytes(self._gathered)
        self._gathered, self._parts, self.size = None, [], 0
        return whole

    def _gather(self) -> None:
        joined = self._between.join(self._parts)
        if self._gathered is None:
            self._gathered = bytearray(joined)
        elif self._parts:
            self._gathered += self._between + joined
        self._parts.clear()
