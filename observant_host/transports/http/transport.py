"""Streamable HTTP as a transport life: one POST per message.

One life serves both eras, because the same URL is asked first as a modern server and then, where
that is allowed, as a legacy one: which rules hold comes with each `Outbound`.

Source: MCP 2026-07-28 basic/transports/streamable-http; 2025-03-26 to 2025-11-25 basic/transports.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Final, Literal

import anyio

from observant_host.errors import HttpFailure, TransportClosed
from observant_host.telemetry.vocabulary import SessionNotEnded
from observant_host.timing.deadline import DeadlinePassed, deadline
from observant_host.timing.tasks import Latch, Signal, cancel_on, spawn
from observant_host.transports.base import End
from observant_host.transports.http.posting import Posting
from observant_host.transports.http.session import Session
from observant_host.transports.web.client import CALL_CONNECTIONS, make_client
from observant_host.transports.web.connections import Passage
from observant_host.transports.web.exchanges import Exchanges
from observant_host.transports.web.inlet import Inlet

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from observant_host.config import HttpServer
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Credentials, Outbound, Receiver, Sent
    from observant_host.transports.web.client import WebClient

DELETE_S: Final = 1.5
"""For telling a server that its session is over: a courtesy, which holds no shutdown up."""

SESSION_OVER: Final = frozenset({404, 405})
"""Answers to DELETE that are as good as a success: there is no such session, or it cannot be ended
by its client."""


class HttpTransport:
    """A server at one URL.

    `max_message_bytes` bounds one decoded message; `connect_timeout_s` making one connection;
    `shutdown_timeout_s` `close()` as a whole. Static `headers` of the endpoint belong to
    `credentials` (auth.credentials.for_server), which is all that this transport asks.
    `environment` holds the proxy variables; `call_connections` bounds requests at once. Once
    `hurry` is set, closing waits for nobody.
    """

    kind: Literal["http"] = "http"
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
        hurry: Signal | None = None,
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
        self._hurry = hurry or Signal()
        self._inlet = Inlet(masker)
        self._session = Session()
        self._client: WebClient | None = None
        self._posting: Posting | None = None
        self._exchanges: Exchanges | None = None
        self._listener: asyncio.Task[None] | None = None
        self._closer: asyncio.Task[None] | None = None
        self._opened = False
        self._modern = False
        self._finished: Latch[End] = Latch()

    @property
    def authorization(self) -> str:
        """A digest of the credentials last sent; "" before any."""
        return self._client.authorization if self._client is not None else ""

    async def open(self, receiver: Receiver) -> None:
        """Ready to send; the first POST makes the first connection.

        Raises TransportError where the CA bundle, the URL or the proxy cannot be used.
        """
        if self._opened or self._finished.is_set():
            raise TransportClosed(f'server "{self._name}": this life was already used')
        self._opened = True
        try:
            client = await self._make_client()
        except BaseException:
            self._finished.release(self._never_ran())
            raise
        if self._finished.is_set():
            await client.close()
            raise self._closed_error()
        self._began(client, receiver)

    def send(self, out: Outbound, expires: float) -> Sent:
        """One POST. Raises QueueFull where too many are under way.

        What becomes of it is told by the receiver: frames, or `request_lost` with an HttpFailure.
        Of messages without an id nothing is told.
        """
        if self._exchanges is None or not self._inlet.is_open:
            raise self._closed_error()
        exchange = self._exchanges.begin(out, expires=expires, until_expiry=out.request_id is None)
        self._modern = out.modern
        if not out.modern:
            self._note_legacy(out)
        return exchange

    def cancel(self, request_id: int) -> bool:
        """Close the request's own stream. True where that is the cancellation: a modern request.

        False for a legacy one: the caller sends the notification, and nobody reads on for it.
        """
        exchange = self._exchanges.request(request_id) if self._exchanges is not None else None
        if exchange is None:
            return self._modern
        exchange.stop()
        return exchange.out.modern

    def listen(self) -> None:
        """Open the GET stream (legacy). Idempotent; a server without one is fine."""
        if self._listener is None and self._posting is not None and self._inlet.is_open:
            self._listener = spawn(f"GET from {self._name}", self._posting.listen())

    def forget_session(self) -> None:
        """Send no session id, and listen no more, until the next `initialize` gives one."""
        self._session.id = None
        if self._listener is not None:
            self._listener.cancel()
            self._listener = None

    async def taken(self, *, expires: float) -> None:
        """Messages without an id were answered with any status, or are lost."""
        if self._exchanges is not None:
            await self._exchanges.taken(expires=expires)

    async def close(self) -> End:
        """End every stream, DELETE the session (bounded), close the connections."""
        if self._client is None:
            self._opened = True
            self._finished.release(self._never_ran())
        elif self._closer is None:
            self._closer = spawn(f"close {self._name}", self._end(self._client))
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

    def _began(self, client: WebClient, receiver: Receiver) -> None:
        self._client = client
        self._inlet.open(receiver)
        self._posting = Posting(
            client,
            session=self._session,
            inlet=self._inlet,
            max_bytes=self._max_message_bytes,
            clock=self._clock,
        )
        self._exchanges = Exchanges(
            self._name,
            client,
            run=self._posting.run,
            at_once=self._posting.at_once,
            take=self._posting.take,
            inlet=self._inlet,
            max_bytes=self._max_message_bytes,
            clock=self._clock,
        )

    def _note_legacy(self, out: Outbound) -> None:
        if out.method == "initialize":
            self.forget_session()
        elif out.version is not None:
            self._session.version = out.version

    # the end

    async def _end(self, client: WebClient) -> None:
        end = End(kind="closed", detail=f'server "{self._name}" was closed')
        self._inlet.end(end)
        try:
            if self._listener is not None:
                self._listener.cancel()
            if self._exchanges is not None:
                await self._exchanges.stop()
            async with anyio.create_task_group() as group:
                group.start_soon(cancel_on, self._hurry, group.cancel_scope)
                await self._delete(client)
                group.cancel_scope.cancel()
        finally:
            await client.close()
            self._finished.release(end)

    async def _delete(self, client: WebClient) -> None:
        """Once, whatever comes of it."""
        if self._session.id is None:
            return
        try:
            async with deadline(
                min(DELETE_S, self._shutdown_timeout_s),
                scope="shutdown",
                peer=self._name,
                telemetry=self._telemetry,
                method="DELETE",
                clock=self._clock,
            ):
                passage = Passage(expires=math.inf)
                headers = {"Accept-Encoding": "identity", **self._session.headers()}
                reply = await client.ask("DELETE", headers=headers, passage=passage, apart=True)
                if not reply.ok and reply.status not in SESSION_OVER:
                    raise await reply.refusal()
                reply.close()
        except HttpFailure as failure:
            self._telemetry.count(SessionNotEnded(peer=self._name, detail=str(failure)))
        except DeadlinePassed:
            return  # which has been told; the server will find out by itself

    def _never_ran(self) -> End:
        return End(kind="closed", detail=f'server "{self._name}" was closed before it ran')

    def _closed_error(self) -> TransportClosed:
        if self._closer is not None or self._finished.is_set():
            return TransportClosed(f'server "{self._name}" was closed')
        return TransportClosed(f'server "{self._name}" is not started')
