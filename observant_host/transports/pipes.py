"""Our ends of a child's pipes: non-blocking, watched by the loop, read in chunks.

A process that has ended may have left its last answer in a pipe: `drained` gets all of it. A
grandchild may hold the same pipe open and write for ever, so one pipe's capacity is read and not a
byte beyond.
"""

from __future__ import annotations

import asyncio
import contextvars
import fcntl
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHUNK_BYTES: Final = 64 * 1024
"""One read: the usual capacity of a pipe."""
UNKNOWN_CAPACITY: Final = 1024 * 1024
"""Where the system does not tell: the most that an unprivileged Linux process may set."""


def drained(fd: int) -> Iterator[bytes]:
    """The chunks now in the non-blocking pipe `fd`; nothing where it is closed (-1)."""
    if fd < 0:
        return
    left = _capacity(fd)
    while left > 0:
        try:
            data = os.read(fd, min(left, CHUNK_BYTES))
        except OSError:
            return
        if not data:
            return
        left -= len(data)
        yield data


def _capacity(fd: int) -> int:
    if not hasattr(fcntl, "F_GETPIPE_SZ"):
        return UNKNOWN_CAPACITY
    return fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)


def add_reader(fd: int, callback: Callable[[], None]) -> None:
    """Watch `fd` in an empty context: the trace of whoever started a child is not its reader's."""
    contextvars.Context().run(asyncio.get_running_loop().add_reader, fd, callback)


def read_chunk(fd: int) -> bytes | None:
    """What is there now; b"" at the end of the pipe, None where there is nothing yet."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class WritePipe:
    """The writing end `fd`, as an outbox wants it."""

    def __init__(self, fd: int, on_writable: Callable[[], None]) -> None:
        self._fd = fd
        self._on_writable = on_writable
        self._loop = asyncio.get_running_loop()
        self._watched = False

    def write(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            return 0

    def want_writable(self, wanted: bool) -> None:
        if wanted and not self._watched:
            contextvars.Context().run(self._loop.add_writer, self._fd, self._on_writable)
        elif self._watched and not wanted:
            self._loop.remove_writer(self._fd)
        self._watched = wanted
