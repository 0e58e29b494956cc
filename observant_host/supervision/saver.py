"""Keeps the memory on disk: encoded in one moment on the loop, written off it, never fatal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from observant_host.telemetry.vocabulary import HostLifecycle
from observant_host.timing.tasks import OwnerTask, Signal, wait_any

if TYPE_CHECKING:
    from observant_host.state_files import Memory, MemoryFile
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock

SPACING_S: Final = 0.5
"""Between two writes: a fleet that starts changes its memory hundreds of times."""
RETRY_S: Final = 10.0
"""After a failed write (a full disk): tried again for as long as the host runs."""


class Saver:
    """Writes `memory` some time after each `changed`, at once for `keep`, and once at the end."""

    def __init__(
        self, file: MemoryFile, memory: Memory, *, telemetry: Telemetry, clock: Clock
    ) -> None:
        self._file = file
        self._memory = memory
        self._telemetry = telemetry
        self._clock = clock
        self._changed = Signal()
        self._hurry = Signal()
        self._written = Signal()
        self._wanted = self._tried = self._kept = 0
        self._owner = OwnerTask("memory", self._own)

    def start(self) -> None:
        self._owner.start()

    def changed(self) -> None:
        """Something is to be kept."""
        self._wanted += 1
        self._changed.set()

    async def keep(self) -> bool:
        """Write now what changed so far, and wait for it: a person's act must outlive a kill.

        False where the disk did not take it; that is tried again as long as the host runs.
        """
        mine = self._wanted
        self._hurry.set()
        while self._tried < mine and not self._owner.done:
            self._written.clear()
            await self._written.wait()
        return self._kept >= mine

    async def close(self) -> None:
        """Write what is left, and end."""
        self._owner.stop()
        await self._owner.wait()

    async def _own(self, stop: Signal) -> None:
        while not stop.is_set():
            await wait_any(self._clock, None, self._changed, stop)
            self._hurry.clear()
            pause = SPACING_S if await self._save() else RETRY_S
            await wait_any(self._clock, pause, stop, self._hurry)
        await self._save()
        self._tried = self._wanted
        self._written.set()

    async def _save(self) -> bool:
        if not self._changed.is_set():
            return True
        self._changed.clear()
        mine = self._wanted
        try:
            await asyncio.to_thread(self._file.write, self._file.encode(self._memory))
        except OSError as error:
            self._changed.set()
            self._telemetry.count(HostLifecycle(what="memory_not_saved", detail=str(error)))
            return False
        else:
            self._kept = mine
            return True
        finally:
            self._tried = mine
            self._written.set()
