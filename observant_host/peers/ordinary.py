"""A tool call that goes as most do: sent at once, answered once, told in one go.

Whatever may come of a call has its place in `peers.call`, in `Life.ask` and in two operations; each
costs as much as all that most calls need. So what most need is here, in one object a call, and at
the first thing that is unusual (an error, a cancellation, another kind of result) all that happened
so far is handed over to those: no rule of theirs is written here a second time.
"""

from __future__ import annotations

import asyncio
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from observant_host.peers.errand import Errand
from observant_host.peers.open_call import OpenCall
from observant_host.telemetry.finished import Finished
from observant_host.telemetry.propagation import TraceContext
from observant_host.wire.messages import COMPLETE, peek

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

    from observant_host.peers.eras import Params
    from observant_host.peers.errand import Witness
    from observant_host.peers.life import Life
    from observant_host.peers.peer import Peer
    from observant_host.telemetry.facade import Operation
    from observant_host.telemetry.finished import OneOfMany
    from observant_host.telemetry.vocabulary import Request, RoutedCall


class Counting(Protocol):
    """`heard` counts what a server has said in its life."""

    heard: int


class Noting(Protocol):
    """`last_call` is how the last call to a server ended."""

    last_call: str


CALL_TOOL: Final = "tools/call"
_SAMPLE: Final = TraceContext(1, 1)


class Ordinary:
    """The calls of one tool in one life, by callers who ask for nothing special. Made once for as
    long as the life, its server's configuration and the catalogue stand.

    `possible`: whether there are such calls; `tells` takes each of them that ended well. `request`
    is what is known of its request before it is made. `signals` count what the server says,
    `record` has it noted that a call ended well.
    """

    __slots__ = (
        *("era", "gate", "life", "possible", "record", "renew_s", "request", "server"),
        *("signals", "tells", "timeout_s", "tool"),
    )
    request: Request
    tells: tuple[Callable[[OneOfMany], None], ...]

    def __init__(
        self, peer: Peer, life: Life, call: RoutedCall, *, signals: Counting, record: Noting
    ) -> None:
        timing = peer.server.timing
        self.life = life
        self.server = peer.server
        self.gate = peer.gate
        self.signals = signals
        self.record = record
        self.tool = call.local_name
        self.timeout_s = min(timing.call_timeout_s, timing.call_max_s)
        self.renew_s = timing.call_timeout_s if timing.reset_timeout_on_progress else None
        self.era = ""
        self.possible = False
        era = life.era
        if era is None or life.headers is not None or peer.opens_addresses(era.version):
            return
        self.era = era.name
        self.request = life.writing.fact(era, self.errand(0.0, None))
        sent = msgspec.structs.replace(self.request, deadline_ms=self.timeout_s * 1000)
        routed = msgspec.structs.replace(call, attempts=1, era=era.name, delivery="replied")
        tells = peer.telemetry.alike(Finished(routed, _SAMPLE), Finished(sent, _SAMPLE))
        if tells is not None:
            self.tells, self.possible = tells, True

    def errand(
        self, began: float, parent: TraceContext | None, witness: Witness | None = None
    ) -> Errand:
        """The same as whoever deals with anything unusual knows it."""
        return Errand(
            CALL_TOOL,
            expires=began + self.timeout_s,
            latest=began + self.server.timing.call_max_s,
            renew_s=self.renew_s,
            target=self.tool,
            parent=parent,
            purpose="call",
            witness=witness,
        )


class Kept:
    """Where the present one of a route is kept, possible or not."""

    __slots__ = ("ordinary",)

    def __init__(self) -> None:
        self.ordinary: Ordinary | None = None


class OrdinaryCall(OpenCall):
    """One of them: its own entry among the open requests, and what is told of it in the end (see
    `telemetry.finished.OneOfMany`).

    `began` is in seconds of the host's clock, `began_ns` by `time.perf_counter_ns`. `handle` is
    what a tracing library wants back for its request; `ticket` what its server had said by then.
    `raw` or `failed` is how it came out, once either is set.
    """

    __slots__ = (
        *("_errand", "_sent_ns", "_witness", "began_ns", "duration_ns", "failed", "handle"),
        *("inner_ns", "lead_ns", "of", "outer", "parent", "raw", "renew_s", "start_ns", "ticket"),
    )
    method = CALL_TOOL
    handlers = None
    on_progress = None
    duration_ns: int
    inner_ns: int
    lead_ns: int

    def __init__(
        self,
        of: Ordinary,
        outer: TraceContext,
        parent: TraceContext | None,
        start_ns: int,
        began: float,
        witness: Witness,
    ) -> None:
        life = of.life
        self.of = of
        self.outer = outer
        self.parent = parent
        self.start_ns = start_ns
        self.began = began
        self.expires = began + of.timeout_s
        self.renew_s = of.renew_s
        self.ticket = of.signals.heard
        self.sent = None
        self.raw: Raw | None = None
        self.failed: BaseException | None = None
        self._last_progress = self._telling = None
        self._errand: Errand | None = None
        self._witness = witness
        witness.attempts = 1
        witness.delivery = "sent_no_reply"
        witness.era = of.era
        self.id = life.pending.next_id()
        self.context, self.handle = life.telemetry.start(of.request, outer, (), start_ns)
        self.future = asyncio.get_running_loop().create_future()
        self.began_ns = perf_counter_ns()

    @property
    def errand(self) -> Errand:  # type: ignore[override]  # a slot of the class that it stands for
        if self._errand is None:
            self._errand = self.of.errand(self.began, self.outer, self._witness)
        return self._errand

    def send(self, params: Params) -> None:
        """Raises as `Life.ask` does for what cannot be sent."""
        self._sent_ns = perf_counter_ns()
        self.of.life.write(self, self, params)

    def succeeded(self, raw: Raw) -> bool:
        """Whether this is all, and told. Otherwise `raw` is kept for whoever looks closer."""
        came_ns = perf_counter_ns()
        seen = peek(raw)
        if seen is COMPLETE or (
            seen.result_type is None and not seen.is_error and seen.problem is None
        ):
            of = self.of
            of.gate.leave()
            of.record.last_call = "ok"
            self.lead_ns = self._sent_ns - self.began_ns
            self.inner_ns = came_ns - self._sent_ns
            self.duration_ns = perf_counter_ns() - self.began_ns
            for tell in of.tells:
                tell(self)
            return True
        self.raw = raw
        return False

    def resumed(self) -> Operation:
        """Its request as an operation of its own, which began when it was sent."""
        of = self.of
        operation = of.life.telemetry.operation(of.request, self.outer)
        operation.note(request_id=self.id, deadline_ms=of.timeout_s * 1000)
        return operation.began(
            self.context, self.handle, start_ns=self.start_ns, began_ns=self.began_ns
        )
