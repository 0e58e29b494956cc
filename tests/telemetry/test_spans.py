"""Spans as somebody else's tracing sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased
from opentelemetry.trace import SpanKind, StatusCode

from observant_host.errors import RpcError
from observant_host.telemetry.facade import Finished, Link, Telemetry, TraceContext
from observant_host.telemetry.finished import pair_of
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.rules import DECISION_SPANS
from observant_host.telemetry.spans import SpanSink
from observant_host.telemetry.vocabulary import (
    EraDecide,
    HostLifecycle,
    PeerStart,
    Request,
    RoutedCall,
)
from tests.telemetry.facts import ALL, OPERATIONS, Ended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult

CALL = RoutedCall(name="a/search", method="tools/call", peer="a", local_name="search")
REQUEST = Request(peer="a", method="tools/call", era="modern", target="search", request_id=7)


class Tracing:
    def __init__(self, sampler: Sampler | None = None, *, secrets: Sequence[str] = ()) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.sink = SpanSink(cleaner=Cleaner(Masker(secrets)), provider=self.provider)
        self.telemetry = Telemetry(starter=self.sink, sinks=[self.sink])

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


def test_a_call_at_its_first_attempt_is_two_spans() -> None:
    tracing = Tracing()
    with tracing.telemetry.operation(CALL) as call, tracing.telemetry.operation(REQUEST):
        pass
    spans = tracing.spans()
    assert set(spans) == {"observant_host.call", "tools/call search"}
    inner, outer = spans["tools/call search"], spans["observant_host.call"]
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id == call.context.span_id
    assert (outer.kind, inner.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT)
    assert inner.attributes is not None
    assert dict(inner.attributes) | {
        "mcp.method.name": "tools/call",
        "gen_ai.tool.name": "search",
        "gen_ai.operation.name": "execute_tool",
        "jsonrpc.request.id": "7",
        "observant_host.peer.name": "a",
    } == dict(inner.attributes)
    assert inner.status.status_code is StatusCode.UNSET


def told_of(event: Event) -> Any:
    return event.name, event.timestamp, dict(event.attributes or {})


@pytest.mark.parametrize("queued_ns", [0, 1_234_567])
@pytest.mark.parametrize("sampler", [ALWAYS_ON, ParentBased(ALWAYS_OFF)], ids=["on", "off"])
def test_a_call_and_its_request_told_in_one_go_are_the_spans_that_they_were_one_by_one(
    sampler: Sampler, queued_ns: int
) -> None:
    """Begun and ended by hand both times; what is not sampled has none."""
    seen = []
    for by_one_form in (True, False):
        tracing = Tracing(sampler, secrets=["search"])
        start = tracing.sink.start
        outer, handle = start(CALL, None, (), 1000)
        inner, its_handle = start(REQUEST, outer, (), 1000)
        done = Ended(11, outer, inner, start_ns=1000, queued_ns=queued_ns)
        samples = Finished(CALL, TraceContext(1, 1)), Finished(REQUEST, TraceContext(1, 1))
        if by_one_form:
            tracing.sink.alike(*samples)(done)
        else:
            for one, own in zip(pair_of(done, *samples), (its_handle, handle), strict=True):
                one.handle = own
                tracing.sink.emit(one)
        seen.append(
            [
                (
                    *(name, span.attributes, span.start_time, span.end_time),
                    *(span.status.status_code, [told_of(event) for event in span.events]),
                )
                for name, span in tracing.spans().items()
            ]
        )
    assert seen[0] == seen[1]
    assert len(seen[0]) == (2 if sampler is ALWAYS_ON else 0)


def test_every_fact_with_a_span_ends_it() -> None:
    tracing = Tracing()
    for fact in ALL:
        tracing.telemetry.count(fact)
    for fact in OPERATIONS:
        with tracing.telemetry.operation(fact):
            pass
    for span in tracing.spans().values():
        assert span.end_time is not None


def test_an_error_has_our_words_and_never_the_exceptions() -> None:
    tracing = Tracing()
    with pytest.raises(RpcError), tracing.telemetry.operation(REQUEST):
        raise RpcError(-32601, "the password is hunter22")
    span = tracing.spans()["tools/call search"]
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.attributes is not None
    assert span.attributes["error.type"] == "-32601"
    assert span.attributes["rpc.response.status_code"] == "-32601"
    assert not span.events
    assert "hunter22" not in span.to_json()


def test_a_tools_own_error_is_no_error_of_the_call() -> None:
    tracing = Tracing()
    with tracing.telemetry.operation(CALL) as call:
        call.end_as("tool_error", "tool_error")
        with tracing.telemetry.operation(REQUEST) as request:
            request.end_as("tool_error", "tool_error")
    spans = tracing.spans()
    assert spans["observant_host.call"].status.status_code is StatusCode.UNSET
    assert spans["tools/call search"].status.status_code is StatusCode.ERROR


def test_evidence_and_secrets_and_links_on_a_decision() -> None:
    tracing = Tracing(secrets=["hunter22"])
    link = Link(TraceContext(5, 6, sampled=True), "previous_decision")
    fact = EraDecide(
        peer="a",
        generation=1,
        trigger="boot",
        previous="modern",
        detail="it said hunter22",
        evidence=({"step": "discover", "excerpt": "token=hunter22", "late": True},),
    )
    with tracing.telemetry.operation(fact, links=[link]):
        pass
    span = tracing.spans()["observant_host.era.decide"]
    assert "hunter22" not in span.to_json()
    assert [event.name for event in span.events] == ["evidence"]
    assert span.events[0].attributes is not None
    assert span.events[0].attributes["observant_host.evidence.excerpt"] == "token=***"
    assert [one.context.trace_id for one in span.links] == [5]
    assert span.links[0].attributes is not None
    assert span.links[0].attributes["observant_host.link.type"] == "previous_decision"


def test_the_embedding_programs_span_is_the_parent() -> None:
    tracing = Tracing()
    tracer = tracing.provider.get_tracer("their.program")
    with tracer.start_as_current_span("their work") as theirs:
        with tracing.telemetry.operation(CALL):
            assert trace.get_current_span() is theirs
        tracing.telemetry.count(HostLifecycle(what="x"))
    span = tracing.spans()["observant_host.call"]
    assert span.parent is not None
    assert span.parent.span_id == theirs.get_span_context().span_id


def test_a_remote_parent_is_continued_with_its_state() -> None:
    tracing = Tracing()
    far = TraceContext(0xA, 0xB, sampled=True, tracestate="x=1")
    with tracing.telemetry.operation(CALL, parent=far) as op:
        assert (op.context.trace_id, op.context.tracestate) == (0xA, "x=1")
    span = tracing.spans()["observant_host.call"]
    assert span.parent is not None
    assert span.parent.is_remote


def test_under_an_unsampled_parent_no_span_is_made_but_ids_go_on() -> None:
    tracing = Tracing(ParentBased(ALWAYS_OFF))
    started: list[str] = []
    original = tracing.sink._tracer.start_span
    tracing.sink._tracer.start_span = (  # type: ignore[method-assign]  # to count
        lambda name, *rest, **more: started.append(name) or original(name, *rest, **more)
    )
    with tracing.telemetry.operation(CALL) as call, tracing.telemetry.operation(REQUEST) as request:
        assert not call.context.sampled
        assert request.context.trace_id == call.context.trace_id
        assert request.context.span_id != call.context.span_id
        assert request.context.traceparent().endswith("-00")
    assert started == ["observant_host.call"]
    assert not tracing.spans()


class KeepDecisions(ParentBased):
    """What an embedding program may do to have every decision and no traffic."""

    def __init__(self) -> None:
        super().__init__(ALWAYS_OFF)

    def should_sample(self, context: Any, trace_id: int, name: str, *rest: Any) -> SamplingResult:
        if name in DECISION_SPANS:
            return ALWAYS_ON.should_sample(context, trace_id, name, *rest)
        return super().should_sample(context, trace_id, name, *rest)


def test_decisions_are_asked_of_the_sampler_also_inside_an_unsampled_call() -> None:
    tracing = Tracing(KeepDecisions())
    decide = EraDecide(peer="a", generation=1, trigger="reprobe", previous="modern")
    probe = Request(peer="a", method="server/discover", era="unknown")
    start = PeerStart(peer="a", generation=1, trigger="boot", transport="stdio")
    with tracing.telemetry.operation(CALL):
        with tracing.telemetry.operation(REQUEST):
            pass
        with tracing.telemetry.operation(decide), tracing.telemetry.operation(probe):
            pass
    with tracing.telemetry.operation(start):
        pass
    assert set(tracing.spans()) == {
        "observant_host.era.decide",
        "server/discover",
        "observant_host.peer.start",
    }


def test_without_a_provider_ids_are_our_own() -> None:
    sink = SpanSink(cleaner=Cleaner(Masker()), fallback=OwnIds(ratio=0.0))
    telemetry = Telemetry(starter=sink, sinks=[sink])
    with telemetry.operation(CALL) as call, telemetry.operation(REQUEST) as request:
        assert call.context.trace_id
        assert not call.context.sampled
        assert request.context.trace_id == call.context.trace_id
        assert request.context.span_id != call.context.span_id
    assert sink.ambient() is None


def test_without_a_provider_a_remote_parent_still_gets_children_of_our_own() -> None:
    sink = SpanSink(cleaner=Cleaner(Masker()))
    telemetry = Telemetry(starter=sink, sinks=[sink])
    with telemetry.operation(CALL, parent=TraceContext(1, 2, sampled=True)) as op:
        assert op.context.trace_id == 1
        assert op.context.span_id != 2


def test_a_provider_that_breaks_breaks_no_call() -> None:
    tracing = Tracing()

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("their bug")

    tracing.sink._tracer.start_span = broken  # type: ignore[method-assign, assignment]  # their bug
    with tracing.telemetry.operation(CALL) as op:
        assert op.context.trace_id
