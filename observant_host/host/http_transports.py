"""Transports of servers with a URL. Apart, so that only who has one loads an HTTP client."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from observant_host.auth import credentials
from observant_host.transports.http.transport import HttpTransport
from observant_host.transports.sse_2024 import SseTransport
from observant_host.transports.web.client import CALL_CONNECTIONS

if TYPE_CHECKING:
    from observant_host.config import HttpServer, ServerConfig
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal
    from observant_host.transports.base import Credentials, Transport
    from observant_host.transports.child import StartGate

SPARE_CONNECTIONS: Final = 16
"""Beside the calls in flight: lists, probes, what is asked about the server's health."""


class HttpTransports:
    """One transport for one life. Credentials outlive the lives."""

    def __init__(
        self,
        *,
        max_message_bytes: int,
        masker: Masker,
        starts: StartGate,
        telemetry: Telemetry,
        clock: Clock,
        hurry: Signal,
    ) -> None:
        self._max_message_bytes = max_message_bytes
        self._masker = masker
        self._starts = starts
        self._telemetry = telemetry
        self._clock = clock
        self._hurry = hurry
        self._credentials: dict[str, tuple[HttpServer, Credentials]] = {}

    def make(self, server: ServerConfig, endpoint: HttpServer) -> Transport:
        """`transport = "sse"` gives HTTP+SSE, any other URL Streamable HTTP."""
        sse = endpoint.transport == "sse"
        make = SseTransport if sse else partial(HttpTransport, hurry=self._hurry)
        return make(
            server.name,
            endpoint,
            credentials=self.credentials_of(server.name, endpoint),
            max_message_bytes=self._max_message_bytes,
            connect_timeout_s=server.timing.connect_timeout_s,
            shutdown_timeout_s=server.timing.shutdown_timeout_s,
            masker=self._masker,
            telemetry=self._telemetry,
            clock=self._clock,
            call_connections=max(CALL_CONNECTIONS, server.max_in_flight + SPARE_CONNECTIONS),
        )

    def credentials_of(self, name: str, endpoint: HttpServer) -> Credentials:
        known = self._credentials.get(name)
        if known is None or _authorised_by(known[0]) != _authorised_by(endpoint):
            made = credentials.for_server(
                name,
                endpoint,
                masker=self._masker,
                telemetry=self._telemetry,
                clock=self._clock,
                starts=self._starts,
            )
            known = self._credentials[name] = (endpoint, made)
        return known[1]


def _authorised_by(endpoint: HttpServer) -> tuple[object, ...]:
    """What credentials are made of: those of an endpoint that changes none of it are kept."""
    return endpoint.headers, endpoint.headers_command, endpoint.header_files
