"""One server as the router sees it, and where the router finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from msgspec import Raw

    from observant_host.config import ServerConfig
    from observant_host.decisions.budget import Budget
    from observant_host.decisions.peer_states import PeerStatus
    from observant_host.peers.ordinary import Kept, Ordinary
    from observant_host.peers.peer import CallReply, RequestOptions
    from observant_host.telemetry.vocabulary import RoutedCall


class RoutedPeer(Protocol):
    """`retries` is the budget of further attempts at this server, of all calls together."""

    retries: Budget

    @property
    def server(self) -> ServerConfig: ...

    @property
    def status(self) -> PeerStatus: ...

    @property
    def routable(self) -> bool:
        """True while `call` has a life to go to (ready or degraded)."""

    async def wake(self, expires: float) -> bool:
        """Wait for its next try, which begins now where that is allowed, at most until `expires`
        (monotonic) and for a bounded time; the answer says whether it is routable."""

    def ordinary(self, kept: Kept, call: RoutedCall) -> Ordinary | None:
        """What sends a call of this tool by whom asks for nothing special, where nothing stands in
        its way at this moment but for room. None: it goes by `call`, like all others."""

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | Raw | None,
        **options: Unpack[RequestOptions],
    ) -> CallReply:
        """As `peers.peer.Peer.call`. Raises CallError."""


class PeerLookup(Protocol):
    def get(self, server: str) -> RoutedPeer | None:
        """None where no such server is configured (any more)."""
