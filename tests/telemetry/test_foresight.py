"""New traces that a sampler drops: the same as if the tracer had been asked for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import Tracer, TracerProvider, sampling
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    DEFAULT_OFF,
    DEFAULT_ON,
    Decision,
    ParentBased,
    ParentBasedTraceIdRatio,
    SamplingResult,
    TraceIdRatioBased,
)

from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.spans import LOOK_EVERY_NS, SpanSink
from observant_host.telemetry.vocabulary import Request, RoutedCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.sdk.trace.sampling import Sampler

    from observant_host.telemetry.facade import TraceContext

CALL = RoutedCall(name="a/search", method="tools/call", peer="a", local_name="search")
REQUEST = Request(peer="a", method="tools/call", era="modern", target="search", request_id=7)
LOW = 1 << 64
RARE = TraceIdRatioBased(0.01)
DROPPED, TAKEN = RARE.bound, RARE.bound - 1


class Listed(RandomIdGenerator):
    """Gives these trace ids."""

    def __init__(self, ids: Iterable[int]) -> None:
        self._ids = iter(ids)

    def generate_trace_id(self) -> int:
        return next(self._ids)


class Program:
    """Its provider, and our spans in it."""

    def __init__(self, sampler: Sampler | None, ids: Iterable[int]) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler=sampler, id_generator=Listed(ids))
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.sink = SpanSink(cleaner=Cleaner(Masker()), provider=provider)
        self.tracer: Any = self.sink._tracer

    def begins(self, calls: int) -> list[TraceContext]:
        """What so many calls without a parent begin with; each has a request inside."""
        found = []
        for _ in range(calls):
            context, span = self.sink.start(CALL, None, (), 1)
            inner, its_span = self.sink.start(REQUEST, context, (), 1)
            assert (inner.trace_id, inner.sampled) == (context.trace_id, context.sampled)
            for one in (its_span, span):
                if one is not None:
                    one.end()  # type: ignore[attr-defined]  # a span of the SDK
            found.append(context)
        return found

    def exported(self) -> list[int]:
        return [span.context.trace_id for span in self._exporter.get_finished_spans()]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The spans that tracers were asked for, from now on."""
    names: list[str] = []
    start_span = Tracer.start_span

    def noted(self: Tracer, name: str, *args: Any, **kwargs: Any) -> Any:
        names.append(name)
        return start_span(self, name, *args, **kwargs)

    monkeypatch.setattr(Tracer, "start_span", noted)
    return names


@given(
    rate=st.one_of(st.sampled_from([0.0, 0.01, 0.5, 0.51, 1.0]), st.floats(0, 1)),
    numbers=st.lists(st.integers(1, LOW * LOW - 1), max_size=6),
    parent_based=st.booleans(),
)
def test_a_trace_is_sampled_where_its_sampler_says_so_and_has_the_id_that_was_drawn_for_it(
    rate: float, numbers: list[int], parent_based: bool
) -> None:
    ratio = TraceIdRatioBased(rate)
    edges = [ratio.bound - 1, ratio.bound, ratio.bound + 1, LOW - 1, 1]
    ids = [*numbers, *(half + low for half in (0, LOW * 5) for low in edges)]
    ids = [one for one in ids if one % (LOW * LOW) == one > 0]
    program = Program(ParentBased(ratio) if parent_based else ratio, ids)
    found = program.begins(len(ids))
    assert [context.trace_id for context in found] == ids
    assert [context.sampled for context in found] == [one % LOW < ratio.bound for one in ids]
    expected = [one for one in ids if one % LOW < ratio.bound for _ in ("its request", "itself")]
    assert program.exported() == expected


@pytest.mark.parametrize(
    "sampler",
    [RARE, ParentBased(RARE), ParentBasedTraceIdRatio(0.01), ALWAYS_OFF, DEFAULT_OFF],
    ids=lambda one: one.get_description()[:40],
)
def test_what_is_dropped_is_not_asked_for(sampler: Sampler, asked: list[str]) -> None:
    program = Program(sampler, [DROPPED] * 100)
    assert not any(context.sampled for context in program.begins(100))
    assert len(asked) == 1


