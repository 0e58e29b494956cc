"""The GET stream of a legacy server, and the going on with any stream that broke.

A server that offers no stream is asked once. One that offers it is asked again after each end, ever
more slowly while that brings nothing.

Source: MCP 2025-11-25 basic/transports › Listening for Messages from the Server, Resumability and
Redelivery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.errors import HttpFailure
from observant_host.transports.http.reopening import MAX_FRUITLESS, is_fruitful, pause_s
from observant_host.transports.web.event_stream import Cursor, follow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from observant_host.timing.clock import Clock
    from observant_host.transports.web.reply import Reply
    from observant_host.wire.sse import Event

    OpenStream = Callable[[str | None], Awaitable[Reply]]
    """GET, from after this event id; any status. Raises HttpFailure."""


class Resumption:
    """Opens one stream again and again, until its last event, or it is given up (HttpFailure).

    `reopened` is called where it stands again and no event id says from where to go on.
    """

    def __init__(
        self,
        open_stream: OpenStream,
        *,
        cursor: Cursor,
        take: Callable[[Event], bool],
        oversized: Callable[[bytes], None],
        max_bytes: int,
        clock: Clock,
        reopened: Callable[[], None] | None = None,
    ) -> None:
        self._reopened = reopened
        self._stood = False
        self._open_stream = open_stream
        self._cursor = cursor
        self._take = take
        self._oversized = oversized
        self._max_bytes = max_bytes
        self._clock = clock
        self._fruitless = 0
        self._at_least_s: float | None = None

    async def run(self, *, pausing: bool) -> None:
        """`pausing`: a stream has just ended, so pause before the first opening too.

        Returns after the event for which `take` said True.
        """
        while True:
            if pausing:
                await self._pause()
            pausing = True
            if await self._once():
                return

    async def _pause(self) -> None:
        pause = pause_s(self._fruitless, retry_s=self._cursor.retry_s, at_least_s=self._at_least_s)
        await self._clock.sleep(pause)

    async def _once(self) -> bool:
        began, before = self._clock.monotonic(), self._cursor.messages
        failure = await self._opened()
        if failure is None:
            return True
        self._at_least_s = failure.retry_after_s
        lived = self._clock.monotonic() - began
        came = self._cursor.messages - before
        self._fruitless = 0 if is_fruitful(messages=came, lived_s=lived) else self._fruitless + 1
        if self._fruitless >= MAX_FRUITLESS:
            raise failure
        return False

    async def _opened(self) -> HttpFailure | None:
        """Open it and read to its end; why there was no last event. Raises where none can come."""
        try:
            reply = await self._open_stream(self._cursor.last_id)
            if await self._follow(reply):
                return None
            return reply.failure("no_response", "ended its stream")
        except HttpFailure as failure:
            if not may_pass(failure):
                raise
            return failure

    async def _follow(self, reply: Reply) -> bool:
        if not reply.ok:
            raise await reply.refusal()
        if not reply.is_stream:
            reply.close()
            raise reply.failure("content", f"answered GET with {reply.media_type or 'no type'}")
        if self._stood and self._reopened is not None and not self._cursor.last_id:
            self._reopened()
        self._stood = True
        try:
            return await follow(
                reply,
                max_bytes=self._max_bytes,
                cursor=self._cursor,
                take=self._take,
                oversized=self._oversized,
            )
        finally:
            reply.close()


def may_pass(failure: HttpFailure) -> bool:
    """Whether it is worth asking again: an outage, not a refusal of the stream as such."""
    if failure.kind == "status":
        status = failure.status or 0
        return status in (408, 429) or (status >= 500 and status not in (501, 505))
    return failure.kind in ("refused", "reset", "dns", "timeout", "too_large")
