"""One call on its way: one operation around it, and further attempts where they are safe.

One deadline holds from here to the wire: the caller's own, else the server's call_timeout_s since
the call began. Waiting in line, for a server that is to come back or wants to be left alone, each
attempt and each round of input are all inside it.
"""

from __future__ import annotations

import asyncio
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, cast

from observant_host.decisions import retry_safety
from observant_host.decisions.faults import certainty
from observant_host.errors import CallCancelled, CallError, CallFacts, RateLimited
from observant_host.peers.errand import Witness
from observant_host.peers.ordinary import OrdinaryCall
from observant_host.routing.again import Again
from observant_host.routing.asked import Asked, Target
from observant_host.routing.call_result import CallResult
from observant_host.routing.refusals import unroutable
from observant_host.routing.structured import structured_problem
from observant_host.telemetry.vocabulary import RoutedCall, StructuredContentProblem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from msgspec import Raw

    from observant_host.peers.ordinary import Kept
    from observant_host.peers.peer import CallReply, Terms
    from observant_host.routing.routed_peer import RoutedPeer
    from observant_host.routing.router import Router
    from observant_host.schema_check import OutputProblem
    from observant_host.telemetry.facade import Operation, TraceContext

READS: Final = frozenset({"prompts/get", "resources/read", "completion/complete"})
"""Methods that change nothing, so that doing them twice is harmless."""

ARGUMENTS: Final = "gen_ai.tool.call.arguments"
"""Source: OpenTelemetry semantic conventions for generative AI, spans › Execute tool (opt-in)."""
MAX_NAME_TOLD: Final = 256
"""Characters of a called name in telemetry: a wrong name can be anything."""


NOTHING: Final[Terms] = {}
ENDED: Final = Asked(name="", method="")


