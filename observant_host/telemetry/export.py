"""The command line's own export of spans: OTLP over HTTP, with every loss counted.

Imported only there: a library uses the API and the embedding program's provider. No object of the
SDK is made for a span here: two of them cost more than all else that a call costs, and what they
would hold is known when an operation ends.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from observant_host.telemetry.background import Background
from observant_host.telemetry.finished import pair_of
from observant_host.telemetry.masking import Cleaner
from observant_host.telemetry.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opentelemetry.sdk.trace.export import SpanExporter

    from observant_host.telemetry.finished import Finished, OneOfMany
    from observant_host.telemetry.masking import Masker
    from observant_host.telemetry.otlp_proto import OtlpProto
    from observant_host.telemetry.rules import Value
    from observant_host.telemetry.vocabulary import Fact

BATCH: Final = 1024
"""Spans a request, at the most: they are only bytes by then."""
ENOUGH: Final = 512
"""Spans that are sent at once; fewer wait for DELAY_S. A request costs as much as encoding all of
them, and small ones would make the thread busy all the time."""
QUEUE: Final = 2048
"""Spans waiting for the thread; when it is full, later ones are dropped and counted."""
DELAY_S: Final = 1.0
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
    """The sink named "span" of the command line: what is sampled goes to a collector, by a thread
    of its own; what becomes of it is counted."""

    name: Final = "span"

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._thread: Background[object] = Background(
            "observant-host spans", self._work, delay_s=DELAY_S, batch=BATCH, enough=ENOUGH
        )
        self._ended = 0
        self._exported = 0
        self._failed = 0
        self._dropped = 0
        self._closed = self._over = False
        self.up = True

    @property
    def counts(self) -> dict[str, int]:
        """Spans by result: exported, failed, dropped."""
        return {"exported": self._exported, "failed": self._failed, "dropped": self._dropped}

    def wants(self, kind: type[Fact]) -> bool:
        return RULES[kind].span is not None

    def emit(self, done: Finished) -> None:
        if not done.context.sampled or self._closed:
            return
        self._ended += 1
        if self._thread.waiting() >= QUEUE:
            self._dropped += 1
            return
        try:
            span = self._sender.encoded(done)
        except Exception:  # noqa: BLE001 - one span that cannot be encoded is lost alone
            self._failed += 1
            return
        self._thread.put(span)

    def alike(self, call: Finished, request: Finished) -> Callable[[OneOfMany], None]:
        """What is sampled is sent as it would be one by one; see `Repetitive`."""

        def keep(done: OneOfMany) -> None:
            if done.outer.sampled:
                for one in pair_of(done, call, request):
                    self.emit(one)

        return keep

    async def flush(self) -> None:
        """Until what is waiting is sent; not while the collector takes nothing."""
        if self.up:
            await self._thread.flush()

    async def close(self) -> None:
        """Send what is waiting, for CLOSE_S at the most; what was neither sent nor refused by then
        is lost, a request on its way too."""
        if not self._closed:
            self._closed = True
            await self._thread.close(CLOSE_S if self.up else CLOSE_DOWN_S)
            self._over = True
            self._dropped = max(0, self._ended - self._exported - self._failed)
            self._sender.shutdown()

    def _work(self, spans: list[object]) -> None:
        if not spans:
            return
        try:
            taken = self._sender.send(spans)
        except Exception:  # noqa: BLE001 - whatever it is, the next batch is tried
            taken = False
        if self._over:
            return
        self.up = taken
        if taken:
            self._exported += len(spans)
        else:
            self._failed += len(spans)


class Sender(Protocol):
    """How spans get to a collector."""

    def encoded(self, done: Finished) -> object:
        """What waits to be sent; on the loop. May raise."""

    def send(self, spans: Sequence[Any]) -> bool:
        """Whether the collector took these. Blocks; for one thread. May raise."""

    def shutdown(self) -> None:
        """No more is sent: what is being sent may be given up."""


class OtlpSender:
    """The official exporter, given requests that our own encoder made; it knows the standard
    variables, TLS, compression, and when to try again."""

    def __init__(self, exporter: SpanExporter, encoder: OtlpProto) -> None:
        self._exporter = exporter
        self._encoder = encoder
        client = getattr(exporter, "_client", None)
        self._post: Callable[[bytes], Any] | None = getattr(client, "export", None)

    def encoded(self, done: Finished) -> object:
        """Bytes; an object of the SDK for an exporter of a version that takes nothing else."""
        return self._encoder.readable(done) if self._post is None else self._encoder.span(done)

    def send(self, spans: Sequence[Any]) -> bool:
        if self._post is None:
            return self._exporter.export(spans).name == "SUCCESS"
        return bool(self._post(self._encoder.request(spans)).success)

    def shutdown(self) -> None:
        self._exporter.shutdown()


def otlp_sender(
    endpoint: str | None, *, resource: Mapping[str, Value], version: str, masker: Masker
) -> OtlpSender:
    """To `endpoint`, a base URL as in OTEL_EXPORTER_OTLP_ENDPOINT; None: where the standard
    variables say."""
    from observant_host.telemetry.otlp_proto import OtlpProto

    encoder = OtlpProto(resource, version=version, cleaner=Cleaner(masker))
    return OtlpSender(otlp_exporter(endpoint), encoder)


def otlp_exporter(endpoint: str | None) -> SpanExporter:
    """The official exporter; `endpoint` is a base URL, as in OTEL_EXPORTER_OTLP_ENDPOINT."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if endpoint is None:
        return OTLPSpanExporter()
    path = urlsplit(endpoint).path
    full = endpoint if path not in ("", "/") else endpoint.rstrip("/") + "/v1/traces"
    return OTLPSpanExporter(endpoint=full)
