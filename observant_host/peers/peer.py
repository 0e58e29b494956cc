"""One configured server as its callers see it: a name, the life in use, and a gate in front.

A routed call passes here without a task, a lock or a scope: one comparison at the gate, one future
in the life, one look at the result's type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from observant_host.errors import InvalidResult, Unavailable
from observant_host.peers.errand import Errand
from observant_host.peers.gate import Gate
from observant_host.peers.input_handlers import NO_HANDLERS, InputHandlers
from observant_host.peers.input_rounds import METHODS, InputRounds
from observant_host.wire.messages import Peek, peek

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from observant_host.config import ServerConfig
    from observant_host.errors import Fault
    from observant_host.peers.eras import Params
    from observant_host.peers.life import Life
    from observant_host.telemetry.facade import Operation, Telemetry, TraceContext
    from observant_host.timing.clock import Clock

    OnProgress = Callable[[float, float | None, str | None], object]


class CallReply(msgspec.Struct, frozen=True, kw_only=True):
    """A complete result, as the server sent it. `attempts` counts the requests that were sent."""

    raw: Raw
    is_error: bool
    era: str
    version: str
    generation: int
    attempts: int = 1


class Peer:
    """`life` is set by the supervisor while the server is routable, None otherwise."""

    def __init__(
        self,
        server: ServerConfig,
        *,
        telemetry: Telemetry,
        clock: Clock,
        handlers: InputHandlers = NO_HANDLERS,
    ) -> None:
        self.name = server.name
        self.server = server
        self.handlers = handlers
        self.telemetry = telemetry
        self.clock = clock
        self.life: Life | None = None
        self._because = "it has not started yet"
        self._fault: Fault = "peer"
        self.gate = Gate(
            server.name,
            max_in_flight=server.max_in_flight,
            queue_max=server.queue_max,
            queue_timeout_s=server.timing.queue_timeout_s,
            telemetry=telemetry,
            clock=clock,
        )

    def attach(self, life: Life) -> None:
        """Route calls to this life from now on."""
        self.life = life

    def detach(self, because: str, *, fault: Fault = "peer") -> None:
        """Route no more calls; those in line fail at once. `because` is a sentence for a person,
        `fault` "peer" for an outage, "policy" for a refusal, "host" while draining."""
        self.life = None
        self._because = because
        self._fault = fault
        self.gate.fail_waiting(self.unroutable)

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | Raw | None,
        *,
        expires: float | None = None,
        target: str | None = None,
        uri: str | None = None,
        on_progress: OnProgress | None = None,
        handlers: InputHandlers | None = None,
        parent: TraceContext | None = None,
        attempt: int = 1,
        purpose: str = "call",
    ) -> CallReply:
        """One call, input rounds included.

        `expires` (monotonic seconds) is the caller's own deadline for everything; without it the
        server's call_timeout_s applies to each request, renewed by progress, and call_max_s to
        the whole. Raises CallError. `handlers` replaces the peer's for this call.
        """
        call = _Call(
            method,
            expires=expires or 0.0,
            renew=expires is None and self.server.timing.reset_timeout_on_progress,
            target=target,
            uri=uri,
            on_progress=on_progress,
            handlers=handlers,
            parent=parent,
            attempt=attempt,
            purpose=purpose,
        )
        call.begin(self, fixed=expires is not None)
        raw = await call.send(params, 0)
        if call.seen.result_type == "input_required":
            raw = await call.with_input(raw, params)
        return call.reply(raw)

    def unroutable(self) -> Unavailable:
        """The error of a call that finds no life to go to."""
        return Unavailable(
            f"{self.name} cannot be called now: {self._because}",
            delivery="not_sent",
            fault=self._fault,
        )


class _Call(Errand):
    """One call on its way: sent once, and again for each round of input.

    `fixed`: `expires` is the caller's own; otherwise each round gets the server's call_timeout_s.
    """

    __slots__ = ("_fixed", "_life", "_peer", "seen")
    _life: Life
    seen: Peek

    def begin(self, peer: Peer, *, fixed: bool) -> None:
        """Whose call it is, and when it must be over."""
        self._peer = peer
        self._fixed = fixed
        self.latest = (
            self.expires if fixed else peer.clock.monotonic() + peer.server.timing.call_max_s
        )

    async def send(self, params: Params, number: int) -> Raw:
        """Send it as round `number` (0: the first time), once there is room for it."""
        peer = self._peer
        gate = peer.gate
        if peer.life is None:
            raise peer.unroutable()
        if not gate.try_enter():
            await gate.enter(budget_s=self.latest - peer.clock.monotonic(), method=self.method)
        try:
            if peer.life is None:
                raise peer.unroutable()
            self._life = peer.life
            self.round = number
            if not self._fixed:
                timeout_s = peer.server.timing.call_timeout_s
                self.expires = min(peer.clock.monotonic() + timeout_s, self.latest)
            return await self._life.run(self, params)
        finally:
            gate.leave()

    def look(self, op: Operation, result: Raw) -> None:
        """What kind of result it is. Raises InvalidResult where its era does not know that kind."""
        seen = self.seen = peek(result)
        kind = seen.result_type
        if seen.problem is None and kind in (None, "complete"):
            if seen.is_error and self.method == "tools/call":
                op.end_as("tool_error", "tool_error")
            return
        name = self._peer.name
        if seen.problem is not None:
            raise InvalidResult(f"{name} answered {self.method}, but {seen.problem}")
        if kind == "task":
            raise InvalidResult(f"{name} answered with a task, which was not declared")
        if kind != "input_required":
            raise InvalidResult(f"{name} answered with the unknown resultType {kind!r}")
        if self._era() != "modern" or self.method not in METHODS:
            raise InvalidResult(f"{name} asked for input in answer to {self.method}")

    async def with_input(self, raw: Raw, params: Params) -> Raw:
        """From a wish for input to the complete result. Raises InvalidResult, InputRefused."""
        peer = self._peer
        rounds = InputRounds(
            server=peer.name,
            method=self.method,
            params=params,
            handlers=self.handlers if self.handlers is not None else peer.handlers,
            latest=self.latest,
            send=self.send,
            telemetry=peer.telemetry,
            clock=peer.clock,
            parent=self.parent,
        )
        return await rounds.until_complete(raw)

    def reply(self, raw: Raw) -> CallReply:
        """The complete result, with what is known of its way."""
        era = self._life.era
        return CallReply(
            raw=raw,
            is_error=self.seen.is_error and self.method == "tools/call",
            era=self._era(),
            version=era.version if era is not None else "",
            generation=self._life.generation,
            attempts=1 + self.round,
        )

    def _era(self) -> str:
        era = self._life.era
        return era.name if era is not None else "unknown"
