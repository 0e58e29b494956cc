"""One configured server as its callers see it: a name, the life in use, and a gate in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from observant_host.config import ServerConfig
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.life import Life
    from observant_host.telemetry.facade import Telemetry, TraceContext
    from observant_host.timing.clock import Clock


class CallReply(msgspec.Struct, frozen=True, kw_only=True):
    """A complete result, as the server sent it. `attempts` counts the requests that were sent."""

    raw: Raw
    is_error: bool
    era: str
    version: str
    generation: int
    attempts: int = 1


class Peer:
    """`life` is set by the supervisor while the server is routable, None otherwise."""

    life: Life | None
    unroutable_because: str

    def __init__(self, server: ServerConfig, *, telemetry: Telemetry, clock: Clock) -> None: ...

    def attach(self, life: Life) -> None:
        """Route calls to this life from now on."""

    def detach(self, because: str) -> None:
        """Route no more calls; those in line fail at once. `because` is a sentence for a person."""

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | Raw | None,
        *,
        expires: float | None = None,
        target: str | None = None,
        uri: str | None = None,
        on_progress: Callable[[float, float | None, str | None], object] | None = None,
        handlers: InputHandlers | None = None,
        parent: TraceContext | None = None,
        attempt: int = 1,
        purpose: str = "call",
    ) -> CallReply:
        """One call, input rounds included.

        `expires` (monotonic seconds) is the caller's own deadline for everything; without it the
        server's call_timeout_s applies, renewed by progress up to call_max_s. Raises CallError.
        """
        raise NotImplementedError
