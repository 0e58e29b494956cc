"""OTLP over HTTP: what arrives, and what is lost, is counted."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from observant_host.telemetry import export
from observant_host.telemetry.facade import Telemetry, TraceContext
from observant_host.telemetry.finished import Finished
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.otlp_proto import OtlpProto
from observant_host.telemetry.vocabulary import HostLifecycle, Request, RoutedCall, TelemetryLost
from tests.telemetry.facts import Ended

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from email.message import Message

    from observant_host.telemetry.vocabulary import Fact

CALL = RoutedCall(name="x", method="tools/call", peer="a", attempts=1, era="modern")
REQUEST = Request(peer="a", method="tools/call", era="modern", target="x")
PLACE = TraceContext(1, 2, sampled=True)


class Collector:
    """A receiver of OTLP/HTTP that answers with `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.batches: list[ExportTraceServiceRequest] = []
        self.paths: set[str] = set()
        self.headers: list[Message] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.paths.add(self.path)
                collector.headers.append(self.headers)
                collector.batches.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def names(self) -> list[str]:
        return [
            span.name
            for batch in self.batches
            for one in batch.resource_spans
            for scope in one.scope_spans
            for span in scope.spans
        ]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def make(sender: export.Sender, *, ratio: float = 1.0) -> tuple[Telemetry, export.Export]:
    made = export.Export(sender)
    ids = OwnIds(ratio=ratio, decisions=True)
    return Telemetry(starter=ids, sinks=[made], closing=[made]), made


def sender(endpoint: str | None) -> export.OtlpSender:
    who = {"service.name": "observant-host"}
    return export.otlp_sender(endpoint, resource=who, version="1", masker=Masker())


async def test_spans_arrive_in_small_batches_and_are_counted(collector: Collector) -> None:
    telemetry, made = make(sender(collector.url))
    for _ in range(100):
        telemetry.count(REQUEST)
    await telemetry.flush()
    assert collector.names() == ["tools/call x"] * 100
    assert collector.paths == {"/v1/traces"}
    assert made.counts == {"exported": 100, "failed": 0, "dropped": 0}
    assert made.up
    assert (
        max(len(batch.resource_spans[0].scope_spans[0].spans) for batch in collector.batches)
        <= export.BATCH
    )
    resource = collector.batches[0].resource_spans[0].resource
    assert any(pair.key == "service.name" for pair in resource.attributes)
    await telemetry.close()
    await telemetry.close()


async def test_a_collector_that_refuses_is_counted_as_failed(collector: Collector) -> None:
    collector.status = 400
    telemetry, made = make(sender(collector.url + "/v1/traces"))
    telemetry.count(REQUEST)
    await telemetry.flush()
    assert made.counts == {"exported": 0, "failed": 1, "dropped": 0}
    assert not made.up
    await telemetry.close()


async def test_sampling_touches_traffic_and_never_decisions(collector: Collector) -> None:
    telemetry, _ = make(sender(collector.url), ratio=0.0)
    telemetry.count(REQUEST)
    telemetry.count(HostLifecycle(what="published"))
    await telemetry.flush()
    assert collector.names() == ["observant_host.host.lifecycle"]
    await telemetry.close()


async def test_calls_that_are_told_in_one_go_are_sent_if_they_are_sampled(
    collector: Collector,
) -> None:
    telemetry, made = make(sender(collector.url))
    samples = Finished(CALL, TraceContext(1, 1)), Finished(REQUEST, TraceContext(1, 1))
    keep = made.alike(*samples)
    for sampled in (True, False, True):
        keep(Ended(1, TraceContext(1, 2, sampled), TraceContext(1, 3, sampled)))
    await telemetry.flush()
    assert collector.names() == ["tools/call x", "observant_host.call"] * 2
    await telemetry.close()


class Stuck:
    """A way to a collector that takes requests and does not answer."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.entered = threading.Event()

    def encoded(self, done: Finished) -> object:
        return done

    def send(self, spans: Sequence[object]) -> bool:
        self.entered.set()
        self.release.wait(30)
        return True

    def shutdown(self) -> None:
        pass


async def test_spans_that_a_stuck_collector_leaves_no_room_for_are_counted_exactly() -> None:
    exporter = Stuck()
    telemetry, made = make(exporter)
    for _ in range(export.ENOUGH):
        telemetry.count(REQUEST)
    assert await asyncio.to_thread(exporter.entered.wait, 10)
    for _ in range(export.QUEUE + 500):
        telemetry.count(REQUEST)
    assert made.counts["dropped"] == 500
    exporter.release.set()
    await telemetry.flush()
    assert made.counts == {"exported": export.ENOUGH + export.QUEUE, "failed": 0, "dropped": 500}
    await telemetry.close()


async def test_the_end_does_not_wait_for_a_stuck_collector_and_counts_what_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(export, "CLOSE_S", 0.1)
    exporter = Stuck()
    sink = Told()
    made = export.Export(exporter)
    telemetry = Telemetry(
        starter=OwnIds(),
        sinks=[made, sink],
        closing=[made],
        losses=lambda: {"otlp": made.counts["dropped"] + made.counts["failed"]},
    )
    for _ in range(export.ENOUGH + 10):
        telemetry.count(REQUEST)
    assert await asyncio.to_thread(exporter.entered.wait, 10)
    await telemetry.close()
    assert not exporter.release.is_set()
    assert made.counts == {"exported": 0, "failed": 0, "dropped": export.ENOUGH + 10}
    assert TelemetryLost(stream="otlp", spans=export.ENOUGH + 10) in sink.facts
    exporter.release.set()


async def test_nothing_waits_for_a_collector_that_takes_nothing(collector: Collector) -> None:
    collector.status = 400
    telemetry, made = make(sender(collector.url))
    telemetry.count(REQUEST)
    await telemetry.flush()
    assert not made.up
    told = len(collector.batches)
    telemetry.count(REQUEST)
    await telemetry.flush()
    assert len(collector.batches) == told, "it was asked again at once"
    await telemetry.close()
    assert made.counts == {"exported": 0, "failed": 2, "dropped": 0}


class Told:
    """A sink that keeps every fact."""

    name = "log"

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def wants(self, kind: type[Fact]) -> bool:
        return True

    def emit(self, done: Finished) -> None:
        self.facts.append(done.fact)


class Raising(Stuck):
    def send(self, spans: Sequence[object]) -> bool:
        raise OSError("no route")


async def test_a_span_that_cannot_be_encoded_is_lost_alone(collector: Collector) -> None:
    telemetry, made = make(sender(collector.url))
    telemetry.count(REQUEST)
    telemetry.count(Request(peer="a", method="\ud800 no text", era="modern"))
    await telemetry.flush()
    assert made.counts == {"exported": 1, "failed": 1, "dropped": 0}
    assert made.up
    await telemetry.close()


async def test_an_exporter_that_only_knows_the_objects_of_the_sdk_gets_those() -> None:
    memory = InMemorySpanExporter()
    encoder = OtlpProto({"service.name": "x"}, version="1", cleaner=Cleaner(Masker()))
    telemetry, made = make(export.OtlpSender(memory, encoder))
    telemetry.count(REQUEST)
    await telemetry.close()
    assert [span.name for span in memory.get_finished_spans()] == ["tools/call x"]
    assert made.counts == {"exported": 1, "failed": 0, "dropped": 0}


def test_the_installed_exporter_takes_what_is_encoded_already() -> None:
    assert isinstance(sender("http://127.0.0.1:9").encoded(Finished(REQUEST, PLACE)), bytes)


async def test_an_exporter_that_raises_is_counted_as_failed() -> None:
    telemetry, made = make(Raising())
    telemetry.count(REQUEST)
    await telemetry.flush()
    assert made.counts["failed"] == 1
    await telemetry.close()


@pytest.mark.parametrize(
    ("endpoint", "environment", "expected"),
    [
        (None, {}, False),
        ("http://x:4318", {}, True),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318"}, True),
        (None, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x:4318/v1/traces"}, True),
        ("http://x:4318", {"OTEL_SDK_DISABLED": "true"}, False),
        ("http://x:4318", {"OTEL_TRACES_EXPORTER": "none"}, False),
        ("http://x:4318", {"OTEL_TRACES_EXPORTER": "console"}, False),
        ("http://x:4318", {"OTEL_TRACES_EXPORTER": "console,otlp"}, True),
    ],
)
def test_spans_are_exported_only_where_somebody_asked(
    endpoint: str | None,
    environment: dict[str, str],
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*export._ENDPOINTS, "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert export.wanted(endpoint) is expected


@pytest.mark.parametrize(
    ("endpoint", "environment", "said"),
    [
        ("http://collector:4317", {}, "gRPC"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317"}, "4318"),
        ("collector:4318", {}, "no URL"),
        ("http://collector:port", {}, "no URL"),
        ("http://collector:4318", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "asks for grpc"),
        ("http://collector:4318", {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, None),
        ("http://collector:4318", {}, None),
        ("https://collector/otlp/v1/traces", {}, None),
    ],
)
def test_what_cannot_work_is_named_the_port_that_speaks_grpc_first(
    endpoint: str | None,
    environment: dict[str, str],
    said: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*export._ENDPOINTS, *export._PROTOCOLS):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = export.suspicious(endpoint)
    assert found is None if said is None else said in (found or "")


def test_exporters_that_there_are_none_of_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console, otlp")
    assert export.unspoken() == ["console"]


async def test_the_standard_variables_reach_the_request(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in export._ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    telemetry, _ = make(sender(None))
    telemetry.count(REQUEST)
    await telemetry.flush()
    await telemetry.close()
    assert collector.names() == ["tools/call x"]
    assert collector.headers[0]["x-tenant"] == "blue"
    assert collector.paths == {"/v1/traces"}
