"""Scripted HTTP servers as real processes, for tests of a whole host."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

from tests.support.peers import program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Served:
    """A running `http_scripted`. `url` is its endpoint, `pid` its process."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, *, path: str) -> None:
        self._process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}{path}"
        self.pid = process.pid

    async def kill(self) -> None:
        """End it as a crash would; idempotent."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()


@contextlib.asynccontextmanager
async def serving(**options: object) -> AsyncIterator[Served]:
    """Start `http_scripted` with these options (see its docstring) until the block ends."""
    argv: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        for one in value if isinstance(value, list) else [value]:
            argv += [f"--{name.replace('_', '-')}", "yes" if one is True else str(one)]
    process = await asyncio.create_subprocess_exec(
        *program("http_scripted.py", *argv),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        port = int(await process.stdout.readline())
    served = Served(process, port, path="/sse" if options.get("old_sse") else "/mcp")
    try:
        yield served
    finally:
        await served.kill()
