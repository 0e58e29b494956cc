"""One call on its way: sent once, and again for each round of input, until there is a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from observant_host.decisions import asking as may_be_asked
from observant_host.decisions.freshness import READ
from observant_host.decisions.retry_safety import pause_s
from observant_host.errors import (
    CallError,
    InvalidCall,
    InvalidResult,
    RateLimited,
    RpcError,
    Unavailable,
)
from observant_host.peers.asking import Asking
from observant_host.peers.errand import Errand
from observant_host.peers.input_rounds import METHODS, InputRounds, wanted_by
from observant_host.peers.tasks_extension import Following
from observant_host.peers.url_rounds import URL_REQUIRED, UrlRounds
from observant_host.wire.envelope import with_log_level
from observant_host.wire.messages import COMPLETE, InputRequired, Peek, peek

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from observant_host.peers.eras import Params
    from observant_host.peers.errand import OnProgress, Witness
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.life import Life
    from observant_host.peers.ordinary import OrdinaryCall
    from observant_host.peers.peer import Peer
    from observant_host.peers.reading import Reading
    from observant_host.telemetry.facade import Operation, TraceContext


class CallReply(msgspec.Struct, frozen=True, kw_only=True):
    """A complete result, as the server sent it. `attempts` counts the requests that were sent: 0
    where the result was kept from an earlier one. `input_required`: it is no result yet, and
    `raw` is what the server wants first. `typed`: it is known to have a `resultType`."""

    raw: Raw
    is_error: bool
    era: str
    version: str
    generation: int
    attempts: int = 1
    input_required: InputRequired | None = None
    typed: bool = False


class Call(Errand):
    """Whose call it is, and when it must be over: by the caller's own `expires` where it gave one,
    else by the server's times, counted from when the call `began`.

    `takes_tasks`: this call told the server that we know tasks.
    """

    __slots__ = (
        *("_first", "_fixed", "_hand_up", "_life", "_peer", "_principal", "_wanted"),
        *("log_level", "seen", "takes_tasks"),
    )
    _life: Life
    seen: Peek

    def __init__(
        self,
        peer: Peer,
        method: str,
        *,
        expires: float | None = None,
        began: float | None = None,
        attempt: int = 1,
        purpose: str = "call",
        target: str | None = None,
        uri: str | None = None,
        parent: TraceContext | None = None,
        witness: Witness | None = None,
        log_level: str | None = None,
        on_progress: OnProgress | None = None,
        handlers: InputHandlers | None = None,
        principal: str | None = None,
        hand_up: int | None = None,
        first: OrdinaryCall | None = None,
    ) -> None:
        # instead of Errand's own, which would store first what is replaced here
        self.method = method
        self.attempt = attempt
        self.purpose = purpose
        self.target = target
        self.uri = uri
        self.parent = parent
        self.witness = witness
        self.on_progress = on_progress
        self.handlers = handlers
        self.round = 0
        self.page = None
        self.scope = "attempt"
        self.takes_tasks = False
        self._wanted: InputRequired | None = None
        self._peer = peer
        self._principal = principal
        self._hand_up = hand_up
        self._first = first
        logs = method in may_be_asked.LOGGING_METHODS
        self.log_level = log_level or peer.log_level if logs else None
        self._fixed = expires is not None
        if expires is not None:
            self.expires = self.latest = expires
            self.renew_s = None
        else:
            timing = peer.server.timing
            if began is None:
                began = peer.clock.monotonic()
            self.latest = began + timing.call_max_s
            self.expires = min(began + timing.call_timeout_s, self.latest)
            self.renew_s = timing.call_timeout_s if timing.reset_timeout_on_progress else None

    def made(self, params: Params) -> Coroutine[Any, Any, CallReply]:
        """What it comes to, kept results of reads included; to be awaited once."""
        if self.method == READ:
            handlers = self.handlers
            own = handlers is not None and handlers.offered is None
            reading = None if own or self._hand_up else self._peer.reading(self.parent)
            if reading is not None:
                return self.read(params, reading)
        return self.result(params)

    async def result(self, params: Params) -> CallReply:
        """From the first sending to the complete result. Raises CallError."""
        try:
            raw = await self.send(params, 0)
        except RpcError as error:
            if not self._opens_addresses(error):
                raise
            raw = await UrlRounds(self.asking(), params=params, send=self.send).until_answered(
                error
            )
        if self.seen.result_type not in (None, "complete"):
            raw = await self._completed(raw, params)
        return self._reply(raw)

    async def read(self, params: Params, reading: Reading) -> CallReply:
        """As `result`, from what was kept while it is fresh; a new result is kept where it may."""
        life = self._peer.life
        if life is None:
            raise self._peer.unroutable()
        kept = reading.find(life, params)
        if kept is not None:
            self._life, self.seen = life, Peek()
            return self._reply(kept, attempts=0)
        reply = await self.result(params)
        if self.round == 0 and reply.input_required is None:
            reading.keep(self._life, reply.raw)
        return reply

    async def send(self, params: Params, number: int) -> Raw:
        """Send it as round `number` (0: the first time), once there is room for it.

        That the server asked for something is a sign of life as progress is: a further round has
        the server's call_timeout_s again, since what a person needed to answer is not its fault.
        """
        peer = self._peer
        gate = peer.gate
        first, self._first = self._first, None
        if first is not None and first.id:
            return await self._sent_first(first)
        if first is None and peer.life is None:
            raise peer.unroutable()
        if number and not self._fixed:
            timeout_s = peer.server.timing.call_timeout_s
            self.expires = min(peer.clock.monotonic() + timeout_s, self.latest)
        if first is not None and first.until:
            await gate.wait(first, self.method)
        elif not gate.try_enter():
            budget_s = self.expires - peer.clock.monotonic()
            await gate.enter(budget_s=budget_s, method=self.method, principal=self._principal)
        try:
            life = peer.life
            if life is None:
                raise peer.unroutable()
            self._life, era = life, life.era
            if self.witness is not None and era is not None:
                self.witness.era = era.name
            self.round = number or self._hand_up or 0
            if self._hand_up and self._era() != "modern":
                raise InvalidCall(
                    f"{peer.name} no longer speaks the era in which it asked for input: "
                    "begin the call anew"
                )
            if self.method in may_be_asked.ANNOUNCED:
                params = self._as_known(params)
            if self.log_level is not None:
                params = await self._with_log(params, self.log_level)
            if peer.tasks.enabled and self.method == "tools/call" and peer.tasks.wanted:
                self._declare_tasks()
            return await life.run(self, params)
        except RateLimited as limited:
            gate.pause(pause_s(limited.retry_after_s))
            raise
        finally:
            gate.leave()

    async def _sent_first(self, first: OrdinaryCall) -> Raw:
        """What becomes of the request that was sent as an ordinary one, and has its place."""
        self._life = first.of.life
        if queued_ns := first.queued_ns:
            self._peer.telemetry.waited(queued_ns / 1e9, first.start_ns + queued_ns)
        try:
            return await self._life.ask_on(first, self.look)
        except RateLimited as limited:
            self._peer.gate.pause(pause_s(limited.retry_after_s))
            raise
        finally:
            self._peer.gate.leave()

    def look(self, op: Operation, result: Raw) -> None:
        """What kind of result it is. Raises InvalidResult where its era does not know that kind."""
        seen = self.seen = peek(result)
        if seen is COMPLETE:
            return
        kind = seen.result_type
        if seen.problem is None and kind in (None, "complete"):
            if seen.is_error and self.method == "tools/call":
                op.end_as("tool_error", "tool_error")
            return
        name = self._peer.name
        if seen.problem is not None:
            raise InvalidResult(f"{name} answered {self.method}, but {seen.problem}")
        if kind == "task" and self._era() == "modern" and self.takes_tasks:
            return
        if kind == "task":
            raise InvalidResult(f"{name} answered with a task, which was not declared")
        if kind != "input_required":
            raise InvalidResult(f"{name} answered with the unknown resultType {kind!r}")
        if self._era() != "modern" or self.method not in METHODS:
            raise InvalidResult(f"{name} asked for input in answer to {self.method}")

    async def side(
        self, method: str, params: Mapping[str, Any], *, most_s: float | None = None
    ) -> Raw:
        """A request that follows from this call, with what it declared. With `most_s` it has that
        time of its own and stands in no line: the call is over. Raises CallError."""
        peer = self._peer
        now = peer.clock.monotonic()
        timeout_s = peer.server.timing.call_timeout_s
        expires = min(now + timeout_s, self.latest) if most_s is None else now + most_s
        errand = Errand(
            method,
            expires=expires,
            handlers=self.handlers,
            parent=self.parent,
            purpose="task",
        )
        if most_s is not None:
            return await self._life_now().run(errand, params)
        if not peer.gate.try_enter():
            await peer.gate.enter(budget_s=expires - now, method=method, principal=self._principal)
        try:
            return await self._life_now().run(errand, params)
        finally:
            peer.gate.leave()

    def asking(self) -> Asking:
        """Whoever answers what the server wants to know for this call."""
        peer = self._peer
        return Asking(
            server=peer.name,
            method=self.method,
            handlers=self.handlers if self.handlers is not None else peer.handlers,
            latest=self.latest,
            telemetry=peer.telemetry,
            clock=peer.clock,
            parent=self.parent,
        )

    async def _completed(self, raw: Raw, params: Params) -> Raw:
        """From a wish for input, or a task, to the complete result.

        Whatever fails from here on, the server has begun to work on the call.
        """
        try:
            return await self._followed(raw, params)
        except CallError as error:
            error.begun = True
            if error.delivery == "not_sent":
                error.delivery = "sent_no_reply"
            raise

    async def _followed(self, raw: Raw, params: Params) -> Raw:
        asking = self.asking()
        if self.seen.result_type == "input_required" and self._hand_up is not None:
            wanted = self._wanted = wanted_by(asking.server, raw)
            asking.check(wanted.requests)
            return raw
        if self.seen.result_type == "input_required":
            raw = await InputRounds(asking, params=params, send=self.send).until_complete(raw)
        if self.seen.result_type != "task":
            return raw
        with self._peer.tasks.followed():
            following = Following(
                asking, side=self.side, withdrawn=self._peer.tasks, masker=self._life.masker
            )
            raw = await following.until_over(raw)
        self.seen = peek(raw)
        return raw

    def _life_now(self) -> Life:
        """The present life: a task outlives the one it began in, where the era stays."""
        life = self._peer.life
        if life is None:
            raise self._peer.unroutable()
        if life.era is None or life.era.name != "modern":
            raise Unavailable(f"{self._peer.name} no longer speaks the era its task began in")
        self._life = life
        return life

    def _as_known(self, params: Params) -> Params:
        """The parameters as its revision knows them. Raises InvalidCall for what it did not
        announce."""
        life = self._life
        version = life.era.version if life.era is not None else ""
        lacking = may_be_asked.not_announced(self.method, life.capabilities, version=version)
        if lacking is not None:
            raise InvalidCall(
                f"server {self._peer.name} does not announce the capability {lacking!r}, so "
                f"{self.method} was not sent"
            )
        return may_be_asked.in_revision(self.method, params, version=version)

    async def _with_log(self, params: Params, level: str) -> Params:
        if "logging" not in self._life.capabilities:
            return params
        if self._era() == "modern":
            return with_log_level(params, level)
        await self._peer.told.level(self._life, level, expires=self.expires)
        return params

    def _declare_tasks(self) -> None:
        if self._era() == "modern":
            self.takes_tasks = True
            self.handlers = self._peer.tasks.declared(self.handlers or self._peer.handlers)

    def _opens_addresses(self, error: RpcError) -> bool:
        era = self._life.era
        return (
            error.code == URL_REQUIRED
            and era is not None
            and self._peer.opens_addresses(era.version, self.handlers)
        )

    def _reply(self, raw: Raw, *, attempts: int | None = None) -> CallReply:
        life = self._life
        era = life.era
        return CallReply(
            raw=raw,
            is_error=self.seen.is_error and self.method == "tools/call",
            era=era.name if era is not None else "unknown",
            version=era.version if era is not None else "",
            generation=life.generation,
            attempts=1 + self.round - (self._hand_up or 0) if attempts is None else attempts,
            input_required=self._wanted,
            typed=self.seen.result_type is not None,
        )

    def _era(self) -> str:
        era = self._life.era
        return era.name if era is not None else "unknown"
