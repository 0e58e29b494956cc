"""One connection that carries a session's stream, from an event on.

Source: MCP 2025-11-25 basic/transports › Listening for Messages from the Server, Resumability and
Redelivery; HTML Living Standard, server-sent events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiohttp import web

from observant_host.service.access.headers import HEADERS
from observant_host.timing.tasks import Signal, wait_any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.service.mcp.legacy_session import Session
    from observant_host.service.mcp.legacy_streams import Event, Stream
    from observant_host.service.mcp.outlet import Part
    from observant_host.timing.clock import Clock

KEEP_ALIVE_S: Final = 15.0
"""Between two comments on a silent stream: common proxies cut one off after 30 or 60 seconds."""
STALLED_S: Final = 60.0
"""For a client to take one piece: a slow line takes seconds."""
PIECE_BYTES: Final = 256 * 1024
RETRY_MS: Final = 1000
"""What a client is told to wait before it comes again."""
STREAM: Final = {
    **HEADERS,
    "Content-Type": "text/event-stream",
    "X-Accel-Buffering": "no",
}


class Writer:
    """`response` is what the handler returns."""

    def __init__(
        self, request: web.Request, stream: Stream, *, clock: Clock, headers: Mapping[str, str]
    ) -> None:
        self._request = request
        self._stream = stream
        self._clock = clock
        self.response = web.StreamResponse(headers={**STREAM, **headers})
        self._taken_over = Signal()

    async def begin(self, after: int, *, primed: bool) -> None:
        """Take the stream over from whoever carried it. `primed`: begin with an event that has only
        an id, as if `after` had just been sent."""
        before, self._stream.holder = self._stream.holder, self
        if isinstance(before, Writer):
            before.give_up()
        await self.response.prepare(self._request)
        if primed:
            name = self._stream.name_of(after)
            await self._write(f"id: {name}\nretry: {RETRY_MS}\ndata: \n\n".encode())

    def give_up(self) -> None:
        """Another connection goes on."""
        self._taken_over.set()

    async def carry(self, after: int, *, news: Session | None) -> None:
        """Write events later than `after` until the stream ends; the news of a session are put
        into it as they come."""
        stream = self._stream
        changed = () if news is None else (news.follower.changed,)
        signals = (self._taken_over, stream.more, *changed)
        try:
            while not self._taken_over.is_set():
                for message in news.news() if news is not None else ():
                    stream.put(message)
                stream.more.clear()
                while (event := stream.after(after)) is not None:
                    await self._event(event)
                    after = event.number
                    stream.sent(after)
                if stream.ended:
                    break
                if await wait_any(self._clock, KEEP_ALIVE_S, *signals) is None:
                    await self._write(b": keep-alive\n\n")
            await self.response.write_eof()
        except ConnectionError:
            return  # the client is gone; what it missed is kept for it

    async def _event(self, event: Event) -> None:
        head = f"id: {self._stream.name_of(event.number)}\nevent: message\ndata: ".encode()
        await self._write(head, *event.parts, b"\n\n")

    async def _write(self, *parts: Part) -> None:
        for part in parts:
            view = memoryview(part)
            for begin in range(0, len(view), PIECE_BYTES):
                timer = self._clock.call_at(self._clock.monotonic() + STALLED_S, self._stalled)
                try:
                    await self.response.write(view[begin : begin + PIECE_BYTES])
                finally:
                    timer.cancel()

    def _stalled(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()
