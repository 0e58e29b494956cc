"""What every sink gets: one finished piece of work, or one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec
from msgspec.structs import replace

from observant_host.telemetry.propagation import Link, TraceContext
from observant_host.telemetry.rules import (
    SpanEvent,
    Value,
    attributes_of,
    link_attributes,
    rule_of,
    span_name,
)
from observant_host.telemetry.vocabulary import Fact

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.telemetry.rules import Rule


class Finished(msgspec.Struct, gc=False):
    """One fact with its outcome, duration and place in a trace.

    `outcome` is a call outcome, or "error" for a failure that is no call's. `inner_ns` is how
    much of `duration_ns` was spent in requests made inside it. `handle` belongs to the span sink,
    `known` to `attributes`.
    """

    fact: Fact
    context: TraceContext
    outcome: str = "ok"
    error_type: str | None = None
    start_ns: int = 0
    duration_ns: int = 0
    parent: TraceContext | None = None
    links: tuple[Link, ...] = ()
    events: tuple[SpanEvent, ...] = ()
    inner_ns: int = 0
    handle: object | None = None
    known: dict[str, Value] | None = None

    @property
    def given(self) -> Fact:
        """The fact; see `Measured`."""
        return self.fact

    @property
    def queued_s(self) -> float:
        """How long a call stood in line; see `Measured`."""
        return getattr(self.fact, "queued_ms", 0.0) / 1000

    @property
    def rule(self) -> Rule:
        return rule_of(self.fact)

    @property
    def name(self) -> str:
        return span_name(self.fact)

    @property
    def attributes(self) -> dict[str, Value]:
        """Span attributes by their outward keys; built once, read by several sinks."""
        if self.known is None:
            self.known = attributes_of(self.fact, self.outcome, self.error_type)
            if self.links:
                self.known |= link_attributes(self.links)
        return self.known

    def __repr__(self) -> str:
        return f"Finished({self.fact!r}, {self.outcome!r}, {self.error_type!r})"


def pair_of(done: OneOfMany, call: Finished, request: Finished) -> tuple[Finished, Finished]:
    """(request, call): what the two would have been, had each been an operation of its own."""
    sent, routed = replace(request.fact, request_id=done.id), call.fact
    events: tuple[SpanEvent, ...] = ()
    if queued_ns := done.queued_ns:
        queued_ms = queued_ns / 1e6
        sent = replace(sent, deadline_ms=done.deadline_ns / 1e6)
        routed = replace(routed, queued_ms=queued_ms)
        events = (dequeued(done.start_ns + queued_ns, queued_ms),)
    return (
        Finished(
            sent,
            done.context,
            start_ns=done.start_ns + done.lead_ns,
            duration_ns=done.inner_ns,
            parent=done.outer,
        ),
        Finished(
            routed,
            done.outer,
            start_ns=done.start_ns,
            duration_ns=done.duration_ns,
            parent=done.parent,
            events=events,
            inner_ns=done.inner_ns,
        ),
    )


def dequeued(time_ns: int, wait_ms: float) -> SpanEvent:
    """The moment at which a call stands in line no more."""
    return SpanEvent("dequeued", time_ns, {"wait_ms": wait_ms})


class Sink(Protocol):
    """One way out. `emit` may raise: the facade then backs off and tries again later."""

    @property
    def name(self) -> str:
        """One of the vocabulary's sinks: span, metric, log, recorder."""

    def wants(self, kind: type[Fact]) -> bool:
        """Whether facts of this kind are its business at all; asked once a kind."""

    def emit(self, done: Finished) -> None: ...


class Measured(Protocol):
    """What is measured: a moment, or work that has just ended. `given` is the fact as it was when
    that began, which costs nothing; `fact` has what was noted since."""

    @property
    def given(self) -> Fact: ...
    @property
    def fact(self) -> Fact: ...
    @property
    def context(self) -> TraceContext: ...
    @property
    def outcome(self) -> str: ...
    @property
    def error_type(self) -> str | None: ...
    @property
    def duration_ns(self) -> int: ...
    @property
    def inner_ns(self) -> int: ...
    @property
    def queued_s(self) -> float: ...


@runtime_checkable
class Meter(Protocol):
    """A sink that only measures: it is given the work itself, and keeps nothing of it."""

    def meter(self, kind: type[Fact]) -> Callable[[Measured], None] | None:
        """What takes facts of this kind; None: they go to `emit`. Asked once a kind."""


@runtime_checkable
class Choosy(Protocol):
    """A sink that has nothing to do with most of what it wants."""

    def passes_over(self, kind: type[Fact]) -> bool:
        """Whether work of this kind that ended well, and has no span, is none of its business.
        Asked once a kind."""


class OneOfMany(Protocol):
    """The numbers of a call that ended well after one request, by which it differs from others of
    its tool. Read at once, never kept.

    `outer` is the call's context and `context` that of its request, `parent` what the call was part
    of. Nanoseconds: `start_ns` since the epoch; the call stood in line for its first `queued_ns`
    (0: it did not), its request began `lead_ns` after it and took `inner_ns`, the call
    `duration_ns`; `deadline_ns` is the time that the request had.
    """

    @property
    def id(self) -> int: ...
    @property
    def outer(self) -> TraceContext: ...
    @property
    def context(self) -> TraceContext: ...
    @property
    def parent(self) -> TraceContext | None: ...
    @property
    def start_ns(self) -> int: ...
    @property
    def duration_ns(self) -> int: ...
    @property
    def queued_ns(self) -> int: ...
    @property
    def lead_ns(self) -> int: ...
    @property
    def inner_ns(self) -> int: ...
    @property
    def deadline_ns(self) -> int: ...


@runtime_checkable
class Repetitive(Protocol):
    """A sink that can be told of a call and its request in one go, if they are like others."""

    def alike(self, call: Finished, request: Finished) -> Callable[[OneOfMany], None] | None:
        """What takes calls that differ from these two in numbers only; None: none such, and both
        go to `meter` or `emit`. Asked once a tool and transport life."""


class Starter(Protocol):
    """Who gives a new operation its identity: the tracing library, or our own random ids."""

    def start(
        self, fact: Fact, parent: TraceContext | None, links: tuple[Link, ...], start_ns: int
    ) -> tuple[TraceContext, object | None]:
        """The new context, and a handle that comes back in `Finished.handle`. By position: it is
        asked twice a call, and arguments by name cost as much as the answer."""

    def ambient(self) -> TraceContext | None:
        """The embedding program's current span, where it has one."""
