"""One POST and its response: a whole body, or a stream that ends with the response.

A request whose response cannot come any more is lost at once, with the reason, so that no caller
waits for a deadline.

Source: MCP 2026-07-28 basic/transports/streamable-http › Receiving Messages; 2025-11-25
basic/transports › Resumability and Redelivery.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from observant_host.errors import HttpFailure
from observant_host.transports.base import Answering
from observant_host.transports.http.headers import (
    LISTEN,
    post_headers,
    stands_apart,
    stream_headers,
)
from observant_host.transports.http.listening import Resumption
from observant_host.transports.http.session import is_lost
from observant_host.transports.web.connections import Passage
from observant_host.transports.web.event_stream import Cursor, follow, is_message
from observant_host.transports.web.inlet import bare, may_be_message
from observant_host.transports.web.lines import MAX_TAKEN
from observant_host.transports.web.reply import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.timing.clock import Clock
    from observant_host.transports.http.session import Session
    from observant_host.transports.web.client import WebClient
    from observant_host.transports.web.exchanges import Exchange
    from observant_host.transports.web.inlet import Inlet
    from observant_host.transports.web.lines import Known
    from observant_host.transports.web.reply import Reply
    from observant_host.wire.jsonrpc import Frame
    from observant_host.wire.sse import Event


class Posting:
    """Does the exchanges of one life."""

    def __init__(
        self,
        client: WebClient,
        *,
        session: Session,
        inlet: Inlet,
        max_bytes: int,
        clock: Clock,
    ) -> None:
        self._client = client
        self._session = session
        self._inlet = inlet
        self._max_bytes = max_bytes
        self._clock = clock

    async def run(self, exchange: Exchange) -> None:
        """To the end of its stream; what went wrong is told to the receiver."""
        try:
            await self._post(exchange)
        except HttpFailure as failure:
            self._inlet.lost(exchange.out.request_id, failure)

    def at_once(self, exchange: Exchange) -> bool:
        """Write it without a task, where nothing has to be waited for before its answer."""
        out, client = exchange.out, self._client
        if exchange.fresh or stands_apart(out) or out.mirrored or self._max_bytes < MAX_TAKEN:
            return False
        if not out.modern:
            exchange.session_id = self._session.id
        key = out.modern, out.method, out.name, out.version, exchange.session_id
        opening = client.openings.find(key)
        if opening is None:
            opening = client.openings.keep(key, client.url, post_headers(out, self._session))
        return opening is not None and client.begin(exchange, opening)

    def take(self, exchange: Exchange, known: Known, body: bytes) -> None:
        """The whole answer to what was written at once."""
        request_id = exchange.out.request_id
        message = bare(body)
        answering = Answering(request_id, known.status, known.media_type)
        if not may_be_message(message) or not self._inlet.message(message, answering):
            reply = self._client.reply(known, exchange, self._client.url)
            self._inlet.lost(request_id, _flaw(reply, message))

    async def open_stream(self, last_event_id: str | None) -> Reply:
        """The legacy GET; any status. Raises HttpFailure."""
        return await self._client.ask(
            "GET",
            headers=stream_headers(self._session, last_event_id),
            passage=Passage(expires=math.inf),
            apart=True,
        )

    async def listen(self) -> None:
        """The legacy stream for what the server says unasked, until there is none to be had."""

        def take(event: Event) -> bool:
            if is_message(event):
                self._inlet.frame(event.data)
            return False

        try:
            resumption = self._resumption(Cursor(), take, self._inlet.reopened)
            await resumption.run(pausing=False)
        except HttpFailure:
            return  # it offers no stream, or is gone: then the next POST says so

    async def _post(self, exchange: Exchange) -> None:
        out = exchange.out
        headers = post_headers(out, self._session)
        if not out.modern and out.method != "initialize" and exchange.opening is None:
            exchange.session_id = self._session.id  # else it was sent already, with another perhaps
        reply = await self._client.ask(
            "POST", headers=headers, frame=out.frame, passage=exchange, apart=stands_apart(out)
        )
        try:
            await self._answered(exchange, reply)
        finally:
            reply.close()

    async def _answered(self, exchange: Exchange, reply: Reply) -> None:
        out = exchange.out
        if not reply.ok:
            raise await self._refused(exchange, reply)
        if out.method == "initialize" and not out.modern and not self._session.begin(reply.headers):
            raise reply.failure("content", "gave a session id that cannot be sent back")
        if out.request_id is None:
            await reply.finish(PATIENCE_S)  # accepted, whatever the body says
            return
        answering = Answering(out.request_id, reply.status, reply.media_type)
        if reply.is_stream:
            await self._stream(exchange, reply, answering)
        else:
            await self._body(reply, answering)

    async def _refused(self, exchange: Exchange, reply: Reply) -> HttpFailure:
        body = await reply.beginning()
        said = reply.said(body)
        if exchange.session_id is not None and is_lost(
            reply.status,
            body,
            www_authenticate=reply.headers.get("WWW-Authenticate"),
            request_id=exchange.out.request_id,
        ):
            return reply.failure("session_lost", f"no longer knows our session: {said}", body=body)
        return reply.failure("status", said, body=body)

    async def _body(self, reply: Reply, answering: Answering) -> None:
        body = bare(await reply.whole(self._max_bytes))
        is_message = may_be_message(body) and "html" not in reply.media_type
        if not is_message or not self._inlet.message(body, answering):
            raise _flaw(reply, body)

    async def _stream(self, exchange: Exchange, reply: Reply, answering: Answering) -> None:
        def take(event: Event) -> bool:
            return is_message(event) and self._inlet.frame(event.data, answering)

        def heard() -> None:
            self._inlet.heard(answering.request_id or 0)

        cursor = Cursor()
        listens = exchange.out.method == LISTEN
        broken = await self._followed(reply, cursor, take, heard if listens else None)
        if broken is None:
            await reply.finish()
        elif exchange.out.modern or not cursor.last_id:
            raise broken
        else:
            reply.close()
            await self._resumed(cursor, take, reply)

    async def _followed(
        self,
        reply: Reply,
        cursor: Cursor,
        take: Callable[[Event], bool],
        kept_alive: Callable[[], None] | None,
    ) -> HttpFailure | None:
        """None once the response is in, else what became of the stream."""
        try:
            answered = await follow(
                reply,
                max_bytes=self._max_bytes,
                cursor=cursor,
                take=take,
                oversized=self._inlet.oversized,
                kept_alive=kept_alive,
            )
        except HttpFailure as failure:
            return failure
        if answered:
            return None
        return reply.failure("no_response", "ended its stream without the response")

    async def _resumed(self, cursor: Cursor, take: Callable[[Event], bool], reply: Reply) -> None:
        """A stream of event ids may be gone on with: the response may come on the next one."""
        try:
            await self._resumption(cursor, take).run(pausing=True)
        except HttpFailure as failure:
            raise reply.failure(
                "no_response", f"broke its stream off, and could not go on with it: {failure}"
            ) from failure

    def _resumption(
        self,
        cursor: Cursor,
        take: Callable[[Event], bool],
        reopened: Callable[[], None] | None = None,
    ) -> Resumption:
        return Resumption(
            self.open_stream,
            cursor=cursor,
            take=take,
            oversized=self._inlet.oversized,
            max_bytes=self._max_bytes,
            clock=self._clock,
            reopened=reopened,
        )


def _flaw(reply: Reply, body: Frame) -> HttpFailure:
    """Why this body did not answer the request."""
    if not body:
        return reply.failure("no_response", f"{reply.said(b'')}, but with no response in it")
    if not may_be_message(body) or "html" in reply.media_type:
        return reply.failure("content", f"{reply.said(body)}; that is no message", body=body)
    return reply.failure("no_response", "answered, but not to this request", body=body)
