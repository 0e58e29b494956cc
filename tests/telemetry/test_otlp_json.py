"""The record's lines are OTLP JSON: the official encoder and the official parser are the judges."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from observant_host.incidents.otlp import spans_or_none
from observant_host.telemetry.facade import Finished, Link, Telemetry, TraceContext
from observant_host.telemetry.finished import pair_of
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.otlp_json import OtlpJson
from observant_host.telemetry.rules import RULES, SpanEvent
from observant_host.telemetry.spans import SpanSink
from observant_host.telemetry.vocabulary import Fact, HostLifecycle, Request, RoutedCall
from tests.telemetry.facts import ALL, OPERATIONS, Ended

RESOURCE = {"service.name": "observant-host", "process.pid": 7, "ok": True}


class Keep:
    name = "log"

    def __init__(self) -> None:
        self.done: list[Finished] = []

    def wants(self, kind: type[Fact]) -> bool:
        return True

    def emit(self, done: Finished) -> None:
        self.done.append(done)


def encoder(*secrets: str) -> OtlpJson:
    return OtlpJson(RESOURCE, version="0.1", cleaner=Cleaner(Masker(secrets)))


def parsed(line: bytes) -> ExportTraceServiceRequest:
    """The official parser's reading; it takes ids for base64, OTLP JSON writes them as hex."""
    request = json_format.Parse(line, ExportTraceServiceRequest())
    for resource_spans in request.resource_spans:
        for scope in resource_spans.scope_spans:
            for span in scope.spans:
                for one in (span, *span.links):
                    one.trace_id = bytes.fromhex(base64.b64encode(one.trace_id).decode())
                    one.span_id = bytes.fromhex(base64.b64encode(one.span_id).decode())
                span.parent_span_id = bytes.fromhex(base64.b64encode(span.parent_span_id).decode())
    return request


def both_ways(fact: Fact) -> tuple[ExportTraceServiceRequest, ExportTraceServiceRequest]:
    """(ours, the official encoder's) for an operation with everything a span can have."""
    exporter, keep = InMemorySpanExporter(), Keep()
    provider = TracerProvider(resource=Resource(RESOURCE))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    sink = SpanSink(cleaner=Cleaner(Masker()), version="0.1", provider=provider)
    telemetry = Telemetry(starter=sink, sinks=[keep, sink])
    parent = TraceContext(0xABC, 0xDEF, sampled=True)
    link = Link(TraceContext(5, 6, sampled=True), "retry_of")
    with telemetry.operation(fact, parent=parent, links=[link]) as op:
        op.event("retry.scheduled", reason="not_sent", delay_ms=1.5)
        op.end_as("unavailable", "gone")
    ours = parsed(encoder().line(keep.done[0]))
    return ours, encode_spans(exporter.get_finished_spans())


@pytest.mark.parametrize("fact", OPERATIONS, ids=lambda fact: type(fact).__name__)
def test_our_line_says_what_the_official_encoder_says(fact: Fact) -> None:
    ours, official = both_ways(fact)
    for request in (ours, official):
        for span in request.resource_spans[0].scope_spans[0].spans:
            span.flags = 0
            for one in span.links:
                one.flags = 0
    assert ours == official


@pytest.mark.parametrize("fact", ALL, ids=lambda fact: type(fact).__name__)
def test_every_fact_gives_one_line_of_valid_otlp_json(fact: Fact) -> None:
    done = Finished(fact, TraceContext(1, 2, sampled=True, tracestate="a=b"), start_ns=5)
    if RULES[type(fact)].span is None:
        return
    line = encoder().line(done)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    span = parsed(line).resource_spans[0].scope_spans[0].spans[0]
    assert span.trace_id.hex() == f"{1:032x}"
    assert span.trace_state == "a=b"
    assert (
        json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] == f"{2:016x}"
    )


def attributes(line: bytes) -> dict[str, Any]:
    span = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    return {pair["key"]: pair["value"] for pair in span["attributes"]}


