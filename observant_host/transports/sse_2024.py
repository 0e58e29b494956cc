"""HTTP+SSE of 2024-11-05: one GET stream brings everything, its first event says where to POST.

The stream is the life: what is asked is answered on it, whatever became of the POST, and with its
end everything ends.

Source: MCP 2024-11-05 basic/transports › HTTP with SSE.
"""

from __future__ import annotations

import asyncio
import math
import os
from typing import TYPE_CHECKING, Final, Literal

from yarl import URL

from observant_host.errors import HttpFailure, TransportClosed, TransportError
from observant_host.timing.deadline import DeadlinePassed, deadline
from observant_host.timing.tasks import Latch, spawn
from observant_host.transports.base import End
from observant_host.transports.web.client import CALL_CONNECTIONS, make_client
from observant_host.transports.web.connections import Passage
from observant_host.transports.web.event_stream import Cursor, follow, is_message
from observant_host.transports.web.exchanges import Exchanges
from observant_host.transports.web.inlet import Inlet
from observant_host.transports.web.reply import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import HttpServer
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Credentials, EndKind, Outbound, Receiver, Sent
    from observant_host.transports.web.client import WebClient
    from observant_host.transports.web.exchanges import Exchange
    from observant_host.transports.web.reply import Reply
    from observant_host.wire.sse import Event

POST_HEADERS: Final[Mapping[str, str]] = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "Accept-Encoding": "identity",
}
STREAM_HEADERS: Final[Mapping[str, str]] = {
    "Accept": "text/event-stream",
    "Accept-Encoding": "identity",
    "Cache-Control": "no-store",
}

PASSED_ON: Final = frozenset({502, 504, *range(520, 528)})
"""A gateway gave up waiting for a POST that the server may have taken: its stream decides."""

SESSION_GONE: Final = (404, 410)


