"""What a routed call does, counted: Python function calls, and memory blocks while it is open and
after it. The same on any machine, whatever else runs there.

{"door": "library" | "gateway", "transport": "stdio" | "http", "target": …, "record": false,
 "layer": "" | "wasteful"}

Calls are those of the thread of the event loop, each entry into a Python function and each resumed
coroutine. `layer` puts something around each call, to see that it is noticed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driving import result, task

from observant_host import Host, HttpServer, StdioServer
from observant_host.config import HostConfig, ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

WARM = 300
CALLS = 400
OPEN = 16
"""Open at once, none waits in line: `max_in_flight` of a server as it is by default."""
CROWD = 256
"""Begun at once: all but OPEN wait in line, which takes as many by default."""
ENDED = 2000
"""Enough that what a timer left meanwhile is nothing for each."""
LOAD = Path(__file__).parents[1] / "load.py"


class Counter:
    """Entries into Python functions by this thread while it counts."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Counter:
        gc.collect()
        gc.disable()
        sys.setprofile(self._seen)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        gc.enable()

    def _seen(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call":
            self.count += 1


def wasteful(call: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """A layer as one is soon written: a task of its own, and the result decoded to look into it."""

    async def look() -> Any:
        answer = await call()
        return json.loads(json.dumps(json.loads(answer.raw)))

    async def layer() -> Any:
        return await asyncio.create_task(look())

    return layer


async def library(host: Host, layer: str) -> dict[str, float]:
    async def plain() -> Any:
        return await host.call_tool("t0", {"text": "hello", "n": 1})

    call = wasteful(plain) if layer else plain
    for _ in range(WARM):
        await call()
    with Counter() as counter:
        for _ in range(CALLS):
            await call()
    with Counter() as crowd:
        await asyncio.gather(*(call() for _ in range(CROWD)))
    calls = {"calls": counter.count / CALLS, "calls_in_line": crowd.count / CROWD}
    return {**calls, **await blocks(call)}


async def blocks(call: Callable[[], Awaitable[Any]]) -> dict[str, float]:
    """Blocks of memory for each open call, its task included, and for each that has ended."""

    async def some() -> None:
        for _ in range(ENDED // OPEN):
            await asyncio.gather(*(call() for _ in range(OPEN)))

    await some()
    gc.collect()
    gc.disable()
    before = sys.getallocatedblocks()
    waiting = [asyncio.ensure_future(call()) for _ in range(OPEN)]
    for _ in range(2):  # a layer's task begins one turn later
        await asyncio.sleep(0)
    opened = sys.getallocatedblocks() - before
    await asyncio.gather(*waiting)
    waiting.clear()
    gc.enable()
    await some()
    gc.collect()
    left = sys.getallocatedblocks() - before
    return {"blocks_open": opened / OPEN, "blocks_left": left / ENDED}


async def gateway(host: Host) -> dict[str, float]:
    """Of two loads the difference: what a connection costs is in both."""
    from observant_host.service.app import Service

    service = Service(host)
    await service.listen()
    try:
        url = service.addresses["admin"] + "/mcp"
        counts = []
        for calls in (WARM, WARM, WARM + CALLS):
            with Counter() as counter:
                await load(url, calls)
            counts.append(counter.count)
    finally:
        await service.close()
    return {"calls": (counts[2] - counts[1]) / CALLS}


async def load(url: str, calls: int) -> None:
    argv = [sys.executable, str(LOAD), url, "--tool", "t0", "--closed", "1", "--calls", str(calls)]
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.DEVNULL)
    assert await process.wait() == 0


async def main() -> None:
    given = task()
    target = given["target"]
    launch = HttpServer(target) if given["transport"] == "http" else StdioServer(target)
    config = HostConfig(service=ServiceSettings(listen="127.0.0.1:0"))
    with tempfile.TemporaryDirectory() as folder:
        host = Host(folder, record=given["record"], config=config, startup_deadline_s=60)
        host.add_server("one", launch)
        async with host:
            if given["door"] == "gateway":
                result(await gateway(host))
            else:
                result(await library(host, given.get("layer", "")))


if __name__ == "__main__":
    asyncio.run(main())
