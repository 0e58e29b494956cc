"""Spans by the OpenTelemetry API: the embedding program's provider, or the one of our command line.

Explicit contexts instead of current spans: a current span leaks into every task started inside
it, its context manager leaves a cancelled span unset, and its default exception recording exports
messages and stacks, secrets included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.propagation import TraceContext
from observant_host.telemetry.rules import (
    KEPT,
    RULES,
    events_of,
    is_error,
    rule_of,
    span_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span, TracerProvider
    from opentelemetry.util.types import AttributeValue

    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.propagation import Link
    from observant_host.telemetry.rules import Value
    from observant_host.telemetry.vocabulary import Fact

_KINDS: Final = {
    "internal": SpanKind.INTERNAL,
    "client": SpanKind.CLIENT,
    "server": SpanKind.SERVER,
}
_ROOT: Final = Context()
_ERROR: Final = Status(StatusCode.ERROR)


class SpanSink:
    """Starter and sink in one: gives operations their identity, ends their spans.

    provider None: whatever the embedding program set, also if it does so later. Without a real
    one, or if it fails, ids are our own.
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
        self._own = fallback or OwnIds()

    def start(
        self, fact: Fact, *, parent: TraceContext | None, links: tuple[Link, ...], start_ns: int
    ) -> tuple[TraceContext, object | None]:
        if parent is not None and not parent.sampled and type(fact) not in KEPT:
            return self._own.start(fact, parent=parent, links=links, start_ns=start_ns)
        try:
            span = self._tracer.start_span(
                span_name(fact),
                _context_of(parent),
                _KINDS[rule_of(fact).kind],
                links=[_link(link) for link in links] if links else None,
                start_time=start_ns,
                record_exception=False,
                set_status_on_exception=False,
            )
            given = span.get_span_context()
        except Exception:  # noqa: BLE001 - somebody else's provider must not break a call of ours
            return self._own.start(fact, parent=parent, links=links, start_ns=start_ns)
        if not given.is_valid or (parent is not None and given.span_id == parent.span_id):
            return self._own.start(fact, parent=parent, links=links, start_ns=start_ns)
        return _seen(span), span

    def ambient(self) -> TraceContext | None:
        span = trace.get_current_span()
        return _seen(span) if span.get_span_context().is_valid else None

    def wants(self, kind: type[Fact]) -> bool:
        return RULES[kind].span is not None

    def passes_over(self, kind: type[Fact]) -> bool:
        """Without a span it has nothing to end."""
        return True

    def emit(self, done: Finished) -> None:
        span = done.handle
        if not isinstance(span, trace.Span) or not span.is_recording():
            return
        span.update_name(done.name)
        span.set_attributes(self._clean(done.attributes))
        for event in (*done.events, *events_of(done.fact, done.start_ns)):
            span.add_event(event.name, self._clean(event.attributes), event.time_ns)
        if is_error(done.fact, done.outcome):
            span.set_status(_ERROR)
        span.end(done.start_ns + done.duration_ns)

    def _clean(self, attributes: Mapping[str, Value]) -> dict[str, AttributeValue]:
        clean = self._cleaner.text
        return {
            key: clean(value)
            if type(value) is str
            else [clean(one) for one in value]
            if isinstance(value, list)
            else value
            for key, value in attributes.items()
        }


def _seen(span: Span) -> TraceContext:
    given = span.get_span_context()
    state = given.trace_state.to_header() if given.trace_state else ""
    return TraceContext(given.trace_id, given.span_id, given.trace_flags.sampled, state, span)


def _context_of(parent: TraceContext | None) -> Context:
    if parent is None:
        return _ROOT
    span = parent.origin if isinstance(parent.origin, trace.Span) else None
    return trace.set_span_in_context(span or NonRecordingSpan(_span_context(parent)), _ROOT)


def _span_context(context: TraceContext) -> SpanContext:
    return SpanContext(
        context.trace_id,
        context.span_id,
        is_remote=context.origin is None,
        trace_flags=TraceFlags(TraceFlags.SAMPLED if context.sampled else TraceFlags.DEFAULT),
        trace_state=trace.TraceState.from_header([context.tracestate])
        if context.tracestate
        else None,
    )


def _link(link: Link) -> trace.Link:
    return trace.Link(_span_context(link.context), {"observant_host.link.type": link.type})
