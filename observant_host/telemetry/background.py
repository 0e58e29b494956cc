"""Slow ends (disk, stderr) are worked on by a thread: the event loop never waits for them."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

BATCH: Final = 256
"""Items given to `work` at once: a few milliseconds of it, so that urgent ones do not wait long."""
JOIN_S: Final = 5.0
"""How long closing waits for a disk or a terminal that no longer takes anything."""


class Background(Generic[T]):
    """One daemon thread, started with the first item.

    work(items) handles a batch and returns how many seconds later it wants to be called again
    even without new items (to retry what it kept), or None. It must not raise.
    Ordinary items wait up to `delay_s` to be handled together, `batch` at once, or until there are
    `enough`; what comes meanwhile waits for the next time, for many small works cost more than one
    large. Urgent ones do not wait, and are handled before ordinary ones that came
    earlier. The queues have no bound of their own: whoever puts knows what may be dropped, and
    reads `waiting`.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[list[T]], float | None],
        *,
        delay_s: float = 0.2,
        batch: int = BATCH,
        enough: int | None = None,
    ) -> None:
        self._name = name
        self._work = work
        self._delay_s = delay_s
        self._batch = batch
        self._enough = enough or sys.maxsize
        self._queue: deque[T | _Marker] = deque()
        self.waiting: Callable[[], int] = self._queue.__len__
        """Ordinary items that wait."""
        self._urgent: deque[T] = deque()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._told = False  # that something is there; the thread forgets it before it looks
        self._closing = False
        self._flushes = 0  # counted by who asks
        self._flushed = 0  # counted by the thread
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()

    def put(self, item: T, *, urgent: bool = False) -> None:
        """From any thread. After close, items are ignored."""
        if self._closing:
            return
        queue = self._queue
        (self._urgent if urgent else queue).append(item)
        if urgent or not self._told or len(queue) >= self._enough:
            self._nudge(urgent=urgent or len(queue) >= self._enough)

    async def flush(self) -> None:
        """Until everything put before this is worked on, as far as it can be."""
        if self._thread is None or not self._thread.is_alive():
            return
        loop = asyncio.get_running_loop()
        reached: asyncio.Future[None] = loop.create_future()
        self._flushes += 1
        self._queue.append(_Marker(loop, reached))
        self._nudge(urgent=True)
        await asyncio.wait({reached}, timeout=JOIN_S)

    async def close(self, within_s: float = JOIN_S) -> None:
        """Work off what is left, for so long, and end the thread. Idempotent."""
        self._closing = True
        if self._thread is not None and self._thread.is_alive():
            self._nudge(urgent=True)
            await asyncio.to_thread(self._thread.join, within_s)

    def _nudge(self, *, urgent: bool) -> None:
        if self._thread is None:
            with self._start_lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()
        self._told = True
        if urgent and not self._hurry.is_set():
            self._hurry.set()
        if not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        again: float | None = None
        while True:
            self._wake.wait(again)
            self._wake.clear()
            self._told = False
            pressing = self._urgent or self._closing or self._flushes != self._flushed
            if self._queue and not pressing:
                self._hurry.wait(self._delay_s)
            again = self._drain()
            if self._closing and not self._queue and not self._urgent:
                return

    def _drain(self) -> float | None:
        there = len(self._queue)
        self._hurry.clear()  # what asked for it from here on comes again, is urgent, or flushing
        while True:
            items, markers, ordinary = self._take(there)
            again = self._work(items)
            for marker in markers:
                self._flushed += 1
                marker.reached()
            there -= ordinary
            if there <= 0 and not self._urgent:
                if self._queue:
                    self._wake.set()
                return again

    def _take(self, there: int) -> tuple[list[T], list[_Marker], int]:
        """Urgent ones first, then of the ordinary ones that were there; how many of these."""
        items: list[T] = []
        markers: list[_Marker] = []
        while self._urgent and len(items) < self._batch:
            items.append(self._urgent.popleft())
        ordinary = min(there, self._batch - len(items))
        for _ in range(ordinary):
            item = self._queue.popleft()
            if isinstance(item, _Marker):
                markers.append(item)
            else:
                items.append(item)
        return items, markers, ordinary


class _Marker:
    """A place in the queue that somebody waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
        self._loop = loop
        self._future = future

    def reached(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._resolve)

    def _resolve(self) -> None:
        if not self._future.done():
            self._future.set_result(None)
