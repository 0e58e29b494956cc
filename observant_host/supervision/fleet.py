"""All configured servers: each with its own owner task, so that a bad one delays nobody."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from observant_host.errors import ConfigError
from observant_host.supervision.supervisor import PeerSupervisor
from observant_host.timing.tasks import Signal, in_turns, spawn

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

    from observant_host.config import ServerConfig
    from observant_host.decisions.catalogue import PeerView
    from observant_host.supervision.surroundings import Surroundings


class Fleet:
    """Servers in config order, those added later after them. Serves the router as PeerLookup."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._peers: dict[str, PeerSupervisor] = {}
        self._leaving: list[PeerSupervisor] = []
        self._farewells: set[asyncio.Task[None]] = set()
        self._started = False
        self.changed = Signal()

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

    def retire(self, name: str, *, drain_s: float) -> None:
        """Take it out at once, but let its open calls finish: at most `drain_s`. KeyError if
        unknown."""
        self._see_off(self._peers.pop(name), drain_s=drain_s)

    def switch(self, server: ServerConfig, *, drain_s: float) -> None:
        """In the place of the peer of this name: one that was switched on or off."""
        before = self._peers[server.name]
        supervisor = PeerSupervisor(server, self._around)
        supervisor.record.generation = before.record.generation
        self._peers[server.name] = supervisor
        self._see_off(before, drain_s=drain_s)
        if self._started:
            supervisor.start()

    def reorder(self, names: Sequence[str]) -> None:
        """These first, in this order; the others after them as they were."""
        first = {name: self._peers[name] for name in names if name in self._peers}
        self._peers = {**first, **self._peers}

    def _see_off(self, supervisor: PeerSupervisor, *, drain_s: float) -> None:
        """Its series go once nothing of it can be counted any more."""
        name = supervisor.server.name
        supervisor.retire(drain_s=drain_s)

        async def farewell() -> None:
            await supervisor.ended()
            if name not in self._peers:
                self._around.telemetry.peer_forgotten(name)

        self._leaving = [one for one in self._leaving if not one.done]
        self._leaving.append(supervisor)
        task = spawn(f"farewell of {name}", farewell(), on_error=self._around.broken)
        self._farewells.add(task)
        task.add_done_callback(self._farewells.discard)

    async def start(self) -> None:
        """Those who are here, a few in one turn of the loop; whoever is added starts at once."""
        self._started = True

        def start(supervisor: PeerSupervisor) -> None:
            if self._peers.get(supervisor.server.name) is supervisor:
                supervisor.start()

        await in_turns(tuple(self), start)

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
