"""`observant-host stdio` in a process of its own, driven by lines, as a desktop client does."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

PATIENCE_S = 60.0
KEY = "io.modelcontextprotocol/"
STAMP = {f"{KEY}protocolVersion": "2026-07-28", f"{KEY}clientCapabilities": {}}


class LineClient:
    """`heard` are all messages so far, in their order."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.heard: list[dict[str, Any]] = []
        self.ids = itertools.count(1)
        self._more = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            async with self._more:
                self.heard.append(json.loads(line))
                self._more.notify_all()
        async with self._more:
            self._more.notify_all()

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def begin(self, method: str, params: Any = None) -> int:
        number = next(self.ids)
        body = {"jsonrpc": "2.0", "id": number, "method": method}
        self.send(body if params is None else {**body, "params": params})
        return number

    async def until(self, **fields: Any) -> dict[str, Any]:
        """The first message with these members."""
        async with asyncio.timeout(PATIENCE_S), self._more:
            while True:
                for message in self.heard:
                    if isinstance(message, dict) and fields.items() <= message.items():
                        return message
                assert not self._reader.done(), self.heard[-3:]
                await self._more.wait()

    async def heard_where(self, fits: Callable[[Any], bool]) -> Any:
        """The first message for which that holds."""
        async with asyncio.timeout(PATIENCE_S), self._more:
            await self._more.wait_for(lambda: any(fits(one) for one in self.heard))
        return next(one for one in self.heard if fits(one))

    async def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        return await self.until(id=self.begin(method, params))

    async def initialize(self, revision: str = "2025-11-25") -> dict[str, Any]:
        info = {"name": "desk", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": info}
        said = await self.ask("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said["result"]

    async def modern(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.ask(method, {**params, "_meta": STAMP})

    async def end(self) -> int:
        """Close its stdin; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE_S):
            await self._reader
            return await self.process.wait()


@asynccontextmanager
async def line_client(config: Path, *words: str) -> AsyncIterator[LineClient]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "observant_host", *words, "stdio", "-c", str(config)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    client = LineClient(process)
    try:
        yield client
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            raise
        finally:
            await client._reader
