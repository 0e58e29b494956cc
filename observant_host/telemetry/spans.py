"""Spans by the OpenTelemetry API: the embedding program's provider, or the one of our command line.

Explicit contexts instead of current spans: a current span leaks into every task started inside
it, its context manager leaves a cancelled span unset, and its default exception recording exports
messages and stacks, secrets included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context, get_current
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from observant_host.telemetry.finished import dequeued
from observant_host.telemetry.foresight import Foresight
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.propagation import TraceContext
from observant_host.telemetry.rules import (
    COMMON,
    KEPT,
    RULES,
    events_of,
    is_error,
    keys_of,
    span_name,
)
from observant_host.telemetry.shapes import Shapes, add_own, fields_of, repeating_attributes
from observant_host.telemetry.vocabulary import Request, RoutedCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opentelemetry.trace import TracerProvider
    from opentelemetry.util.types import AttributeValue

    from observant_host.telemetry.finished import Finished, OneOfMany
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.propagation import Link
    from observant_host.telemetry.rules import Value
    from observant_host.telemetry.vocabulary import Fact

KINDS: Final = {
    "internal": SpanKind.INTERNAL,
    "client": SpanKind.CLIENT,
    "server": SpanKind.SERVER,
}
_KIND_OF: Final = {kind: KINDS[rule.kind] for kind, rule in RULES.items()}
_ROOT: Final = Context()
_SPAN_KEY: Final = next(iter(trace.set_span_in_context(trace.INVALID_SPAN, _ROOT)))
"""Where a context has its span, by `set_span_in_context`, which copies all else that there is."""
_ERROR: Final = Status(StatusCode.ERROR)
_ITS_ID: Final = COMMON["request_id"]
_DEADLINE: Final = dict(keys_of(Request))["deadline_ms"]
_QUEUED: Final = dict(keys_of(RoutedCall))["queued_ms"]


class _Shape(msgspec.Struct, frozen=True):
    """What the spans of one shape have in common; `name` only where it may have changed since.
    `own`: what of their facts is each span's own. `eventful`: their facts tell of events."""

    name: str | None
    attributes: dict[str, Any]
    own: tuple[tuple[str, str], ...]
    error: bool
    eventful: bool


LOOK_EVERY_NS: Final = 10_000_000
"""How often to look whether there is a tracing library at last: asking it for a span that it has
not costs more than giving an identity of our own."""


