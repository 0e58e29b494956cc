"""When a server's next try begins: at its time, or sooner where a person or a call wants it.

Whatever a server does, its tries have budgets: the backoff alone is no bound, since a good start
followed by an end, again and again, would reset it.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from observant_host.decisions import backoff, restart
from observant_host.decisions.budget import REPROBES, RESTARTS, WAKES, Budget
from observant_host.decisions.terms import Trigger
from observant_host.supervision.adopting import Adopting
from observant_host.supervision.between import Next, Sooner
from observant_host.supervision.rotation import until_rotated
from observant_host.timing.tasks import OwnerTask, Signal, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from observant_host.config import ServerConfig
    from observant_host.decisions.restart import Restart
    from observant_host.supervision.surroundings import Surroundings

WAKE_WAIT_S: Final = 10.0
"""Longest wait of a call for a server that is being started: a healthy start takes a second or two,
and a caller with a long deadline should hear of an outage before it is over."""


class Pause(NamedTuple):
    """Between two tries: whether a call may end it, and when it ends by itself (monotonic)."""

    may_wake: Callable[[], bool]
    due_s: float


class Waking(Adopting):
    """The part of a supervisor that waits for the next try, and those who wait for what it gives.

    A person's acts and woken tries are asked for from outside and answered by the next round.
    """

    _owner: OwnerTask

    def __init__(self, server: ServerConfig, around: Surroundings) -> None:
        super().__init__(server, around)
        self._sooner = Sooner(self.record)
        self._restarts = 0
        self._misses = 0
        self._wakes, self._reprobes = Budget(WAKES), Budget(REPROBES)
        self._new_lives = Budget(RESTARTS)
        self._acts_asked = 0
        self._acts_served = 0
        self._tries_over = 0
        self._moved = Signal()
        self._pause: Pause | None = None

    @property
    def _sleeps(self) -> bool:
        """Where no try will come before somebody changes something."""
        return not self._owner.started or self._owner.done or self.server.problem is not None

    # A call

    async def wake(self, expires: float) -> bool:
        """Whether calls can be routed to it, now or after the try that is under way, is due, or is
        begun for this call; waits for that at most until `expires` (monotonic) and `WAKE_WAIT_S`.

        Any number of calls wait for one try. None is begun where a person decides, or where calls
        have begun too many.
        """
        clock = self._around.clock
        until = min(expires, clock.monotonic() + WAKE_WAIT_S)
        before = self._tries_over
        while not self.routable and self._tries_over == before and self._comes(until):
            left = until - clock.monotonic()
            if left <= 0:
                break
            self._moved.clear()
            await wait_any(clock, left, self._moved)
        return self.routable

    def _comes(self, until: float) -> bool:
        """A try is under way, is due by then, or begins now."""
        if self._sleeps or self.record.off:
            return False
        pause = self._pause
        if pause is None or self._sooner.woken.is_set():
            return True
        status = self.record.status
        if self.record.held or not restart.may_wake(status.state, status.cause):
            return False
        if pause.may_wake() and self._wakes.take(self._around.clock.monotonic()):
            self._sooner.woken.set()
            return True
        return pause.due_s <= until

    # A person

    async def again(self) -> None:
        """A round now (a list where an era stands); returns after it.

        What is allowed is looked at anew, also for a server that serves. Where nothing can come of
        it (disabled, a configuration problem, stopped) it returns at once.
        """
        self._rounds.judge()
        if not self._sleeps and not self.record.off:
            mine = self._ask()
            self._sooner.wish.set()
            await self._answered(mine)

    def _ask(self) -> int:
        self._acts_asked += 1
        return self._acts_asked

    async def _answered(self, mine: int) -> None:
        """Until a round that began after this act is over."""
        while self._acts_served < mine and not self._owner.done:
            self._moved.clear()
            await self._moved.wait()

    def _take_wish(self) -> int:
        self._sooner.wish.clear()
        return self._acts_asked

    def _serve_acts(self, upto: int) -> None:
        self._acts_served = max(self._acts_served, upto)
        self._tries_over += 1
        self._moved.set()

    # In the owner task

    async def _rest(self, coming: Next) -> Trigger:
        """Wait for the next life's time, or for somebody who wants it sooner."""
        if coming.delay_s == 0 and (coming.asked or not self.record.held):
            return coming.trigger
        clock, sooner = self._around.clock, self._sooner
        until = None if coming.delay_s is None else clock.monotonic() + coming.delay_s
        pause = Pause(
            lambda: coming.may_wake and until is not None, math.inf if until is None else until
        )
        with self._waiting(pause):
            if await self._rotated(coming):
                until = clock.monotonic()
            while True:
                left = None if until is None or self.record.held else until - clock.monotonic()
                woken = await wait_any(clock, left, sooner.wish, sooner.woken, sooner.ruled)
                if woken is sooner.ruled:
                    sooner.ruled.clear()
                    continue
                if woken is sooner.wish:
                    self._forget_failures()
                    return Trigger.MANUAL
                return coming.trigger if woken is None else Trigger.WAKE

    async def _rotated(self, coming: Next) -> bool:
        """Whether there are other credentials now, where those were what was wrong."""
        rotating = self._around.rotating(self.server) if coming.login else None
        if rotating is None or self.record.held:
            return False
        return await until_rotated(rotating, self._sooner.wish, clock=self._around.clock)

    @contextmanager
    def _waiting(self, pause: Pause) -> Iterator[None]:
        """While the next try is waited for."""
        self._pause = pause
        self._moved.set()
        try:
            yield
        finally:
            self._pause = None
            self._sooner.woken.clear()

    def _forget_failures(self) -> None:
        self._misses = self._restarts = 0

    def _reprobe_delay(self) -> float:
        policy = self.server.restarts
        delay_s = backoff.delay(
            self._misses,
            initial_s=policy.restart_initial_s,
            maximum_s=policy.reprobe_max_s,
            random_0_1=self._around.random(),
        )
        return max(delay_s, self._reprobes.reserve(self._around.clock.monotonic()))

    def _restart_delay(self, following: Restart) -> float:
        if following.reason in restart.IMMEDIATE:
            return following.delay_s
        return max(following.delay_s, self._new_lives.reserve(self._around.clock.monotonic()))
