"""Calls over many servers: a lookup in the current catalogue, then one request to one peer.

Names stop here: callers say canonical or api names, peers hear their own local ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from msgspec import Raw

    from observant_host.config import ServerConfig
    from observant_host.decisions.peer_states import PeerStatus
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.peer import CallReply
    from observant_host.routing.call_result import CallResult
    from observant_host.routing.catalogue_store import CatalogueStore
    from observant_host.telemetry.facade import Telemetry, TraceContext
    from observant_host.timing.clock import Clock

    OnProgress = Callable[[float, float | None, str | None], object]


class RoutedPeer(Protocol):
    """One server as the router sees it."""

    @property
    def server(self) -> ServerConfig: ...

    @property
    def status(self) -> PeerStatus: ...

    @property
    def routable(self) -> bool:
        """True while `call` has a life to go to (ready or degraded)."""

    async def routable_again(self, expires: float) -> bool:
        """Wait until routable, at most until `expires` (monotonic); the answer says which."""

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | Raw | None,
        *,
        expires: float | None = None,
        target: str | None = None,
        uri: str | None = None,
        on_progress: OnProgress | None = None,
        handlers: InputHandlers | None = None,
        parent: TraceContext | None = None,
        attempt: int = 1,
        purpose: str = "call",
    ) -> CallReply:
        """As `peers.peer.Peer.call`. Raises CallError."""


class PeerLookup(Protocol):
    def get(self, server: str) -> RoutedPeer | None:
        """None where no such server is configured (any more)."""


class Router:
    """Every method raises CallError (see `errors`), and CancelledError as it comes.

    `deadline_s` None: the server's own call_timeout_s. `principal` is who asked, for the record.
    """

    def __init__(
        self, store: CatalogueStore, peers: PeerLookup, *, telemetry: Telemetry, clock: Clock
    ) -> None:
        raise NotImplementedError

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | Raw | None = None,
        *,
        deadline_s: float | None = None,
        on_progress: OnProgress | None = None,
        handlers: InputHandlers | None = None,
        meta: Mapping[str, Any] | None = None,
        parent: TraceContext | None = None,
        principal: str | None = None,
    ) -> CallResult:
        """`tools/call` at the tool's owner. `name`: canonical, api or qualified."""
        raise NotImplementedError

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        deadline_s: float | None = None,
        on_progress: OnProgress | None = None,
        handlers: InputHandlers | None = None,
        meta: Mapping[str, Any] | None = None,
        parent: TraceContext | None = None,
        principal: str | None = None,
    ) -> CallResult:
        raise NotImplementedError

    async def read_resource(
        self,
        uri: str,
        *,
        server: str | None = None,
        deadline_s: float | None = None,
        on_progress: OnProgress | None = None,
        handlers: InputHandlers | None = None,
        meta: Mapping[str, Any] | None = None,
        parent: TraceContext | None = None,
        principal: str | None = None,
    ) -> CallResult:
        """`resources/read` at the URI's owner, or at `server` whether it lists the URI or not."""
        raise NotImplementedError

    async def complete(
        self,
        ref: Mapping[str, Any],
        argument: Mapping[str, Any],
        *,
        context: Mapping[str, Any] | None = None,
        server: str | None = None,
        deadline_s: float | None = None,
        parent: TraceContext | None = None,
        principal: str | None = None,
    ) -> CallResult:
        """`completion/complete`. `ref` is {"type": "ref/prompt", "name": canonical or api name} or
        {"type": "ref/resource", "uri": a template's}."""
        raise NotImplementedError
