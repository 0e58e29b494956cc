"""One large result over stdio: CPU of the least of a few calls, memory that the first one added at
its highest, in bodies.

{"client": "bare" | "mcp" | "ours", "target": [command…]}

bare: reads the line to its end and decodes nothing; ours: the host, metrics only.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from driving import forget_peak, memory_mib, result, task

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

CALLS = 4


class Reading(asyncio.SubprocessProtocol):
    """Lines, whole and unread."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.line: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._pieces.append(data)
        if data.endswith(b"\n"):
            self.line.set_result(b"".join(self._pieces))
            self._pieces.clear()


@asynccontextmanager
async def bare(target: list[str]) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    from bare import request

    loop = asyncio.get_running_loop()
    transport, reading = await loop.subprocess_exec(Reading, *target)
    pipe = transport.get_pipe_transport(0)

    async def call() -> int:
        reading.line = loop.create_future()
        pipe.write(request(1, "tools/call", {"name": "t0", "arguments": {}}) + b"\n")
        return len(await reading.line)

    yield call
    transport.close()


@asynccontextmanager
async def mcp(target: list[str]) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    from mcp import Client, StdioServerParameters

    async with Client(StdioServerParameters(command=target[0], args=target[1:])) as client:
        await client.list_tools()

        async def call() -> int:
            return len((await client.call_tool("t0", {})).content[0].text)

        yield call


@asynccontextmanager
async def ours(target: list[str]) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    from observant_host import Host, StdioServer

    host = Host(startup_deadline_s=60)
    host.add_server("one", StdioServer(target))
    async with host:

        async def call() -> int:
            return len((await host.call_tool("t0", {})).raw)

        yield call


async def main() -> None:
    given = task()
    client: Any = {"bare": bare, "mcp": mcp, "ours": ours}[given["client"]]
    async with client(given["target"]) as call:
        before, _ = memory_mib()
        forget_peak()
        cpu_ms = []
        for number in range(CALLS):
            began = time.process_time()
            size = await call()
            cpu_ms.append((time.process_time() - began) * 1e3)
            if number == 0:
                added = memory_mib()[1] - before
        result({"cpu_ms": min(cpu_ms), "first_ms": cpu_ms[0], "bodies": added * (1 << 20) / size})


asyncio.run(main())
