"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

START_WALL_NS = 1_900_000_000_000_000_000
"""Some day in 2030: no test depends on the real date."""

SETTLE_PASSES = 25
"""Passes of the event loop after each timer: enough for a chain of tasks to react to it."""


class ManualTimer:
    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """Implements timing.clock.Clock. `await clock.advance(5)` wakes whoever is due, in order."""

    def __init__(self, *, start: float = 1000.0) -> None:
        self._start = self._now = start
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._order = itertools.count()

    def monotonic(self) -> float:
        return self._now

    def wall_ns(self) -> int:
        return START_WALL_NS + round((self._now - self._start) * 1e9)

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_at(
            self._now + seconds, lambda: None if woken.done() else woken.set_result(None)
        )
        try:
            await woken
        finally:
            timer.cancel()

    def call_at(self, when: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(when, callback)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    @property
    def waiting(self) -> int:
        """How many timers are set: what a test asserts before it moves the clock."""
        return sum(timer.callback is not None for _, _, timer in self._timers)

    async def advance(self, seconds: float) -> None:
        """Move on, firing each timer at its own moment and letting everybody react to it."""
        target = self._now + seconds
        await self.settle()
        while self._timers and self._timers[0][0] <= target:
            when, _, timer = heapq.heappop(self._timers)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                self._now = max(self._now, when)
                callback()
                await self.settle()
        self._now = target

    @staticmethod
    async def settle() -> None:
        for _ in range(SETTLE_PASSES):
            await asyncio.sleep(0)
