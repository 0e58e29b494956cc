"""A bounded queue in front of one pipe, which knows for each frame whether any byte has left.

Writes go out at once while nothing waits: coalescing them doubles the latency of a call. A peer
that stops reading fills this queue and nothing else: no lock is held, and each waiting frame
expires by its own deadline. A frame that was begun is finished or the life is over, because half a
line would garble every later one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

from observant_host.errors import QueueFull

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.transports.base import Sent

MAX_FRAMES: Final = 1024
"""Calls in flight are bounded far below this; more means that notifications pile up."""


class Pipe(Protocol):
    def write(self, data: bytes | memoryview) -> int:
        """How many bytes went, 0 if it would block. Raises OSError where nobody reads any more."""

    def want_writable(self, wanted: bool) -> None:
        """Call `Outbox.flush` whenever the pipe has room, or stop doing so."""


class _Written:
    """What became of a frame that left at once."""

    started: Final = True

    def withdraw(self) -> bool:
        return False


WRITTEN: Final = _Written()


class Waiting:
    """A frame, or the rest of one, that has not left yet."""

    __slots__ = ("_outbox", "data", "expires", "started")

    def __init__(self, outbox: Outbox, data: memoryview, *, expires: float, started: bool) -> None:
        self._outbox = outbox
        self.data = data
        self.expires = expires
        self.started = started

    def withdraw(self) -> bool:
        if self.started:
            return False
        self._outbox.drop(self)
        return True


class Outbox:
    """`max_bytes` and `max_frames` bound what waits; an empty queue takes a frame of any size."""

    def __init__(
        self,
        pipe: Pipe,
        *,
        now: Callable[[], float],
        max_bytes: int,
        max_frames: int = MAX_FRAMES,
    ) -> None:
        self._pipe = pipe
        self._now = now
        self._max_bytes = max_bytes
        self._max_frames = max_frames
        self._queue: OrderedDict[Waiting, None] = OrderedDict()
        self.waiting_bytes = 0

    @property
    def waiting_frames(self) -> int:
        return len(self._queue)

    def put(self, frame: bytes, expires: float) -> Sent:
        """Write `frame` and its newline now, or queue it.

        Raises QueueFull, or OSError from the pipe; either way nothing of it was sent.
        """
        data = frame + b"\n"
        if self._queue:
            self._make_room(len(data))
            return self._enqueue(memoryview(data), expires=expires, started=False)
        written = self._pipe.write(data)
        if written == len(data):
            return WRITTEN
        self._pipe.want_writable(True)
        return self._enqueue(memoryview(data)[written:], expires=expires, started=written > 0)

    def flush(self) -> None:
        """Write what the pipe takes. Raises OSError from the pipe."""
        while self._queue:
            entry = next(iter(self._queue))
            if not entry.started and entry.expires <= self._now():
                self.drop(entry)
                continue
            written = self._pipe.write(entry.data)
            self._shrink(entry, written)
            if entry.data:
                return
            self.drop(entry)
        self._pipe.want_writable(False)

    def drop(self, entry: Waiting) -> None:
        """Forget what is left of `entry`, if it still waits."""
        if entry in self._queue:
            del self._queue[entry]
            self.waiting_bytes -= len(entry.data)
            entry.data = entry.data[:0]

    def clear(self) -> None:
        """The pipe is gone: forget everything."""
        for entry in tuple(self._queue):
            self.drop(entry)
        self._pipe.want_writable(False)

    def _enqueue(self, data: memoryview, *, expires: float, started: bool) -> Waiting:
        entry = Waiting(self, data, expires=expires, started=started)
        self._queue[entry] = None
        self.waiting_bytes += len(data)
        return entry

    def _shrink(self, entry: Waiting, written: int) -> None:
        if written:
            entry.started = True
            entry.data = entry.data[written:]
            self.waiting_bytes -= written

    def _make_room(self, size: int) -> None:
        if self._fits(size):
            return
        now = self._now()
        for entry in tuple(self._queue):
            if not entry.started and entry.expires <= now:
                self.drop(entry)
        if not self._fits(size):
            raise QueueFull(
                f"the server does not read its input: {len(self._queue)} messages "
                f"({self.waiting_bytes} bytes) wait; nothing was sent"
            )

    def _fits(self, size: int) -> bool:
        return (
            len(self._queue) < self._max_frames and self.waiting_bytes + size <= self._max_bytes
        ) or not self._queue