class Routed(Witness):
    """Made for one call; `run` is awaited once. It is the witness of its own requests, and what is
    known of the call: in flight, as one of the last that ended, and for whoever has its result.

    `target` is an error where the name leads nowhere, `params` what its server is to be asked.
    """

    __slots__ = (
        *(
            "_asked",
            "_declared",
            "_of",
            "_operation",
            "_params",
            "_parent",
            "_target",
            "_task",
            "_terms",
        ),
        *("_unsure", "_withdrawn", "began", "context", "ended_s", "expires", "given", "key"),
        "name",
    )
    began: float
    key: int

    def __init__(
        self,
        of: Router,
        asked: Asked,
        target: Target | CallError,
        params: Mapping[str, Any],
        terms: Terms,
        fact: RoutedCall,
        parent: TraceContext | None = None,
    ) -> None:
        self.attempts = 0
        self.delivery = "not_sent"
        self.era = "unknown"
        self.progress = None
        self.name = asked.name
        self.expires: float | None = None
        self.ended_s: float | None = None
        self.context: TraceContext | None = None
        self._operation: Operation | None = None
        self._task: asyncio.Task[Any] | None = None
        self._declared = False
        self._unsure = False
        self._withdrawn: str | None = None
        self._of = of
        self._asked = asked
        self._target = target
        self._params = params
        self._terms = terms
        self._parent = parent
        self.given = fact

    def cancel(self, why: str) -> None:
        """End it for somebody who is not its caller; that one gets a CallCancelled that says why.
        Once."""
        if self._withdrawn is None and self._task is not None:
            self._withdrawn = why
            self._task.cancel()

    @property
    def fact(self) -> RoutedCall:
        """What is known of it by now; `given`: as it began."""
        operation = self._operation
        return self.given if operation is None else cast("RoutedCall", operation.fact)

    async def ordinary(self, target: Target, kept: Kept) -> CallResult:
        """As `run`, of a tool's call with nothing special about it: while it goes as most do it is
        no operation of its own, and at its end its numbers are told in one go (see
        `peers.ordinary`). Whatever else comes, `run` goes on with it."""
        of = self._of
        peer = of.peers.get(target.server)
        way = peer.ordinary(kept, self.given) if peer is not None else None
        if peer is None or way is None:
            return await self.run()
        telemetry = of.telemetry
        parent, start_ns = self._parent or telemetry.around(), telemetry.wall_ns()
        context, handle = telemetry.start(self.given, parent, (), start_ns)
        self.context = context
        self._task = asyncio.current_task(way.loop)
        self.began = of.clock.monotonic()
        of.calls.began(self)
        first = None
        if not context.tracestate:
            call = first = OrdinaryCall(way, context, parent, start_ns, self.began, self)
            gate = way.gate
            try:
                if gate.in_flight < gate.room:
                    gate.in_flight += 1
                    call.send(self._params)
                else:
                    call.line_up(self._params)
                raw = await call.future
            except BaseException as failed:  # noqa: BLE001 - raised again where it is told
                call.failed = failed
            else:
                if call.id and target.output_schema is None and call.succeeded(raw):
                    self.delivery = "replied"
                    self.ended_s = of.clock.monotonic()
                    of.calls.ended(self, "ok")
                    self._over()
                    return CallResult(raw, self, typed=call.typed)
        began_ns = perf_counter_ns() if first is None else first.began_ns
        self._operation = telemetry.operation(self.given, parent).began(
            context, handle, start_ns=start_ns, began_ns=began_ns
        )
        return await self.run(peer, first)

    async def run(
        self, peer: RoutedPeer | None = None, first: OrdinaryCall | None = None
    ) -> CallResult:
        """One RoutedCall operation, whatever comes. Raises CallError with its `call` filled, and
        with what is certain of its effects in its text; and CancelledError as it comes. `first` is
        what `peer` was to be sent, and has its place there or has stood in line for it.

        In one piece, since each coroutine more on the way costs as much as what it would do.
        """
        of, asked, target = self._of, self._asked, self._target
        telemetry, clock = of.telemetry, of.clock
        if self._operation is None:
            self._task = asyncio.current_task()
            self.began = clock.monotonic()
            if asked.deadline_s is not None:
                self.expires = self.began + asked.deadline_s
            of.calls.began(self)
            self._operation = telemetry.operation(self.given, self._parent)
        try:
            with self._operation as operation:
                self.context = operation.context
                if (audit := telemetry.audit) is not None:
                    audit.hold(operation.context, self._params)
                if (shown := telemetry.arguments) is not None:
                    self._show_arguments(operation, shown)
                try:
                    if isinstance(target, CallError):
                        raise target
                    peer = peer or of.peers.get(target.server)
                    if peer is None:
                        raise unroutable(target.server, None)
                    try:
                        reply = await self._attempt(peer, target, operation, first)
                    except CallError as error:
                        reply = await self._repeated(error, peer, target, operation)
                except CallError as error:
                    self._close(error, operation)
                    raise
                except asyncio.CancelledError:
                    self._cancelled(operation)
                    raise
                self.era, self.delivery = reply.era, "replied"
                operation.note(attempts=self.attempts, era=reply.era, delivery="replied")
                problem = None
                if reply.is_error:
                    operation.end_as("tool_error", "tool_error")
                elif target.output_schema is not None and reply.input_required is None:
                    problem = await self._judged(target, target.output_schema, reply)
                self.ended_s = clock.monotonic()
                return CallResult(
                    reply.raw,
                    self,
                    is_error=reply.is_error,
                    schema_problem=problem,
                    input_required=reply.input_required,
                    typed=reply.typed,
                )
        except CallError as error:
            error.args = (of.masker.text(str(error)),)  # it may repeat what a server said
            raise
        finally:
            of.calls.ended(self, self._operation.outcome)
            self._over()

    def _show_arguments(self, operation: Operation, shown: Callable[[object], str]) -> None:
        if self._asked.method == "tools/call" and isinstance(self._target, Target):
            given = self._params.get("arguments", NOTHING)
            operation.event("arguments", **{ARGUMENTS: shown(given)})

    def _cancelled(self, operation: Operation) -> None:
        """Raises CallCancelled where it was not its caller who cancelled it."""
        operation.note(attempts=self.attempts, era=self.era, delivery=self.delivery)
        if self._withdrawn is None or self._task is None or self._task.cancelling() > 1:
            return
        ended = CallCancelled(self._withdrawn, delivery=self.delivery, fault="caller")
        self._close(ended, operation)
        raise ended from None

    def _over(self) -> None:
        """Its caller's task goes on as if it had never been cancelled by us; and what is kept of
        the call is no more than who, what, where to and how."""
        if self._withdrawn is not None and self._task is not None:
            self._task.uncancel()
        self._task, self._params, self._terms, self._asked = None, NOTHING, NOTHING, ENDED
        if self.progress is not None:
            self.progress = None

    def _close(self, error: CallError, operation: Operation) -> None:
        """Have it say all that is known of the call."""
        self.ended_s = self._of.clock.monotonic()
        self._tell(error)
        error.call = self.facts()
        operation.note(attempts=self.attempts, era=self.era)

    def _attempt(
        self,
        peer: RoutedPeer,
        target: Target,
        operation: Operation,
        first: OrdinaryCall | None = None,
    ) -> Awaitable[CallReply]:
        if first is None and not peer.routable:
            raise unroutable(target.server, peer.status)
        return peer.call(
            self._asked.method,
            self._params,
            expires=self.expires,
            began=self.began,
            target=target.local_name if target.uri is None else None,
            uri=target.uri,
            parent=operation.context,
            attempt=1 if first is not None else self.attempts + 1,
            witness=self,
            first=first,
            **self._terms,
        )

    async def _repeated(
        self, error: CallError, peer: RoutedPeer, target: Target, operation: Operation
    ) -> CallReply:
        """Further attempts after this error, while they are safe and there is time for them."""
        made, again = 0, self._again(peer, target)
        while True:
            self._take_note(error)
            operation.note(cause=peer.status.cause)
            if not await again.after(error, repeats=self.attempts > made):
                raise error
            operation.note(cause=None)
            made = self.attempts
            try:
                return await self._attempt(peer, target, operation)
            except CallError as another:
                error = another

    def _take_note(self, error: CallError) -> None:
        """An attempt that may have been executed stays so, whatever becomes of a later one."""
        if self._unsure and error.outcome in ("unavailable", "timeout"):
            error.delivery = "sent_no_reply"
        self._unsure = self._unsure or error.delivery == "sent_no_reply"
        self.delivery = error.delivery

    def _again(self, peer: RoutedPeer, target: Target) -> Again:
        of, server, asked = self._of, peer.server, self._asked
        trusted = server.trust_annotations and target.idempotent
        self._declared = target.local_name in server.idempotent_tools or trusted
        until = self.expires
        return Again(
            peer,
            method=asked.method,
            began=self.began,
            until=self.began + server.timing.call_timeout_s if until is None else until,
            harmless=retry_safety.is_harmless_twice(
                is_read=asked.method in READS,
                policy=server.retry_calls,
                declared_idempotent=self._declared,
            ),
            witness=self,
            telemetry=of.telemetry,
            clock=of.clock,
        )

    def _tell(self, error: CallError) -> None:
        """Say in words what is certain, since whoever reads this decides whether to call again."""
        said = certainty(
            error.outcome,
            delivery=error.delivery,
            refused=isinstance(error, RateLimited) and error.delivery == "replied",
            begun=error.begun,
            acts=self._asked.method == "tools/call",
            harmless=self._declared,
        )
        if said and said not in str(error):
            error.args = (f"{error}; {said}",)

    async def _judged(self, target: Target, schema: Raw, reply: CallReply) -> OutputProblem | None:
        """Beside the result, never instead of it: what the tool promised and did not keep."""
        problem = await structured_problem(schema, reply.raw, version=reply.version)
        if problem is not None:
            self._of.telemetry.count(
                StructuredContentProblem(
                    peer=target.server, tool=target.local_name, problem=problem.kind
                )
            )
        return problem

    def facts(self) -> CallFacts:
        """What is known of it, once it has ended."""
        target, context = self._target, self.context
        known = target if isinstance(target, Target) else target.call
        ended_s = self.began if self.ended_s is None else self.ended_s
        return CallFacts(
            name=self.name,
            server=known.server if known is not None else "",
            local_name=known.local_name if known is not None else "",
            attempts=self.attempts,
            era=self.era,
            duration_ms=(ended_s - self.began) * 1e3,
            trace_id=None if context is None else context.trace_hex,
        )


def told_of(asked: Asked, target: Target | CallError) -> RoutedCall:
    """What telemetry knows of a call that begins. A resource's URI may hold a secret: it is in no
    fact. Nor is the local name of a call that leads nowhere: nobody listed it."""
    told = isinstance(target, Target) and asked.method != "resources/read"
    known = target if isinstance(target, Target) else target.call
    return RoutedCall(
        name="" if asked.method == "resources/read" else asked.name[:MAX_NAME_TOLD],
        method=asked.method,
        peer=known.server if known is not None else "",
        local_name=known.local_name if told and known is not None else "",
        deadline_ms=None if asked.deadline_s is None else asked.deadline_s * 1e3,
        principal=asked.principal,
    )
