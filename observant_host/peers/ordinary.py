"""A tool call that goes as most do: sent once there is room, answered once, told in one go.

Whatever may come of a call has its place in `peers.call`, in `Life.ask` and in two operations; each
costs as much as all that most calls need. So what most need is here, in one object a call, and at
the first thing that is unusual (an error, a cancellation, another kind of result) all that happened
so far is handed over to those: no rule of theirs is written here a second time.
"""

from __future__ import annotations

from asyncio import Future, get_running_loop
from contextvars import copy_context
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Raw

from observant_host.peers.errand import Errand
from observant_host.peers.open_call import OpenCall
from observant_host.telemetry.finished import Finished
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.propagation import TraceContext
from observant_host.transports.base import Outbound
from observant_host.wire.messages import COMPLETE, peek

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Context

    from observant_host.peers.eras import Era
    from observant_host.peers.errand import Witness
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.life import Life
    from observant_host.peers.peer import Peer
    from observant_host.telemetry.facade import Operation, Told
    from observant_host.telemetry.finished import OneOfMany
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
_NO_RESULT: Final = Raw()


class Ordinary:
    """The calls of one tool in one life, by callers who ask for nothing special, or all for the
    same. Made once for as long as the life, its server's configuration and the catalogue stand.

    `possible`: whether there are such calls; `told` are those who hear of each that ended well.
    `request` is what is known of its request before it is made. `signals` count what the server
    says, `record` has it noted that a call ended well.
    """

    __slots__ = (
        *("era", "gate", "handlers", "life", "loop", "peer", "possible", "principal", "record"),
        *("renew_s", "request", "server", "signals", "template", "timeout_ns", "timeout_s"),
        *("told", "tool"),
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
        self.peer = peer
        self.life = life
        self.loop = get_running_loop()  # kept: finding it asks the system for the process's id
        self.server = peer.server
        self.gate = peer.gate
        self.handlers = handlers
        self.principal = call.principal
        self.signals = signals
        self.record = record
        self.tool = call.local_name
        self.timeout_s = min(timing.call_timeout_s, timing.call_max_s)
        self.timeout_ns = round(self.timeout_s * 1e9)
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
    """One of them: its own entry among the open requests, what stands in line until there is a
    place for it, and what is told of it in the end (see `telemetry.finished.OneOfMany`).

    `began` is in seconds of the host's clock, and that of its request once it was sent; `began_ns`
    is the call's by `time.perf_counter_ns`. `ticket` is what its server had said by then, `id` 0
    and `until` 0.0 while it was not sent, and never stood in line. `handle` is what a tracing
    library wants back for its request. `failed` says why there is no result, `typed` that the one
    there is has a `resultType`.
    """

    __slots__ = (
        *("_around", "_called", "_errand", "_params", "_sent_ns", "_told", "_witness", "began_ns"),
        *("duration_ns", "failed", "handle", "inner_ns", "lead_ns", "of", "outer", "parent"),
        *("principal", "queued_ns", "start_ns", "ticket", "typed", "until"),
    )
    method = CALL_TOOL
    duration_ns: int
    handle: object | None
    inner_ns: int
    lead_ns: int
    principal: str | None
    typed: bool
    _around: Context
    _params: Mapping[str, Any]
    _sent_ns: int
    _told: tuple[Callable[[OneOfMany], None], ...]

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
        self.began = self._called = began
        self.expires = began + of.timeout_s
        self.ticket = of.signals.heard
        self.sent = None
        self.failed: BaseException | None = None
        self._last_progress = self._telling = None
        self._errand: Errand | None = None
        self._witness = witness
        self.id = self.queued_ns = 0
        self.until = 0.0
        self.future = Future(loop=of.loop)  # as its own create_future would be

    @property
    def errand(self) -> Errand:  # type: ignore[override]  # a slot of the class that it stands for
        if self._errand is None:
            self._errand = self.of.errand(self._called, self.outer, self._witness)
        return self._errand

    @property
    def deadline_ns(self) -> int:
        """What time its request had."""
        return self.of.timeout_ns - self.queued_ns

    def line_up(self, params: Mapping[str, Any]) -> None:
        """Have it sent as soon as there is a place for it, as if by whoever calls now. Raises what
        `Gate.enter` does at once."""
        of = self.of
        self.principal, self._params, self._around = of.principal, params, copy_context()
        if of.gate.line_up(self, expires=self.expires):
            self.send(params)

    def admitted(self) -> None:
        """It has its place, and is sent from here. Where that cannot be, its future is over while
        it has no `id`: whoever awaits that goes on with the place."""
        peer, life = self.of.peer, self.of.life
        now = life.clock.monotonic()
        self.queued_ns = perf_counter_ns() - self.began_ns
        # what else would be in its way has failed all who wait
        changed = peer.life is not life or life.inbox.end.raised or peer.tasks.enabled
        if changed or self.expires <= now:
            self.future.set_result(_NO_RESULT)
            return
        self.began = now
        try:
            self._around.run(self.send, self._params)
        except Exception as failed:  # noqa: BLE001 - for whoever awaits it
            self.future.set_exception(failed)

    def send(self, params: Mapping[str, Any]) -> None:
        """Raises TransportError, InvalidCall: nothing was sent."""
        of, outer, witness = self.of, self.outer, self._witness
        life = of.life
        self.id = request_id = life.pending.next_id()
        origin = outer.origin
        if type(origin) is OwnIds:
            context, self.handle, self._told = origin.inside(outer), None, of.told.ours
        else:
            began_ns = self.start_ns + self.queued_ns
            context, self.handle = life.telemetry.start(of.request, outer, (), began_ns)
            self._told = of.told.spanned
        self.context = context
        witness.attempts = 1
        witness.delivery = "sent_no_reply"
        witness.era = of.era.name
        template, arguments, headers = of.template, params["arguments"], life.headers
        if template.traced:
            trace_id, span_id, flags = context.trace_id, context.span_id, context.sampled
            holes: tuple[Any, ...] = (request_id, arguments, trace_id, span_id, flags, request_id)
        else:
            holes = (request_id, arguments, request_id)
        frame = template.text % (holes if template.numbered else holes[:-1])
        if headers is None:
            out = Outbound(frame, CALL_TOOL, request_id, of.era.version)
        else:
            out = headers.outbound(
                of.era, frame, request_id=request_id, method=CALL_TOOL, params=params
            )
        self._sent_ns = perf_counter_ns()
        life.send(self, out)

    def succeeded(self, raw: Raw) -> bool:
        """Whether this is all, and told. Otherwise somebody has to look closer."""
        came_ns = perf_counter_ns()
        seen = peek(raw)
        self.typed = typed = seen is COMPLETE
        if typed or (seen.result_type is None and not seen.is_error and seen.problem is None):
            of = self.of
            of.record.last_call = "ok"
            self.lead_ns = self._sent_ns - self.began_ns
            self.inner_ns = came_ns - self._sent_ns
            self.duration_ns = perf_counter_ns() - self.began_ns
            of.gate.leave()  # which may send the next one: no part of this one's time
            for tell in self._told:
                tell(self)
            return True
        return False

    def resumed(self) -> Operation:
        """Its request as an operation of its own, which began when it was sent."""
        of, queued_ns = self.of, self.queued_ns
        operation = of.life.telemetry.operation(of.request, self.outer)
        operation.note(request_id=self.id, deadline_ms=self.deadline_ns / 1e6)
        return operation.began(
            self.context,
            self.handle,
            start_ns=self.start_ns + queued_ns,
            began_ns=self.began_ns + queued_ns,
        )