class SseTransport:
    """A server of 2024-11-05 at one URL; arguments as of HttpTransport."""

    kind: Literal["sse"] = "sse"
    pid: int | None = None
    ending: bool = False
    stderr_tail: str = ""

    def __init__(
        self,
        name: str,
        endpoint: HttpServer,
        *,
        credentials: Credentials,
        max_message_bytes: int,
        connect_timeout_s: float,
        shutdown_timeout_s: float,
        masker: Masker,
        telemetry: Telemetry,
        clock: Clock,
        environment: Mapping[str, str] = os.environ,
        call_connections: int = CALL_CONNECTIONS,
    ) -> None:
        self._name = name
        self._endpoint = endpoint
        self._credentials = credentials
        self._max_message_bytes = max_message_bytes
        self._connect_timeout_s = connect_timeout_s
        self._shutdown_timeout_s = shutdown_timeout_s
        self._masker = masker
        self._telemetry = telemetry
        self._clock = clock
        self._environment = environment
        self._call_connections = call_connections
        self._inlet = Inlet(masker)
        self._client: WebClient | None = None
        self._exchanges: Exchanges | None = None
        self._receiver: Receiver | None = None
        self._where: Latch[URL | TransportError] = Latch()
        self._reader: asyncio.Task[None] | None = None
        self._closer: asyncio.Task[None] | None = None
        self._opened = False
        self._finished: Latch[End] = Latch()
        self._end: End | None = None

    async def open(self, receiver: Receiver) -> None:
        """GET the stream and wait for its `endpoint` event, within `connect_timeout_s`.

        Raises HttpFailure: kind "status" or "content" where this is no HTTP+SSE endpoint,
        "timeout" where the event never came, "redirect" where it names another origin.
        """
        if self._opened or self._finished.is_set():
            raise TransportClosed(f'server "{self._name}": this life was already used')
        self._opened = True
        self._receiver = receiver
        try:
            self._client = await self._make_client()
            await self._connect(self._client)
        except BaseException:
            self._inlet.shut()
            await self._shut()
            self._finished.release(self._end or self._never_ran())
            raise

    def send(self, out: Outbound, expires: float) -> Sent:
        """One POST; its answer comes on the stream. `request_lost` only where the POST failed."""
        if self._exchanges is None or not self._inlet.is_open:
            raise self._closed_error()
        return self._exchanges.begin(out, expires=expires, until_expiry=True)

    def cancel(self, request_id: int) -> bool:
        """Always False: cancellation is a notification; a POST still unanswered is given up."""
        exchange = self._exchanges.request(request_id) if self._exchanges is not None else None
        if exchange is not None:
            exchange.stop()
        return False

    def listen(self) -> None:
        """Nothing to open: the stream is the life."""

    def forget_session(self) -> None:
        """Nothing to forget: the stream is the session."""

    async def taken(self, *, expires: float) -> None:
        """Messages without an id were answered with any status, or are lost."""
        if self._exchanges is not None:
            await self._exchanges.taken(expires=expires)

    async def close(self) -> End:
        """End the stream, and with it the life."""
        if not self._opened:
            self._opened = True
            self._finished.release(self._never_ran())
        self._finish("closed", f'server "{self._name}" was closed')
        await self._finished.wait()
        return self._finished.value or self._never_ran()

    # beginning

    async def _make_client(self) -> WebClient:
        return await make_client(
            self._name,
            self._endpoint.url,
            ca_bundle=self._endpoint.ca_bundle,
            credentials=self._credentials,
            masker=self._masker,
            telemetry=self._telemetry,
            clock=self._clock,
            connect_timeout_s=self._connect_timeout_s,
            environment=self._environment,
            call_connections=self._call_connections,
        )

    async def _connect(self, client: WebClient) -> None:
        self._exchanges = Exchanges(
            self._name,
            client,
            run=self._post,
            inlet=self._inlet,
            max_bytes=self._max_message_bytes,
            clock=self._clock,
        )
        self._reader = spawn(f"SSE from {self._name}", self._read(client))
        try:
            async with deadline(
                self._connect_timeout_s,
                scope="connect",
                peer=self._name,
                telemetry=self._telemetry,
                clock=self._clock,
            ):
                await self._where.wait()
        except DeadlinePassed as passed:
            raise client.failures.make(
                "timeout", client.url, "gave no endpoint event within connect_timeout_s"
            ) from passed
        if isinstance(self._where.value, TransportError):
            raise self._where.value

    async def _read(self, client: WebClient) -> None:
        """The stream, from its opening to its end, which is the end of the life."""
        try:
            reply = await client.ask(
                "GET", headers=STREAM_HEADERS, passage=Passage(expires=math.inf), apart=True
            )
            try:
                failure = await self._read_stream(client, reply)
            finally:
                reply.close()
        except HttpFailure as broken:
            failure = broken
        if not self._where.release(failure):
            self._finish("lost", f'server "{self._name}": {failure}')

    async def _read_stream(self, client: WebClient, reply: Reply) -> HttpFailure:
        """Returns why it is over; raises HttpFailure where it broke or never was one."""
        if not reply.ok:
            raise await reply.refusal()
        if not reply.is_stream:
            body = await reply.beginning()
            raise reply.failure("content", f"{reply.said(body)}; that is no SSE stream", body=body)
        await follow(
            reply,
            max_bytes=self._max_message_bytes,
            cursor=Cursor(),
            take=lambda event: self._take(event, client, reply),
            oversized=self._inlet.oversized,
        )
        return reply.failure("no_response", "ended its stream")

    def _take(self, event: Event, client: WebClient, reply: Reply) -> bool:
        if is_message(event):
            if not self._where.is_set():
                raise reply.failure("content", "began with a message instead of its endpoint event")
            self._inlet.frame(event.data)
        elif event.event == "endpoint" and not self._where.is_set():
            self._found(self._endpoint_of(event, client, reply))
        return False

    def _found(self, where: URL) -> None:
        """From here on what the stream brings is the receiver's, before anything was asked."""
        if self._receiver is not None and self._end is None:
            self._inlet.open(self._receiver)
        self._where.release(where)

    def _endpoint_of(self, event: Event, client: WebClient, reply: Reply) -> URL:
        """Raises HttpFailure for another origin, to which no header may ever go."""
        named = event.data.decode("utf-8", "replace").strip()
        try:
            where = reply.url.join(URL(named)).with_fragment(None)
            origin = str(where.origin()) if where.host else f"{where.scheme}:"
        except ValueError:
            raise reply.failure("content", f"named {named[:100]!r} as its endpoint") from None
        if origin != str(client.url.origin()):
            raise reply.failure(
                "redirect",
                f"named an endpoint of another origin, {origin}, "
                f"instead of {client.url.origin()}; that is refused",
            )
        return where.with_user(None)

    # messages

    async def _post(self, exchange: Exchange) -> None:
        client, where, out = self._client, self._where.value, exchange.out
        if client is None or not isinstance(where, URL):
            return
        exchange.harmless = out.request_id is None  # a lost POST may have been taken all the same
        try:
            reply = await client.ask(
                "POST",
                headers=POST_HEADERS,
                frame=out.frame,
                passage=exchange,
                url=where,
                apart=out.request_id is None,
            )
            try:
                if not reply.ok and reply.status not in PASSED_ON:
                    raise await self._refused(reply)
                await reply.finish(PATIENCE_S)
            finally:
                reply.close()
        except HttpFailure as failure:
            self._failed(exchange, failure)

    async def _refused(self, reply: Reply) -> HttpFailure:
        if reply.status not in SESSION_GONE:
            return await reply.refusal()
        body = await reply.beginning()
        said = reply.said(body)
        return reply.failure("session_lost", f"no longer knows this stream: {said}", body=body)

    def _failed(self, exchange: Exchange, failure: HttpFailure) -> None:
        """A POST that broke once it was on its way may have been taken: the stream decides."""
        if failure.kind == "reset" and failure.sent:
            return
        self._inlet.lost(exchange.out.request_id, failure)
        if failure.kind == "session_lost":
            self._finish("lost", f'server "{self._name}": {failure}')

    # the end

    def _finish(self, kind: EndKind, detail: str) -> None:
        """The first end counts; closing what is open is left to a task."""
        if self._end is not None or self._finished.is_set():
            return
        self._end = End(kind=kind, detail=detail)
        self._inlet.end(self._end)
        self._where.release(TransportClosed(detail))
        self._closer = spawn(f"close {self._name}", self._close())

    async def _close(self) -> None:
        try:
            await self._shut()
        finally:
            self._finished.release(self._end or self._never_ran())

    async def _shut(self) -> None:
        try:
            if self._reader is not None:
                self._reader.cancel()
                await asyncio.gather(self._reader, return_exceptions=True)
            if self._exchanges is not None:
                await self._exchanges.stop()
        finally:
            if self._client is not None:
                await self._client.close()

    def _never_ran(self) -> End:
        return End(kind="closed", detail=f'server "{self._name}" was closed before it ran')

    def _closed_error(self) -> TransportClosed:
        if self._end is not None:
            return TransportClosed(self._end.detail)
        if self._finished.is_set():
            return TransportClosed(f'server "{self._name}" was closed')
        return TransportClosed(f'server "{self._name}" is not started')
