"""A small POST straight over one of the library's connections.

Nearly every exchange is one: a few hundred bytes out, a JSON body back. The library's session makes
a request object, a response object and (before Python 3.12) a task that writes for each of them,
which is more than half of what a call costs. Here its pool, its connections with their TLS and DNS,
and its parser are used without these. Whatever is not that simple (another verb, a proxy, a large
body) goes through the session. Where a connection is idle, and what is answered on it is known,
not even these are needed: see `lines`.

Source: RFC 9112 3 Request Line, 5 Field Syntax; RFC 9110 15.2 Informational 1xx.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from observant_host.transports.web.lines import line_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.client_reqrep import ConnectionKey

    from observant_host.transports.web.connections import Connector
    from observant_host.transports.web.lines import Line

MAX_BODY: Final = 64 * 1024
"""Written at once, whatever the connection has taken by then: what a socket takes anyway."""

_CONTROL: Final = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Besides line breaks, which are counted; a tab is allowed (RFC 9110 5.5 Field Values)."""

_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None)
_CLOSED: Final = "Connection closed"


class Address(aiohttp.ClientRequest):
    """Where to connect, as the library's connector wants it: a request that is never sent, kept for
    all that go to the same place."""

    @cached_property
    def connection_key(self) -> ConnectionKey:
        """Asked for by each call, and always the same."""
        return super().connection_key

    def opening(self, standing: Mapping[str, str]) -> str:
        """The request line, and the fields that every POST to here has. Raises ValueError."""
        fields = dict(standing)
        if not any(name.lower() == "host" for name in fields):
            fields = {"Host": self.headers["Host"], **fields}
        return f"POST {self.url.raw_path_qs} HTTP/1.1\r\n{_lines(fields)}"


class Opening(NamedTuple):
    """How a POST begins, up to its length: where it goes, and by which credentials."""

    address: Address
    given: Mapping[str, str]
    head: bytes


class DirectResponse:
    """As much of an aiohttp.ClientResponse as a reply is read from."""

    __slots__ = ("_line", "_message", "content", "headers", "status")

    def __init__(self, line: Line, message: Any, content: aiohttp.StreamReader) -> None:
        self.status: int = message.code
        self.headers: Mapping[str, str] = message.headers
        self.content = content
        self._message = message
        self._line: Line | None = line
        content.on_eof(self._release)

    def close(self) -> None:
        """Idempotent. Whoever still reads gets a ClientError."""
        line, self._line = self._line, None
        if line is not None:
            if self.content.exception() is None:
                self.content.set_exception(aiohttp.ClientConnectionError(_CLOSED))
            line.hang_up()

    def _release(self) -> None:
        """Read to its end: the connection serves the next one, if it may."""
        line, self._line = self._line, None
        if line is not None:
            line.over(self._message)


async def post(connector: Connector, opening: Opening, frame: bytes) -> DirectResponse:
    """The head of the response, of any status. Raises what the library's session would: a
    ClientError or an OSError."""
    connection = await connector.connect(opening.address, [], _NO_TIMEOUT)
    line = line_of(connection)
    if line is None or line.transport.is_closing():
        connection.close()
        raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
    line.expect()
    line.transport.write(written(opening, frame))
    return await response(line, opening.address)


async def response(line: Line, address: Address) -> DirectResponse:
    """As `post`, of what was written already."""
    try:
        while True:
            message, content = await line.inner.read()
            if not 100 <= message.code <= 199 or message.code == 101:
                line.content = content
                return DirectResponse(line, message, content)
    except HttpProcessingError as error:
        line.hang_up()
        raise aiohttp.ClientResponseError(
            address.request_info,
            (),
            status=error.code,
            message=error.message,
            headers=error.headers,
        ) from error
    except BaseException:
        line.hang_up()
        raise


def written(opening: Opening, frame: bytes) -> bytes:
    return b"%b%d\r\n\r\n%b" % (opening.head, len(frame), frame)


def head_of_post(opening: str, fields: Mapping[str, str]) -> bytes:
    """All of a head but its length. Raises ValueError for a field that would be two."""
    return f"{opening}{_lines(fields)}Content-Length: ".encode()


def _lines(fields: Mapping[str, str]) -> str:
    """Raises ValueError where a value would begin another field, or is none."""
    lines = [f"{name}: {value}\r\n" for name, value in fields.items()]
    text = "".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines) or _CONTROL.search(text):
        raise ValueError("a header field holds a line break or another control character")
    return text