class SpanSink:
    """Starter and sink in one: gives operations their identity, ends their spans.

    provider None: whatever the embedding program set, also if it does so later. Without a real
    one, or if it fails, ids are our own; what is inside such an operation asks no tracer again.
    """

    name: Final = "span"

    def __init__(
        self,
        *,
        cleaner: Cleaner,
        version: str = "",
        provider: TracerProvider | None = None,
        fallback: OwnIds | None = None,
    ) -> None:
        self._tracer = trace.get_tracer("observant_host", version, tracer_provider=provider)
        self._cleaner = cleaner
        self._clean = cleaner.text
        self._own = own = fallback or OwnIds()
        self._foresight = Foresight(own)
        self._shapes = Shapes(self._shape, cleaner)
        self._without_until_ns = 0

    def start(
        self, fact: Fact, parent: TraceContext | None, links: tuple[Link, ...], start_ns: int
    ) -> tuple[TraceContext, object | None]:
        kind = type(fact)
        if start_ns < self._without_until_ns:
            return self._own.start(fact, parent, links, start_ns)
        if (
            parent is not None
            and (parent.origin is self._own or not parent.sampled)
            and kind not in KEPT
        ):
            return self._own.start(fact, parent, links, start_ns)
        tracer: Any = self._tracer
        foresight = self._foresight
        try:
            if parent is None and foresight.ready:
                tracer = foresight.root(tracer)
                if type(tracer) is TraceContext:
                    return tracer, None
            span = tracer.start_span(
                span_name(fact),
                _ROOT if parent is None else self._context_of(parent),
                _KIND_OF[kind],
                links=[link_of(link) for link in links] if links else None,
                start_time=start_ns,
                record_exception=False,
                set_status_on_exception=False,
            )
            trace_id, span_id, _, flags, state, valid = span.get_span_context()
        except Exception:  # noqa: BLE001 - somebody else's provider must not break a call of ours
            return self._own.start(fact, parent, links, start_ns)
        if not valid or (parent is not None and span_id == parent.span_id):
            if not valid:
                self._without_until_ns = start_ns + LOOK_EVERY_NS
                foresight.forget()
            return self._own.start(fact, parent, links, start_ns)
        if parent is None:
            foresight.look(self._tracer)
        origin = self._own if type(span) is NonRecordingSpan else span
        told = "" if state is trace.DEFAULT_TRACE_STATE else state.to_header()
        context = TraceContext(trace_id, span_id, bool(flags & TraceFlags.SAMPLED), told, origin)
        return context, None if origin is self._own else span

    def ambient(self) -> TraceContext | None:
        if not get_current():
            return None  # nobody has a span, or anything else: what is most often so costs least
        span = trace.get_current_span()
        given = span.get_span_context()
        return _seen(span, given) if given.is_valid else None

    def wants(self, kind: type[Fact]) -> bool:
        return RULES[kind].span is not None

    def passes_over(self, kind: type[Fact]) -> bool:
        """Without a span it has nothing to end."""
        return True

    def alike(self, call: Finished, request: Finished) -> Callable[[OneOfMany], None]:
        """The spans of both, where a tracing library gave them; see `Repetitive`."""
        masker, clean = self._cleaner.masker, self._clean
        version = -1
        of_call: dict[str, AttributeValue] = {}
        of_request: dict[str, AttributeValue] = {}

        def end(done: OneOfMany) -> None:
            nonlocal version, of_call, of_request
            outer: Any = done.outer.origin
            inner: Any = done.context.origin
            if type(outer) is type(inner) is OwnIds:
                return  # as most often, at the least cost
            queued_ns = done.queued_ns
            if version != masker.version:
                version = masker.version
                of_call, of_request = (cleaned(one.attributes, clean) for one in (call, request))
            if type(inner) is not OwnIds:
                told = {**of_request, _ITS_ID: str(done.id)}
                if queued_ns:
                    told[_DEADLINE] = done.deadline_ns / 1e6
                inner.set_attributes(told)
                inner.end(done.start_ns + done.lead_ns + done.inner_ns)
            if type(outer) is not OwnIds:
                if queued_ns:
                    queued_ms = queued_ns / 1e6
                    event = dequeued(done.start_ns + queued_ns, queued_ms)
                    outer.set_attributes({**of_call, _QUEUED: queued_ms})
                    outer.add_event(event.name, event.attributes, event.time_ns)
                else:
                    outer.set_attributes(of_call)
                outer.end(done.start_ns + done.duration_ns)

        return end

    def emit(self, done: Finished) -> None:
        span: Any = done.handle
        if span is None:
            return
        shape = self._shapes.of(done)
        if shape.name is not None and shape.name != getattr(span, "name", None):
            span.update_name(shape.name)
        attributes = shape.attributes.copy()
        add_own(attributes, done, shape.own, self._clean)
        span.set_attributes(attributes)
        if done.events or shape.eventful:
            for event in (*done.events, *events_of(done.fact, done.start_ns)):
                span.add_event(event.name, cleaned(event.attributes, self._clean), event.time_ns)
        if shape.error:
            span.set_status(_ERROR)
        span.end(done.start_ns + done.duration_ns)

    def _shape(self, done: Finished) -> _Shape:
        fields = fields_of(type(done.fact))
        return _Shape(
            None if done.rule.span else done.name,
            cleaned(repeating_attributes(done), self._clean),
            fields.once,
            is_error(done.fact, done.outcome),
            fields.eventful,
        )

    def _context_of(self, parent: TraceContext) -> Context:
        origin: Any = parent.origin
        if origin is None or origin is self._own:
            origin = NonRecordingSpan(span_context(parent))
        return Context({_SPAN_KEY: origin})


def cleaned(
    attributes: Mapping[str, Value], clean: Callable[[str], str]
) -> dict[str, AttributeValue]:
    """What may leave."""
    return {
        key: clean(value)
        if type(value) is str
        else [clean(one) for one in value]
        if isinstance(value, list | tuple)
        else value
        for key, value in attributes.items()
    }


def _seen(origin: object, given: SpanContext) -> TraceContext:
    state, sampled = given.trace_state, given.trace_flags & TraceFlags.SAMPLED
    told = "" if state is trace.DEFAULT_TRACE_STATE else state.to_header()
    return TraceContext(given.trace_id, given.span_id, bool(sampled), told, origin)


def span_context(context: TraceContext) -> SpanContext:
    return SpanContext(
        context.trace_id,
        context.span_id,
        is_remote=context.origin is None,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT),
        trace_state=trace.TraceState.from_header([context.tracestate])
        if context.tracestate
        else None,
    )


def link_of(link: Link) -> trace.Link:
    return trace.Link(span_context(link.context), {"observant_host.link.type": link.type})
