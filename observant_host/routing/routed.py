"""One call on its way: one operation around it, and further attempts where they are safe.

One deadline holds from here to the wire: the caller's own, else the server's call_timeout_s since
the call began. Waiting in line, for a server that is to come back or wants to be left alone, each
attempt and each round of input are all inside it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions import retry_safety
from observant_host.decisions.faults import certainty
from observant_host.errors import CallCancelled, CallError, CallFacts, RateLimited
from observant_host.peers.errand import Witness
from observant_host.routing.again import Again
from observant_host.routing.asked import Target
from observant_host.routing.call_result import CallResult
from observant_host.routing.refusals import unroutable
from observant_host.routing.structured import structured_problem
from observant_host.telemetry.vocabulary import RoutedCall, StructuredContentProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from observant_host.peers.peer import CallReply
    from observant_host.routing.asked import Asked
    from observant_host.routing.routed_peer import PeerLookup, RoutedPeer
    from observant_host.schema_check import OutputProblem
    from observant_host.telemetry.facade import Operation, Telemetry
    from observant_host.timing.clock import Clock

READS: Final = frozenset({"prompts/get", "resources/read", "completion/complete"})
"""Methods that change nothing, so that doing them twice is harmless."""

MAX_NAME_TOLD: Final = 256
"""Characters of a called name in telemetry: a wrong name can be anything."""


class Routed(Witness):
    """Made for one call; `run` is awaited once. It is the witness of its own requests."""

    __slots__ = (
        "_asked",
        "_clock",
        "_declared",
        "_task",
        "_telemetry",
        "_unsure",
        "_withdrawn",
        "began",
        "expires",
        "operation",
    )

    def __init__(self, asked: Asked, *, telemetry: Telemetry, clock: Clock) -> None:
        super().__init__()
        self._asked = asked
        self._telemetry = telemetry
        self._clock = clock
        self.began = clock.monotonic()
        self.expires = None if asked.deadline_s is None else self.began + asked.deadline_s
        self.operation: Operation | None = None
        self._task = asyncio.current_task()
        self._declared = False
        self._unsure = False
        self._withdrawn: str | None = None

    def cancel(self, why: str) -> None:
        """End it for somebody who is not its caller; that one gets a CallCancelled that says why.
        Once."""
        if self._withdrawn is None and self._task is not None:
            self._withdrawn = why
            self._task.cancel()

    def forgive(self) -> None:
        """It is over: its caller's task goes on as if it had never been cancelled by us."""
        if self._withdrawn is not None and self._task is not None:
            self._task.uncancel()

    async def run(
        self, target: Target | CallError, peers: PeerLookup, params: Mapping[str, Any]
    ) -> CallResult:
        """One RoutedCall operation, whatever comes. `target` is an error where the name leads
        nowhere. Raises CallError with its `call` filled, and with what is certain of its effects
        in its text."""
        asked = self._asked
        with self._telemetry.operation(self._fact(target), parent=asked.parent) as operation:
            self.operation = operation
            if (audit := self._telemetry.audit) is not None:
                audit.hold(operation.context, params)
            try:
                if isinstance(target, CallError):
                    raise target
                reply = await self._answer(target, peers, params, operation)
            except CallError as error:
                self._close(error, target, operation)
                raise
            except asyncio.CancelledError:
                operation.note(attempts=self.attempts, era=self.era, delivery=self.delivery)
                if self._withdrawn is None or self._task is None or self._task.cancelling() > 1:
                    raise
                ended = CallCancelled(self._withdrawn, delivery=self.delivery, fault="caller")
                self._close(ended, target, operation)
                raise ended from None
            operation.note(attempts=self.attempts, era=reply.era, delivery="replied")
            if reply.is_error:
                operation.end_as("tool_error", "tool_error")
            problem = None
            complete = not reply.is_error and reply.input_required is None
            if target.output_schema is not None and complete:
                problem = await self._judged(target, target.output_schema, reply)
            self.era = reply.era
            call = self._facts(target, operation)
            return CallResult(
                reply.raw,
                call=call,
                is_error=reply.is_error,
                schema_problem=problem,
                input_required=reply.input_required,
            )

    def _close(self, error: CallError, target: Target | CallError, operation: Operation) -> None:
        """Have it say all that is known of the call."""
        self._tell(error)
        error.call = self._facts(target, operation)
        operation.note(attempts=self.attempts, era=self.era)

    async def _answer(
        self,
        target: Target,
        peers: PeerLookup,
        params: Mapping[str, Any],
        operation: Operation,
    ) -> CallReply:
        asked = self._asked
        peer = peers.get(target.server)
        if peer is None:
            raise unroutable(target.server, None)
        again: Again | None = None
        while True:
            made = self.attempts
            try:
                if not peer.routable:
                    raise unroutable(target.server, peer.status)
                return await peer.call(
                    asked.method,
                    params,
                    expires=self.expires,
                    began=self.began,
                    target=target.local_name if target.uri is None else None,
                    uri=target.uri,
                    on_progress=asked.on_progress,
                    handlers=asked.handlers,
                    parent=operation.context,
                    principal=asked.principal,
                    attempt=made + 1,
                    log_level=asked.log_level,
                    witness=self,
                    hand_up=asked.input_round if asked.inputs == "hand_up" else None,
                )
            except CallError as error:
                self._take_note(error)
                operation.note(cause=peer.status.cause)
                again = again or self._again(peer, target)
                if not await again.after(error, repeats=self.attempts > made):
                    raise
                operation.note(cause=None)

    def _take_note(self, error: CallError) -> None:
        """An attempt that may have been executed stays so, whatever becomes of a later one."""
        if self._unsure and error.outcome in ("unavailable", "timeout"):
            error.delivery = "sent_no_reply"
        self._unsure = self._unsure or error.delivery == "sent_no_reply"
        self.delivery = error.delivery

    def _again(self, peer: RoutedPeer, target: Target) -> Again:
        server, asked = peer.server, self._asked
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
            telemetry=self._telemetry,
            clock=self._clock,
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
            self._telemetry.count(
                StructuredContentProblem(
                    peer=target.server, tool=target.local_name, problem=problem.kind
                )
            )
        return problem

    def _fact(self, target: Target | CallError) -> RoutedCall:
        """A resource's URI may hold a secret: it is in no fact."""
        asked = self._asked
        known = target if isinstance(target, Target) else None
        is_resource = asked.method == "resources/read"
        return RoutedCall(
            name="" if is_resource else asked.name[:MAX_NAME_TOLD],
            method=asked.method,
            peer=known.server if known is not None else "",
            local_name=known.local_name if known is not None and not is_resource else "",
            deadline_ms=None if asked.deadline_s is None else asked.deadline_s * 1e3,
            principal=asked.principal,
        )

    def _facts(self, target: Target | CallError, operation: Operation) -> CallFacts:
        known = target if isinstance(target, Target) else None
        return CallFacts(
            name=self._asked.name,
            server=known.server if known is not None else "",
            local_name=known.local_name if known is not None else "",
            attempts=self.attempts,
            era=self.era,
            duration_ms=(self._clock.monotonic() - self.began) * 1e3,
            trace_id=f"{operation.context.trace_id:032x}",
        )
