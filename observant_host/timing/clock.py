"""Time as an argument: the only source of "now" and of waiting, so that tests never sleep."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds of the event loop's clock; only differences mean something."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch, UTC."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The real clock. `monotonic` agrees with `loop.time()` of asyncio's default loops."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall_ns(self) -> int:
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
