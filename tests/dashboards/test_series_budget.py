"""What a large fleet with hostile names costs a Prometheus: 500 servers with 10,000 tools, renamed
while they are called, each called once. Prints its figures with `-s`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import Host, StdioServer
from observant_host.config import HostConfig, ServiceSettings
from observant_host.host.transports import Transports
from observant_host.service.app import Service
from observant_host.telemetry import setup
from observant_host.telemetry.metric_list import OTHER_TOOL, TOOL_BUDGET
from observant_host.timing.clock import SystemClock
from tests.dashboards.prometheus import Prometheus, prometheus, until
from tests.supervision.stage import CHANGING, Script, result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from observant_host.config import ServerConfig
    from observant_host.transports.base import Transport

pytestmark = [pytest.mark.prometheus, pytest.mark.timeout(180)]

SERVERS = 500
TOOLS_EACH = 20
EACH = 60
"""Series a server, at most."""
OURS = 2_000
"""Series of the host itself, whatever its servers do."""
A_TOOL = 3
"""Series of a called tool that always ends alike: calls by outcome, count, sum of seconds."""
PROCESS_FIGURES = 4
"""Series that a server in a process of its own has besides."""
HOSTILE = (
    'x"} 1',
    "a\\",
    "new\nline",
    "ünïcode",
    "__name__",
    "_other",
    "le",
    "peer",
    "📎",
    "t" * 100,
)


class Renaming(Script):
    """A server that tells of changes; `turn` gives all of its tools new names."""

    def __init__(self, name: str) -> None:
        super().__init__(**{"server/discover": result(CHANGING)})
        self.name = name
        self.version = 0
        self["subscriptions/listen"] = self.acknowledge
        self["tools/list"] = lambda _: result({"tools": [self._tool(n) for n in range(TOOLS_EACH)]})
        self["tools/call"] = result({"content": [], "resultType": "complete"})

    def _tool(self, number: int) -> dict[str, Any]:
        hostile = HOSTILE[number % len(HOSTILE)]
        name = f"{hostile}-{self.name}-{number}-{self.version}"
        return {"name": name, "inputSchema": {"type": "object"}}

    def turn(self) -> None:
        self.version += 1
        self.change()


@contextlib.contextmanager
def in_memory(scripts: dict[str, Renaming]) -> Iterator[None]:
    """Hosts get these servers instead of processes."""

    def made(self: Transports, server: ServerConfig) -> Transport:
        return scripts[server.name].transport(SystemClock())  # type: ignore[arg-type]  # it only tells the time

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Transports, "__call__", made)
        yield


async def call_every_tool(host: Host) -> int:
    names = [tool.name for tool in host.catalogue.tools]
    for name in names:
        await host.call_tool(name)
    return len(names)


async def turns_while(work: asyncio.Future[Any]) -> tuple[int, float]:
    """How often the loop turned meanwhile, and the longest time between two turns."""
    clock, turns, longest = asyncio.get_running_loop().time, 0, 0.0
    while not work.done():
        before = clock()
        await asyncio.sleep(0.001)
        turns, longest = turns + 1, max(longest, clock() - before)
    return turns, longest


def scraped(folder: Path, address: str) -> tuple[dict[str, Any], Counter[str], int]:
    """(status of the database, series by server, series of tools) after a scrape."""
    job = {"job_name": "host", "static_configs": [{"targets": [address]}]}
    text = json.dumps({"global": {"scrape_interval": "2s"}, "scrape_configs": [job]})

    with prometheus(folder, text) as asked:

        def up() -> bool | None:
            return bool(asked.query('up{job="host"} == 1')) or None

        until("the host is scraped", up)
        return asked.ask_get("status/tsdb"), by_server(asked), tool_series(asked)


def by_server(asked: Prometheus) -> Counter[str]:
    """Series of each, tools apart."""
    query = 'count by (peer) ({peer=~"s.*", tool=""})'
    return Counter({one["metric"]["peer"]: int(one["value"][1]) for one in asked.query(query)})


def tool_series(asked: Prometheus) -> int:
    return int(asked.query('count({tool!=""})')[0]["value"][1])


async def test_a_large_fleet_with_hostile_names_stays_within_its_series(tmp_path: Path) -> None:
    scripts = {f"s{number:03d}": Renaming(f"s{number:03d}") for number in range(SERVERS)}
    config = HostConfig(service=ServiceSettings(listen="127.0.0.1:0"))
    telemetry = setup.build(config.telemetry, version="1", instance="budget")
    host = Host(config=config, telemetry=telemetry, startup_deadline_s=120)
    for name in scripts:
        host.add_server(name, StdioServer(["in-memory"]))
    with in_memory(scripts):
        async with host:
            called = await call_every_tool(host)
            for script in scripts.values():
                script.turn()
            async with asyncio.timeout(60):
                while not all(tool.name.endswith("-1") for tool in host.catalogue.tools):
                    await asyncio.sleep(0.05)
            called += await call_every_tool(host)
            service = Service(host)
            await service.listen()
            try:
                address = service.addresses["admin"].removeprefix("http://")
                rendering = asyncio.ensure_future(host.metrics("application/openmetrics-text"))
                turns, longest = await turns_while(rendering)
                text = rendering.result()[0].decode()
                status, servers, tools = await asyncio.to_thread(scraped, tmp_path, address)
            finally:
                await service.close()
                await telemetry.close()
    head = status["headStats"]["numSeries"]
    samples = sum(not line.startswith("#") for line in text.splitlines())
    print(
        f"\n{SERVERS} servers, {called} tools called: {head} series, at most "
        f"{max(servers.values())} a server without a process, {tools} of tools; "
        f"rendering {samples} samples ({len(text) / 1e6:.1f} MB): {turns} turns of the loop, "
        f"the longest {longest * 1000:.0f} ms"
    )
    assert called >= 10_000
    assert len(servers) == SERVERS
    assert max(servers.values()) + PROCESS_FIGURES <= EACH
    assert tools <= A_TOOL * (TOOL_BUDGET + SERVERS)
    assert head <= EACH * SERVERS + OURS + tools
    assert re.search(rf'tool_calls_total\{{[^}}]*tool="{OTHER_TOOL}"', text)
    assert "label_overflow_total" in text
    assert turns > 10, "the loop stood still while the metrics were rendered"
