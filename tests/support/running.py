"""A real `observant-host run` in a process of its own, asked over its private socket."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from observant_host.service.client import HostClient
from tests.support.peers import scripted

if TYPE_CHECKING:
    import signal
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

PATIENCE_S = 60.0
"""How long a test waits for what must come: only a failing test ever waits it out."""

HEAD = """version = 1
[host]
state_dir = "{state}"
[service]
listen = "127.0.0.1:0"
drain_timeout_s = {drain_s}
[defaults]
shutdown_timeout_s = 2
"""


def config_of(
    folder: Path,
    servers: Mapping[str, Mapping[str, Any]],
    *,
    drain_s: float = 20,
    keys: Mapping[str, str] | None = None,
) -> str:
    """A configuration of scripted servers: name to the script's options; `keys` are further lines
    of a server's table."""
    text = HEAD.format(state=folder / "state", drain_s=drain_s)
    for name, options in servers.items():
        command, *arguments = scripted(**options)
        text += f"[servers.{name}]\ncommand = {json.dumps(command)}\n"
        text += f"args = {json.dumps(arguments)}\n{(keys or {}).get(name, '')}\n"
    return text


def file_in(folder: Path) -> Path:
    """Where `running` finds the configuration."""
    own = folder / "observant-host"
    own.mkdir(exist_ok=True)
    return own / "observant-host.toml"


class Running:
    """One running host. `events` are its log lines so far."""

    def __init__(self, process: asyncio.subprocess.Process, state_dir: Path) -> None:
        self.process = process
        self.state_dir = state_dir
        self.events: list[dict[str, Any]] = []
        self._more = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            async with self._more:
                self.events.append(json.loads(line))
                self._more.notify_all()
        async with self._more:
            self._more.notify_all()

    async def until(self, event: str, *, after: int = 0, **fields: object) -> dict[str, Any]:
        """The first log line with these fields, of those after the first `after` lines."""
        async with asyncio.timeout(PATIENCE_S), self._more:
            while True:
                for line in self.events[after:]:
                    if line["event"] == event and fields.items() <= line.items():
                        return line
                assert not self._reader.done(), self.events[-3:]
                await self._more.wait()

    async def servers(self) -> dict[str, dict[str, Any]]:
        """The views of its servers, by name."""
        async with self.client() as client:
            return {one["name"]: one for one in json.loads(await client.servers())["servers"]}

    async def ready(self, name: str, *, generation: int) -> dict[str, Any]:
        """The view of a server once it is ready in that life, or a later one."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                view = (await self.servers()).get(name, {"state": "", "generation": 0})
                if view["state"] == "ready" and view["generation"] >= generation:
                    return view
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[HostClient]:
        client = await HostClient.connect(self.state_dir)
        assert client is not None
        try:
            yield client
        finally:
            await client.close()

    async def call(self, name: str, **arguments: object) -> dict[str, Any]:
        """The document of `call --json`."""
        async with self.client() as client:
            sent = json.dumps(arguments).encode()
            return json.loads(await client.call(name, sent, deadline_s=None))

    async def open_calls(self, *servers: str, count: int) -> None:
        """Until so many calls to these servers are open."""
        async with asyncio.timeout(PATIENCE_S), self.client() as client:
            while True:
                found = json.loads(await client._ask("GET", "/api/v1/calls"))["in_flight"]
                if sum(one["server"] in servers for one in found) == count:
                    return
                await asyncio.sleep(0.05)

    async def metric(self, line: str) -> str:
        """The value of one series, "" where there is none."""
        async with self.client() as client:
            for found in (await client._ask("GET", "/metrics")).decode().splitlines():
                if found.startswith(line + " "):
                    return found.rpartition(" ")[2]
        return ""

    async def shows(self, line: str, value: str) -> None:
        """Until a series has this value: what is scraped may be a second old."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.metric(line) != value:
                await asyncio.sleep(0.05)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Its exit code."""
        async with asyncio.timeout(PATIENCE_S):
            await self._reader
            return await self.process.wait()


@asynccontextmanager
async def running(
    folder: Path, *, watched: bool = False, before: tuple[str, ...] = ()
) -> AsyncIterator[Running]:
    """Run it with `file_in(folder)` until the block ends; it is published when the block begins.
    Only a file that is given is `watched`. `before` is put in front of the command line."""
    given = ("-c", str(file_in(folder))) if watched else ()
    process = await asyncio.create_subprocess_exec(
        *(*before, sys.executable, "-m", "observant_host", "run", *given),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "XDG_CONFIG_HOME": str(folder)},
    )
    host = Running(process, folder / "state")
    try:
        await host.until("host_lifecycle", what="published")
        yield host
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await host.ended()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise


async def command_line(*words: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of one command."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "observant_host", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()
