"""Starting and ending one child process and everything in its group."""

from __future__ import annotations

import asyncio


class StartGate:
    """At most `limit` starts at a time, shared by a whole host.

    Starting a process holds the interpreter for milliseconds; hundreds at once stall the loop for
    seconds. `child_nofile` is the soft descriptor limit given back to children where the host has
    raised its own.
    """

    def __init__(self, limit: int = 8, *, child_nofile: int | None = None) -> None:
        self.child_nofile = child_nofile
        self._slots = asyncio.Semaphore(limit)
