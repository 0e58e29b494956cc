"""Time as an argument: the only source of "now" and of waiting, so that tests never sleep."""

from __future__ import annotations

import asyncio
import contextvars
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds of the event loop's clock; only differences mean something."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch, UTC."""

    async def sleep(self, seconds: float) -> None: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back on the loop once `monotonic()` has reached `when`, in an empty context."""


class SystemClock:
    """The real clock. `monotonic` agrees with `loop.time()` of asyncio's default loops.

    Both are the library's own functions: a call asks for the time ten times.
    """

    monotonic = staticmethod(time.monotonic)
    wall_ns = staticmethod(time.time_ns)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        loop = asyncio.get_running_loop()
        delay = max(0.0, when - self.monotonic())
        return loop.call_later(delay, callback, context=contextvars.Context())
