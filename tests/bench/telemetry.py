"""What telemetry costs a routed call: the same call in memory, told nobody, told the metrics, told
everything without and with sampling. Rounds are interleaved, and each figure is the shortest round:
what else the machine does adds to some rounds only.

python -m tests.bench.telemetry [ROUNDS]     prints a table in microseconds a call
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from observant_host import Host, StdioServer
from observant_host.config import TelemetrySettings
from observant_host.telemetry import setup
from tests.dashboards.test_series_budget import Renaming, in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from observant_host.telemetry.facade import Telemetry

CALLS = 400
"""A round: short beside what a scheduler gives to others, long beside a clock's grain."""
ROUNDS = 40
TOOL = "s000/le-s000-6-0"
QUIET = TelemetrySettings(log_level="error")


def ways(folder: Path, endpoint: str) -> dict[str, Telemetry]:
    """Name to the telemetry of a host."""
    on = msgspec.structs.replace(QUIET, otlp_endpoint=endpoint)
    unsampled = msgspec.structs.replace(on, sample_ratio=0.0)

    def everything(settings: TelemetrySettings, name: str) -> Telemetry:
        return setup.build(
            settings, state_dir=folder / name, record=True, version="1", configure_sdk=True
        )

    return {
        "silent": setup.silent(),
        "metrics only": setup.build(QUIET, version="1"),
        "metrics and record": setup.build(
            QUIET, state_dir=folder / "record", record=True, version="1", configure_sdk=True
        ),
        "everything, unsampled": everything(unsampled, "unsampled"),
        "everything, sampled": everything(on, "sampled"),
    }


COLLECTOR = """
import time
from tests.dashboards.faults import collector
with collector() as url:
    print(url, flush=True)
    time.sleep(3600)
"""


@contextmanager
def beside() -> Iterator[str]:
    """The URL of a collector in a process of its own: it must not share our interpreter."""
    argv = [sys.executable, "-c", COLLECTOR]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def measured(rounds: int) -> dict[str, tuple[float, float]]:
    """Microseconds a call by way, each the smallest of all rounds: how long the caller waits, and
    the CPU time of all threads until everything is written and sent."""
    wall: dict[str, float] = {}
    cpu: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, beside() as endpoint:
        told = ways(Path(folder), endpoint)
        with in_memory({"s000": Renaming("s000")}):
            async with AsyncExitStack() as stack:
                hosts = {}
                for name, telemetry in told.items():
                    host = Host(telemetry=telemetry, startup_deadline_s=30)
                    host.add_server("s000", StdioServer(["in-memory"]))
                    hosts[name] = await stack.enter_async_context(host)
                for _ in range(rounds):
                    for name, host in hosts.items():
                        began = time.process_time()
                        took = await _round(host)
                        await told[name].flush()
                        used = time.process_time() - began
                        wall[name] = min(wall.get(name, took), took)
                        cpu[name] = min(cpu.get(name, used), used)
        for telemetry in told.values():
            await telemetry.close()
    return {name: (wall[name] / CALLS * 1e6, cpu[name] / CALLS * 1e6) for name in wall}


async def _round(host: Host) -> float:
    began = time.perf_counter()
    for _ in range(CALLS):
        await host.call_tool(TOOL)
    return time.perf_counter() - began


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    found = asyncio.run(measured(rounds))
    wall, cpu = found["silent"]
    print(f"| telemetry | us a call | more | CPU us a call | more |\n|{'---|' * 5}")
    for name, (each, used) in found.items():
        print(f"| {name} | {each:.1f} | {each - wall:+.1f} | {used:.1f} | {used - cpu:+.1f} |")


if __name__ == "__main__":
    main()
