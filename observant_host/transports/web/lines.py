"""A connection to a server, before the library's own protocol for it: an answer whose head is known
is taken here, all others are the library's.

Traded for speed: reading a head, and making a message, a stream and the steps of a task of it,
costs as much as the call behind it. Servers repeat themselves: after the first answer of each kind
was read and judged the ordinary way, the next one begins with the same bytes. The library never
sees what is taken here. It gets everything from the first byte that is not plainly a whole answer
with a known head, and reads and judges that as if it had been asked itself. Only public parts of it
are used.
"""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from aiohttp import EMPTY_PAYLOAD, ClientPayloadError, HttpVersion11, StreamReader

from observant_host.decisions.http_heads import DATE, head_of
from observant_host.transports.web.reply import EVENT_STREAM, media_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

    from observant_host.decisions.http_heads import Head
    from observant_host.transports.web.connections import Connector

READ_BYTES: Final = 2**18
"""Of a body read ahead of us before its connection is paused."""

MAX_TAKEN: Final = 2**18
"""Of a body that is taken here; a larger one is read with bounds, piece by piece."""

_OK: Final = b"HTTP/1.1 200 "
_UNLIKE: Final = ("Transfer-Encoding", "Content-Encoding", "Upgrade", "Trailer")
"""Fields after which the body is something else than its bytes."""
_TOLD: Final = ("Retry-After", "WWW-Authenticate")
"""Fields that a failure tells of."""


class Known(NamedTuple):
    """What a known head says, as far as it concerns anybody; `content` is not its body."""

    media_type: str
    headers: Mapping[str, str]
    status: int = 200
    content: StreamReader = EMPTY_PAYLOAD


class Asked(Protocol):
    """Who waits for what is answered on a connection."""

    def answered(self, known: Known, body: bytes) -> None:
        """This is the whole answer; the connection serves others from now on."""

    def unusual(self) -> None:
        """Whatever comes, or has come instead of an answer, is the library's: read it there."""


class Line(asyncio.Protocol):
    """One connection. `connection` is the library's hold on it."""

    connection: Connection
    content: StreamReader | None = None
    """The body that the library reads."""
    idle = False
    idle_since = 0.0
    _asked: Asked | None = None
    _held = b""
    """The beginning of an answer whose head came by itself."""
    _head: Head | None = None
    """What was passed on to the library began with it."""
    _passed = 0

    def __init__(
        self, of: Connector, inner: ResponseHandler, transport: asyncio.Transport, *, fd: int
    ) -> None:
        self.of = of
        self.inner = inner
        self.transport = transport
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def is_quiet(self) -> bool:
        """Nothing has arrived on this idle connection: neither its end nor anything else."""
        return not (self.transport.is_closing() or self._poll.poll(0))

    def ask(self, data: bytes, asked: Asked) -> None:
        """Write a request to it while it is idle."""
        self._asked = asked
        self.transport.write(data)

    def expect(self) -> None:
        """The library reads what comes next."""
        self.content, self._head, self._passed = None, None, 0
        self.inner.set_response_params(
            read_until_eof=True, auto_decompress=False, read_bufsize=READ_BYTES
        )

    def over(self, message: Any) -> None:
        """The library has read this answer to its end."""
        head = self._head
        if head is not None and self._passed == head.begin + head.length:
            known = known_by(message, head)
            if known is not None:
                self.of.heads.keep(head, known)
        if self.inner.should_close:
            self.connection.release()
        else:
            self.of.give_back(self)

    def hang_up(self) -> None:
        """Close it. Nobody is told."""
        self._asked = None
        self.connection.close()

    def data_received(self, data: bytes) -> None:
        asked = self._asked
        if asked is None:
            self._pass_on(data)
            if self.idle and self.inner.should_close:
                self.of.drop(self)  # it said more than it was asked for
            return
        held, self._held = self._held, b""
        whole = held + data if held else data
        head = head_of(whole, DATE)
        if head is not None and (known := self.of.heads.find(head.digest)) is not None:
            more = head.begin + head.length - len(whole)
            if more == 0 and head.length <= MAX_TAKEN:
                self._asked = None
                self.of.give_back(self)
                asked.answered(known, whole[head.begin :])
                return
            if 0 < more <= MAX_TAKEN and not held:
                self._held = data
                return
        self._give_over(held, data)
        asked.unusual()

    def _pass_on(self, data: bytes) -> None:
        if not self._passed and data.startswith(_OK):
            self._head = head_of(data, DATE)
        self._passed += len(data)
        self.inner.data_received(data)

    def _give_over(self, *pieces: bytes) -> None:
        """The library gets what came, as it came."""
        self._asked = None
        self.expect()
        for piece in pieces:
            if piece:
                self._pass_on(piece)

    def connection_lost(self, error: Exception | None) -> None:
        asked = self._asked
        if asked is not None:
            held, self._held = self._held, b""
            self._give_over(held)
        self.inner.connection_lost(error)
        content = self.content
        if content is not None and not content.is_eof() and content.exception() is None:
            content.set_exception(ClientPayloadError())  # where it cannot be read, nobody is told
        if asked is not None:
            asked.unusual()
        elif self.idle:
            self.of.drop(self)

    def eof_received(self) -> None:
        self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()


def begin_line(of: Connector, inner: ResponseHandler) -> None:
    """Stand before the library from now on, on a connection that it has made."""
    transport = inner.transport
    sock: Any = None if transport is None else transport.get_extra_info("socket")
    if transport is not None and sock is not None and (fd := sock.fileno()) >= 0:
        transport.set_protocol(Line(of, inner, transport, fd=fd))


def line_of(connection: Connection) -> Line | None:
    """What stands before the library on this connection; None once it is lost."""
    transport = connection.transport
    protocol = None if transport is None else transport.get_protocol()
    return protocol if isinstance(protocol, Line) else None


def watch(connection: Connection | None, content: StreamReader) -> None:
    """As `Line.content`, of what the library's session reads from this connection."""
    line = None if connection is None else line_of(connection)
    if line is not None:
        line.content = content


def known_by(message: Any, head: Head) -> Known | None:
    """What is known of an answer that begins with such a head, as the library read it; None where
    there is more to it than a whole message in its body."""
    fields = message.headers
    dates = [] if head.varied is None else [head.varied]
    kind = media_type(fields.get("Content-Type", ""))
    is_plain = (
        message.code == 200
        and message.version == HttpVersion11
        and not (message.should_close or message.upgrade or message.chunked)
        and not any(name in fields for name in (*_UNLIKE, *_TOLD))
        and fields.getall("Content-Length", []) == [str(head.length)]
        and fields.getall("Date", []) == dates
        and kind != EVENT_STREAM
        and "html" not in kind
    )
    return Known(kind, {"Content-Type": kind}) if is_plain else None
