"""Memory, CPU and descriptors of all children: read for a scrape, and now and then where a server
is to be restarted for its memory.

Reading takes a thread and a pass over /proc, so a host that nobody scrapes and that has no
`restart_above_mb` never does it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from observant_host.decisions.terms import RestartReason
from observant_host.supervision.figures import Figures, read_figures
from observant_host.timing.tasks import OwnerTask, Signal, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from observant_host.supervision.fleet import Fleet
    from observant_host.supervision.supervisor import PeerSupervisor
    from observant_host.timing.clock import Clock

EVERY_S: Final = 5.0
SAMPLES: Final = 2
"""In a row above the limit: one may be a peak that the next collection of garbage ends."""
MEGABYTE: Final = 1 << 20

Life = tuple[str, int]
"""A server and the number of its life. The number of a process may come again in another."""


class Sampler:
    """`figures` are those of the lives that still ran when they had been read.

    A process keeps its number until it is reaped, which follows the end of its life: whatever was
    read of a life that runs before and after was its own.
    """

    def __init__(
        self,
        fleet: Fleet,
        *,
        clock: Clock,
        on_error: Callable[[str, BaseException], None],
        read: Callable[[Iterable[int]], dict[int, Figures]] = read_figures,
    ) -> None:
        self._fleet = fleet
        self._clock = clock
        self._read = read
        self._above: dict[Life, int] = {}
        self._owner = OwnerTask("memory of children", self._run, on_error=on_error)
        self.figures: Mapping[Life, Figures] = {}

    def start(self) -> None:
        self._owner.start()

    async def close(self) -> None:
        self._owner.stop()
        await self._owner.wait()

    async def refresh(self) -> None:
        """Read everything now, off the loop."""
        asked = self._running()
        by_group = await asyncio.to_thread(self._read, list(asked.values()))
        self.figures = {
            life: by_group[pid]
            for life, pid in self._running().items()
            if asked.get(life) == pid and pid in by_group
        }

    async def look(self) -> None:
        """Read, and have every server restarted whose memory is above its limit once more."""
        await self.refresh()
        above: dict[Life, int] = {}
        for peer in self._fleet:
            life = _life(peer)
            limit_mb = peer.server.restarts.restart_above_mb
            found = self.figures.get(life)
            if limit_mb is None or found is None or found.resident_bytes <= limit_mb * MEGABYTE:
                continue
            above[life] = self._above.get(life, 0) + 1
            if above[life] >= SAMPLES:
                _restart(peer, found, limit_mb=limit_mb)
        self._above = above

    def _running(self) -> dict[Life, int]:
        pids = ((_life(peer), peer.record.pid) for peer in self._fleet)
        return {life: pid for life, pid in pids if pid is not None}

    async def _run(self, stop: Signal) -> None:
        while await wait_any(self._clock, EVERY_S, stop) is None:
            if any(peer.server.restarts.restart_above_mb is not None for peer in self._fleet):
                await self.look()


def _life(peer: PeerSupervisor) -> Life:
    return peer.server.name, peer.record.generation


def _restart(peer: PeerSupervisor, found: Figures, *, limit_mb: float) -> None:
    processes = f"{found.processes} process{'' if found.processes == 1 else 'es'}"
    peer.record.vitals.condemn(
        RestartReason.MEMORY,
        f"its {processes} held {found.resident_bytes / MEGABYTE:.0f} MB of memory, more than "
        f"restart_above_mb = {limit_mb:g}",
        generation=peer.record.generation,
    )
