"""The command line's own OpenTelemetry SDK: OTLP over HTTP, with every loss counted.

Imported only there: a library uses the API and the embedding program's provider.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_ON,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)

from observant_host.telemetry.rules import DECISION_SPANS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Link, SpanKind
    from opentelemetry.trace.span import TraceState
    from opentelemetry.util.types import Attributes

    from observant_host.telemetry.rules import Value

BATCH: Final = 64
"""Spans a request: the encoder holds the GIL for each batch, and larger ones are the host's p99."""
QUEUE: Final = 2048
"""Spans waiting for the exporter; when full the SDK drops the oldest, which is counted here."""
DELAY_MS: Final = 1000
TEXT_LIMIT: Final = 1024
CLOSE_S: Final = 5.0
"""How long the end of the host waits for a collector; the SDK's own retries go on for longer."""
CLOSE_DOWN_S: Final = 1.0
"""As long as for one that took nothing the last time."""
GRPC_PORT: Final = 4317

NO_URL: Final = "the endpoint for spans is no URL; write it as http://HOST:4318"

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SPOKEN: Final = "http/protobuf"


def wanted(endpoint: str | None) -> bool:
    """Whether spans are exported: an endpoint is given here, or by the standard variables."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if "otlp" not in _exporters():
        return False
    return asked_for(endpoint) is not None


def asked_for(endpoint: str | None) -> str | None:
    """The endpoint in force: the configuration's, else that of the standard variables."""
    return endpoint or _first(_ENDPOINTS)


def suspicious(endpoint: str | None) -> str | None:
    """A sentence where what is asked for cannot work as it stands, the commonest mistake first:
    the port that speaks gRPC."""
    asked = asked_for(endpoint) or ""
    try:
        parts = urlsplit(asked)
        port = parts.port
    except ValueError:
        return NO_URL
    if parts.scheme not in ("http", "https"):
        return NO_URL
    if port == GRPC_PORT:
        place = f"{parts.scheme}://{parts.hostname}:{port}"
        return (
            f"{place} is the port of OTLP over gRPC; this host speaks OTLP over HTTP, usually 4318"
        )
    protocol = _first(_PROTOCOLS) or _SPOKEN
    if protocol != _SPOKEN:
        return f"OTEL_EXPORTER_OTLP_PROTOCOL asks for {protocol}; this host speaks {_SPOKEN} only"
    return None


def unspoken() -> list[str]:
    """Exporters asked for by OTEL_TRACES_EXPORTER that there are none of here."""
    return [name for name in _exporters() if name not in ("otlp", "none")]


def _exporters() -> list[str]:
    given = os.environ.get("OTEL_TRACES_EXPORTER") or "otlp"
    return [name.strip() for name in given.split(",") if name.strip()]


def _first(names: Sequence[str]) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


class Export:
    """A provider whose spans go to `exporter`, and the counts of what became of them."""

    def __init__(
        self,
        *,
        resource: Mapping[str, Value],
        sample_ratio: float,
        exporter: SpanExporter,
    ) -> None:
        self._counting = CountingExporter(exporter)
        self._batches = BatchSpanProcessor(
            self._counting,
            max_queue_size=QUEUE,
            schedule_delay_millis=DELAY_MS,
            max_export_batch_size=BATCH,
        )
        self.provider = TracerProvider(
            sampler=KeepDecisions(sample_ratio),
            resource=Resource.create(dict(resource)),
            span_limits=SpanLimits(
                max_span_attribute_length=TEXT_LIMIT, max_attribute_length=2 * TEXT_LIMIT
            ),
            shutdown_on_exit=False,
        )
        self.provider.add_span_processor(_Ended(self._counting))
        self.provider.add_span_processor(self._batches)
        self._closed = False

    @property
    def up(self) -> bool:
        return self._counting.up

    @property
    def counts(self) -> dict[str, int]:
        """Spans by result: exported, failed, dropped."""
        return self._counting.counts()

    async def flush(self) -> None:
        """Until what is waiting is sent; not while the collector takes nothing."""
        if self.up:
            await _bounded("flush of spans", self._batches.force_flush, CLOSE_S)

    async def close(self) -> None:
        """Send what is waiting, for CLOSE_S at the most; what is left then counts as dropped."""
        if not self._closed:
            self._closed = True
            within_s = CLOSE_S if self.up else CLOSE_DOWN_S
            await _bounded("end of spans", self.provider.shutdown, within_s)
            self._counting.over()


async def _bounded(name: str, act: Callable[[], object], within_s: float) -> None:
    """The SDK ignores its own timeouts and may block for half a minute: in a daemon thread, so that
    neither the loop nor the end of the process waits for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not done.done():
            done.set_result(None)

    def run() -> None:
        try:
            act()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(tell)

    threading.Thread(target=run, name=f"observant-host {name}", daemon=True).start()
    await asyncio.wait({done}, timeout=within_s)


class CountingExporter(SpanExporter):
    """Counts what the batch processor does not tell: failures, and spans dropped unseen."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._ended = 0
        self._taken = 0
        self._exported = 0
        self._failed = 0
        self._dropped = 0
        self._over = False
        self.up = True

    def ended(self) -> None:
        self._ended += 1

    def over(self) -> None:
        """No more is sent: what was neither sent nor refused is lost, a request on its way too."""
        self._over = True
        self._dropped = max(0, self._ended - self._exported - self._failed)

    def counts(self) -> dict[str, int]:
        waiting = self._ended - self._taken - self._dropped
        if waiting > QUEUE and not self._over:
            self._dropped += waiting - QUEUE
        return {"exported": self._exported, "failed": self._failed, "dropped": self._dropped}

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.counts()
        self._taken += len(spans)
        try:
            result = self._exporter.export(spans)
        except Exception:  # noqa: BLE001 - the SDK would log it and forget the batch
            result = SpanExportResult.FAILURE
        if self._over:
            return result
        self.up = result is SpanExportResult.SUCCESS
        if self.up:
            self._exported += len(spans)
        else:
            self._failed += len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


class _Ended(SpanProcessor):
    def __init__(self, counting: CountingExporter) -> None:
        self._counting = counting

    def on_end(self, span: ReadableSpan) -> None:
        context = span.context
        if context is not None and context.trace_flags.sampled:
            self._counting.ended()


class KeepDecisions(Sampler):
    """Every decision, and what belongs to it; of other traces the given share."""

    def __init__(self, ratio: float) -> None:
        self._share = ParentBased(TraceIdRatioBased(max(0.0, min(1.0, ratio))))
        self._ratio = ratio

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        sampler: Sampler = ALWAYS_ON if name in DECISION_SPANS else self._share
        return sampler.should_sample(parent_context, trace_id, name, kind, attributes, links)

    def get_description(self) -> str:
        return f"KeepDecisions({self._ratio:g})"


def otlp_exporter(endpoint: str | None) -> SpanExporter:
    """The official exporter; `endpoint` is a base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if endpoint is None:
        return OTLPSpanExporter()
    path = urlsplit(endpoint).path
    full = endpoint if path not in ("", "/") else endpoint.rstrip("/") + "/v1/traces"
    return OTLPSpanExporter(endpoint=full)
