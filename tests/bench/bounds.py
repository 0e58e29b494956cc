"""Large messages and lists, one case in one process: does it work, or fail by its bound and alone?

python -m tests.bench.bounds            prints a table: outcome, CPU time and peak memory of a host
python -m tests.bench.bounds CASE MIB   one line of JSON, for the table and the tests

CPU time and memory are those of the host's process from before the call to after it; the server is
another process.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from observant_host import Host, HttpServer, StdioServer, errors
from tests.support.peers import scripted
from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MIB = 1 << 20
PATIENCE_S = 120.0
CASES = ("stdio line", "HTTP body", "SSE event", "10,000 tools")
SIZES_MIB = {"stdio line": (7, 15, 30), "HTTP body": (16, 32, 64), "SSE event": (4, 8, 16)}
BIG = {"max_message_bytes": 128 * MIB}


def measured(case: str, mib: int, *, default_bound: bool = False) -> dict[str, Any]:
    """{"case", "mib", "outcome", "cpu_s", "wall_s", "peak_mib", "grew_mib", "others"} of one case.

    `others`: how many calls to another server went well meanwhile, of how many.
    """
    argv = [sys.executable, "-m", "tests.bench.bounds", case, str(mib)]
    argv += ["default"] if default_bound else []
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@asynccontextmanager
async def large_server(case: str) -> AsyncIterator[StdioServer | HttpServer]:
    if case == "stdio line":
        yield StdioServer(scripted(tools="big,echo"))
        return
    answers = "sse" if case == "SSE event" else "json"
    more = {"many": 10_000, "page": 100} if case == "10,000 tools" else {}
    async with serving(tools="big,echo", answers=answers, **more) as served:
        yield HttpServer(served.url)


async def run_case(case: str, mib: int, settings: dict[str, Any]) -> dict[str, Any]:
    host = Host(**settings, startup_deadline_s=PATIENCE_S)
    host.add_server("beside", StdioServer(scripted(tools="echo")))
    async with large_server(case) as launch, host:
        before, began, peak = _cpu_s(), time.perf_counter(), _peak_mib()
        others = asyncio.create_task(_calls_beside(host))
        host.add_server("large", launch, call_timeout_s=PATIENCE_S, list_timeout_s=PATIENCE_S)
        await host.wait_for("large", "ready", "degraded", "unavailable")
        if case == "10,000 tools":
            count = sum(tool.server == "large" for tool in host.catalogue.tools)
            outcome = f"{count} tools"
        else:
            outcome = await _call(host, mib * MIB)
        cpu_s, wall_s = _cpu_s() - before, time.perf_counter() - began
        alive = (await host.call_tool("large/echo", {"text": "still"})).text
        others.cancel()
        good, all_ = await others
        return {
            "case": case,
            "mib": mib,
            "outcome": outcome if alive == "still" else f"{outcome}, then dead",
            "cpu_s": round(cpu_s, 3),
            "wall_s": round(wall_s, 3),
            "peak_mib": round(_peak_mib()),
            "grew_mib": round(_peak_mib() - peak),
            "others": [good, all_],
        }


async def _call(host: Host, size: int) -> str:
    try:
        result = await host.call_tool("large/big", {"bytes": size})
    except errors.CallError as failed:
        return f"{failed.error_type}: {failed}"[:160]
    return f"{len(result.raw) >> 20} MiB"


async def _calls_beside(host: Host) -> tuple[int, int]:
    """Calls to the other server, every 20 ms until cancelled."""
    good = all_ = 0
    try:
        while True:
            all_ += 1
            await host.call_tool("beside/echo", {"text": "x"})
            good += 1
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        return good, max(good, all_ - 1)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: list[str]) -> None:
    if argv:
        settings = {} if argv[2:] == ["default"] else BIG
        print(json.dumps(asyncio.run(run_case(argv[0], int(argv[1]), settings))))
        return
    print("| case | MiB | outcome | host CPU s | wall s | host peak MiB (grew) | calls beside |")
    print("|---|---|---|---|---|---|---|")
    rows = [(case, mib) for case, sizes in SIZES_MIB.items() for mib in sizes]
    for case, mib in [*rows, ("10,000 tools", 0)]:
        _print_row(measured(case, mib))
    for case in ("stdio line", "HTTP body", "SSE event"):
        _print_row(measured(case, 30, default_bound=True))


def _print_row(one: dict[str, Any]) -> None:
    peak = f"{one['peak_mib']} ({one['grew_mib']})"
    cells = (one["case"], one["mib"], one["outcome"], one["cpu_s"], one["wall_s"], peak)
    print(
        f"| {' | '.join(map(str, cells))} | {one['others'][0]} of {one['others'][1]} |", flush=True
    )


if __name__ == "__main__":
    main(sys.argv[1:])
