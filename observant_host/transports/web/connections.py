"""Connections to one origin: made within a bound, reused only while they surely live.

A POST that fails on a reused connection may have been executed, so what counts is never to write
one to a connection that the server has already closed: idle connections are ours to close before
the server does, and one is looked at before it is used. What remains is a race that no client can
win, and its loser is told that delivery is unknown.

Source: RFC 9112 9.3.1 Retrying Requests; RFC 9110 9.2.2 Idempotent Methods.
"""

from __future__ import annotations

import math
import select
import socket
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from observant_host.timing.deadline import deadline

if TYPE_CHECKING:
    import asyncio
    import ssl

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock

KEEPALIVE_S: Final = 4.0
"""Common servers close an idle connection after 5 s or more: we do it first."""

DISTRUST_S: Final = 60.0
"""After a reused connection broke under a request, none is reused for this long. Where that happens
again it is how the server is: then none is reused any more."""


PROBE_IDLE_S: Final = 30
PROBE_INTERVAL_S: Final = 10
PROBES: Final = 3
"""On connections for streams, which nobody writes to: a path that is dead without a word (a peer
that lost power, a NAT that forgot us) is found out by the kernel within about a minute.

Source: RFC 9293 3.8.4 TCP Keep-Alives; tcp(7)."""


class Expired(Exception):
    """A frame's time was over before it got a connection; nothing was sent."""


class Passage:
    """What is known of one exchange's way to the server.

    `started` once any byte may have left; `connected` the same for the present attempt, `reused`
    if its connection had served before. `fresh`: it must not have. `harmless`: doing it twice
    changes nothing, so where a reused connection broke it is sent once more. `expires` in
    monotonic seconds.
    """

    __slots__ = ("connected", "expires", "fresh", "harmless", "reused", "started")

    def __init__(self, *, expires: float, fresh: bool = False, harmless: bool = False) -> None:
        self.expires = expires
        self.fresh = fresh
        self.harmless = harmless
        self.started = False
        self.connected = False
        self.reused = False


PASSAGE: ContextVar[Passage] = ContextVar("passage")
"""Of the exchange whose task this is: the connector is reached through the library only."""


class Connector(aiohttp.TCPConnector):
    """At most `limit` connections at once; more exchanges wait for one. `probed`: the kernel sees
    to it that dead ones are noticed though nothing is sent."""

    def __init__(
        self,
        *,
        limit: int,
        connect_timeout_s: float,
        tls: ssl.SSLContext | bool,
        peer: str,
        telemetry: Telemetry,
        clock: Clock,
        probed: bool = False,
    ) -> None:
        super().__init__(limit=limit, keepalive_timeout=KEEPALIVE_S, ssl=tls)
        self._probed = probed
        self._connect_timeout_s = connect_timeout_s
        self._peer = peer
        self._telemetry = telemetry
        self._clock = clock
        self._distrusted_until = -math.inf

    def distrust(self) -> None:
        """A reused connection broke under a request: others may break in the same way."""
        first = self._distrusted_until == -math.inf
        self._distrusted_until = self._clock.monotonic() + DISTRUST_S if first else math.inf

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the library's signature
    ) -> Connection:
        passage = PASSAGE.get()
        while True:
            passage.reused = True
            connection = await super().connect(req, traces, timeout)
            if not passage.reused or (not passage.fresh and self._reusable(connection)):
                break
            connection.close()
        if passage.expires <= self._clock.monotonic() and not passage.started:
            connection.release()
            raise Expired
        passage.started = passage.connected = True
        return connection

    async def _create_connection(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the library's signature
    ) -> ResponseHandler:
        PASSAGE.get().reused = False
        async with deadline(
            self._connect_timeout_s,
            scope="connect",
            peer=self._peer,
            telemetry=self._telemetry,
            clock=self._clock,
        ):
            made = await super()._create_connection(req, traces, timeout)
        if self._probed:
            probe(made.transport)
        return made

    def _reusable(self, connection: Connection) -> bool:
        if self._clock.monotonic() < self._distrusted_until:
            return False
        protocol = connection.protocol
        if protocol is None or protocol.should_close:  # it said more than it was asked for
            return False
        return is_quiet(connection.transport)


def probe(transport: asyncio.BaseTransport | None) -> None:
    """Have the kernel probe this connection while nothing comes on it."""
    sock: Any = transport.get_extra_info("socket") if transport is not None else None
    if sock is None or sock.fileno() < 0:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _PROBING.items():
        if hasattr(socket, option):  # macOS has another name for the first
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


_PROBING: Final = {
    "TCP_KEEPIDLE": PROBE_IDLE_S,
    "TCP_KEEPALIVE": PROBE_IDLE_S,
    "TCP_KEEPINTVL": PROBE_INTERVAL_S,
    "TCP_KEEPCNT": PROBES,
}


def is_quiet(transport: asyncio.Transport | None) -> bool:
    """Nothing has arrived on this idle connection: neither its end nor anything else."""
    if transport is None or transport.is_closing():
        return False
    sock: Any = transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(sock.fileno(), select.POLLIN)
    return not poll.poll(0)
