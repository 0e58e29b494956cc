"""The servers of a run, and the hand that harms them from outside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from observant_host import Host, HttpServer, StdioServer
from tests.soak.figures import descendants

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = Path(__file__).with_name("server.py")

STDIO = (
    *("steady",) * 6,
    *("killed",) * 3,
    *("stopped",) * 3,
    *("slow", "slow", "cut", "lost", "flood", "flap", "deaf", "double"),
)
HTTP = (
    *("steady", "steady", "flood", "killed", "stopped"),
    *("slow", "cut", "lost", "flap", "refusing"),
)
"""Each of them announces its lists, so that every harm also comes to a stream of changes."""
OUTSIDE = ("killed", "stopped")
"""Tempers that are not the program's own: it is harmed by a signal."""

EVERY_S = (0.2, 1.0)
STOPPED_S = (0.2, 6.0)
DOWN_S = (0.1, 2.0)


class Member(NamedTuple):
    name: str
    temper: str
    http: bool

    @property
    def steady(self) -> bool:
        return self.temper == "steady"


def members(stdio: Sequence[str] = STDIO, http: Sequence[str] = HTTP) -> list[Member]:
    found = [Member(f"s{n}-{temper}", temper, http=False) for n, temper in enumerate(stdio)]
    return found + [Member(f"h{n}-{temper}", temper, http=True) for n, temper in enumerate(http)]


class Fleet:
    """Of one run in `folder`. HTTP servers run inside `async with`, stdio ones below the host."""

    def __init__(self, folder: Path, *, seed: int, crew: Sequence[Member]) -> None:
        self.crew = list(crew)
        self.go = folder / "go"
        self.ledgers = folder / "ledgers"
        self.ledgers.mkdir()
        self.harmed = 0
        self._random = random.Random(seed)
        self._seed = seed
        self._ports: dict[str, int] = {}
        self._running: dict[str, asyncio.subprocess.Process] = {}
        self._healing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Fleet:
        for member in self.crew:
            if member.http:
                await self._listen(member)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.healed()
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def add_to(self, host: Host, **keys: object) -> None:
        for member in self.crew:
            if member.http:
                launch = HttpServer(f"http://127.0.0.1:{self._ports[member.name]}/mcp")
                host.add_server(member.name, launch, **keys)
            else:
                host.add_server(member.name, StdioServer(self._argv(member)), **keys)

    def _argv(self, member: Member, *more: str) -> list[str]:
        temper = "steady" if member.temper in OUTSIDE else member.temper
        return [
            *(sys.executable, "-S", str(PROGRAM), "--name", member.name),
            *("--ledger", str(self.ledgers / member.name), "--go", str(self.go)),
            *("--temper", temper, "--seed", str(self._seed), *more),
        ]

    async def _listen(self, member: Member) -> None:
        port = self._ports.get(member.name, 0)
        process = await asyncio.create_subprocess_exec(
            *self._argv(member, "--http", str(port)), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        self._ports[member.name] = int(await process.stdout.readline())
        self._running[member.name] = process

    # Harm

    async def harm(self, host: Host, until: asyncio.Event) -> None:
        """Signals at random moments, to random victims, until `until` is set."""
        victims = [member for member in self.crew if member.temper in OUTSIDE]
        while not until.is_set() and victims:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._random.uniform(*EVERY_S)):
                    await until.wait()
                return
            self._harm(self._random.choice(victims), host)

    def _harm(self, victim: Member, host: Host) -> None:
        process = self._running.get(victim.name)
        pid = process.pid if process is not None else host.servers[victim.name].pid
        if pid is None:
            return
        self.harmed += 1
        if victim.temper == "stopped":
            self._later(self._stop(pid))
        elif victim.http and process is not None:
            self._later(self._replace(victim, process))
        else:
            _signal(pid, signal.SIGKILL)

    def _later(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]  # one of our coroutines
        self._healing.add(task)
        task.add_done_callback(self._healing.discard)

    async def _stop(self, pid: int) -> None:
        _signal(pid, signal.SIGSTOP)
        await asyncio.sleep(self._random.uniform(*STOPPED_S))
        _signal(pid, signal.SIGCONT)

    async def _replace(self, victim: Member, process: asyncio.subprocess.Process) -> None:
        if process.returncode is not None or self._running[victim.name] is not process:
            return
        process.kill()
        await process.wait()
        await asyncio.sleep(self._random.uniform(*DOWN_S))
        await self._listen(victim)

    async def healed(self) -> None:
        """Until everything that was harmed is itself again; nothing stays stopped."""
        while self._healing:
            await asyncio.gather(*self._healing)
        for pid, state in descendants():
            if state == "T":
                _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
