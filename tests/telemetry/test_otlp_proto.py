"""What goes to a collector is what the official encoder would send, for every span there can be."""

from __future__ import annotations

from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from observant_host.telemetry.facade import Link, Telemetry, TraceContext
from observant_host.telemetry.finished import Finished
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.otlp_json import OtlpJson
from observant_host.telemetry.otlp_proto import OtlpProto
from observant_host.telemetry.rules import RULES
from observant_host.telemetry.spans import SpanSink
from observant_host.telemetry.vocabulary import Fact, HostLifecycle, Request, RoutedCall
from tests.telemetry.facts import ALL
from tests.telemetry.test_otlp_json import Keep, parsed

if TYPE_CHECKING:
    from collections.abc import Sequence

RESOURCE = {"service.name": "observant-host", "process.pid": 7, "ok": True}
REMOTE = TraceContext(0xABC, 0xDEF, sampled=True)
LINK = Link(TraceContext(5, 6, sampled=True), "retry_of")
WHO = Resource.create(RESOURCE)
OURS = OtlpProto(RESOURCE, version="0.1", cleaner=Cleaner(Masker()))
LINES = OtlpJson(RESOURCE, version="0.1", cleaner=Cleaner(Masker()))
"""One of each for all: what is kept of earlier spans must not show in later ones."""
WITH_SPANS = [kind for kind, rule in RULES.items() if rule.span is not None]

text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)
number = st.integers(-(2**63), 2**63 - 1)
real = st.floats(allow_nan=False, allow_infinity=False)
plain = st.none() | st.booleans() | number | real | text
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: text,
    int: number,
    float: real,
    bool: st.booleans(),
    type(None): st.none(),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    if isinstance(hint, UnionType):
        return st.one_of([values_of(one) for one in get_args(hint)])
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) is dict:
        return st.dictionaries(text.filter(bool), plain, max_size=3)
    return BY_TYPE[hint]


def facts_of(kind: type[Fact]) -> st.SearchStrategy[Fact]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: values_of(hints[name]) for name in kind.__struct_fields__})


class Both:
    """Operations through the SDK and its official encoder, and through ours."""

    def __init__(self) -> None:
        self._exporter, self.keep = InMemorySpanExporter(), Keep()
        provider = TracerProvider(resource=WHO, shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        sink = SpanSink(cleaner=Cleaner(Masker()), version="0.1", provider=provider)
        self.telemetry = Telemetry(starter=sink, sinks=[self.keep, sink])
        self.ours, self.lines = OURS, LINES

    def official(self) -> ExportTraceServiceRequest:
        return encode_spans(self._exporter.get_finished_spans())

    def proto(self) -> ExportTraceServiceRequest:
        spans = [self.ours.span(done) for done in self.keep.done]
        return ExportTraceServiceRequest.FromString(self.ours.request(spans))

    def spans_of_lines(self) -> list[Any]:
        return [spans_of(parsed(self.lines.line(done)))[0] for done in self.keep.done]


def spans_of(request: ExportTraceServiceRequest) -> list[Any]:
    return list(request.resource_spans[0].scope_spans[0].spans)


def without_flags(spans: Sequence[Any]) -> list[Any]:
    """OTLP JSON of the record has the trace's flags, which the official encoder leaves out, and no
    empty status."""
    for span in spans:
        span.flags = 0
        if not span.status.code:
            span.ClearField("status")
        for link in span.links:
            link.flags = 0
    return list(spans)


@pytest.mark.parametrize("kind", WITH_SPANS, ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(st.data())
def test_whatever_a_span_says_all_encoders_say_the_same(kind: type[Fact], data: Any) -> None:
    both = Both()
    fact = data.draw(facts_of(kind))
    parent = data.draw(st.sampled_from([None, REMOTE, TraceContext(1, 2, True, "a=b,c=d")]))
    links = data.draw(st.sampled_from([(), (LINK,)]))
    told = data.draw(st.sampled_from([{}, {"reason": "x", "delay_ms": 1.5, "n": 3, "b": False}]))
    outcome = data.draw(st.sampled_from([("ok", None), ("unavailable", "gone"), ("", "")]))
    for _ in range(2):  # the second is made of what the first left
        with both.telemetry.operation(fact, parent=parent, links=links) as op:
            if told:
                op.event("retry.scheduled", **told)
            if outcome[0]:
                op.end_as(*outcome)
    official = both.official()
    assert both.proto() == official
    assert without_flags(both.spans_of_lines()) == without_flags(spans_of(official))


def test_a_span_inside_another_is_known_to_be_local() -> None:
    both = Both()
    with (
        both.telemetry.operation(RoutedCall(name="x", method="tools/call"), parent=REMOTE),
        both.telemetry.operation(Request(peer="a", method="tools/call", era="modern")),
    ):
        pass
    assert both.proto() == both.official()
    assert [span.flags for span in spans_of(both.proto())] == [0x100, 0x300]


def test_long_requests_and_batches_have_their_lengths_right() -> None:
    both = Both()
    for fact in ALL * 4:
        if RULES[type(fact)].span is not None:
            both.telemetry.count(fact)
    with both.telemetry.operation(HostLifecycle(what="x", detail="y" * 900)) as op:
        op.event("long", text="z" * 1000)
    assert both.proto() == both.official()


def test_what_an_event_says_may_be_of_any_type() -> None:
    both = Both()
    with both.telemetry.operation(HostLifecycle(what="x")) as op:
        op.event("all", a=True, b=-1, c=2**40, d=-0.0, e=["x", "y"], f="", g="ü" * 200)
    assert both.proto() == both.official()


def test_what_it_would_hand_to_another_exporter_is_the_same_too() -> None:
    both = Both()
    with both.telemetry.operation(Request(peer="a", method="tools/call", era="modern")) as op:
        op.event("e", a=1)
    assert encode_spans([both.ours.readable(both.keep.done[0])]) == both.official()


def test_secrets_never_reach_a_request() -> None:
    masker = Masker()
    encode = OtlpProto(RESOURCE, version="0.1", cleaner=Cleaner(masker))
    call = RoutedCall(name="say hunter22", method="tools/call", principal="ci")
    done = Finished(call, TraceContext(1, 2))
    assert b"hunter22" in encode.span(done)
    masker.learn(["hunter22"])
    assert b"hunter22" not in encode.span(done)
