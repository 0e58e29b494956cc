"""Our own stdin and stdout as lines, whatever they are: pipes, files, a terminal.

Two threads read and write, blocking: making an inherited stdout non-blocking would make it so for
every process that shares it.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from observant_host.timing.tasks import Signal
from observant_host.wire.ndjson import LineSplitter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from observant_host.service.mcp.outgoing import Outgoing

CHUNK_BYTES: Final = 64 * 1024


class Pipes:
    """`over` is set at the end of stdin, and where stdout breaks."""

    def __init__(
        self,
        out: Outgoing,
        on_line: Callable[[bytes], Awaitable[None]],
        *,
        max_bytes: int,
        stdin: int = 0,
        stdout: int = 1,
    ) -> None:
        self.over = Signal()
        self._out = out
        self._on_line = on_line
        self._lines = LineSplitter(max_bytes)
        self._stdin, self._stdout = stdin, stdout
        self._loop = asyncio.get_running_loop()
        self._chunks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def start(self) -> None:
        """Begin to read. `write` is to be awaited by a task of its own."""
        for name, work in (("stdin", self._read), ("stdout", self._write)):
            threading.Thread(target=work, name=name, daemon=True).start()

    async def write(self) -> None:
        """Carry lines out until there are no more."""
        while lines := await self._out.take():
            self._chunks.put(b"".join(lines))
        self._chunks.put(None)

    async def _taken(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk):
            await self._on_line(bytes(line))
        await self._out.room()

    def _ended(self) -> None:
        self.over.set()

    def _read(self) -> None:
        with suppress(OSError, RuntimeError, asyncio.CancelledError):
            while chunk := os.read(self._stdin, CHUNK_BYTES):
                asyncio.run_coroutine_threadsafe(self._taken(chunk), self._loop).result()
        with suppress(RuntimeError):  # the loop has ended before
            self._loop.call_soon_threadsafe(self._ended)

    def _write(self) -> None:
        while (chunk := self._chunks.get()) is not None:
            try:
                view = memoryview(chunk)
                while view:
                    view = view[os.write(self._stdout, view) :]
            except OSError:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._ended)
                return
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._out.written, len(chunk))
