"""Connections to one origin: made within a bound, reused only while they surely live.

A POST that fails on a reused connection may have been executed, so what counts is never to write
one to a connection that the server has already closed: idle connections are ours to close before
the server does, and one is looked at before it is used. What remains is a race that no client can
win, and its loser is told that delivery is unknown.

Source: RFC 9112 9.3.1 Retrying Requests; RFC 9110 9.2.2 Idempotent Methods.
"""

from __future__ import annotations

import math
import socket
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from observant_host.decisions.http_heads import Heads
from observant_host.timing.deadline import Sweep, deadline
from observant_host.transports.web.lines import begin_line, line_of

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Coroutine

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock
    from observant_host.transports.web.lines import Known, Line
    from observant_host.transports.web.openings import Opening

KEEPALIVE_S: Final = 4.0
"""Common servers close an idle connection after 5 s or more: we do it first."""

DISTRUST_S: Final = 60.0
"""After a reused connection broke under a request, none is reused for this long. Where that happens
again it is how the server is: then none is reused any more."""

MAX_HEADS: Final = 64
"""Of answers that are told apart: a server has few, unless it writes something new into each."""

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
    monotonic seconds. `line`: it was written to this one already, beginning with `opening`.
    """

    __slots__ = (
        "connected",
        "expires",
        "fresh",
        "harmless",
        "line",
        "opening",
        "reused",
        "started",
    )

    def __init__(self, *, expires: float, fresh: bool = False, harmless: bool = False) -> None:
        self.expires = expires
        self.fresh = fresh
        self.harmless = harmless
        self.started = False
        self.connected = False
        self.reused = False
        self.line: Line | None = None
        self.opening: Opening | None = None


PASSAGE: ContextVar[Passage] = ContextVar("passage")
"""Of the exchange whose task this is: the connector is reached through the library only."""


class Connector(aiohttp.TCPConnector):
    """At most `limit` connections at once; more exchanges wait for one. `probed`: the kernel sees
    to it that dead ones are noticed though nothing is sent.

    Idle ones stay acquired, in the eyes of the library, so that one can be had without waiting.
    Where somebody may be waiting there they are given back to it instead.
    """

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
        self.heads: Heads[Known] = Heads(most=MAX_HEADS)
        self._idle: list[Line] = []
        self._asking = 0
        self._sweep = Sweep(clock, self._close_idle)
        self._swept = False

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
        if passage.fresh:
            self._close_idle(math.inf)
        passage.reused = True
        line = self.take(self._clock.monotonic())
        if line is not None:
            connection = line.connection
        else:
            connection = await self._from_library(passage, req, traces, timeout)
        if passage.expires <= self._clock.monotonic() and not passage.started:
            connection.release()
            raise Expired
        passage.started = passage.connected = True
        return connection

    async def _from_library(
        self,
        passage: Passage,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the library's signature
    ) -> Connection:
        """A new one, or one that was given back to it."""
        self._asking += 1
        try:
            while True:
                passage.reused = True
                connection = await super().connect(req, traces, timeout)
                line = line_of(connection)
                if line is not None:
                    line.connection = connection
                if not passage.reused or (not passage.fresh and self._reusable(line)):
                    return connection
                connection.close()
        finally:
            self._asking -= 1

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
        begin_line(self, made)
        return made

    def _reusable(self, line: Line | None) -> bool:
        """`should_close`: it said more than it was asked for."""
        if line is None or self._clock.monotonic() < self._distrusted_until:
            return False
        return not line.inner.should_close and line.is_quiet()

    # idle ones

    def take(self, now: float) -> Line | None:
        """The connection that was used last, where one is idle and may be written to."""
        while self._idle:
            line = self._idle.pop()
            line.idle = False
            if self._distrusted_until <= now <= line.idle_since + KEEPALIVE_S and line.is_quiet():
                return line
            line.hang_up()
        return None

    def give_back(self, line: Line) -> None:
        """What it was asked for is answered."""
        if self._asking:
            line.connection.release()
            return
        line.idle = True
        line.idle_since = self._clock.monotonic()
        self._idle.append(line)
        if not self._swept:
            self._swept = True
            self._sweep.arm(line.idle_since + KEEPALIVE_S)

    def drop(self, line: Line) -> None:
        """An idle one that cannot be used any more."""
        self._idle.remove(line)
        line.idle = False
        line.hang_up()

    def _close_idle(self, now: float) -> float | None:
        while self._idle and self._idle[0].idle_since + KEEPALIVE_S <= now:
            self.drop(self._idle[0])
        self._swept = bool(self._idle)
        return self._idle[0].idle_since + KEEPALIVE_S if self._idle else None

    def close(self, *, abort_ssl: bool = False) -> Coroutine[Any, Any, None]:
        closing = super().close(abort_ssl=abort_ssl)
        self._sweep.close()
        idle, self._idle = self._idle, []
        for line in idle:
            line.idle = False
            line.connection.release()
        return closing


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
