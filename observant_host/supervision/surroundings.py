"""What every supervisor stands on, given once by the composition root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from observant_host.config import ServerConfig
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.resource_cache import ResourceCache
    from observant_host.peers.told import OnLog
    from observant_host.supervision.memory import HostMemory
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Credentials, Transport
    from observant_host.wire.envelope import ClientInfo


def _nothing_rotates(_server: ServerConfig) -> Credentials | None:
    return None


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """`random` gives [0, 1). `transport` makes one for one life. `changed` is told when a peer's
    state or listing changed; `decided` gets each decision, an object of `explain --json`;
    `broken` a bug of ours that ended a task. `log_level` is asked of every server that has logs,
    which go to `on_log`. `rotating` gives a server's credentials where they may change by
    themselves. `drain_timeout_s` is for the open calls of a server that a person drains."""

    telemetry: Telemetry
    clock: Clock
    random: Callable[[], float]
    memory: HostMemory
    transport: Callable[[ServerConfig], Transport]
    client_info: ClientInfo
    handlers: InputHandlers
    masker: Masker
    remember_modern: bool
    changed: Callable[[str], None]
    decided: Callable[[str, Mapping[str, Any]], None]
    broken: Callable[[str, BaseException], None]
    drain_timeout_s: Callable[[], float] = lambda: 30.0
    cache: ResourceCache | None = None
    log_level: str | None = None
    on_log: OnLog | None = None
    rotating: Callable[[ServerConfig], Credentials | None] = _nothing_rotates

    def now_s(self) -> float:
        """Epoch seconds."""
        return self.clock.wall_ns() / 1e9
