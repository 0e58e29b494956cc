"""observant_host as a library, in one of six states of telemetry.

{"transport": …, "target": …, "at": {…}, "state": "metrics" | …, "sink": URL}

metrics    no traces, no record
ratio      the embedding program's SDK samples one trace in a hundred; the record is kept
on         it samples every trace, metrics carry exemplars, the record is kept
own-ratio  as `ratio`, but traced by the host itself, as `observant-host run` does
own        as `on`, but traced by the host itself
otlp       as `own`, and our own exporter sends it all to `sink`
"""

from __future__ import annotations

import asyncio
import tempfile
from typing import Any

from driving import driven, result, task

from observant_host import Host, HttpServer, StdioServer
from observant_host.config import HostConfig, TelemetrySettings

RATIOS = {"ratio": 0.01, "on": 1.0}
OWN_RATIOS = {"own-ratio": 0.01, "own": 1.0, "otlp": 1.0}


def embedding_sdk(ratio: float) -> None:
    """An SDK as a program may have set it up, whose exporter drops everything: what an exporter
    costs is measured by `otlp`."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

    class Dropping(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(ratio)))
    provider.add_span_processor(BatchSpanProcessor(Dropping()))
    trace.set_tracer_provider(provider)


def host_in(state: str, *, folder: str, sink: str | None) -> Host:
    if state in RATIOS:
        embedding_sdk(RATIOS[state])
    if state not in OWN_RATIOS:
        return Host(folder, record=state != "metrics", startup_deadline_s=60)
    # without a sink nothing is exported
    settings = TelemetrySettings(otlp_endpoint=sink, sample_ratio=OWN_RATIOS[state])
    return Host(
        folder,
        record=True,
        config=HostConfig(telemetry=settings),
        configure_sdk=True,
        startup_deadline_s=60,
    )


async def flush(host: Host) -> None:
    """Everything told is written and sent."""
    from opentelemetry import trace

    await host._running().telemetry.flush()
    provider: Any = trace.get_tracer_provider()
    if hasattr(provider, "force_flush"):
        provider.force_flush()


def launch(given: dict[str, Any]) -> HttpServer | StdioServer:
    target = given["target"]
    return HttpServer(target) if given["transport"] == "http" else StdioServer(target)


async def main() -> None:
    given = task()
    with tempfile.TemporaryDirectory() as folder:
        host = host_in(given["state"], folder=folder, sink=given.get("sink"))
        host.add_server("one", launch(given))
        async with host:

            async def call(number: int) -> None:
                answer = await host.call_tool("t0", {"text": "hello", "n": number})
                assert answer.raw

            result(await driven(given, call, lambda: flush(host)))


if __name__ == "__main__":
    asyncio.run(main())
