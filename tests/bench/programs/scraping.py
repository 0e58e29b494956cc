"""How long a scrape takes, by how many series it has.

{"servers": 120}     servers in memory, each with its tools called once, so that all have series
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
from driving import result, task

from observant_host import Host, StdioServer
from tests.dashboards.test_series_budget import Renaming, in_memory

RENDERINGS = 4
KEPT_S = 1.1
"""A rendering is kept for a second, for several scrapers: after that it is made anew."""


async def main() -> None:
    servers = task()["servers"]
    scripts = {f"s{number:04}": Renaming(f"s{number:04}") for number in range(servers)}
    host = Host(startup_deadline_s=120)
    for name in scripts:
        host.add_server(name, StdioServer(["in-memory"]))
    with in_memory(scripts):
        async with host:
            for tool in host.catalogue.tools:
                await host.call_tool(tool.name)
            wall_ms, cpu_ms = [], []
            for _ in range(RENDERINGS):
                began, cpu = time.perf_counter(), time.process_time()
                text, _ = await host.metrics("application/openmetrics-text")
                cpu_ms.append((time.process_time() - cpu) * 1e3)
                wall_ms.append((time.perf_counter() - began) * 1e3)
                await asyncio.sleep(KEPT_S)
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    figures = {"series": series, "scrape_ms": min(wall_ms), "cpu_ms": min(cpu_ms)}
    result({**figures, "us_each": min(wall_ms) * 1e3 / series, "bytes": len(text)})


if __name__ == "__main__":
    asyncio.run(main())