def test_true_is_not_one_in_what_is_encoded_once() -> None:
    encode = encoder()
    first = Finished(RoutedCall(name="x", method="tools/call", attempts=1), TraceContext(1, 2))
    assert attributes(encode.line(first))["observant_host.call.attempts"] == {"intValue": "1"}
    told = Finished(
        RoutedCall(name="x", method="tools/call"),
        TraceContext(1, 2),
        events=(SpanEvent("e", 1, {"a": True, "b": 1, "c": 1.0}),),
    )
    event = json.loads(encode.line(told))["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["events"]
    assert [pair["value"] for pair in event[0]["attributes"]] == [
        {"boolValue": True},
        {"intValue": "1"},
        {"doubleValue": 1.0},
    ]


def test_what_is_kept_of_earlier_spans_is_bounded() -> None:
    encode = encoder()
    for number in range(10_000):
        call = RoutedCall(name=f"tool {number}", method="tools/call")
        encode.line(Finished(call, TraceContext(1, 2)))
        encode.line(Finished(HostLifecycle(what=f"what {number}"), TraceContext(1, 2)))
    assert 0 < len(encode._shapes) <= 4096


def test_long_texts_are_not_kept() -> None:
    encode = encoder()
    uri = "file:///" + "x" * 5000
    read = Request(peer="a", method="resources/read", era="modern", uri=uri)
    encode.line(Finished(read, TraceContext(1, 2)))
    assert len(encode._shapes) == 0


def test_secrets_never_reach_a_line_and_long_texts_are_cut() -> None:
    encode = encoder("hunter22")
    fact = HostLifecycle(what="say hunter22", detail="x" * 5000)
    line = encode.line(Finished(fact, TraceContext(1, 2)))
    assert b"hunter22" not in line
    assert attributes(line)["observant_host.host.what"] == {"stringValue": "say ***"}
    assert len(attributes(line)["observant_host.host.detail"]["stringValue"]) == 1024


def test_a_secret_learnt_later_is_not_kept_in_cached_pieces() -> None:
    masker = Masker()
    encode = OtlpJson(RESOURCE, version="0.1", cleaner=Cleaner(masker))
    done = Finished(HostLifecycle(what="say hunter22"), TraceContext(1, 2))
    assert b"hunter22" in encode.line(done)
    masker.learn(["hunter22"])
    assert b"hunter22" not in encode.line(done)


@pytest.mark.parametrize(
    ("number", "written"),
    [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (1e300, 1e300)],
)
def test_what_json_has_no_number_for_is_written_as_the_format_wants(
    number: float, written: object
) -> None:
    told = Request(peer="a", method="tools/call", era="modern", deadline_ms=number)
    line = encoder().line(Finished(told, TraceContext(1, 2)))
    assert attributes(line)["observant_host.request.deadline_ms"] == {"doubleValue": written}
    official = json_format.ParseDict({"doubleValue": written}, AnyValue()).double_value
    (span,) = spans_or_none(line) or ()
    ours = span.attributes["observant_host.request.deadline_ms"]
    assert repr(official) == repr(ours) == repr(number)


CALL = RoutedCall(
    name="100 %s hunter22",
    method="tools/call",
    peer="%d",
    local_name='"%',
    attempts=1,
    era="modern",
)
SENT = Request(
    peer="%d", method="tools/call", era="modern", target='"%', purpose="call", deadline_ms=1.5
)
SAMPLES = Finished(CALL, TraceContext(1, 1)), Finished(SENT, TraceContext(1, 1))


@given(
    number=st.integers(0, 2**53),
    ids=st.tuples(*[st.integers(1, 2**64 - 1)] * 4),
    sampled=st.booleans(),
    child=st.booleans(),
    queued_ns=st.integers(0, 2**53),
)
def test_a_call_and_its_request_by_one_form_are_what_they_are_one_by_one(
    number: int, ids: tuple[int, ...], sampled: bool, child: bool, queued_ns: int
) -> None:
    encode = encoder()
    trace_id = ids[0] << 64 | ids[1]
    done = Ended(
        number,
        TraceContext(trace_id, ids[2], sampled),
        TraceContext(trace_id, ids[3], sampled),
        parent=TraceContext(trace_id, ids[1]) if child else None,
        queued_ns=queued_ns,
        deadline_ns=2**53 - queued_ns,
    )
    alone = [encode.span(one) for one in pair_of(done, *SAMPLES)]
    both = encode.pair(*SAMPLES)(done)
    if queued_ns:  # the same numbers, in other digits
        assert json.loads(b"[%b]" % b"".join(both)) == json.loads(b"[%b]" % b",".join(alone))
    else:
        assert b"".join(both) == b",".join(alone)
    together = parsed(b"".join(encode.pieces_of([both])))
    assert len(together.resource_spans[0].scope_spans[0].spans) == 2


def test_a_secret_learnt_later_is_in_no_form() -> None:
    masker = Masker()
    encode = OtlpJson(RESOURCE, version="0.1", cleaner=Cleaner(masker)).pair(*SAMPLES)
    done = Ended(1, TraceContext(1, 2), TraceContext(1, 3))
    assert b"hunter22" in b"".join(encode(done))
    masker.learn(["hunter22"])
    assert b"hunter22" not in b"".join(encode(done))
