"""At most so many calls in flight to one server, the others in a short, fair line.

The free path is one comparison: a lock here would cost as much as the whole call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from observant_host.errors import CallTimeout, Unavailable
from observant_host.timing.deadline import DeadlinePassed, deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.errors import CallError
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock


class Gate:
    """`enter` or wait in line; every successful enter is paired with one `leave`.

    Bounds: `max_in_flight` at once, `queue_max` waiting, each at most `queue_timeout_s` seconds.
    """

    def __init__(
        self,
        peer: str,
        *,
        max_in_flight: int,
        queue_max: int,
        queue_timeout_s: float,
        telemetry: Telemetry,
        clock: Clock,
    ) -> None:
        self._peer = peer
        self._max_in_flight = max_in_flight
        self._queue_max = queue_max
        self._queue_timeout_s = queue_timeout_s
        self._telemetry = telemetry
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.in_flight = 0

    def configure(self, *, max_in_flight: int, queue_max: int, queue_timeout_s: float) -> None:
        """Other bounds from now on; places that were added go to those who wait."""
        more = max_in_flight - self._max_in_flight
        self._max_in_flight, self._queue_max = max_in_flight, queue_max
        self._queue_timeout_s = queue_timeout_s
        for _ in range(min(more, self.queued)):
            self.in_flight += 1  # `leave` takes it back where nobody wanted it
            self.leave()

    @property
    def queued(self) -> int:
        """How many calls wait in line now."""
        return len(self._waiting)

    def try_enter(self) -> bool:
        """Enter at once if there is room and nobody waits."""
        if self.in_flight < self._max_in_flight and not self._waiting:
            self.in_flight += 1
            return True
        return False

    async def enter(self, *, budget_s: float, method: str) -> None:
        """Wait for a place, first come first served, at most `budget_s` seconds.

        Raises Unavailable at once when the line is full, CallTimeout (scope "queue") when the
        time is over; in both cases nothing was sent.
        """
        if len(self._waiting) >= self._queue_max:
            raise Unavailable(
                f"{self._peer} has {self.in_flight} calls in flight and {self.queued} waiting, "
                "which is its queue_max; call again later or raise max_in_flight",
                fault="host",
            )
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        began = self._clock.monotonic()
        try:
            async with deadline(
                min(self._queue_timeout_s, budget_s),
                scope="queue",
                peer=self._peer,
                telemetry=self._telemetry,
                method=method,
                clock=self._clock,
            ):
                await place
        except DeadlinePassed as passed:
            self._give_up(place)
            raise CallTimeout(
                f"the call waited for one of {self._max_in_flight} places of {self._peer} "
                "until its time was over; nothing was sent",
                scope="queue",
                delivery="not_sent",
                fault="host",
            ) from passed
        except BaseException:
            self._give_up(place)
            raise
        finally:
            self._telemetry.waited(self._clock.monotonic() - began)

    def leave(self) -> None:
        """Give the place to the next in line, or free it."""
        while self._waiting and self.in_flight <= self._max_in_flight:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.in_flight -= 1

    def fail_waiting(self, error: Callable[[], CallError]) -> None:
        """End every waiting call at once, each with its own error: their life is over."""
        waiting, self._waiting = self._waiting, deque()
        for place in waiting:
            if not place.done():
                place.set_exception(error())

    def _give_up(self, place: asyncio.Future[None]) -> None:
        if place.done() and not place.cancelled() and place.exception() is None:
            self.leave()  # the place was granted in the same instant
        elif place in self._waiting:
            self._waiting.remove(place)
