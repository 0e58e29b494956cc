"""Which transport a server's configuration asks for, made anew for each of its lives."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from observant_host.auth import credentials
from observant_host.config import HttpServer, StdioServer
from observant_host.errors import TransportError
from observant_host.transports.http.transport import HttpTransport
from observant_host.transports.sse_2024 import SseTransport
from observant_host.transports.stdio import StdioTransport
from observant_host.transports.web.client import CALL_CONNECTIONS

if TYPE_CHECKING:
    from observant_host.config import ServerConfig
    from observant_host.host.capture import Capture
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal
    from observant_host.transports.base import Credentials, GroupKeeper, Transport
    from observant_host.transports.child import StartGate

SPARE_CONNECTIONS = 16
"""Beside the calls in flight: lists, probes, what is asked about the server's health."""


class Transports:
    """Call it with a server: one transport for one life. Credentials outlive the lives."""

    def __init__(
        self,
        *,
        max_message_bytes: int,
        masker: Masker,
        guardian: GroupKeeper | None,
        starts: StartGate,
        telemetry: Telemetry,
        clock: Clock,
        hurry: Signal,
    ) -> None:
        self._max_message_bytes = max_message_bytes
        self._masker = masker
        self._guardian = guardian
        self._starts = starts
        self._telemetry = telemetry
        self._clock = clock
        self._hurry = hurry
        self._credentials: dict[str, tuple[HttpServer, Credentials]] = {}
        self.captures: dict[str, Capture] = {}

    def __call__(self, server: ServerConfig) -> Transport:
        """`transport = "sse"` gives HTTP+SSE, any other URL Streamable HTTP."""
        made = self._made(server)
        capture = self.captures.get(server.name)
        if capture is not None:
            capture.attach_opening(made)
        return made

    def _made(self, server: ServerConfig) -> Transport:
        match server.launch:
            case StdioServer() as launch:
                return self._stdio(server, launch)
            case HttpServer() as endpoint:
                return self._http(server, endpoint)
            case None:
                raise TransportError(f"{server.name} has neither a command nor a URL")

    def rotating(self, server: ServerConfig) -> Credentials | None:
        """Its credentials where a file or a command gives them, which may give others later."""
        endpoint = server.launch
        if not isinstance(endpoint, HttpServer):
            return None
        if not endpoint.header_files and not endpoint.headers_command:
            return None
        return self._credentials_of(server.name, endpoint)

    def _stdio(self, server: ServerConfig, launch: StdioServer) -> Transport:
        return StdioTransport(
            server.name,
            launch,
            max_message_bytes=self._max_message_bytes,
            shutdown_timeout_s=server.timing.shutdown_timeout_s,
            masker=self._masker,
            guardian=self._guardian,
            starts=self._starts,
            telemetry=self._telemetry,
            clock=self._clock,
            hurry=self._hurry,
        )

    def _http(self, server: ServerConfig, endpoint: HttpServer) -> Transport:
        sse = endpoint.transport == "sse"
        make = SseTransport if sse else partial(HttpTransport, hurry=self._hurry)
        return make(
            server.name,
            endpoint,
            credentials=self._credentials_of(server.name, endpoint),
            max_message_bytes=self._max_message_bytes,
            connect_timeout_s=server.timing.connect_timeout_s,
            shutdown_timeout_s=server.timing.shutdown_timeout_s,
            masker=self._masker,
            telemetry=self._telemetry,
            clock=self._clock,
            call_connections=max(CALL_CONNECTIONS, server.max_in_flight + SPARE_CONNECTIONS),
        )

    def _credentials_of(self, name: str, endpoint: HttpServer) -> Credentials:
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
