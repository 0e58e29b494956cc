"""What a process that has ended left in its pipe: all of it, and no more than that.

Its last answer may still be there when its exit is noticed. A grandchild may hold the same pipe
open and write for ever, so one pipe's capacity is read and not a byte beyond.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

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
