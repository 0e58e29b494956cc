"""A request that aiohttp has not seen: its head was known."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from aiohttp import EMPTY_PAYLOAD, HttpVersion11, web
from aiohttp.http import RawRequestMessage, StreamWriter
from multidict import CIMultiDict, CIMultiDictProxy

if TYPE_CHECKING:
    from yarl import URL

    from observant_host.decisions.http_heads import Head
    from observant_host.service.access.front import Front

_ANEW: Final = ("Authorization", "Content-Length", "traceparent")
"""Fields of a known head that are not kept: the token must not be, the others change."""
_UNLIKE: Final = ("Transfer-Encoding", "Content-Encoding", "Expect", "Upgrade")
"""Fields after which the next bytes may be anything, or the body something else than its bytes."""


class Said(NamedTuple):
    """What a known head says. `key` stands for its token, see `Access.key_of`."""

    headers: CIMultiDictProxy[str]
    url: URL
    key: bytes


class Straight:
    """As `Asked`."""

    __slots__ = ("_front", "_request", "_url", "body", "headers", "traceparent")
    is_plain = True

    def __init__(self, front: Front, said: Said, body: bytes, traceparent: str | None) -> None:
        self.headers, self._url = said.headers, said.url
        self.body = body
        self.traceparent = traceparent
        self._front = front
        self._request: web.Request | None = None

    @property
    def transport(self) -> asyncio.Transport | None:
        return self._front.transport

    @property
    def request(self) -> web.Request:
        """For the few whose answer is more than one write: aiohttp's, as it would have made it."""
        if self._request is None:
            front = self._front
            message = RawRequestMessage(
                "POST",
                self._url.raw_path_qs,
                HttpVersion11,
                self.headers,
                (),
                should_close=False,
                compression=None,
                upgrade=False,
                chunked=False,
                url=self._url,
            )
            writer = StreamWriter(front.inner, asyncio.get_running_loop())
            task = cast("asyncio.Task[None]", asyncio.current_task())
            made = front.of.server.request_factory(
                message, EMPTY_PAYLOAD, front.inner, writer, task
            )
            self._request = cast("web.Request", made)
        return self._request


def is_read(request: web.Request, head: Head) -> bool:
    """Whether aiohttp read this head as we did."""
    fields = request.headers
    traces = [] if head.varied is None else [head.varied]
    return (
        not any(name in fields for name in _UNLIKE)
        and fields.getall("Content-Length", []) == [str(head.length)]
        and fields.getall("traceparent", []) == traces
    )


def said_by(request: web.Request, key: bytes) -> Said:
    """What is kept of a request's head."""
    fields = CIMultiDict(request.headers)
    for name in _ANEW:
        fields.popall(name, None)
    return Said(CIMultiDictProxy(fields), request.rel_url, key)
