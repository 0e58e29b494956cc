"""A small POST straight over one of the library's connections.

Nearly every exchange is one: a few hundred bytes out, a JSON body back. The library's session makes
a request object, a response object and (before Python 3.12) a task that writes for each of them,
which is more than half of what a call costs. Here its pool, its connections with their TLS and DNS,
and its parser are used without these. Whatever is not that simple (another verb, a proxy, a large
body) goes through the session. Where a connection is idle, and what is answered on it is known,
not even these are needed: see `lines`.

Source: RFC 9110 15.2 Informational 1xx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from observant_host.transports.web.lines import line_of
from observant_host.transports.web.openings import written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.transports.web.connections import Connector
    from observant_host.transports.web.lines import Line
    from observant_host.transports.web.openings import Address, Opening

MAX_BODY: Final = 64 * 1024
"""Written at once, whatever the connection has taken by then: what a socket takes anyway."""

_NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None)
_CLOSED: Final = "Connection closed"


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
