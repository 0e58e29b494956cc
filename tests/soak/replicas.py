"""Two hosts behind nginx, one of them killed under load and started again.

Modern agents hold nothing in a host: of each, what was in flight may fail, and nothing that it asks
later. Legacy agents have their session in one host and are kept to it by their address; where it is
killed they get 404 from the other one, and begin anew.

Source: nginx, ngx_http_upstream_module and ngx_http_proxy_module.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.dashboards.prometheus import free_port
from tests.soak.agents import Legacy, Modern, Tally
from tests.soak.doors import config, tools_of
from tests.support.running import file_in, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tests.support.running import Running

MODERN = 24
LEGACY = 12
PATIENCE_S = 20.0

NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;

  upstream any_replica {{
    least_conn;
    {servers}
    keepalive 32;
  }}
  upstream same_replica {{
    hash $remote_addr$http_authorization consistent;
    {servers}
    keepalive 32;
  }}
  map $http_mcp_method $replica {{
    ""      same_replica;
    default any_replica;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://$replica;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_buffering off;
      proxy_read_timeout 1h;
    }}
  }}
}}
"""
"""Each modern request carries Mcp-Method; a legacy one does not."""


def nginx() -> str | None:
    """Where it is; Debian keeps it out of a user's path."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextlib.asynccontextmanager
async def balancer(folder: Path, ports: Sequence[int]) -> AsyncIterator[str]:
    """The URL of the endpoint behind it."""
    program = nginx()
    assert program is not None, "nginx is not installed: apt-get install nginx-light"
    port = free_port()
    servers = " ".join(f"server 127.0.0.1:{one} max_fails=1 fail_timeout=2s;" for one in ports)
    file = folder / "nginx.conf"
    file.write_text(NGINX.format(folder=folder, servers=servers, port=port))
    process = await asyncio.create_subprocess_exec(
        *(program, "-p", str(folder), "-c", str(file), "-e", str(folder / "error.log")),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await _accepts(port, process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _accepts(port: int, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            assert process.returncode is None, "nginx did not start"
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.05)


class Replicas:
    """`report` is for people, `failures` is empty where every promise held."""

    def __init__(self, *, seconds: float, modern: int = MODERN, legacy: int = LEGACY) -> None:
        self._seconds = seconds
        self._modern, self._legacy = modern, legacy
        self._tally, self._old = Tally(), Tally()
        self.report: list[str] = []
        self.failures: list[str] = []

    async def run(self) -> None:
        with tempfile.TemporaryDirectory(prefix="replicas-") as name:
            folders = [_replica_in(Path(name), number) for number in (0, 1)]
            async with (
                running(folders[1][0]),
                balancer(Path(name), [port for _, port in folders]) as url,
                contextlib.AsyncExitStack() as stack,
            ):
                first = await stack.enter_async_context(running(folders[0][0]))
                tools = await tools_of(url)
                over = asyncio.Event()
                async with asyncio.TaskGroup() as group:
                    self._begin(group, url, tools, over)
                    await self._story(first, folders[0][0], stack)
                    over.set()
        self._judge()

    def _begin(
        self, group: asyncio.TaskGroup, url: str, tools: list[str], over: asyncio.Event
    ) -> None:
        for number in range(self._modern):
            agent = Modern(f"modern{number}", url, self._tally, random.Random(number))
            group.create_task(agent.run(over, tools, listens=number % 4 == 0))
        for number in range(self._legacy):
            old = Legacy(f"legacy{number}", url, self._old, random.Random(-number))
            group.create_task(old.run(over, tools, local=f"127.0.1.{number + 1}"))

    async def _story(self, first: Running, folder: Path, stack: contextlib.AsyncExitStack) -> None:
        """Load on both, on one, on both."""
        await asyncio.sleep(self._seconds / 3)
        self._killed(first)
        await first.process.wait()
        self._dead_at = time.monotonic()
        await asyncio.sleep(self._seconds / 3)
        self._lost_by_kill = self._old.lost_sessions
        self._answers_alone = self._tally.answers + self._old.answers - self._answers_before
        await stack.enter_async_context(running(folder))
        self._back_at = time.monotonic()
        await asyncio.sleep(self._seconds / 3)

    def _killed(self, first: Running) -> None:
        self._answers_before = self._tally.answers + self._old.answers
        self._standing = self._old.lost_sessions
        first.process.send_signal(signal.SIGKILL)

    def _judge(self) -> None:
        for era, tally in (("modern", self._tally), ("legacy", self._old)):
            in_flight = [one for one in tally.failed if one.began <= self._dead_at]
            later = [one for one in tally.failed if one.began > self._dead_at]
            most = max(Counter((one.who, one.what) for one in in_flight).values(), default=0)
            self._say(f"{era} answers", tally.answers)
            self._say(f"{era} failed in flight", f"{len(in_flight)}, at most {most} of one agent")
            self.failures += [f"{era}, asked later: {one}" for one in later[:10]]
            if most > 1:
                self.failures.append(f"{era}: {most} failed of one agent: {in_flight[:4]}")
        self._say("answers of one replica alone", self._answers_alone)
        self._say("legacy sessions lost (404) by the kill", self._lost_by_kill)
        self._say("… by the return", self._old.lost_sessions - self._lost_by_kill)
        begun = len(self._old.took.get("legacy initialize", ()))
        self._say("legacy sessions begun", begun)
        if self._standing:
            self.failures.append(f"{self._standing} sessions were lost before the kill")
        if not 0 < self._lost_by_kill < self._legacy:
            self.failures.append(f"{self._lost_by_kill} of {self._legacy} sessions lost")
        if begun != self._legacy + self._old.lost_sessions:
            self.failures.append("a lost session was not begun anew")

    def _say(self, what: str, value: object) -> None:
        self.report.append(f"{what}: {value}")


def _replica_in(folder: Path, number: int) -> tuple[Path, int]:
    """A replica's folder and port; both have the same key file."""
    own = folder / f"replica{number}"
    own.mkdir()
    key = folder / "key"
    if not key.exists():
        key.write_bytes(base64.b64encode(os.urandom(32)))
        key.chmod(0o600)
    port = free_port()
    file_in(own).write_text(config(own, port=port, more=f'state_key_file = "{key}"', servers=2))
    return own, port
