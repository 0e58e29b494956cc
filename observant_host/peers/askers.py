"""Which call a legacy server asks something for: the protocol does not say it.

Over HTTP the request comes on the response to the call. Elsewhere it is the one call that is open;
where there are several, they must be of one audience, since what one person is asked must never be
shown to another. While somebody thinks, the call's own time stands still, as far as its latest.

Source: MCP 2025-11-25 basic/transports › Sending Messages to the Server; client/elicitation.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import msgspec

from observant_host.peers.input_handlers import InputHandlers
from observant_host.peers.input_rounds import METHODS
from observant_host.peers.open_call import OpenCall
from observant_host.peers.pending import Entry
from observant_host.peers.probes import Probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from observant_host.peers.pending import Pending
    from observant_host.timing.clock import Clock
    from observant_host.timing.deadline import Sweep


class Asker(msgspec.Struct, frozen=True):
    """`handlers` None: calls of several audiences are open, and whose this is cannot be told."""

    handlers: InputHandlers | None
    calls: tuple[Entry[OpenCall | Probe], ...] = ()


class Askers:
    """Of one life. `own` are the host's handlers: they answer for calls without their own, and
    where no call is open at all."""

    def __init__(
        self,
        pending: Pending[OpenCall | Probe],
        own: InputHandlers,
        *,
        sweep: Sweep,
        clock: Clock,
    ) -> None:
        self._pending = pending
        self._own = own
        self._sweep = sweep
        self._clock = clock

    def of(self, answers: int | None) -> Asker:
        """`answers`: the request on whose response it came, None where that is not known."""
        calls = self._pending.open_of(METHODS)
        if answers is not None:
            calls = [call for call in calls if call.id == answers]
        whose = [self._handlers(call) for call in calls]
        if not whose:
            return Asker(self._own)
        if len({_audience(one) for one in whose}) > 1:
            return Asker(None)
        return Asker(whose[-1], tuple(calls))

    def pause(self, asker: Asker) -> list[float]:
        """Somebody is asked: how much time each call had left."""
        now = self._clock.monotonic()
        left = [call.expires - now for call in asker.calls]
        for call in asker.calls:
            latest = _latest(call)
            if isfinite(latest):
                call.expires = max(call.expires, latest)
        return left

    def resume(self, asker: Asker, left: Sequence[float]) -> None:
        """It was answered: the server has that much time again."""
        now = self._clock.monotonic()
        for call, seconds in zip(asker.calls, left, strict=True):
            call.expires = min(now + seconds, max(_latest(call), call.expires))
            self._sweep.arm(call.expires)

    def _handlers(self, call: Entry[OpenCall | Probe]) -> InputHandlers:
        own = call.waiter.errand.handlers if isinstance(call.waiter, OpenCall) else None
        return self._own if own is None else own


def _audience(handlers: InputHandlers) -> tuple[str, object]:
    if handlers.audience is not None:
        return ("of", handlers.audience)
    return ("is", id(handlers))


def _latest(call: Entry[OpenCall | Probe]) -> float:
    return call.waiter.errand.latest if isinstance(call.waiter, OpenCall) else call.expires
