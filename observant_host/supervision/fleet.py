"""All configured servers: each with its own owner task, so that a bad one delays nobody."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from observant_host.errors import ConfigError
from observant_host.supervision.supervisor import PeerSupervisor
from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from observant_host.config import ServerConfig
    from observant_host.decisions.catalogue import PeerView
    from observant_host.supervision.surroundings import Surroundings


class Fleet:
    """Servers in config order, those added later after them. Serves the router as PeerLookup."""

    def __init__(self, around: Surroundings, servers: Sequence[ServerConfig] = ()) -> None:
        self._around = around
        self._peers: dict[str, PeerSupervisor] = {}
        self._leaving: list[PeerSupervisor] = []
        self._started = False
        self.changed = Signal()
        for server in servers:
            self.add(server)

    def __iter__(self) -> Iterator[PeerSupervisor]:
        return iter(tuple(self._peers.values()))

    def __len__(self) -> int:
        return len(self._peers)

    def get(self, server: str) -> PeerSupervisor | None:
        """None where no such server is configured (any more)."""
        return self._peers.get(server)

    def add(self, server: ServerConfig) -> None:
        """Raises ConfigError where the name is taken."""
        if server.name in self._peers:
            raise ConfigError(
                [f"there is already a server named {server.name!r}; names are unique"]
            )
        supervisor = PeerSupervisor(server, self._around)
        self._peers[server.name] = supervisor
        self._around.telemetry.peer_configured(
            server.name, legacy_allowed=bool(server.era.allow_legacy)
        )
        if self._started:
            supervisor.start()

    def remove(self, name: str) -> PeerSupervisor:
        """Take it out at once; its end is awaited with the returned `wait`. KeyError if unknown."""
        supervisor = self._peers.pop(name)
        self._leaving = [one for one in self._leaving if not one.done]
        self._leaving.append(supervisor)
        supervisor.stop()
        self._around.telemetry.peer_forgotten(name)
        return supervisor

    def start(self) -> None:
        self._started = True
        for supervisor in self:
            supervisor.start()

    async def close(self) -> None:
        """End all, side by side: each within its own shutdown_timeout_s."""
        everyone = [*self, *self._leaving]
        for supervisor in everyone:
            supervisor.stop()
        for supervisor in everyone:
            await supervisor.ended()

    def lists_run_out_s(self) -> float:
        """When a look at the catalogue is to have some list read anew (monotonic seconds)."""
        return min((one.freshening.runs_out_s for one in self), default=math.inf)

    def freshen(self) -> list[PeerSupervisor]:
        """Have every list read anew whose time is over; those that are being read."""
        return [one for one in self if one.freshening.ask()]

    def settled(self) -> bool:
        """True once every enabled server listed, was refused, or failed."""
        return all(supervisor.record.settled for supervisor in self)

    def peer_views(self) -> list[PeerView]:
        """In config order, disabled ones included."""
        return [supervisor.record.peer_view() for supervisor in self]
