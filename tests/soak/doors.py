"""Many agents at once at the door of one real host: no error, flat memory, no descriptor left.

Every fourth agent keeps a stream of changes open beside its calls. The host runs in a process of
its own, with servers on stdio; agents share one process, whose own work is in the times they see.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from tests.dashboards.prometheus import free_port
from tests.soak import figures
from tests.soak.agents import Modern, Tally, until
from tests.soak.fleet import PROGRAM
from tests.support.agent import Agent
from tests.support.running import file_in, running

SERVERS = 4
SAMPLE_S = 1.0
LISTENS = 4
"""Of so many agents one has a stream open."""
SLACK_MIB = 12.0
"""What memory may grow between the first quarter of the run and its end."""
GONE_S = 30.0
"""For the host to notice that all connections are closed."""

CONFIG = """version = 1
[host]
state_dir = {state}
[service]
listen = "127.0.0.1:{port}"
{more}
"""


def config(folder: Path, *, port: int, more: str = "", servers: int = SERVERS) -> str:
    """A host with steady servers on stdio, whose ledgers are in `folder`."""
    text = CONFIG.format(state=json.dumps(str(folder / "state")), port=port, more=more)
    for number in range(servers):
        argv = ["-S", str(PROGRAM), "--name", f"s{number}"]
        argv += ["--ledger", str(folder / f"ledger{number}"), "--go", str(folder / "go")]
        text += f"[servers.s{number}]\ncommand = {json.dumps(sys.executable)}\n"
        text += f"args = {json.dumps(argv)}\n"
    return text


async def tools_of(url: str) -> list[str]:
    """What is listed."""
    async with aiohttp.ClientSession() as session:
        answer = await Agent(session, url).ask("tools/list")
        return [tool["name"] for tool in answer.result["tools"]]


class Doors:
    """`report` is for people, `failures` is empty where every promise held."""

    def __init__(self, *, clients: int, seconds: float) -> None:
        self._clients = clients
        self._seconds = seconds
        self._tally = Tally()
        self.report: list[str] = []
        self.failures: list[str] = []

    async def run(self) -> None:
        with tempfile.TemporaryDirectory(prefix="doors-") as name:
            folder = Path(name)
            file_in(folder).write_text(config(folder, port=(port := free_port())))
            async with running(folder) as host:
                await self._with(host.process.pid, f"http://127.0.0.1:{port}/mcp")

    async def _with(self, pid: int, url: str) -> None:
        tools = await tools_of(url)
        before = descriptors(pid)
        over = asyncio.Event()
        agents = [
            Modern(f"agent{n}", url, self._tally, random.Random(n)) for n in range(self._clients)
        ]
        cpu_s, own_s = figures.cpu_s(pid), figures.cpu_s()
        async with asyncio.TaskGroup() as group:
            for number, agent in enumerate(agents):
                group.create_task(agent.run(over, tools, listens=number % LISTENS == 0))
            samples = await self._watch(pid)
            listening = self._tally.listening
            cpu_s, own_s = figures.cpu_s(pid) - cpu_s, figures.cpu_s() - own_s
            load, cores = os.getloadavg()[0], os.cpu_count()
            over.set()
        self._say("answers", f"{self._tally.answers} ({self._tally.answers / self._seconds:.0f}/s)")
        self._say("streams open at the end", listening)
        shares = (f"{each / self._seconds * 100:.0f} %" for each in (cpu_s, own_s))
        self._say("CPU of the host, of the agents", ", ".join(shares))
        self._say("load of the machine", f"{load:.1f} on {cores} cores")
        self._times()
        self._memory(samples)
        await self._descriptors(pid, before, max(count for _, count in samples))
        if listening != -(-self._clients // LISTENS):
            self.failures.append(f"{listening} streams stood at the end")
        self.failures += [str(one) for one in self._tally.failed[:20]]

    async def _watch(self, pid: int) -> list[tuple[float, int]]:
        """(MiB, descriptors) of the host, once a second."""
        samples = []
        end = time.monotonic() + self._seconds
        while time.monotonic() < end:
            await asyncio.sleep(SAMPLE_S)
            samples.append((figures.resident_mib(pid), descriptors(pid)))
        return samples

    def _times(self) -> None:
        for what, took in sorted(self._tally.took.items()):
            p50, p99 = (figures.percentile(took, share) * 1e3 for share in (0.5, 0.99))
            self._say(what, f"{len(took)}, p50 {p50:.1f} ms, p99 {p99:.1f} ms")

    def _memory(self, samples: list[tuple[float, int]]) -> None:
        quarter = samples[len(samples) // 4][0]
        last = samples[-1][0]
        self._say("memory of the host", f"{quarter:.1f} MiB after a quarter, {last:.1f} at the end")
        if last > quarter * 1.05 + SLACK_MIB:
            self.failures.append(f"memory grew from {quarter:.1f} to {last:.1f} MiB")

    async def _descriptors(self, pid: int, before: int, most: int) -> None:
        end = time.monotonic() + GONE_S
        while descriptors(pid) > before and time.monotonic() < end:
            await until(asyncio.Event(), 0.2)
        left = descriptors(pid)
        self._say("descriptors of the host", f"{before} before, at most {most}, {left} after")
        if left > before:
            self.failures.append(f"{left - before} descriptors are left")

    def _say(self, what: str, value: object) -> None:
        self.report.append(f"{what}: {value}")


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
