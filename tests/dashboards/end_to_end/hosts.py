"""Two hosts in processes of their own, with state folders of their own, and calls to them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from observant_host.errors import HostError
from observant_host.service.client import HostClient
from tests.dashboards.prometheus import free_port, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD = """\
version = 1
[host]
state_dir = {state}
startup_deadline_s = 2
remember_modern = false     # so that a server that was rolled back is a downgrade, not a refusal
[service]
listen = "127.0.0.1:{port}"
drain_timeout_s = 1
[telemetry]
otlp_endpoint = {collector}
[tokens.reader]
file = {reader}
scopes = ["read"]
[tokens.agent]
file = {agent}
scopes = ["mcp"]
[defaults]
probe_timeout_s = 1
restart_initial_s = 0.2
restart_max_s = 3
reprobe_max_s = 3
ack_timeout_s = 1
shutdown_timeout_s = 1
"""
TOKEN = "a-token-of-at-least-thirty-two-characters"
KNOCKS = 4
Call = tuple[str, dict[str, object], float]
"""Name, arguments and deadline."""


def table(name: str, argv: Sequence[str], **keys: object) -> str:
    """The table of a server that is a child process; `keys` are further values of it."""
    command, *arguments = argv
    given = {"command": command, "args": arguments, **keys}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items()]
    return "\n".join((f"[servers.{name}]", *lines, ""))


def own_mounts(record: Path, megabytes: int) -> tuple[str, ...]:
    """A prefix under which a command has a small disk of its own at `record`, where the kernel lets
    us; else nothing, and the folder is taken away instead."""
    prefix = ("unshare", "--user", "--map-root-user", "--mount")
    small = f'mount -t tmpfs -o size={megabytes}m tmpfs {record} && exec "$@"'
    words = (*prefix, "sh", "-c", small, "sh")
    permitted = (
        shutil.which("unshare")
        and not subprocess.run((*words, "true"), check=False, capture_output=True).returncode
    )
    return words if permitted else ()


class HostProcess:
    """`instance` is its label; `calls` are made again and again from `calling` on."""

    def __init__(self, folder: Path, instance: str) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.instance = instance
        self.state_dir = folder / "state"
        self.config = folder / "observant-host.toml"
        self.port = free_port()
        self.calls: list[Call] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.before: tuple[str, ...] = ()
        self.agents_token = ""
        """What an agent says, a few times in each round of calls; "" for no agent."""

    @property
    def record(self) -> Path:
        return self.state_dir / "decisions"

    def configure(self, servers: Sequence[str], *, collector: str) -> None:
        tokens = {name: self.folder / f"{name}.token" for name in ("reader", "agent")}
        for name, file in tokens.items():
            file.write_text(f"{name}-{TOKEN}")
            file.chmod(0o600)
        head = HEAD.format(
            state=json.dumps(str(self.state_dir)),
            port=self.port,
            collector=json.dumps(collector),
            **{name: json.dumps(str(file)) for name, file in tokens.items()},
        )
        self.config.write_text(head + "".join(servers))

    def small_disk(self, megabytes: int) -> None:
        self.record.mkdir(parents=True)
        self.before = own_mounts(self.record, megabytes)

    def fill_disk(self) -> None:
        """Until nothing more fits; without a disk of its own a file takes the folder's place."""
        assert self.process is not None
        if not self.before:
            shutil.rmtree(self.record)
            self.record.write_text("in the way")
            return
        inside = Path(f"/proc/{self.process.pid}/root{self.record}/filling")
        with inside.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(1024)):
                pass

    @contextmanager
    def running(self) -> Iterator[None]:
        """It is ready when the block begins."""
        with (self.folder / "host.log").open("wb") as log:
            run = (sys.executable, "-m", "observant_host", "run", "-c", str(self.config))
            self.process = subprocess.Popen(
                (*self.before, *run), stdout=subprocess.DEVNULL, stderr=log
            )
            try:
                until(f"host {self.instance} is ready", self._ready)
                yield
            finally:
                self.process.terminate()
                try:
                    self.process.wait(30)
                finally:
                    self.process.kill()
                    self.process.wait()

    def _ready(self) -> bool | None:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "host.log").read_text()[-3000:]
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=2).close()
            return True
        return None

    @contextmanager
    def called(self) -> Iterator[None]:
        """`calls` are made, a round every 0.3 s, until the block ends."""
        stop = threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(self._call_on(stop)))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    async def _call_on(self, stop: threading.Event) -> None:
        async with HostClient(self.state_dir) as client:
            while not stop.is_set():
                await asyncio.gather(*(_call(client, one) for one in tuple(self.calls)))
                if self.agents_token:
                    await asyncio.to_thread(self._knock, self.agents_token)
                await asyncio.sleep(0.3)

    def view(self, server: str) -> dict[str, Any]:
        """What its API says of one server."""

        async def ask() -> dict[str, Any]:
            async with HostClient(self.state_dir) as client:
                found: dict[str, Any] = json.loads(await client.server(server))
                return found

        return asyncio.run(ask())

    def once(self, *calls: Call) -> None:
        async def make() -> None:
            async with HostClient(self.state_dir) as client:
                await asyncio.gather(*(_call(client, one) for one in calls))

        asyncio.run(make())

    def allow(self, server: str) -> None:
        async def act() -> None:
            async with HostClient(self.state_dir) as client:
                await client.allow(server, until=None, reason="the vendor went back a release")

        asyncio.run(act())

    def reload(self) -> None:
        async def act() -> None:
            async with HostClient(self.state_dir) as client:
                with contextlib.suppress(HostError):
                    await client.reload(dry_run=False)

        asyncio.run(act())

    def _knock(self, token: str) -> None:
        for _ in range(KNOCKS):
            with contextlib.suppress(OSError):
                self._ask_as_agent(token)

    def _ask_as_agent(self, token: str) -> int:
        """The HTTP status of one request to /mcp."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/mcp",
            b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}',
            {
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


async def _call(client: HostClient, call: Call) -> None:
    name, arguments, deadline_s = call
    with contextlib.suppress(HostError):
        await client.call(name, json.dumps(arguments).encode(), deadline_s=deadline_s)
