"""A tool call that goes as most do: sent at once, answered once, told in one go.

Whatever may come of a call has its place in `peers.call`, in `Life.ask` and in two operations; each
costs as much as all that most calls need. So what most need is here, in one object a call, and at
the first thing that is unusual (an error, a cancellation, another kind of result) all that happened
so far is handed over to those: no rule of theirs is written here a second time.
"""

from __future__ import annotations

from asyncio import Future
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from observant_host.peers.errand import Errand
from observant_host.peers.open_call import OpenCall
from observant_host.telemetry.finished import Finished
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.propagation import TraceContext
from observant_host.transports.base import Outbound
from observant_host.wire.messages import COMPLETE, peek

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from observant_host.peers.eras import Era
    from observant_host.peers.errand import Witness
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.life import Life
    from observant_host.peers.peer import Peer
    from observant_host.telemetry.facade import Operation, Told
    from observant_host.telemetry.vocabulary import Request, RoutedCall
    from observant_host.wire.templates import Template


class Counting(Protocol):
    """`heard` counts what a server has said in its life."""

    heard: int


class Noting(Protocol):
    """`last_call` is how the last call to a server ended."""

    last_call: str


CALL_TOOL: Final = "tools/call"
_SAMPLE: Final = TraceContext(1, 1)


class Ordinary:
    """The calls of one tool in one life, by callers who ask for nothing special, or all for the
    same. Made once for as long as the life, its server's configuration and the catalogue stand.

    `possible`: whether there are such calls; `told` are those who hear of each that ended well.
    `request` is what is known of its request before it is made. `signals` count what the server
    says, `record` has it noted that a call ended well.
    """

    __slots__ = (
        *("era", "gate", "handlers", "life", "possible", "record", "renew_s", "request", "server"),
        *("signals", "template", "timeout_s", "told", "tool"),
    )
    era: Era
    request: Request
    template: Template
    told: Told

    def __init__(
        self,
        peer: Peer,
        life: Life,
        call: RoutedCall,
        *,
        handlers: InputHandlers | None,
        signals: Counting,
        record: Noting,
    ) -> None:
        timing = peer.server.timing
        self.life = life
        self.server = peer.server
        self.gate = peer.gate
        self.handlers = handlers
        self.signals = signals
        self.record = record
        self.tool = call.local_name
        self.timeout_s = min(timing.call_timeout_s, timing.call_max_s)
        self.renew_s = timing.call_timeout_s if timing.reset_timeout_on_progress else None
        self.possible = False
        era = life.era
        if era is None or life.session or peer.opens_addresses(era.version, handlers):
            return
        self.era = era
        self.request = life.writing.fact(era, self.errand(0.0, None))
        sent = msgspec.structs.replace(self.request, deadline_ms=self.timeout_s * 1000)
        routed = msgspec.structs.replace(call, attempts=1, era=era.name, delivery="replied")
        told = peer.telemetry.alike(Finished(routed, _SAMPLE), Finished(sent, _SAMPLE))
        numbered = self.renew_s is not None
        template = life.writing.template(
            era, CALL_TOOL, self.tool, handlers=handlers, numbered=numbered
        )
        if told is not None and template is not None:
            self.told, self.template, self.possible = told, template, True

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
            handlers=self.handlers,
            witness=witness,
        )


class Kept:
    """Where the present one of a route is kept, possible or not. `handlers` are those of its
    callers; `once`: made for one call alone for all that is known, as handlers often are, so that
    making an `Ordinary` for it would cost more than it saves."""

    __slots__ = ("handlers", "once", "ordinary")

    def __init__(self, handlers: InputHandlers | None = None) -> None:
        self.handlers = handlers
        self.once = handlers is not None
        self.ordinary: Ordinary | None = None


class OrdinaryCall(OpenCall):
    """One of them: its own entry among the open requests, and what is told of it in the end (see
    `telemetry.finished.OneOfMany`).

    `began` is in seconds of the host's clock, `began_ns` by `time.perf_counter_ns`; `ticket` is
    what its server had said by then, `handle` what a tracing library wants back for its request.
    `failed` says why there is no result, `typed` that the one there is has a `resultType`.
    """

    __slots__ = (
        *("_errand", "_sent_ns", "_told", "_witness", "began_ns", "duration_ns", "failed"),
        *("handle", "inner_ns", "lead_ns", "of", "outer", "parent", "start_ns", "ticket", "typed"),
    )
    method = CALL_TOOL
    duration_ns: int
    inner_ns: int
    lead_ns: int
    typed: bool
    _sent_ns: int

    def __init__(
        self,
        of: Ordinary,
        outer: TraceContext,
        parent: TraceContext | None,
        start_ns: int,
        began: float,
        witness: Witness,
    ) -> None:
        self.began_ns = perf_counter_ns()
        self.of = of
        self.outer = outer
        self.parent = parent
        self.start_ns = start_ns
        self.began = began
        self.expires = began + of.timeout_s
        self.ticket = of.signals.heard
        self.sent = None
        self.failed: BaseException | None = None
        self._last_progress = self._telling = None
        self._errand: Errand | None = None
        self._witness = witness
        self.id = of.life.pending.next_id()
        origin = outer.origin
        if type(origin) is OwnIds:
            self.context, self.handle = origin.inside(outer), None
            self._told = of.told.ours
        else:
            self.context, self.handle = of.life.telemetry.start(of.request, outer, (), start_ns)
            self._told = of.told.spanned
        self.future = Future()  # of the running loop, as its own create_future would be

    @property
    def errand(self) -> Errand:  # type: ignore[override]  # a slot of the class that it stands for
        if self._errand is None:
            self._errand = self.of.errand(self.began, self.outer, self._witness)
        return self._errand

    def send(self, params: Mapping[str, Any]) -> None:
        """Raises TransportError, InvalidCall: nothing was sent."""
        of, context, witness = self.of, self.context, self._witness
        witness.attempts = 1
        witness.delivery = "sent_no_reply"
        witness.era = of.era.name
        text, traced, numbered = of.template
        request_id, arguments, headers = self.id, params["arguments"], of.life.headers
        if not traced:
            holes: tuple[Any, ...] = (request_id, arguments)
        else:
            flags = context.sampled
            holes = (request_id, arguments, context.trace_id, context.span_id, flags)
        frame = text % (*holes, request_id) if numbered else text % holes
        if headers is None:
            out = Outbound(frame, CALL_TOOL, request_id, of.era.version)
        else:
            out = headers.outbound(
                of.era, frame, request_id=request_id, method=CALL_TOOL, params=params
            )
        self._sent_ns = perf_counter_ns()
        of.life.send(self, out)

    def succeeded(self, raw: Raw) -> bool:
        """Whether this is all, and told. Otherwise somebody has to look closer."""
        came_ns = perf_counter_ns()
        seen = peek(raw)
        self.typed = typed = seen is COMPLETE
        if typed or (seen.result_type is None and not seen.is_error and seen.problem is None):
            of = self.of
            of.gate.leave()
            of.record.last_call = "ok"
            self.lead_ns = self._sent_ns - self.began_ns
            self.inner_ns = came_ns - self._sent_ns
            self.duration_ns = perf_counter_ns() - self.began_ns
            for tell in self._told:
                tell(self)
            return True
        return False

    def resumed(self) -> Operation:
        """Its request as an operation of its own, which began when the call did."""
        of = self.of
        operation = of.life.telemetry.operation(of.request, self.outer)
        operation.note(request_id=self.id, deadline_ms=of.timeout_s * 1000)
        return operation.began(
            self.context, self.handle, start_ns=self.start_ns, began_ns=self.began_ns
        )
