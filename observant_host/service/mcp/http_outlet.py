"""One HTTP exchange as an outlet: a JSON body, or an event stream where more than it is to be said,
or where it is long in coming.

A slow client holds one bounded buffer. What no longer fits, and what it has not taken for a while,
ends its connection; that cancels the request, and the call behind it.

Source: MCP 2026-07-28 basic/transports/streamable-http › Sending Messages, Receiving Messages.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from aiohttp import web

from observant_host.decisions.northbound import STATUS_OK
from observant_host.service.access.headers import HEADERS
from observant_host.service.access.whole_answer import WholeAnswer
from observant_host.timing.tasks import Signal, spawn, wait_any

if TYPE_CHECKING:
    import asyncio

    from observant_host.decisions.northbound_http import Accepted
    from observant_host.service.access.asked import Asked
    from observant_host.service.mcp.outlet import Part, Response
    from observant_host.service.mcp.silences import Silences
    from observant_host.timing.clock import Clock

MAX_WAITING_BYTES: Final = 1024 * 1024
"""Of notifications that a client has not read: a megabyte is thousands of progress notes."""
STALLED_S: Final = 60.0
"""For a client to take one piece of a body: a slow line takes seconds."""
PIECE_BYTES: Final = 256 * 1024
WHOLE_BYTES: Final = 64 * 1024
"""A body up to this size goes out as one piece."""

_EVENT: Final = b"event: message\ndata: "
_END: Final = b"\n\n"
_COMMENT: Final = b": keep-alive\n\n"
_BODY_HEADERS: Final = {**HEADERS, "Content-Type": "application/json"}
_STREAM_HEADERS: Final = {
    **HEADERS,
    "Content-Type": "text/event-stream",
    "X-Accel-Buffering": "no",
}


class HttpOutlet:
    """`response` is what the handler returns, once `respond` is over. `cut` says why we ended it
    ourselves, else None. `closed`: nothing is left to `abandon` either."""

    # Defaults of the class: most exchanges are one small body, and change only the last.
    closed = False
    cut: str | None = None
    _waiting_bytes = 0
    _last = False
    _waiting: deque[tuple[Part, ...]]
    _more: Signal
    _pump: asyncio.Task[None] | None = None
    response: web.StreamResponse | None = None

    def __init__(
        self,
        asked: Asked,
        *,
        accepted: Accepted,
        clock: Clock,
        silences: Silences,
        stalled_s: float = STALLED_S,
    ) -> None:
        self._asked = asked
        self._accepted = accepted
        self._clock = clock
        self._silences = silences
        self._stalled_s = stalled_s
        silences.begin(self)

    def notify(self, message: bytes) -> None:
        """Begins the stream. A client that reads no streams is told nothing."""
        if self.closed or not self._accepted.sse:
            return
        self._put((_EVENT, message, _END))
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self._end_now("slow_reader")

    async def respond(self, response: Response) -> None:
        self._silences.end(self)
        if self._pump is None and self._accepted.json:
            parts = response.parts
            if (
                response.status == STATUS_OK
                and sum(map(len, parts)) <= WHOLE_BYTES
                and self._asked.is_plain
            ):
                self.response = WholeAnswer(b"".join(parts), now_ns=self._clock.wall_ns())
                self.closed = True
                return
            await self._body(response)
            return
        self._last = True
        self._put((_EVENT, *response.one_line(), _END))
        if self._pump is not None:
            await self._pump

    def abandon(self) -> None:
        """The exchange is over, whatever is left."""
        self.closed = True
        self._silences.end(self)
        if self._pump is not None and not self._pump.done():
            self._pump.cancel()

    def too_long(self) -> None:
        """Nothing was said so far: begin the stream, so that its comments keep it alive."""
        if self._pump is None and not self.closed and self._accepted.sse:
            self._put((_COMMENT,))

    def _put(self, event: tuple[Part, ...]) -> None:
        if self._pump is None:
            self._waiting, self._more = deque(), Signal()
            self._pump = spawn("event stream of an agent", self._stream())
        self._waiting.append(event)
        self._waiting_bytes += sum(len(part) for part in event)
        self._more.set()

    async def _stream(self) -> None:
        try:
            self.response = response = web.StreamResponse(headers=_STREAM_HEADERS)
            await response.prepare(self._asked.request)
            while True:
                while self._waiting:
                    event = self._waiting.popleft()
                    self._waiting_bytes -= sum(len(part) for part in event)
                    await self._write(response, event)
                if self._last:
                    break
                self._more.clear()
                if await wait_any(self._clock, self._silences.after_s, self._more) is None:
                    await self._write(response, (_COMMENT,))
            await response.write_eof()
        except ConnectionError:
            self.closed = True

    async def _body(self, response: Response) -> None:
        if response.size <= WHOLE_BYTES:
            self.response = web.Response(
                body=response.whole(), status=response.status, headers=_BODY_HEADERS
            )
            return
        self.response = stream = web.StreamResponse(status=response.status, headers=_BODY_HEADERS)
        stream.content_length = response.size
        try:
            await stream.prepare(self._asked.request)
            await self._write(stream, response.parts)
            await stream.write_eof()
        except ConnectionError:
            self.closed = True

    async def _write(self, stream: web.StreamResponse, parts: tuple[Part, ...]) -> None:
        for part in parts:
            view = memoryview(part)
            for begin in range(0, len(view), PIECE_BYTES):
                limit = self._clock.monotonic() + self._stalled_s
                timer = self._clock.call_at(limit, self._stalled)
                try:
                    await stream.write(view[begin : begin + PIECE_BYTES])
                finally:
                    timer.cancel()

    def _stalled(self) -> None:
        self._end_now("stalled_reader")

    def _end_now(self, why: str) -> None:
        """The handler is cancelled by the end of its connection."""
        self.cut = self.cut or why
        self.closed = True
        if self._pump is not None:
            self._waiting.clear()
        if self._asked.transport is not None:
            self._asked.transport.abort()
