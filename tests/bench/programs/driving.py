"""What the measured programs share. Standard library alone: it must add nothing to what they load.

A program gets one argument, a JSON object, and ends with one line: RESULT and a JSON object of
figures. They run by path, in whatever environment they measure.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

REVISION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
WARMING = 200
"""Calls before the first measured one: caches, connections, the interpreter's specialisation."""


def task() -> dict[str, Any]:
    return json.loads(sys.argv[1])


def result(figures: dict[str, Any]) -> None:
    print("RESULT " + json.dumps(figures), flush=True)


def memory_mib(pid: int | str = "self") -> tuple[float, float]:
    """Resident memory of a process now, and at its highest."""
    text = Path(f"/proc/{pid}/status").read_text()
    lines = dict(line.split(":", 1) for line in text.splitlines())
    now, highest = (int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, highest


def forget_peak(pid: int | str = "self") -> None:
    """From here on, the highest memory is that of what follows. Source: proc(5), clear_refs."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def at_share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def drive(
    call: Callable[[int], Awaitable[Any]],
    *,
    calls: int,
    at: int,
    flush: Callable[[], Awaitable[Any]] | None = None,
) -> dict[str, float]:
    """Figures named NAME@`at`: CPU of all threads and wall time a call, with `at` in flight.

    `flush` is waited for within the CPU time: work put off is still work of these calls.
    """
    for number in range(min(WARMING, calls)):
        await call(number)
    numbers = iter(range(calls))
    took: list[float] = []

    async def one_after_another() -> None:
        for number in numbers:
            began = time.perf_counter()
            await call(number)
            took.append(time.perf_counter() - began)

    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(one_after_another() for _ in range(at)))
    wall = time.perf_counter() - wall
    if flush is not None:
        await flush()
    cpu = time.process_time() - cpu
    took.sort()
    return {
        f"cpu_us@{at}": cpu / calls * 1e6,
        f"p50_us@{at}": at_share(took, 0.50) * 1e6,
        f"p99_us@{at}": at_share(took, 0.99) * 1e6,
        f"calls_s@{at}": calls / wall,
    }


async def driven(
    given: dict[str, Any],
    call: Callable[[int], Awaitable[Any]],
    flush: Callable[[], Awaitable[Any]] | None = None,
) -> dict[str, float]:
    """The figures at each of `given["at"]`: {"in flight": calls}."""
    found: dict[str, float] = {}
    for at, calls in given["at"].items():
        found |= await drive(call, calls=calls, at=int(at), flush=flush)
    return found
