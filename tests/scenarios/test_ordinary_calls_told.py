"""Spans, the record and /metrics say the same of calls told in one go and told step by step."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased

from observant_host.config import TelemetrySettings
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.otlp_json import OtlpJson
from observant_host.telemetry.propagation import TraceContext
from observant_host.telemetry.recorder import Recorder
from observant_host.telemetry.spans import SpanSink
from tests.scenarios.two_ways import Relaxed, Run, Watching, numbers, same_by_both_ways, unlike

if TYPE_CHECKING:
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.sampling import Sampler

WAYS = (Relaxed, Watching)
SECRET = "hunter2-hunter2"
ONE_AT_A_TIME: dict[str, Any] = {"max_in_flight": 1}
"""So that of calls made at once all but the first stand in line."""
MEASURED = (
    "jsonrpc.request.id",
    "observant_host.request.deadline_ms",
    "observant_host.call.queued_ms",
)
OPTIONS: dict[str, Any] = {"tools": "echo,fail,rpc_error", "era": "modern"}


async def calls_of_many_kinds(run: Run) -> None:
    await run.call("echo", {"text": "x"})
    await run.call("echo", {"text": "x"}, principal=f"who has {SECRET} % %d")
    await run.call("fail", principal=SECRET)
    for sampled in (True, False):
        for state in ("", "vendor=1"):
            parent = TraceContext(2**127 + 5, 2**63 + 7, sampled, state)
            await run.call("echo", {"text": "x"}, parent=parent, principal="ada")
            await run.call("rpc_error", {"message": SECRET}, parent=parent, principal="ada")
    await run.call("s/echo")
    await asyncio.wait([run.begin(name, principal="ada") for name in ("echo", "fail", "echo")])


class Kept(SpanProcessor):
    """Every span that was begun, and those that ended."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.begun.append(span)

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)

    def account(self) -> list[Any]:
        """Those of calls, by their traces in order."""
        mine = [one for one in self.begun if "call" in one.name]
        names = {one.get_span_context().span_id: one.name for one in mine}
        return [
            (
                *(one.name, one.kind, one.status.status_code, one.get_span_context().trace_state),
                {key: value for key, value in one.attributes.items() if key not in MEASURED},
                None if one.parent is None else names.get(one.parent.span_id, one.parent.span_id),
                [event.name for event in one.events],
                one.end_time > one.start_time,
            )
            for one in mine
        ]


@pytest.mark.parametrize("sampler", [ALWAYS_ON, ParentBased(ALWAYS_ON), ParentBased(ALWAYS_OFF)])
async def test_a_tracing_library_gets_the_same_spans_and_the_end_of_each(
    tmp_path: Path, sampler: Sampler
) -> None:
    seen = []
    for number, way in enumerate(WAYS):
        kept, provider = Kept(), TracerProvider(sampler=sampler)
        provider.add_span_processor(kept)
        spans = SpanSink(cleaner=Cleaner(Masker([SECRET])), provider=provider)
        log = tmp_path / f"log-{number}"
        run = Run(
            *(way(), log),
            of_host={},
            options=OPTIONS,
            starter=spans,
            sinks=(spans,),
            **ONE_AT_A_TIME,
        )
        async with run.host:
            await run.host.wait_for("s", "ready")
            await calls_of_many_kinds(run)
        assert len(kept.begun) == len(kept.ended), "each that was begun has ended"
        assert (run.watching.in_one_go > 0) is (way is Relaxed)
        assert SECRET not in str([one.attributes for one in kept.ended])
        seen.append([*kept.account(), *run.received()])
    assert not unlike(*seen), "\n".join(unlike(*seen))


@pytest.mark.parametrize("ratio", [1.0, 0.0])
async def test_the_record_has_the_same_spans(tmp_path: Path, ratio: float) -> None:
    seen = []
    for number, way in enumerate(WAYS):
        state = tmp_path / f"state-{number}"
        encoder = OtlpJson({}, version="1", cleaner=Cleaner(Masker([SECRET])))
        record = Recorder(state, settings=TelemetrySettings(), encoder=encoder)
        log, starter = tmp_path / f"log-{number}", OwnIds(ratio=ratio)
        run = Run(
            *(way(), log),
            of_host={},
            options=OPTIONS,
            starter=starter,
            sinks=(record,),
            **ONE_AT_A_TIME,
        )
        async with run.host:
            await run.host.wait_for("s", "ready")
            await calls_of_many_kinds(run)
        await record.flush()
        await record.close()
        text = "".join(path.read_text() for path in sorted((state / "traces").iterdir()))
        assert SECRET not in text
        assert (run.watching.in_one_go > 0) is (way is Relaxed)
        seen.append([*recorded(text), record.lost])
    assert not unlike(*seen), "\n".join(unlike(*seen))
    assert len(seen[0]) == 31
    assert str(seen[0]).count("'dequeued'") == 2


def recorded(text: str) -> list[Any]:
    """The spans of calls, but for times, and ids by what they are of."""
    spans = [
        span
        for line in text.splitlines()
        for of_resource in json.loads(line)["resourceSpans"]
        for of_scope in of_resource["scopeSpans"]
        for span in of_scope["spans"]
        if "call" in span["name"]
    ]
    names = {span["spanId"]: span["name"] for span in spans}
    traces = {span["traceId"]: span["traceId"][:4] for span in spans if "parentSpanId" in span}
    for span in spans:
        assert int(span.pop("endTimeUnixNano")) > int(span.pop("startTimeUnixNano")) > 0
        assert int(span.pop("spanId"), 16) > 0
        if "parentSpanId" in span:
            span["parentSpanId"] = names.get(span["parentSpanId"], span["parentSpanId"])
        known = span.pop("traceId") == f"{2**127 + 5:032x}"
        span["its caller's"] = known
        span["events"] = [event["name"] for event in span.get("events", ())]
        span["attributes"] = [one for one in span["attributes"] if one["key"] not in MEASURED]
    assert traces
    return spans


async def test_the_numbers_of_a_hundred_mixed_calls_are_the_same(tmp_path: Path) -> None:
    drawn = random.Random(7)
    kinds: list[tuple[str, Any, dict[str, Any]]] = [
        ("echo", {"text": "x"}, {}),
        ("echo", {"text": "x"}, {"principal": "ada"}),
        ("fail", {}, {}),
        ("rpc_error", {}, {"principal": "bob"}),
        ("nowhere", {}, {}),
        ("echo", {"text": "x"}, {"deadline_s": 20}),
        ("echo", {"text": object()}, {}),
        ("odd", {}, {}),
    ]
    story_of = drawn.choices(kinds, k=100)

    async def story(run: Run) -> None:
        for name, arguments, options in story_of:
            await run.call(name, arguments, **options)

    options = {**OPTIONS, "tools": "echo,fail,rpc_error,odd"}
    run = await same_by_both_ways(story, tmp_path, options=options)
    counted = numbers(run.metrics)
    of_calls = [n for (name, _), n in counted.items() if name == "observant_host_calls_total"]
    assert sum(of_calls) == 100
