"""The one verb: an operation for work that takes time, count for moments, level for states.

Everything the host does is told here once, and goes from here to span, metric, log and record.
A sink that fails waits and is tried again; it never breaks, slows or loses the caller's work.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from observant_host.errors import CallError, HostError, RpcError
from observant_host.telemetry.finished import Finished as Finished
from observant_host.telemetry.finished import Sink as Sink
from observant_host.telemetry.propagation import Link as Link
from observant_host.telemetry.propagation import TraceContext as TraceContext
from observant_host.telemetry.propagation import new_span_id, new_trace_id
from observant_host.telemetry.rules import SpanEvent, attributes_of, rule_of
from observant_host.telemetry.vocabulary import Request, RoutedCall, TelemetryLost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from observant_host.telemetry.audit import Audit
    from observant_host.telemetry.finished import Starter
    from observant_host.telemetry.flight import FlightRecorder
    from observant_host.telemetry.rules import Value
    from observant_host.telemetry.vocabulary import Fact, HostLevel, PeerLevel, PeerSnapshot

_ambient: Final[ContextVar[Operation | None]] = ContextVar("observant_host_operation", default=None)

MAX_EVENTS: Final = 128
"""Events one operation keeps (the SDK's own limit): a peer's progress cannot grow it."""


class Metrics(Protocol):
    """The part of the metric sink that is not a fact."""

    def level(self, fact: PeerLevel | HostLevel, value: float) -> None: ...
    def peer_configured(self, peer: str, *, legacy_allowed: bool) -> None: ...
    def peer_forgotten(self, peer: str) -> None: ...
    def watch_peers(self, snapshot: Callable[[], Sequence[PeerSnapshot]]) -> None: ...
    def watch_clients(self, count: Callable[[], Mapping[str, int]]) -> None: ...
    async def render(self, accept: str | None) -> tuple[bytes, str]: ...


class Closing(Protocol):
    """Something behind a sink that has a thread or a queue of its own."""

    async def flush(self) -> None: ...
    async def close(self) -> None: ...


class Leveled(Protocol):
    """The log, as far as its level goes."""

    def set_level(self, level: str) -> None: ...


class Operation:
    """Work in progress; a context manager, entered and left in one task.

    Ends "ok" unless told otherwise by `end_as` or by the exception that passes through it, which
    it never swallows: a CallError gives its outcome and error_type, a TimeoutError "timeout",
    a cancellation "cancelled", anything else "error".
    """

    __slots__ = (
        "_began",
        "_error_type",
        "_events",
        "_handle",
        "_inner_ns",
        "_last_attempt",
        "_links",
        "_outcome",
        "_outer",
        "_parent",
        "_start_ns",
        "_telemetry",
        "_token",
        "context",
        "fact",
    )

    def __init__(
        self,
        telemetry: Telemetry,
        fact: Fact,
        *,
        parent: TraceContext | None,
        links: tuple[Link, ...],
    ) -> None:
        self._telemetry = telemetry
        self._parent = parent
        self._links = links
        self._events: list[SpanEvent] = []
        self._outcome: str | None = None
        self._error_type: str | None = None
        self._inner_ns = 0
        self._last_attempt: TraceContext | None = None
        self.fact = fact
        self.context: TraceContext = _NOT_ENTERED

    @property
    def outcome(self) -> str:
        """How it ended; "ok" until `end_as` or an exception that left it said otherwise."""
        return self._outcome or "ok"

    def note(self, **changes: object) -> None:
        """Replace fields of the fact: what was learnt while the work went on."""
        self.fact = msgspec.structs.replace(self.fact, **changes)

    def event(self, name: str, **attributes: Value) -> None:
        """A moment inside this operation; kept on the span and in the record."""
        if len(self._events) < MAX_EVENTS:
            self._events.append(SpanEvent(name, self._telemetry.wall_ns(), attributes))

    def end_as(self, outcome: str, error_type: str | None = None) -> None:
        """Say how it ended where no exception says so (a tool's own error, a refusal)."""
        self._outcome = outcome
        self._error_type = error_type

    def __enter__(self) -> Operation:
        telemetry = self._telemetry
        outer = self._outer = _ambient.get()
        if self._parent is None:
            self._parent = outer.context if outer is not None else telemetry.embedding()
        fact = self.fact
        if type(fact) is Request and fact.attempt > 1 and outer is not None:
            self._links += outer.retried(fact)
        self._start_ns = telemetry.wall_ns()
        self.context, self._handle = telemetry.begin(
            self.fact, parent=self._parent, links=self._links, start_ns=self._start_ns
        )
        self._token = _ambient.set(self)
        self._began = time.perf_counter_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        duration = time.perf_counter_ns() - self._began
        with contextlib.suppress(ValueError):  # left in another context than it was entered in
            _ambient.reset(self._token)
        if error is not None:
            self._read(error)
        fact = self.fact
        outer = self._outer
        if outer is not None and type(fact) is Request:
            outer.held(self.context, duration)
        self._telemetry.finish(
            Finished(
                fact,
                self.context,
                outcome=self._outcome or "ok",
                error_type=self._error_type,
                start_ns=self._start_ns,
                duration_ns=duration,
                parent=self._parent,
                links=self._links,
                events=tuple(self._events),
                inner_ns=self._inner_ns,
                handle=self._handle,
            )
        )

    def held(self, request: TraceContext, duration_ns: int) -> None:
        """A request inside this operation is over."""
        self._inner_ns += duration_ns
        self._last_attempt = request

    def not_ours(self, duration_ns: int) -> None:
        """Time inside this operation that is not our own work."""
        self._inner_ns += duration_ns

    def retried(self, again: Request) -> tuple[Link, ...]:
        """What a further attempt of this call repeats; a round of input repeats nothing."""
        last = self._last_attempt
        return (Link(last, "retry_of"),) if last is not None and again.round == 0 else ()

    def _read(self, error: BaseException) -> None:
        if self._outcome is None:
            self._outcome, self._error_type = outcome_of(error)
        fact = self.fact
        if type(fact) is Request and isinstance(error, RpcError):
            self.fact = msgspec.structs.replace(fact, rpc_code=error.code)
            self._error_type = str(error.code)
        elif type(fact) is RoutedCall:
            self.fact = _blame(fact, error)


def outcome_of(error: BaseException) -> tuple[str, str]:
    """(outcome, error_type) of an exception, both of low cardinality."""
    match error:
        case CallError():
            return error.outcome, error.error_type
        case asyncio.CancelledError():
            return "cancelled", "cancelled"
        case TimeoutError():
            return "timeout", "timeout"
        case HostError():
            return "error", error.error_type
        case _:
            return "error", type(error).__name__


def _blame(fact: RoutedCall, error: BaseException) -> RoutedCall:
    """A call's own exception knows best how far it got and whose fault it was."""
    if isinstance(error, CallError):
        return msgspec.structs.replace(fact, fault=error.fault, delivery=error.delivery)
    if fact.fault != "none":
        return fact
    caused = "caller" if isinstance(error, asyncio.CancelledError) else "host"
    return msgspec.structs.replace(fact, fault=caused)


class Telemetry:
    """What the rest of the host talks to. Built by `telemetry.setup`.

    losses: spans lost since the start by stream ("decisions", "traces", "otlp"). flight: the last
    decisions in memory, where they are kept. down: the sinks that take nothing now, and why ("" for
    what is not known). log_tail: the last lines that went to stderr.
    log: whose level may change, where lines are written at all.
    """

    def __init__(
        self,
        *,
        starter: Starter,
        sinks: Sequence[Sink] = (),
        metrics: Metrics | None = None,
        closing: Sequence[Closing] = (),
        wall_ns: Callable[[], int] = time.time_ns,
        losses: Callable[[], Mapping[str, int]] = dict,
        rotate: Callable[[], None] | None = None,
        flight: FlightRecorder | None = None,
        down: Callable[[], Mapping[str, str]] = dict,
        audit: Audit | None = None,
        log_tail: Callable[[], Sequence[str]] = tuple,
        log: Leveled | None = None,
    ) -> None:
        self._starter = starter
        self.losses = losses
        self.flight = flight
        self.down = down
        self.audit = audit
        self.log_tail = log_tail
        self.log = log
        self._rotate = rotate
        self._sinks = tuple(sinks)
        self._routes: dict[type[Fact], tuple[Sink, ...]] = {}
        self._metrics = metrics
        self._closing = tuple(closing)
        self.wall_ns = wall_ns

    def operation(
        self, fact: Fact, *, parent: TraceContext | None = None, links: Sequence[Link] = ()
    ) -> Operation:
        """Work that takes time; use as `with telemetry.operation(fact) as op:`.

        The parent is, unless given, the operation this task is in, else the embedding program's
        current OpenTelemetry span, else none.
        """
        return Operation(self, fact, parent=parent, links=tuple(links))

    def count(
        self, fact: Fact, *, parent: TraceContext | None = None, links: Sequence[Link] = ()
    ) -> TraceContext:
        """A moment. Returns where it stands in the trace, to be linked to later."""
        rule = rule_of(fact)
        outer = _ambient.get()
        if rule.event is not None and outer is not None:
            outer.event(rule.event, **attributes_of(fact, "ok", None))
        around = parent or (outer.context if outer is not None else self.embedding())
        now = self.wall_ns()
        handle: object | None = None
        if rule.span is not None:
            context, handle = self.begin(fact, parent=around, links=tuple(links), start_ns=now)
        else:
            context = around or TraceContext(new_trace_id(), new_span_id())
        self.finish(
            Finished(fact, context, start_ns=now, parent=around, links=tuple(links), handle=handle)
        )
        return context

    def level(self, fact: PeerLevel | HostLevel, value: float) -> None:
        """A state, as a number; `fact.metric` names it."""
        if self._metrics is not None:
            self._metrics.level(fact, value)

    def current(self) -> TraceContext | None:
        """The operation this task is in."""
        outer = _ambient.get()
        return outer.context if outer is not None else None

    def waited(self, seconds: float) -> None:
        """The routed call that this task is in has waited so long for a place with its server."""
        outer = _ambient.get()
        if outer is not None and type(outer.fact) is RoutedCall:
            outer.note(queued_ms=outer.fact.queued_ms + seconds * 1000)
            outer.event("dequeued", wait_ms=seconds * 1000)

    def spent_elsewhere(self, seconds: float) -> None:
        """The routed call that this task is in has waited so long for its server to be there, or
        for a person: neither our work nor our queue."""
        outer = _ambient.get()
        if outer is not None and type(outer.fact) is RoutedCall:
            outer.not_ours(round(seconds * 1e9))

    def peer_configured(self, peer: str, *, legacy_allowed: bool = False) -> None:
        """Create at 0 every counter of this peer that an alert reads."""
        if self._metrics is not None:
            self._metrics.peer_configured(peer, legacy_allowed=legacy_allowed)

    def peer_forgotten(self, peer: str) -> None:
        """Remove every series of a peer that left the configuration."""
        if self._metrics is not None:
            self._metrics.peer_forgotten(peer)

    def watch_peers(self, snapshot: Callable[[], Sequence[PeerSnapshot]]) -> None:
        """Say where the states of all peers are read at each scrape: on the loop, at one moment."""
        if self._metrics is not None:
            self._metrics.watch_peers(snapshot)

    def watch_clients(self, count: Callable[[], Mapping[str, int]]) -> None:
        """Say where the clients of each era are counted at each scrape."""
        if self._metrics is not None:
            self._metrics.watch_clients(count)

    async def render(self, accept: str | None = None) -> tuple[bytes, str]:
        """(body, content type) of `/metrics`, made off the loop, at most once a second."""
        if self._metrics is None:
            return b"", "text/plain; version=0.0.4; charset=utf-8"
        return await self._metrics.render(accept)

    async def flush(self) -> None:
        """Wait until everything told so far is on disk, on stderr, or handed to the exporter."""
        for one in self._closing:
            await one.flush()

    async def rotate_record(self) -> None:
        """Finish the files of the record that are being written; the next fact begins others."""
        if self._rotate is not None:
            self._rotate()
        await self.flush()

    async def close(self) -> None:
        """Flush and end the threads behind the sinks, and tell those that are still open what that
        lost. Idempotent; later facts are lost silently."""
        for one in self._closing:
            before = dict(self.losses())
            await one.close()
            self._tell_lost_since(before)

    def _tell_lost_since(self, before: Mapping[str, int]) -> None:
        for stream, total in self.losses().items():
            if total > before.get(stream, 0):
                self.count(TelemetryLost(stream=stream, spans=total - before.get(stream, 0)))

    # For Operation: one place where identity is given, and one where it all goes out.

    def embedding(self) -> TraceContext | None:
        return self._starter.ambient()

    def begin(
        self, fact: Fact, *, parent: TraceContext | None, links: tuple[Link, ...], start_ns: int
    ) -> tuple[TraceContext, object | None]:
        return self._starter.start(fact, parent=parent, links=links, start_ns=start_ns)

    def finish(self, done: Finished) -> None:
        kind = type(done.fact)
        if (sinks := self._routes.get(kind)) is None:
            sinks = self._routes[kind] = tuple(one for one in self._sinks if one.wants(kind))
        for sink in sinks:
            sink.emit(done)


_NOT_ENTERED: Final = TraceContext(0, 0)