class OfItsOwn(TraceIdRatioBased):
    """Samples all but the first, whatever it is called."""

    def __init__(self) -> None:
        super().__init__(0.01)
        self.asked = 0

    def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
        self.asked += 1
        return SamplingResult(Decision.RECORD_AND_SAMPLE if self.asked > 1 else Decision.DROP)


@pytest.mark.parametrize("around", [lambda one: one, ParentBased], ids=["alone", "of a root"])
def test_a_sampler_that_is_not_the_sdks_own_is_asked_for_each(around: Any) -> None:
    program = Program(around(OfItsOwn()), [DROPPED] * 4)
    assert [context.sampled for context in program.begins(4)] == [False, True, True, True]


def test_a_sampler_that_decides_by_another_rule_is_asked_for_each(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    def upper_half(_: object, __: object, trace_id: int, *___: object) -> SamplingResult:
        return SamplingResult(
            Decision.RECORD_AND_SAMPLE if trace_id % LOW < RARE.bound * 2 else Decision.DROP
        )

    monkeypatch.setattr(TraceIdRatioBased, "should_sample", upper_half)
    program = Program(RARE, [LOW - 1, LOW - 1, DROPPED])
    assert [context.sampled for context in program.begins(3)] == [False, False, True]
    assert asked.count("observant_host.call") == 3


def test_what_the_sdk_counts_although_it_is_dropped_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    monkeypatch.setenv("OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED", "true")
    Program(RARE, [DROPPED] * 5).begins(5)
    assert len(asked) == 5


def test_a_tracer_of_another_class_is_asked_for_each(asked: list[str]) -> None:
    class Patient(Tracer):
        pass

    program = Program(RARE, [DROPPED] * 5)
    program.tracer.__class__ = Patient
    program.begins(5)
    assert len(asked) == 5


def test_another_sampler_decides_from_the_next_trace_on(asked: list[str]) -> None:
    program = Program(RARE, [DROPPED] * 8)
    assert not any(context.sampled for context in program.begins(2))
    program.tracer.sampler = DEFAULT_ON
    assert all(context.sampled for context in program.begins(2))
    program.tracer.sampler = ALWAYS_OFF
    assert not any(context.sampled for context in program.begins(4))
    assert asked.count("observant_host.call") == 1 + 2 + 1


def test_a_tracer_that_gives_no_spans_for_a_while_is_believed(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    program = Program(RARE, [DROPPED, DROPPED, TAKEN, DROPPED, DROPPED])
    program.begins(2)
    with monkeypatch.context() as disabled:
        disabled.setattr(Tracer, "_is_enabled", lambda _: False)
        assert all(context.origin is program.sink._own for context in program.begins(2))
    assert not program.exported()
    asked.clear()
    for _ in range(2):
        context, _ = program.sink.start(CALL, None, (), 1 + LOOK_EVERY_NS)
        assert context.trace_id == DROPPED
    assert len(asked) == 1


def test_an_sdk_that_is_not_as_it_was_is_asked_for_each(
    monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    monkeypatch.delattr(sampling, "ParentBasedTraceIdRatio")
    Program(ParentBased(RARE), [DROPPED] * 5).begins(5)
    assert len(asked) == 5


def test_a_sampled_trace_is_the_samplers_and_its_providers_in_all_else() -> None:
    program = Program(ParentBased(RARE), [DROPPED, TAKEN])
    _, taken = program.begins(2)
    outer: Any = taken.origin
    assert program.exported() == [TAKEN, TAKEN]
    assert outer.resource is program.tracer.resource
    assert outer.get_span_context().trace_flags.random_trace_id
    assert isinstance(program.tracer.id_generator, Listed)
