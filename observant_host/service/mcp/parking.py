"""Calls that wait for their caller to come back: servers of older revisions ask during a call, and
a modern caller is asked by an answer, after which it calls again.

The southbound call stays open meanwhile, in a task of its own, on this instance alone. How many
there are, and how long one waits, is bounded; of one to which nobody comes back the server gets the
protocol's refusal, and then its cancellation.

Source: MCP 2026-07-28 basic/patterns/mrtr; MCP 2025-11-25 client/elicitation, client/sampling,
client/roots.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from observant_host.peers.asking import MAX_INPUTS
from observant_host.peers.relay import Refused, unanswered
from observant_host.telemetry.vocabulary import DeadlineExpired
from observant_host.timing.tasks import Signal, spawn, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from observant_host.routing.call_result import CallResult
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock, Timer

MAX_PARKED: Final = 64
"""Of one instance: each holds a place at its server, of which there are sixteen."""
PARK_S: Final = 300.0
"""For the caller to come back with its answers. A server's own patience is mostly shorter."""


class Ask(msgspec.Struct, frozen=True):
    """One request of a server that waits for its answer."""

    method: str
    params: Raw
    answer: asyncio.Future[Raw | Refused]


class ParkedCall:
    """One call, and what its server wants to know: the Relay of its own handlers.

    `tell` takes progress to whoever attends to it now. `number` is that of the next round.
    """

    def __init__(self, parking: Parking, *, server: str, method: str, audience: object) -> None:
        self.key = secrets.token_urlsafe(12)
        self.server = server
        self.method = method
        self.audience = audience
        self.number = 1
        self.tell: Callable[[float, float | None, str | None], object] | None = None
        self.asks: dict[str, Ask] = {}
        self._parking = parking
        self._asked = 0
        self._over = False
        self._stirred = Signal()
        self._done = Signal()
        self._task: asyncio.Task[CallResult] | None = None
        self._timer: Timer | None = None

    def begin(self, call: Coroutine[Any, Any, CallResult]) -> None:
        """Start it."""
        self._task = spawn("parked call", call, on_error=lambda _name, _error: None)
        self._task.add_done_callback(lambda _task: self._done.set())

    async def ask(self, method: str, params: Raw) -> Raw | Refused:
        """A server's request: it waits here until the caller answers it, or nobody will."""
        if self._over or len(self.asks) >= MAX_INPUTS:
            return unanswered(method)
        self._asked += 1
        key = f"input-{self._asked}"
        ask = self.asks[key] = Ask(method, params, asyncio.get_running_loop().create_future())
        self._stirred.set()
        try:
            return await ask.answer
        finally:
            del self.asks[key]
            if self._over and not self.asks:  # once the refusal, which is written now, has left
                asyncio.get_running_loop().call_soon(self._cancel)

    def told(self, progress: float, total: float | None, message: str | None) -> object:
        """Progress, for whoever attends now."""
        return self.tell(progress, total, message) if self.tell is not None else None

    async def attend(self) -> CallResult | None:
        """Until it is over, or its server asks for something (None). Raises CallError. Whoever is
        cancelled here has left: so is the call."""
        try:
            await wait_any(self._parking.clock, None, self._done, self._stirred)
        except asyncio.CancelledError:
            self.give_up()
            raise
        if not self._done.is_set() or self._task is None:
            return None
        self._refuse_open()
        return await self._task

    def park(self) -> bool:
        """Let it wait for its caller; False where too many do."""
        self._timer = self._parking.keep(self)
        if self._timer is None:
            self.give_up()
        return self._timer is not None

    def expire(self) -> None:
        """Nobody came back in time."""
        self._parking.expired(self)
        self.give_up()

    def answered(self, answers: Mapping[str, Raw]) -> None:
        """The caller is back. What it left out is still open."""
        self._parking.forget(self)
        if self._timer is not None:
            self._timer.cancel()
        self.number += 1
        self._stirred.clear()
        for key, ask in list(self.asks.items()):
            if key in answers and not ask.answer.done():
                ask.answer.set_result(answers[key])
            elif not ask.answer.done():
                self._stirred.set()

    def give_up(self) -> None:
        """Nobody comes: refuse what its server asks, then cancel it. Idempotent."""
        if self._over:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._parking.forget(self)
        self._refuse_open()
        if not self.asks:
            self._cancel()

    def _refuse_open(self) -> None:
        self._over = True
        for ask in self.asks.values():
            if not ask.answer.done():
                ask.answer.set_result(unanswered(ask.method))

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


class Parking:
    """All that is parked on this instance."""

    def __init__(self, *, telemetry: Callable[[], Telemetry], clock: Clock) -> None:
        self._telemetry = telemetry
        self.clock = clock
        self._parked: dict[str, ParkedCall] = {}

    def __len__(self) -> int:
        return len(self._parked)

    def keep(self, call: ParkedCall) -> Timer | None:
        """Keep it until its caller comes back, or nobody will; None where there is no room."""
        if len(self._parked) >= MAX_PARKED:
            return None
        self._parked[call.key] = call
        return self.clock.call_at(self.clock.monotonic() + PARK_S, call.expire)

    def all(self) -> list[ParkedCall]:
        """Every call that waits now, the oldest first."""
        return list(self._parked.values())

    def find(self, key: str) -> ParkedCall | None:
        return self._parked.get(key)

    def forget(self, call: ParkedCall) -> None:
        self._parked.pop(call.key, None)

    def expired(self, call: ParkedCall) -> None:
        """Tell of a caller that did not come back."""
        self._telemetry().count(
            DeadlineExpired(
                peer=call.server,
                scope="call",
                budget_ms=PARK_S * 1e3,
                elapsed_ms=PARK_S * 1e3,
                method=call.method,
            )
        )

    def close(self) -> None:
        """The host goes away. Idempotent."""
        for call in self.all():
            call.give_up()
