"""A TCP proxy on loopback that can leave connections half open: it forwards nothing more on them,
and passes on no end either, as a router that has forgotten them would.
"""

from __future__ import annotations

import asyncio
from typing import Any


class Passage:
    """One connection, forwarded both ways until it is forgotten."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.forgotten = False

    async def pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, keep: bool
    ) -> None:
        try:
            while data := await reader.read(65536):
                if keep:
                    self.sent += data
                if not self.forgotten:
                    writer.write(data)
                    await writer.drain()
        except ConnectionError:
            pass
        if not self.forgotten:
            writer.close()


class HalfOpen:
    """`async with HalfOpen(port) as proxy:` forwards from `proxy.port` to that port."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._passages: list[Passage] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def forget(self, carrying: bytes) -> int:
        """Leave half open every connection on which this was sent; returns how many."""
        found = [one for one in self._passages if carrying in one.sent and not one.forgotten]
        for one in found:
            one.forgotten = True
        return len(found)

    async def __aenter__(self) -> HalfOpen:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", self._to_port)
        except OSError:
            writer.close()
            return
        self._writers += [writer, forth]
        passage = Passage()
        self._passages.append(passage)
        await asyncio.gather(
            passage.pump(reader, forth, keep=True), passage.pump(back, writer, keep=False)
        )
