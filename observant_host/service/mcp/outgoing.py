"""Lines on their way to one client: what it has not read waits here, in bounds.

Source: MCP 2026-07-28 basic/transports/stdio › Sending Messages.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from observant_host.timing.tasks import Signal, wait_any

if TYPE_CHECKING:
    from observant_host.service.mcp.outlet import Part
    from observant_host.timing.clock import Clock

MAX_NOTES_BYTES: Final = 1024 * 1024
"""Beyond it notifications are dropped; changes of lists are told again by the next."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""Beyond it nothing more is read from the client, until it reads."""


class Outgoing:
    """`take` is for the one who writes. `dropped` counts notifications."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._more = Signal()
        self._room = Signal()
        self._empty = Signal()
        self._empty.set()
        self.dropped = 0
        self.closed = False

    def note(self, message: bytes) -> None:
        """A notification, or a question to the client. Never waits."""
        if self._bytes + len(message) > MAX_NOTES_BYTES:
            self.dropped += 1
        else:
            self.put(message)

    def put(self, *parts: Part) -> None:
        """A line that must not be lost, without its end. Never waits."""
        if self.closed:
            return
        line = b"".join((*parts, b"\n"))
        self._lines.append(line)
        self._bytes += len(line)
        self._empty.clear()
        self._more.set()

    async def room(self) -> None:
        """Until the client has read enough of what there is."""
        while self._bytes > MAX_BYTES and not self.closed:
            self._room.clear()
            await wait_any(self._clock, None, self._room)

    async def take(self) -> list[bytes]:
        """All lines that are there, at least one; none at the end. Say `written` when they are."""
        await wait_any(self._clock, None, self._more)
        lines = list(self._lines)
        self._lines.clear()
        if not self.closed:
            self._more.clear()
        return lines

    def written(self, size: int) -> None:
        """So many bytes went out."""
        self._bytes -= size
        self._room.set()
        if not self._bytes:
            self._empty.set()

    async def flushed(self, within_s: float) -> None:
        """Until all is written, at most so long."""
        await wait_any(self._clock, within_s, self._empty)

    def close(self) -> None:
        """Nothing more goes out. Idempotent."""
        self.closed = True
        self._lines.clear()
        for signal in (self._more, self._room, self._empty):
            signal.set()
