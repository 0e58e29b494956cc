"""A call that took too long, followed as somebody on call would: from Prometheus' exemplar to the
span in the record, the log line, and the span of the server itself, all in its caller's trace."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import Host, StdioServer
from observant_host.incidents.record import read_trace
from observant_host.service.client import HostClient
from observant_host.telemetry.propagation import TraceContext
from tests.dashboards.prometheus import prometheus, until
from tests.interop import provisions
from tests.support.running import file_in, running
from tests.telemetry.test_export import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from opentelemetry.proto.trace.v1.trace_pb2 import Span

pytestmark = [pytest.mark.interop, pytest.mark.prometheus, pytest.mark.timeout(300)]

CALLER = TraceContext(0xCAFE0123456789ABCDEF0123456789AB, 0x1234567890ABCDEF, sampled=True)
CONFIG = """\
version = 1
[host]
state_dir = {state}
[service]
listen = "127.0.0.1:0"
[telemetry]
otlp_endpoint = "{collector}"
[servers.traced]
command = {python}
args = [{script}]
env = {{ OTEL_EXPORTER_OTLP_ENDPOINT = "{collector}" }}
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    one = Collector()
    yield one
    one.close()


def exported(collector: Collector, service: str, trace_id: int) -> list[Span]:
    return [
        span
        for batch in collector.batches
        for one in batch.resource_spans
        if any(
            pair.key == "service.name" and pair.value.string_value == service
            for pair in one.resource.attributes
        )
        for scope in one.scope_spans
        for span in scope.spans
        if int.from_bytes(span.trace_id, "big") == trace_id
    ]


async def arrives(collector: Collector, service: str, trace_id: int, name: str) -> Span:
    async with asyncio.timeout(30):
        while True:
            for span in exported(collector, service, trace_id):
                if span.name == name:
                    return span
            await asyncio.sleep(0.05)


def exemplars(folder: Path, address: str, query: str) -> list[dict[str, Any]]:
    """What Prometheus has, once it has any."""
    job = {"job_name": "host", "static_configs": [{"targets": [address]}]}
    text = json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]})
    with prometheus(folder, text) as asked:
        found = until("an exemplar", lambda: asked.exemplars(query, seconds=60) or None)
        return [one for series in found for one in series["exemplars"]]


async def test_from_an_exemplar_to_the_span_of_the_server(
    tmp_path: Path, collector: Collector
) -> None:
    python = provisions.python_with("traced_server")
    script = provisions.HERE / "servers/traced.py"
    file_in(tmp_path).write_text(
        CONFIG.format(
            state=json.dumps(str(tmp_path / "state")),
            collector=collector.url,
            python=json.dumps(str(python)),
            script=json.dumps(str(script)),
        )
    )
    async with running(tmp_path) as host:
        listening = await host.until("host_lifecycle", what="listening")
        address = listening["detail"].split("http://")[1].split(",")[0]
        trace = {"traceparent": CALLER.traceparent()}
        async with HostClient(host.state_dir, trace=trace) as client:
            body = json.dumps({"seconds": 1.5}).encode()
            answer = json.loads(await client.call("traced/slow", body, deadline_s=0.5))
        assert answer["outcome"] == "timeout"
        for query in (
            'observant_host_call_duration_seconds_bucket{peer="traced"}',
            'observant_host_calls_total{peer="traced", outcome="timeout"}',
        ):
            found = await asyncio.to_thread(exemplars, tmp_path / query[:26], address, query)
            (labels,) = {tuple(one["labels"].items()) for one in found}
        exemplar = dict(labels)
        assert exemplar["trace_id"] == CALLER.trace_hex

        line = await host.until("call_failed", trace_id=exemplar["trace_id"])
        assert line["span_id"] == exemplar["span_id"]
        theirs = await arrives(collector, "traced-server", CALLER.trace_id, "tools/call slow")
        ours = await arrives(collector, "observant-host", CALLER.trace_id, "tools/call slow")
        assert theirs.parent_span_id == ours.span_id
    (root,) = await asyncio.to_thread(read_trace, [tmp_path / "state"], exemplar["trace_id"])
    assert root.span.span_id == exemplar["span_id"]
    assert root.span.parent_id == CALLER.span_hex
    assert root.span.name == "observant_host.call"
    request = next(one.span for one in root.children if one.span.name == "tools/call slow")
    assert request.span_id == ours.span_id.hex()


async def test_a_library_calls_in_the_trace_of_the_program_around_it(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    python = provisions.python_with("traced_server")
    script = provisions.HERE / "servers/traced.py"
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    provider = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    host = Host(startup_deadline_s=60)
    host.add_server("traced", StdioServer([str(python), str(script)], env=env))
    async with host:
        with provider.get_tracer("a program").start_as_current_span("its work") as around:
            result = await host.call_tool("traced/fail")
    given = around.get_span_context()
    theirs = await arrives(collector, "traced-server", given.trace_id, "tools/call fail")
    assert result.is_error
    assert int.from_bytes(theirs.parent_span_id, "big") not in (0, given.span_id)
