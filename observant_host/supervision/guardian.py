"""The host's end of the guardian: the small process that ends what a killed host leaves behind.

Nothing inside a host survives SIGKILL, closed pipes end only servers that heed them, and the
kernel's parent-death signal reaches no grandchild. `guardian_process` says what the process does.
"""

from __future__ import annotations

import os
import secrets
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from observant_host.errors import SpawnFailed
from observant_host.supervision.guardian_process import GUARD_VARIABLE
from observant_host.telemetry.vocabulary import HostLifecycle
from observant_host.timing.deadline import DeadlinePassed, deadline
from observant_host.timing.tasks import OwnerTask, Signal, wait_any
from observant_host.transports.child import Child, StartGate, start_child

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock

PROGRAM: Final = str(Path(__file__).with_name("guardian_process.py"))
RESTART_S: Final = 1.0
"""Before another one is started in the place of one that died: whoever kills it may go on."""
FAREWELL_S: Final = 2.0
"""For an idle process to read one line and exit."""
MAX_UNSENT: Final = 64 * 1024
"""Thousands of lines that nobody read: it hangs, and a fresh one needs only the present groups."""
NEEDED_BY_PYTHON: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


class Guardian:
    """Started once per host; a GroupKeeper for its transports.

    A host without a working guardian runs all the same: only a SIGKILL of it may then leave
    processes behind. One that dies is replaced, and told again what to watch.
    """

    def __init__(self, *, telemetry: Telemetry, clock: Clock) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._token = secrets.token_hex(16)
        self._watched: set[int] = set()
        self._child: Child | None = None
        self._unsent = b""
        self._keeper = OwnerTask("guardian", self._keep)

    @property
    def pid(self) -> int | None:
        """None while it is not running."""
        return self._child.pid if self._child is not None else None

    @property
    def environment(self) -> Mapping[str, str]:
        above = os.environ.get(GUARD_VARIABLE)
        return {GUARD_VARIABLE: f"{above}:{self._token}" if above else self._token}

    async def start(self) -> None:
        """Raises SpawnFailed; the host may go on without."""
        await self._begin()
        self._keeper.start()

    def watch(self, pgid: int) -> None:
        self._watched.add(pgid)
        self._tell(f"watch {pgid}\n")

    def forget(self, pgid: int) -> None:
        self._watched.discard(pgid)
        self._tell(f"forget {pgid}\n")

    async def close(self) -> None:
        """Tell it that all is well, and reap it. Idempotent; bounded."""
        self._keeper.stop()
        await self._keeper.wait()

    async def _begin(self) -> None:
        argv = (sys.executable, "-I", "-S", PROGRAM, str(os.getpid()))
        needed = {name: os.environ[name] for name in NEEDED_BY_PYTHON if name in os.environ}
        child = await start_child(
            "guardian", argv, cwd="/", environment=needed, gate=StartGate(limit=1)
        )
        child.close("stdout")
        child.close("stderr")
        self._child = child
        self._unsent = b""
        self._tell(f"token {self._token}\n")
        for pgid in self._watched:
            self._tell(f"watch {pgid}\n")

    async def _keep(self, stop: Signal) -> None:
        while not stop.is_set():
            if self._child is None:
                await self._try_again(stop)
            else:
                await wait_any(self._clock, None, stop, self._child.exited)
                if not stop.is_set():
                    self._lost("the guardian process ended; another one is started")
                    await wait_any(self._clock, RESTART_S, stop)
        await self._dismiss()

    async def _try_again(self, stop: Signal) -> None:
        try:
            await self._begin()
        except SpawnFailed as error:
            self._lost(str(error))
            await wait_any(self._clock, RESTART_S, stop)

    def _lost(self, detail: str) -> None:
        if self._child is not None:
            self._child.reap()
            self._child = None
        self._telemetry.count(HostLifecycle(what="guardian_lost", detail=detail))

    async def _dismiss(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        self._write(child, b"bye\n")
        child.close("stdin")
        try:
            async with deadline(
                FAREWELL_S,
                scope="shutdown",
                peer="",
                telemetry=self._telemetry,
                clock=self._clock,
            ):
                await child.exited.wait()
        except DeadlinePassed:
            child.signal_group(signal.SIGKILL)
        child.reap()

    def _tell(self, line: str) -> None:
        if self._child is not None:
            self._write(self._child, line.encode())

    def _write(self, child: Child, data: bytes) -> None:
        """At once; what a full pipe does not take goes with the next line."""
        self._unsent += data
        try:
            sent = os.write(child.stdin, self._unsent)
        except OSError:  # full, or it has died: then the keeper starts another one
            sent = 0
        self._unsent = self._unsent[sent:]
        if len(self._unsent) > MAX_UNSENT:
            child.signal_group(signal.SIGKILL)
