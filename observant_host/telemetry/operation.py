"""Work in progress: what one `with telemetry.operation(fact)` knows of itself.

Two of these are made for every routed call, so an ordinary one is this one object: what was learnt
meanwhile is put into its fact only where somebody asks for the fact, and what seldom happens
(events, links, an outcome that is not "ok") costs nothing while it does not.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.errors import CallError, HostError, RpcError
from observant_host.telemetry.finished import Finished, dequeued
from observant_host.telemetry.propagation import Link, TraceContext
from observant_host.telemetry.rules import SpanEvent
from observant_host.telemetry.vocabulary import Request, RoutedCall

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.rules import Value
    from observant_host.telemetry.vocabulary import Fact

ambient: Final[ContextVar[Operation | None]] = ContextVar("observant_host_operation", default=None)
"""The operation that the running task is in."""

MAX_EVENTS: Final = 128
"""Events one operation keeps (the SDK's own limit): a peer's progress cannot grow it."""

_NOT_ENTERED: Final = TraceContext(0, 0)


class Operation:
    """A context manager, entered and left in one task.

    Ends "ok" unless told otherwise by `end_as` or by the exception that passes through it, which
    it never swallows: a CallError gives its outcome and error_type, a TimeoutError "timeout",
    a cancellation "cancelled", anything else "error".

    `given` is the fact it began with, `fact` with all that was noted since.
    """

    __slots__ = (
        "_began",
        "_noted",
        "_outer",
        "_said",
        "_telemetry",
        "_token",
        "context",
        "duration_ns",
        "error_type",
        "events",
        "given",
        "handle",
        "inner_ns",
        "last_attempt",
        "links",
        "outcome",
        "parent",
        "queued_s",
        "start_ns",
    )
    context: TraceContext
    duration_ns: int
    handle: object | None
    start_ns: int

    def __init__(
        self,
        telemetry: Telemetry,
        given: Fact,
        parent: TraceContext | None = None,
        *,
        links: Sequence[Link] = (),
    ) -> None:
        self._telemetry = telemetry
        self.given = given
        self.parent = parent
        self.links = tuple(links) if links else ()
        self.context = _NOT_ENTERED
        self.outcome = "ok"
        self.error_type: str | None = None
        self.inner_ns = 0
        self.queued_s = 0.0
        self.events: tuple[SpanEvent, ...] | list[SpanEvent] = ()
        self.last_attempt: TraceContext | None = None
        self._noted: dict[str, object] | None = None
        self._said = False

    @property
    def fact(self) -> Fact:
        """What is known by now."""
        if self._noted:
            noted, self._noted = self._noted, None
            self.given = msgspec.structs.replace(self.given, **noted)
        return self.given

    def note(self, **changes: object) -> None:
        """Replace fields of the fact: what was learnt while the work went on."""
        if self._noted is None:
            self._noted = changes
        else:
            self._noted.update(changes)

    def event(self, name: str, **attributes: Value) -> None:
        """A moment inside this operation; kept on the span and in the record, where either is."""
        self._keep(SpanEvent(name, self._telemetry.wall_ns(), attributes))

    def end_as(self, outcome: str, error_type: str | None = None) -> None:
        """Say how it ended where no exception says so (a tool's own error, a refusal)."""
        self._said = True
        self.outcome = outcome
        self.error_type = error_type

    def began(
        self, context: TraceContext, handle: object | None, *, start_ns: int, began_ns: int
    ) -> Operation:
        """It began before it was entered: it has its identity, and its time runs (`began_ns` by
        `time.perf_counter_ns`)."""
        self.context, self.handle = context, handle
        self.start_ns, self._began = start_ns, began_ns
        return self

    def __enter__(self) -> Operation:
        telemetry, given = self._telemetry, self.given
        self._outer = outer = ambient.get()
        self._token = ambient.set(self)
        if self.context is not _NOT_ENTERED:
            return self
        if self.parent is None:
            self.parent = outer.context if outer is not None else telemetry.embedding()
        if type(given) is Request and given.attempt > 1 and outer is not None:
            self.links += outer.retried(given)
        self.start_ns = telemetry.wall_ns()
        self.context, self.handle = telemetry.start(given, self.parent, self.links, self.start_ns)
        self._began = perf_counter_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.duration_ns = duration = perf_counter_ns() - self._began
        try:  # noqa: SIM105 - on the path of every call, twice: suppress() is an object and two calls
            ambient.reset(self._token)
        except ValueError:
            pass  # left in another context than it was entered in
        if error is not None:
            self._read(error)
        of = type(self.given)
        if (outer := self._outer) is not None:
            self._outer = None  # whoever keeps this one does not keep all that was around it
            if of is Request:
                outer.inner_ns += duration
                outer.last_attempt = self.context
        telemetry = self._telemetry
        meters, sinks, ordinary, _ = telemetry.ways.get(of) or telemetry.ways_of(of)
        for meter in meters:
            meter(self)
        if self.handle is None and self.outcome == "ok":
            sinks = ordinary
        if sinks:
            done = self.finished()
            for sink in sinks:
                sink.emit(done)

    def not_ours(self, duration_ns: int) -> None:
        """Time inside this operation that is not our own work."""
        self.inner_ns += duration_ns

    def waited(self, seconds: float, until_ns: int) -> None:
        """It stood in line for so long."""
        self.queued_s += seconds
        self.note(queued_ms=self.queued_s * 1000)
        self._keep(dequeued(until_ns, seconds * 1000))

    def retried(self, again: Request) -> tuple[Link, ...]:
        """What a further attempt of this call repeats; a round of input repeats nothing."""
        last = self.last_attempt
        return (Link(last, "retry_of"),) if last is not None and again.round == 0 else ()

    def finished(self) -> Finished:
        """All of it, for a sink that keeps it."""
        return Finished(
            self.fact,
            self.context,
            outcome=self.outcome,
            error_type=self.error_type,
            start_ns=self.start_ns,
            duration_ns=self.duration_ns,
            parent=self.parent,
            links=self.links,
            events=tuple(self.events),
            inner_ns=self.inner_ns,
            handle=self.handle,
        )

    def _keep(self, event: SpanEvent) -> None:
        if self.handle is None and not self._kept():
            return
        if not self.events:
            self.events = []
        if isinstance(self.events, list) and len(self.events) < MAX_EVENTS:
            self.events.append(event)

    def _kept(self) -> bool:
        """Whether some sink besides its span keeps it."""
        telemetry, kind = self._telemetry, type(self.given)
        return bool((telemetry.ways.get(kind) or telemetry.ways_of(kind)).ordinary)

    def _read(self, error: BaseException) -> None:
        if not self._said:
            self.outcome, self.error_type = outcome_of(error)
        fact = self.given
        if type(fact) is Request and isinstance(error, RpcError):
            self.note(rpc_code=error.code)
            self.error_type = str(error.code)
        elif type(fact) is RoutedCall:
            self._blame(error)

    def _blame(self, error: BaseException) -> None:
        """A call's own exception knows best how far it got and whose fault it was."""
        if isinstance(error, CallError):
            self.note(fault=error.fault, delivery=error.delivery)
        elif getattr(self.fact, "fault", "none") == "none":
            caused = "caller" if isinstance(error, asyncio.CancelledError) else "host"
            self.note(fault=caused)


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
