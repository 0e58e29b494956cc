"""One call on its way: one operation around it, one more attempt where nothing was sent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

from observant_host.decisions import retry_safety
from observant_host.decisions.retry_safety import Denied, RetryReason
from observant_host.errors import CallError, CallFacts, NotAnswering
from observant_host.routing.asked import Target
from observant_host.routing.call_result import CallResult
from observant_host.routing.refusals import unroutable
from observant_host.routing.structured import structured_problem
from observant_host.telemetry.vocabulary import (
    RetryDenied,
    RetryScheduled,
    RoutedCall,
    StructuredContentProblem,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack

    from msgspec import Raw

    from observant_host.config import ServerConfig
    from observant_host.decisions.peer_states import PeerStatus
    from observant_host.peers.peer import CallReply, RequestOptions
    from observant_host.routing.asked import Asked
    from observant_host.schema_check import OutputProblem
    from observant_host.telemetry.facade import Operation, Telemetry
    from observant_host.timing.clock import Clock

RETRY_WAIT_S: Final = 10.0
"""Longest wait for a lost server to come back: a healthy restart takes a second or two, and a
caller with a long deadline should hear of an outage before it is over."""

READS: Final = frozenset({"prompts/get", "resources/read", "completion/complete"})
"""Methods that change nothing, so that doing them twice is harmless."""


MAX_NAME_TOLD: Final = 256
"""Characters of a called name in telemetry: a wrong name can be anything."""


class RoutedPeer(Protocol):
    """One server as the router sees it."""

    @property
    def server(self) -> ServerConfig: ...

    @property
    def status(self) -> PeerStatus: ...

    @property
    def routable(self) -> bool:
        """True while `call` has a life to go to (ready or degraded)."""

    async def routable_again(self, expires: float) -> bool:
        """Wait until routable, at most until `expires` (monotonic); the answer says which."""

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | Raw | None,
        **options: Unpack[RequestOptions],
    ) -> CallReply:
        """As `peers.peer.Peer.call`. Raises CallError."""


class PeerLookup(Protocol):
    def get(self, server: str) -> RoutedPeer | None:
        """None where no such server is configured (any more)."""


class Routed:
    """Made for one call; `run` is awaited once."""

    __slots__ = ("_asked", "_attempts", "_began", "_clock", "_expires", "_telemetry")

    def __init__(self, asked: Asked, *, telemetry: Telemetry, clock: Clock) -> None:
        self._asked = asked
        self._telemetry = telemetry
        self._clock = clock
        self._began = clock.monotonic()
        self._expires = None if asked.deadline_s is None else self._began + asked.deadline_s
        self._attempts = 0

    async def run(
        self, target: Target | CallError, peers: PeerLookup, params: Mapping[str, Any]
    ) -> CallResult:
        """One RoutedCall operation, whatever comes. `target` is an error where the name leads
        nowhere. Raises CallError with its `call` filled."""
        asked = self._asked
        with self._telemetry.operation(self._fact(target), parent=asked.parent) as operation:
            try:
                if isinstance(target, CallError):
                    raise target
                reply = await self._answer(target, peers, params, operation)
            except CallError as error:
                error.call = self._facts(target, operation)
                operation.note(attempts=self._attempts)
                raise
            except asyncio.CancelledError:
                sent = "sent_no_reply" if self._attempts else "not_sent"
                operation.note(attempts=self._attempts, delivery=sent)
                raise
            self._attempts += reply.attempts - 1
            operation.note(attempts=self._attempts, era=reply.era, delivery="replied")
            if reply.is_error:
                operation.end_as("tool_error", "tool_error")
            problem = None
            if target.output_schema is not None and not reply.is_error:
                problem = await self._judged(target, target.output_schema, reply)
            call = self._facts(target, operation, era=reply.era)
            return CallResult(reply.raw, call=call, is_error=reply.is_error, schema_problem=problem)

    async def _answer(
        self,
        target: Target,
        peers: PeerLookup,
        params: Mapping[str, Any],
        operation: Operation,
    ) -> CallReply:
        asked = self._asked
        peer = peers.get(target.server)
        if peer is None or not peer.routable:
            status = None if peer is None else peer.status
            operation.note(cause=None if status is None else status.cause)
            raise unroutable(target.server, status)
        while True:
            self._attempts += 1
            try:
                return await peer.call(
                    asked.method,
                    params,
                    expires=self._expires,
                    target=target.local_name if target.uri is None else None,
                    uri=target.uri,
                    on_progress=asked.on_progress,
                    handlers=asked.handlers,
                    parent=operation.context,
                    attempt=self._attempts,
                    log_level=asked.log_level,
                )
            except CallError as error:
                if not await self._may_try_again(peer, target, error):
                    operation.note(cause=peer.status.cause)
                    raise

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

    async def _may_try_again(self, peer: RoutedPeer, target: Target, error: CallError) -> bool:
        """Report and follow the decision; only what was never sent is tried again by now."""
        loss = retry_safety.loss_of(error.outcome, delivery=error.delivery, fault=error.fault)
        if loss is None or isinstance(error, NotAnswering):
            return False
        harmless = self._is_harmless(peer.server, target)
        if loss is not RetryReason.NOT_SENT and harmless:
            return False
        began = self._clock.monotonic()
        verdict = self._decide(loss, peer, harmless=harmless, routable=True)
        if not isinstance(verdict, Denied) and not peer.routable:
            back = await peer.routable_again(min(self._until(peer), began + RETRY_WAIT_S))
            verdict = self._decide(loss, peer, harmless=harmless, routable=back)
        if isinstance(verdict, Denied):
            self._telemetry.count(RetryDenied(peer=target.server, reason=verdict.reason))
            return False
        waited_ms = (self._clock.monotonic() - began) * 1e3
        again = self._attempts + 1
        self._telemetry.count(
            RetryScheduled(
                peer=target.server, reason=verdict.reason, attempt=again, delay_ms=waited_ms
            )
        )
        return True

    def _decide(
        self, loss: RetryReason, peer: RoutedPeer, *, harmless: bool, routable: bool
    ) -> retry_safety.Allowed | Denied:
        return retry_safety.decide(
            loss,
            policy=peer.server.retry_calls,
            harmless_twice=harmless,
            attempts=self._attempts,
            remaining_s=self._until(peer) - self._clock.monotonic(),
            routable=routable,
        )

    def _is_harmless(self, server: ServerConfig, target: Target) -> bool:
        declared = target.local_name in server.idempotent_tools
        trusted = server.trust_annotations and target.idempotent
        return retry_safety.is_harmless_twice(
            is_read=self._asked.method in READS,
            policy=server.retry_calls,
            declared_idempotent=declared or trusted,
        )

    def _until(self, peer: RoutedPeer) -> float:
        """When the caller stops waiting: its own deadline, else the server's call_timeout_s."""
        if self._expires is not None:
            return self._expires
        return self._began + peer.server.timing.call_timeout_s

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

    def _facts(
        self, target: Target | CallError, operation: Operation, *, era: str = "unknown"
    ) -> CallFacts:
        known = target if isinstance(target, Target) else None
        return CallFacts(
            name=self._asked.name,
            server=known.server if known is not None else "",
            local_name=known.local_name if known is not None else "",
            attempts=self._attempts,
            era=era,
            duration_ms=(self._clock.monotonic() - self._began) * 1e3,
            trace_id=f"{operation.context.trace_id:032x}",
        )
