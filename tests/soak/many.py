"""Many stdio servers in one host: how long, how much, and does one crash touch the others?"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import tempfile
import time
from typing import Any

from observant_host import Host, StdioServer
from tests.soak import figures
from tests.soak.fleet import PROGRAM

IDLE_S = 20.0


async def many(peers: int, *, idle_s: float = IDLE_S) -> dict[str, Any]:
    """Figures of one host with so many servers; `touched` names servers that one crash affected."""
    if peers > 1:
        await many(1, idle_s=0.0)  # what is loaded once is no server's share
    gc.collect()
    empty_mib = figures.resident_mib()
    with tempfile.TemporaryDirectory(prefix="many-") as folder:
        host = Host(startup_deadline_s=300)
        for number in range(peers):
            argv = [sys.executable, "-S", str(PROGRAM), "--name", f"m{number}"]
            argv += ["--ledger", f"{folder}/{number}", "--go", f"{folder}/go"]
            host.add_server(f"m{number}", StdioServer(argv), probe_timeout_s=120)
        began = time.monotonic()
        async with host:
            ready_s = time.monotonic() - began
            not_ready = [v.name for v in host.servers.values() if v.state != "ready"]
            gc.collect()
            return {
                "peers": peers,
                "not_ready": not_ready,
                "ready_s": round(ready_s, 2),
                "kib_a_peer": round((figures.resident_mib() - empty_mib) * 1024 / peers, 1),
                "threads": figures.threads(),
                "idle_cpu_percent": round(await _idle(idle_s), 2),
                "touched": await _one_crash(host),
            }


async def _idle(seconds: float) -> float:
    began, at = figures.cpu_s(), time.monotonic()
    await asyncio.sleep(seconds)
    return (figures.cpu_s() - began) / (time.monotonic() - at) * 100


async def _one_crash(host: Host) -> list[str]:
    before = dict(host.servers)
    victim = next(iter(before))
    pid = before[victim].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    calls = [
        host.call_tool(f"{name}/mark", {"token": str(n)}, deadline_s=60)
        for n, name in enumerate(before)
        if name != victim
    ]
    results = await asyncio.gather(*calls, return_exceptions=True)
    failed = [str(one) for one in results if isinstance(one, BaseException) or one.is_error]
    moved = [
        name
        for name, view in host.servers.items()
        if name != victim and (view.generation, view.pid) != (1, before[name].pid)
    ]
    async with asyncio.timeout(60):
        await host.wait_for(victim, "ready")
    return failed + moved
