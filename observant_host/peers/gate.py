"""At most so many calls in flight to one server, the others in a short line, fair between callers.

The free path is one comparison: a lock here would cost as much as the whole call. So the room that
there is for a call that comes now is one number, which is 0 while anybody waits, or while the
server has asked to be left alone.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

from observant_host.errors import CallTimeout, RateLimited, Unavailable
from observant_host.peers.lanes import Lanes
from observant_host.telemetry.vocabulary import DeadlineExpired
from observant_host.timing.deadline import DeadlinePassed, Sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.errors import CallError
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock, Timer


class Gate:
    """`enter` or wait in line; every successful enter is paired with one `leave`.

    Bounds: `max_in_flight` at once, `queue_max` waiting, each at most `queue_timeout_s` seconds.
    Each `principal` has a lane of its own in the line, and the lanes take turns.
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
        self._line: Lanes[str | None, asyncio.Future[None]] = Lanes()
        self._until: dict[asyncio.Future[None], float] = {}
        self._sweep = Sweep(clock, self._overdue)
        self.room = max_in_flight
        self._paused_until = -math.inf
        self._timer: Timer | None = None
        self.in_flight = 0

    def configure(self, *, max_in_flight: int, queue_max: int, queue_timeout_s: float) -> None:
        """Other bounds from now on; places that were added go to those who wait."""
        self._max_in_flight, self._queue_max = max_in_flight, queue_max
        self._queue_timeout_s = queue_timeout_s
        self._admit()

    @property
    def queued(self) -> int:
        """How many calls wait in line now."""
        return len(self._line)

    def try_enter(self) -> bool:
        """Enter at once if there is room and nobody waits."""
        if self.in_flight < self.room:
            self.in_flight += 1
            return True
        return False

    async def enter(self, *, budget_s: float, method: str, principal: str | None = None) -> None:
        """Wait for a place, at most `budget_s` seconds.

        Raises Unavailable at once when the line is full, RateLimited at once where the server
        wants to be left alone for longer than this call can wait, CallTimeout (scope "queue") when
        the time is over; in each case nothing was sent.
        """
        most_s = max(0.0, min(self._queue_timeout_s, budget_s))
        if self._paused and self._over_by_now(most_s) and self.try_enter():
            return
        place = self._take_place(principal)
        began = self._clock.monotonic()
        self._until[place] = until = began + most_s
        self._sweep.arm(until)  # a scope for each would cost more than the call
        try:
            await place
        except DeadlinePassed as passed:
            self._give_up(principal, place)
            self._count(most_s, self._clock.monotonic() - began, method)
            raise CallTimeout(
                f"the call waited for one of {self._max_in_flight} places of {self._peer} "
                "until its time was over",
                scope="queue",
                delivery="not_sent",
                fault="peer" if self._paused else "host",
            ) from passed
        except BaseException:
            self._give_up(principal, place)
            raise
        finally:
            del self._until[place]
            if not self._until:
                self._sweep.close()
            self._telemetry.waited(self._clock.monotonic() - began)

    def leave(self) -> None:
        """Free the place, for the next in line if there is one."""
        self.in_flight -= 1
        if not self.room:
            self._admit()

    def pause(self, seconds: float) -> None:
        """Let nobody in for so long: the server asked for it. The longest of several holds."""
        until = self._clock.monotonic() + seconds
        if until > self._paused_until:
            self._paused_until = until
            self.room = 0
            self._unwatch()
            self._watch()

    def fail_waiting(self, error: Callable[[], CallError]) -> None:
        """End every waiting call at once, each with its own error: their life is over."""
        for place in self._line.clear():
            if not place.done():
                place.set_exception(error())
        self._admit()

    @property
    def _paused(self) -> bool:
        return self._paused_until > -math.inf

    def _over_by_now(self, most_s: float) -> bool:
        """Whether the pause is over. Raises RateLimited where waiting for that is in vain."""
        left_s = self._paused_until - self._clock.monotonic()
        if left_s <= 0:
            self._resume()
            return True
        if left_s >= most_s:
            raise RateLimited(
                f"{self._peer} asked to be left alone for another {math.ceil(left_s)} s, which is "
                "longer than this call can wait; call again after that",
                retry_after_s=left_s,
            )
        return False

    def _resume(self) -> None:
        self._paused_until = -math.inf
        self._unwatch()
        self._admit()

    def _overdue(self, now: float) -> float | None:
        """End the waits whose time is over; returns when the next is."""
        open_ones = [(until, place) for place, until in self._until.items() if not place.done()]
        for until, place in open_ones:
            if until <= now:
                place.set_exception(DeadlinePassed(scope="queue", budget_s=0.0, elapsed_s=0.0))
        return min((until for until, _ in open_ones if until > now), default=None)

    def _count(self, budget_s: float, elapsed_s: float, method: str) -> None:
        self._telemetry.count(
            DeadlineExpired(
                peer=self._peer,
                scope="queue",
                budget_ms=budget_s * 1000,
                elapsed_ms=elapsed_s * 1000,
                method=method,
            )
        )

    def _watch(self) -> None:
        """A timer runs only while somebody waits for the end of a pause."""
        if self._paused and self._line and self._timer is None:
            self._timer = self._clock.call_at(self._paused_until, self._resume)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _admit(self) -> None:
        """Give free places to those who wait, and say what room is left for those who come."""
        if not self._line:
            self._unwatch()
        if self._paused:
            return
        while self._line and self.in_flight < self._max_in_flight:
            place = self._line.pop()
            if not place.done():
                self.in_flight += 1
                place.set_result(None)
        self.room = 0 if self._line else self._max_in_flight

    def _take_place(self, principal: str | None) -> asyncio.Future[None]:
        if len(self._line) >= self._queue_max:
            displaced = self._line.make_way(principal) if self._line else None
            if displaced is None:
                raise self._full()
            if not displaced.done():
                displaced.set_exception(self._full())
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.add(principal, place)
        self.room = 0
        self._watch()
        return place

    def _full(self) -> Unavailable:
        return Unavailable(
            f"{self._peer} has {self.in_flight} calls in flight and {self.queued} waiting, "
            "which is its queue_max; call again later or raise max_in_flight",
            fault="host",
        )

    def _give_up(self, principal: str | None, place: asyncio.Future[None]) -> None:
        if place.done() and not place.cancelled() and place.exception() is None:
            self.leave()  # the place was granted in the same instant
            return
        self._line.remove(principal, place)
        self._admit()
