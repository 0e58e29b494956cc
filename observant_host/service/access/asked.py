"""One POST whose body is here, however it came: through aiohttp, or past it by `front`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from aiohttp import HttpVersion11

if TYPE_CHECKING:
    import asyncio

    from aiohttp import web
    from multidict import CIMultiDictProxy


class Asked(Protocol):
    """What whoever answers may know of a request, and what it answers by."""

    body: bytes

    @property
    def headers(self) -> CIMultiDictProxy[str]:
        """Its fields. Who asks is found out already: `Authorization` may be missing."""

    @property
    def traceparent(self) -> str | None: ...

    @property
    def is_plain(self) -> bool:
        """Whether the answer to it may be a WholeAnswer."""

    @property
    def request(self) -> web.Request:
        """What a response is prepared for."""

    @property
    def transport(self) -> asyncio.Transport | None:
        """None once the connection is gone."""


class ReadRequest:
    """A request as aiohttp read it."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self.request = request
        self.headers = request.headers
        self.body = body

    @property
    def traceparent(self) -> str | None:
        return self.headers.get("traceparent")

    @property
    def is_plain(self) -> bool:
        """To an `Origin` more is to be said."""
        request = self.request
        return (
            request.keep_alive
            and request.version == HttpVersion11
            and "Origin" not in request.headers
        )

    @property
    def transport(self) -> asyncio.Transport | None:
        return self.request.transport
