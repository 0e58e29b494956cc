"""OTLP JSON read back: plain values out of typed attributes.

Format: OpenTelemetry protocol, JSON encoding (ids as hex, 64-bit integers as strings), as written
by this host and by collectors' file exporters; also as protobuf's own JSON, which Tempo gives
("batches", ids in base64).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator


Few = Mapping[str, frozenset[str]]
"""Attribute keys by span name."""


class RecordedSpan(msgspec.Struct, frozen=True):
    """One span. Times are nanoseconds since the epoch; ids hex; `parent_id` "" for a root."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    events: tuple[tuple[str, dict[str, Any]], ...]
    links: tuple[tuple[str, str, dict[str, Any]], ...]
    error: bool
    instance: str
    service_version: str = ""


class _Pair(msgspec.Struct):
    key: str
    value: dict[str, Any] = {}


class _Event(msgspec.Struct):
    name: str = ""
    attributes: list[_Pair] = []


class _Link(msgspec.Struct, rename="camel"):
    trace_id: str = ""
    span_id: str = ""
    attributes: list[_Pair] = []


class _Status(msgspec.Struct):
    code: int | str = 0


class _Span(msgspec.Struct, rename="camel"):
    trace_id: str
    span_id: str
    name: str = ""
    parent_span_id: str = ""
    start_time_unix_nano: int | str = 0
    end_time_unix_nano: int | str = 0
    attributes: msgspec.Raw = msgspec.Raw(b"[]")  # most spans of a line are not asked for
    events: list[_Event] = []
    links: list[_Link] = []
    status: _Status = msgspec.field(default_factory=_Status)


class _Scope(msgspec.Struct):
    spans: list[_Span] = []


class _Resource(msgspec.Struct):
    attributes: list[_Pair] = []


class _ResourceSpans(msgspec.Struct, rename="camel"):
    resource: _Resource = msgspec.field(default_factory=_Resource)
    scope_spans: list[_Scope] = []


class _Batches(msgspec.Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] = []
    batches: list[_ResourceSpans] = []


class _Request(_Batches, rename="camel"):
    trace: _Batches = msgspec.field(default_factory=_Batches)


_decoder: Final = msgspec.json.Decoder(_Request)
_pairs: Final = msgspec.json.Decoder(list[_Pair]).decode
_RESOURCE: Final = frozenset({"service.instance.id", "host.name", "service.version"})
_ERROR: Final = (2, "STATUS_CODE_ERROR")


def spans_of_line(line: bytes) -> Iterator[RecordedSpan]:
    """Every span of one request; nothing where the line is torn or no such request."""
    yield from spans_or_none(line) or ()


def spans_or_none(
    line: bytes, few: Few | None = None, names: frozenset[str] | None = None
) -> list[RecordedSpan] | None:
    """Every span of one request; None where the line is torn or no such request.

    few: of spans of these names only these attributes are wanted (most of the work is theirs).
    names: only spans of these are.
    """
    try:
        request = _decoder.decode(line)
        found = (*request.resource_spans, *request.batches)
        nested = (*request.trace.resource_spans, *request.trace.batches)
        return [span for part in (*found, *nested) for span in _spans(part, few or {}, names)]
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _spans(part: _ResourceSpans, few: Few, names: frozenset[str] | None) -> Iterator[RecordedSpan]:
    resource = _plain(part.resource.attributes, _RESOURCE)
    instance = str(resource.get("service.instance.id") or resource.get("host.name") or "")
    version = str(resource.get("service.version", ""))
    for scope in part.scope_spans:
        for span in scope.spans:
            if names is None or span.name in names:
                yield _recorded(span, instance, version, few.get(span.name))


def _recorded(
    span: _Span, instance: str, version: str, wanted: frozenset[str] | None
) -> RecordedSpan:
    return RecordedSpan(
        trace_id=_hex(span.trace_id, 16),
        span_id=_hex(span.span_id, 8),
        parent_id=_hex(span.parent_span_id, 8),
        name=span.name,
        start_ns=int(span.start_time_unix_nano),
        end_ns=int(span.end_time_unix_nano),
        attributes=_plain(_pairs(span.attributes), wanted),
        events=tuple((event.name, _plain(event.attributes)) for event in span.events),
        links=tuple(
            (_hex(li.trace_id, 16), _hex(li.span_id, 8), _plain(li.attributes)) for li in span.links
        ),
        error=span.status.code in _ERROR,
        instance=instance,
        service_version=version,
    )


def _hex(given: str, size: int) -> str:
    """An id as lower-case hex, also where it came in base64; what is neither stays as it is."""
    if len(given) == 2 * size or not given:
        return given.lower()
    try:
        return base64.b64decode(given, validate=True).hex()
    except binascii.Error:
        return given


def _plain(pairs: list[_Pair], wanted: frozenset[str] | None = None) -> dict[str, Any]:
    if wanted is None:
        return {pair.key: _value(pair.value) for pair in pairs}
    return {pair.key: _value(pair.value) for pair in pairs if pair.key in wanted}


def _value(value: dict[str, Any]) -> Any:
    for kind, given in value.items():
        if kind in ("stringValue", "boolValue"):
            return given
        return _typed(kind, given)
    return None


def _typed(kind: str, given: Any) -> Any:
    match kind:
        case "intValue":
            return int(given)
        case "doubleValue":
            return float(given)
        case "arrayValue":
            return [_value(one) for one in (given or {}).get("values") or ()]
        case _:
            return given
