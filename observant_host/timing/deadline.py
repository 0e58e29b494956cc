"""Every deadline is observed: one that passes is counted, with its scope, budget and elapsed.

`deadline` is a scope, for rare work (a start, a list). A routed call has none: its future is
failed by the one shared timer of a `Sweep`, which costs a comparison (a scope costs more than the
whole call).
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

from observant_host.telemetry.vocabulary import DeadlineExpired
from observant_host.timing.clock import Clock, SystemClock, Timer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from observant_host.errors import DeadlineScope
    from observant_host.telemetry.facade import Telemetry

SWEEP_STEP_S: Final = 0.01
"""Sweeps are not closer than this: that is how late a deadline may be, and what a scan may cost."""


class DeadlinePassed(TimeoutError):
    """A deadline of this host passed. `scope` says which; `budget_s` and `elapsed_s` how long."""

    def __init__(self, *, scope: DeadlineScope, budget_s: float, elapsed_s: float) -> None:
        self.scope: DeadlineScope = scope
        self.budget_s = budget_s
        self.elapsed_s = elapsed_s
        super().__init__(f"the {scope} deadline of {budget_s:g} s passed")


class deadline:  # noqa: N801 - reads as a verb: `async with deadline(5, scope="probe", …):`
    """Bounds a block: `async with deadline(5, scope="probe", peer=name, telemetry=t):`.

    On expiry the block is cancelled, a DeadlineExpired is counted and DeadlinePassed raised.
    `seconds` None bounds nothing. A cancellation from outside passes through as such.
    """

    __slots__ = (
        "_began",
        "_clock",
        "_fact",
        "_scope",
        "_seconds",
        "_telemetry",
        "_timeout",
        "_timer",
    )

    def __init__(
        self,
        seconds: float | None,
        *,
        scope: DeadlineScope,
        peer: str,
        telemetry: Telemetry,
        method: str = "",
        clock: Clock | None = None,
    ) -> None:
        self._seconds = seconds
        self._scope: DeadlineScope = scope
        self._fact = DeadlineExpired(
            peer=peer, scope=scope, budget_ms=0, elapsed_ms=0, method=method
        )
        self._telemetry = telemetry
        self._clock: Clock = clock or SystemClock()
        self._timeout = asyncio.timeout(None)
        self._timer: Timer | None = None
        self._began = 0.0

    async def __aenter__(self) -> deadline:
        await self._timeout.__aenter__()
        self._began = self._clock.monotonic()
        if self._seconds is not None:
            self._timer = self._clock.call_at(self._began + self._seconds, self._expire)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError as passed:
            raise self._count() from passed

    def _expire(self) -> None:
        self._timeout.reschedule(-math.inf)

    def _count(self) -> DeadlinePassed:
        elapsed = self._clock.monotonic() - self._began
        budget = self._seconds or 0.0
        self._telemetry.count(
            DeadlineExpired(
                peer=self._fact.peer,
                scope=self._scope,
                budget_ms=budget * 1000,
                elapsed_ms=elapsed * 1000,
                method=self._fact.method,
            )
        )
        return DeadlinePassed(scope=self._scope, budget_s=budget, elapsed_s=elapsed)


class Sweep:
    """One timer for many deadlines.

    `due(now)` fails whatever has expired and returns the next earliest expiry, or None. `arm` is
    called with each new expiry; it costs a comparison unless that is now the earliest.
    """

    def __init__(self, clock: Clock, due: Callable[[float], float | None]) -> None:
        self._clock = clock
        self._due = due
        self._earliest = math.inf
        self._timer: Timer | None = None

    def arm(self, when: float) -> None:
        """Make sure that `due` is called at `when` (monotonic seconds), at most 10 ms later."""
        if when < self._earliest:
            self._set(when)

    def close(self) -> None:
        """No further call of `due`."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._earliest = math.inf

    def _set(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._earliest = when
        self._timer = self._clock.call_at(when, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._earliest = math.inf
        now = self._clock.monotonic()
        following = self._due(now)
        if following is not None:
            self.arm(max(following, now + SWEEP_STEP_S))
