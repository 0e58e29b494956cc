"""Thousands of kill and restart cycles over a pool of children: what is left after each?"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from observant_host import Host, StdioServer
from tests.soak import figures
from tests.soak.fleet import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable

POOL = 96
"""One that falls again and again is started less and less often: many share the load."""
SERVER_KEYS: dict[str, Any] = {
    "restart_initial_s": 0.001,
    "restart_max_s": 0.001,
    "healthy_after_s": 0.001,
    "shutdown_timeout_s": 1.0,
}
PATIENCE_S = 120.0
SLACK_MIB = 16.0


class Sample(NamedTuple):
    cycles: int
    zombies: int
    descriptors: int
    mib: float


class Kills:
    """`samples` one in each twentieth of the way; `failures` is empty where every promise held."""

    def __init__(
        self, cycles: int, *, pool: int = POOL, tell: Callable[[str], None] = print
    ) -> None:
        self._cycles = cycles
        self._pool = pool
        self._tell = tell
        self._done = 0
        self.samples: list[Sample] = []
        self.failures: list[str] = []

    async def run(self) -> None:
        before = figures.holdings()
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            marker = f"{folder}/ledger"
            host = Host()
            for number in range(self._pool):
                argv = [sys.executable, "-S", str(PROGRAM), "--name", f"k{number}"]
                argv += ["--ledger", f"{marker}-{number}", "--go", f"{folder}/go"]
                host.add_server(f"k{number}", StdioServer(argv), **SERVER_KEYS)
            async with host:
                await self._rounds(host)
            orphans = figures.running(marker)
            assert Path(folder).is_dir()
        if orphans:
            self.failures.append(f"orphans: {orphans}")
        gc.collect()
        await asyncio.sleep(0)
        if left := figures.holdings().above(before):
            self.failures.append(f"left behind: {left}")
        self._judge()

    async def _rounds(self, host: Host) -> None:
        every = max(1, self._cycles // 20)
        due = 0
        while self._done < self._cycles:
            if self._done >= due:
                self._sample()
                due += every
            await asyncio.gather(*(self._cycle(host, f"k{n}") for n in range(self._pool)))
        self._sample()

    async def _cycle(self, host: Host, name: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            view = await host.wait_for(name, "ready")
            assert view.pid is not None
            os.kill(view.pid, signal.SIGKILL)
            while (again := await host.wait_for(name, "ready")).generation == view.generation:
                await asyncio.sleep(0.005)
        self._done += 1
        assert again.pid != view.pid

    def _sample(self) -> None:
        gc.collect()
        fds = figures.holdings().descriptors
        one = Sample(self._done, len(figures.zombies()), fds, figures.resident_mib())
        self.samples.append(one)
        self._tell(
            f"{one.cycles} cycles: {one.zombies} zombies, {one.descriptors} descriptors, "
            f"{one.mib:.1f} MiB"
        )

    def _judge(self) -> None:
        warm, last = self.samples[min(1, len(self.samples) - 1)], self.samples[-1]
        if any(one.zombies for one in self.samples):
            self.failures.append("zombies were seen between the rounds")
        if last.descriptors > warm.descriptors:
            self.failures.append(f"descriptors grew from {warm.descriptors} to {last.descriptors}")
        if last.mib > warm.mib + SLACK_MIB:
            self.failures.append(f"memory grew from {warm.mib:.1f} to {last.mib:.1f} MiB")
