"""At most so many calls in flight to one server, the others in a short line, fair between callers.

The free path is one comparison: a lock here would cost as much as the whole call. So the room that
there is for a call that comes now is one number, which is 0 while anybody waits, or while the
server has asked to be left alone.

Who waits is told of its place by a call, not by a task that is woken for it: an ordinary call is
sent in that very moment, and its one future is for the answer too.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Protocol

from observant_host.errors import CallTimeout, RateLimited, Unavailable
from observant_host.peers.lanes import Lanes
from observant_host.telemetry.vocabulary import DeadlineExpired
from observant_host.timing.deadline import DeadlinePassed, Sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.errors import CallError
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock, Timer


class InLine(Protocol):
    """Who stands in line since `began`, until `until` (monotonic), in the lane of `principal`. Its
    `future` fails where it gets no place; `failed` is what ended its waiting, where that is known.
    """

    principal: str | None
    future: asyncio.Future[Any]
    began: float
    until: float
    failed: BaseException | None

    def admitted(self) -> None:
        """It has its place from now on. Raises nothing."""


class Place:
    """Somebody who goes on where it waits, once it has its place."""

    __slots__ = ("began", "failed", "future", "principal", "until")

    def __init__(self, principal: str | None, began: float) -> None:
        self.principal = principal
        self.began = self.until = began
        self.failed: BaseException | None = None
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def admitted(self) -> None:
        self.future.set_result(None)


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
        self._line: Lanes[str | None, InLine] = Lanes()
        self._sweep = Sweep(clock, self._overdue)
        self.room = max_in_flight
        self._paused_until: float | None = None
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
        return self._line.length

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
        began = self._clock.monotonic()
        place = Place(principal, began)
        if not self.line_up(place, expires=began + budget_s):
            await self.wait(place, method)

    def line_up(self, place: InLine, *, expires: float) -> bool:
        """Have it wait, at most until `expires`; True where it need not, and has its place now.
        Raises Unavailable and RateLimited as `enter` does."""
        until = place.began + self._queue_timeout_s
        if until > expires:
            until = max(place.began, expires)
        paused_until = self._paused_until
        if paused_until is not None and self._is_over(paused_until, until - place.began):
            self._resume()
            if self.try_enter():
                return True
        line = self._line
        if line.length >= self._queue_max:
            self._make_room(place.principal)
        place.until = until
        line.add(place.principal, place)
        self.room = 0
        if self._paused_until is not None:
            self._watch(self._paused_until)
        self._sweep.arm(until)  # a scope for each would cost more than the call
        return False

    async def wait(self, place: InLine, method: str) -> None:
        """Until it has its place. Raises what `enter` does, once it has waited."""
        try:
            if place.failed is not None:
                raise place.failed
            await place.future
        except BaseException as failed:
            place.failed = None  # its traceback holds this frame: no circle of the two
            self._give_up(place)
            if isinstance(failed, DeadlinePassed):
                raise self._late(place, method) from failed
            raise
        finally:
            self._telemetry.waited(self._clock.monotonic() - place.began)

    def leave(self) -> None:
        """Free the place, for the next in line if there is one."""
        self.in_flight -= 1
        if not self.room:
            self._admit()

    def pause(self, seconds: float) -> None:
        """Let nobody in for so long: the server asked for it. The longest of several holds."""
        until = self._clock.monotonic() + seconds
        if self._paused_until is None or until > self._paused_until:
            self._paused_until = until
            self.room = 0
            self._unwatch()
            self._watch(until)

    def fail_waiting(self, error: Callable[[], CallError]) -> None:
        """End every waiting call at once, each with its own error: their life is over."""
        for place in self._line.clear():
            if not place.future.done():
                place.future.set_exception(error())
        self._admit()

    def _is_over(self, paused_until: float, most_s: float) -> bool:
        """Whether the pause is. Raises RateLimited where waiting for that is in vain."""
        left_s = paused_until - self._clock.monotonic()
        if left_s >= most_s and left_s > 0:
            raise RateLimited(
                f"{self._peer} asked to be left alone for another {math.ceil(left_s)} s, which is "
                "longer than this call can wait; call again after that",
                retry_after_s=left_s,
            )
        return left_s <= 0

    def _resume(self) -> None:
        self._paused_until = None
        self._unwatch()
        self._admit()

    def _overdue(self, now: float) -> float | None:
        """End the waits whose time is over; returns when the next is."""
        waiting = [place for place in self._line if not place.future.done()]
        for place in waiting:
            if place.until <= now:
                passed = DeadlinePassed(scope="queue", budget_s=0.0, elapsed_s=0.0)
                place.future.set_exception(passed)
        return min((place.until for place in waiting if place.until > now), default=None)

    def _late(self, place: InLine, method: str) -> CallTimeout:
        self._telemetry.count(
            DeadlineExpired(
                peer=self._peer,
                scope="queue",
                budget_ms=(place.until - place.began) * 1000,
                elapsed_ms=(self._clock.monotonic() - place.began) * 1000,
                method=method,
            )
        )
        return CallTimeout(
            f"the call waited for one of {self._max_in_flight} places of {self._peer} until its "
            "time was over",
            scope="queue",
            delivery="not_sent",
            fault="host" if self._paused_until is None else "peer",
        )

    def _watch(self, paused_until: float) -> None:
        """A timer runs only while somebody waits for the end of a pause."""
        if self._line.length and self._timer is None:
            self._timer = self._clock.call_at(paused_until, self._resume)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _admit(self) -> None:
        """Give free places to those who wait, and say what room is left for those who come."""
        line = self._line
        if self._paused_until is None:
            while line.length and self.in_flight < self._max_in_flight:
                place = line.pop()
                if not place.future.done():
                    self.in_flight += 1
                    place.admitted()
            self.room = 0 if line.length else self._max_in_flight
        if not line.length:
            self._unwatch()
            self._sweep.close()

    def _make_room(self, principal: str | None) -> None:
        """In a line that is full. Raises Unavailable where nobody gives way."""
        displaced = self._line.make_way(principal) if self._line.length else None
        if displaced is None:
            raise self._full()
        if not displaced.future.done():
            displaced.future.set_exception(self._full())

    def _full(self) -> Unavailable:
        return Unavailable(
            f"{self._peer} has {self.in_flight} calls in flight and {self.queued} waiting, "
            "which is its queue_max; call again later or raise max_in_flight",
            fault="host",
        )

    def _give_up(self, place: InLine) -> None:
        future = place.future
        if future.done() and not future.cancelled() and future.exception() is None:
            self.leave()  # the place was granted in the same instant
            return
        self._line.remove(place.principal, place)
        self._admit()
