"""Which transport a server's configuration asks for, made anew for each of its lives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from observant_host.config import HttpServer, StdioServer
from observant_host.errors import TransportError
from observant_host.transports.stdio import StdioTransport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from observant_host.config import ServerConfig
    from observant_host.host.capture import Capture
    from observant_host.host.http_transports import HttpTransports
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal
    from observant_host.transports.base import Credentials, GroupKeeper, Transport
    from observant_host.transports.child import StartGate


def prepare(servers: Iterable[ServerConfig]) -> None:
    """Load an HTTP client for servers with a URL, where these are declared: it takes a quarter of a
    second, which is not to be taken from a loop that already serves others."""
    if any(isinstance(server.launch, HttpServer) for server in servers):
        import_module("observant_host.host.http_transports")


class Transports:
    """Call it with a server: one transport for one life."""

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
        self._over_http: HttpTransports | None = None
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
                return self._http().make(server, endpoint)
            case None:
                raise TransportError(f"{server.name} has neither a command nor a URL")

    def rotating(self, server: ServerConfig) -> Credentials | None:
        """Its credentials where a file or a command gives them, which may give others later."""
        endpoint = server.launch
        if not isinstance(endpoint, HttpServer):
            return None
        if not endpoint.header_files and not endpoint.headers_command:
            return None
        return self._http().credentials_of(server.name, endpoint)

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

    def _http(self) -> HttpTransports:
        """On first use: a host without URLs loads no HTTP client."""
        if self._over_http is None:
            from observant_host.host.http_transports import HttpTransports

            self._over_http = HttpTransports(
                max_message_bytes=self._max_message_bytes,
                masker=self._masker,
                starts=self._starts,
                telemetry=self._telemetry,
                clock=self._clock,
                hurry=self._hurry,
            )
        return self._over_http
