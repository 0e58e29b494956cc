"""One transport life of one server: what was said, what is still open, and how it ended.

The era lives here and nowhere else, so it dies with the connection: a restart makes a new Life,
which knows nothing. Request ids never repeat within a life.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from msgspec import Raw

    from observant_host.config import ServerConfig
    from observant_host.decisions.evidence import Evidence
    from observant_host.errors import DeadlineScope
    from observant_host.peers.eras import Era
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.telemetry.facade import Telemetry, TraceContext
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import End, Transport
    from observant_host.wire.envelope import ClientInfo

ListKind = Literal["tools", "prompts", "resources"]
ProgressCallback = "Callable[[float, float | None, str | None], object]"


class LifeListener(Protocol):
    """Who is told what happens in a life. All calls come on the loop and must not block."""

    def list_changed(self, kind: ListKind) -> None:
        """The server says that one of its lists changed."""

    def late_modern_evidence(self, evidence: Evidence) -> None:
        """After `initialize` was written, the server proved modern: end this life."""

    def evidence_arrived(self) -> None:
        """A discover left unanswered by its round got its answer: begin the next round now."""

    def any_traffic(self) -> None:
        """A JSON-RPC message arrived, whatever it was."""


class Life:
    """Implements transports.base.Receiver. Made for one transport; opened once, ended once."""

    era: Era | None
    server_info: dict[str, Any] | None
    capabilities: dict[str, Any]
    instructions: str | None

    def __init__(
        self,
        server: ServerConfig,
        *,
        generation: int,
        transport: Transport,
        telemetry: Telemetry,
        clock: Clock,
        client_info: ClientInfo,
        input_handlers: InputHandlers,
        listener: LifeListener,
    ) -> None: ...

    async def open(self) -> None:
        """Start the transport. Raises SpawnFailed or another TransportError."""

    async def close(self) -> End:
        """End the life within the transport's bound; idempotent, from any task."""
        raise NotImplementedError

    async def ended(self) -> End:
        """Wait until the life is over. May be awaited by many, any number of times."""
        raise NotImplementedError

    @property
    def end(self) -> End | None:
        """How it ended, once it has."""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | Raw | None = None,
        *,
        expires: float,
        latest: float | None = None,
        scope: DeadlineScope = "attempt",
        target: str | None = None,
        uri: str | None = None,
        on_progress: Callable[[float, float | None, str | None], object] | None = None,
        parent: TraceContext | None = None,
        purpose: str = "",
        attempt: int = 1,
        round: int = 0,  # noqa: A002 - the protocol's word
        page: int | None = None,
        handlers: InputHandlers | None = None,
    ) -> Raw:
        """Send one request and await its result, as the server sent it.

        `expires` and `latest` are absolute (clock.monotonic()). With `latest` each progress moves
        `expires` on by its original length, never past `latest`. Raises RpcError, CallTimeout,
        Unavailable, InvalidResult. A timeout or a cancellation withdraws what had not left, else
        sends notifications/cancelled once.
        """
        raise NotImplementedError

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification in the era's shape; does nothing on an ended life."""
