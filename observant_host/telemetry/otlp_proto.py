"""Spans as OTLP protobuf, for a collector: what they have in common by the official encoder, once.

That encoder takes 37 microseconds a span, two or three spans a call, and holds the GIL meanwhile.
What differs between two calls of one tool is put beside its bytes by hand; what is rare (links, a
caller's trace state) goes through it whole. The tests compare both for every kind of span.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import msgspec
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace.status import Status, StatusCode

from observant_host.telemetry.rules import STRINGS, events_of, is_error
from observant_host.telemetry.shapes import (
    Shapes,
    add_own,
    fields_of,
    repeating_attributes,
)
from observant_host.telemetry.spans import KINDS, cleaned, link_of, span_context

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.util.types import AttributeValue

    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.rules import SpanEvent, Value

_BY_HAND: Final = (
    *("trace_id", "span_id", "parent_span_id", "trace_state", "flags", "events"),
    *("start_time_unix_nano", "end_time_unix_nano"),
)
"""Fields that are not part of a shape."""
_LOW_64: Final = (1 << 64) - 1

# Tags of the fields written here: opentelemetry/proto/trace/v1/trace.proto, common/v1/common.proto.
_TRACE_ID: Final = b"\x0a\x10"
_SPAN_ID: Final = b"\x12\x08"
_PARENT: Final = b"\x22\x08"
_ATTRIBUTE: Final = b"\x4a"
_EVENT: Final = b"\x5a"
_LOCAL: Final = b"\x85\x01\x00\x01\x00\x00"
_REMOTE: Final = b"\x85\x01\x00\x03\x00\x00"
"""Flags: whether the parent is remote is known, and here it is."""
_START: Final = 0x39
_END: Final = 0x41

_ids: Final = Struct(">2sQQ2sQ").pack
_parent: Final = Struct(">2sQ").pack
_times: Final = Struct("<BQBQ").pack
_moment: Final = Struct("<BQ").pack
_double: Final = Struct("<Bd").pack


class _Shape(msgspec.Struct, frozen=True):
    """What spans of one shape have in common: name, kind, status and the attributes that repeat.
    `own`: field, key, and the bytes before a number, of what is each span's own. `eventful`: its
    fact tells of events."""

    common: bytes
    own: tuple[tuple[str, str, bytes], ...]
    eventful: bool


class OtlpProto:
    """Encodes finished operations into export requests. For one thread."""

    def __init__(self, resource: Mapping[str, Value], *, version: str, cleaner: Cleaner) -> None:
        self._clean = cleaner.text
        self._resource = Resource.create(dict(resource))
        self._scope = InstrumentationScope("observant_host", version)
        self._shapes = Shapes(self._shape, cleaner)
        empty = ReadableSpan(
            "",
            trace.INVALID_SPAN_CONTEXT,
            resource=self._resource,
            instrumentation_scope=self._scope,
        )
        around = encode_spans([empty]).resource_spans[0]
        self._around_scope = _field(b"\x0a", around.resource.SerializeToString())
        self._around_spans = _field(b"\x0a", around.scope_spans[0].scope.SerializeToString())

    def request(self, spans: Sequence[bytes]) -> bytes:
        """One export request with these encoded spans."""
        scope = self._around_spans + b"".join([_field(b"\x12", span) for span in spans])
        return _field(b"\x0a", self._around_scope + _field(b"\x12", scope))

    def span(self, done: Finished) -> bytes:
        """One encoded span."""
        context, parent, fact = done.context, done.parent, done.fact
        if done.links or context.tracestate:
            return _officially(self.readable(done))
        shape = self._shapes.of(done)
        trace_id, start = context.trace_id, done.start_ns
        ids = _ids(_TRACE_ID, trace_id >> 64, trace_id & _LOW_64, _SPAN_ID, context.span_id)
        times = _times(_START, start, _END, start + done.duration_ns)
        if parent is None:
            parts = [shape.common, ids, times, _LOCAL]
        else:
            flags = _REMOTE if parent.origin is None else _LOCAL
            parts = [shape.common, ids, times, _parent(_PARENT, parent.span_id), flags]
        for field, key, head in shape.own:
            value = getattr(fact, field)
            if type(value) is float:
                parts.append(head + _double(0x21, value))
            elif value is not None and value != "":
                if type(value) is str:
                    value = self._clean(value)
                elif key in STRINGS:
                    value = str(value)
                parts.append(_field(_ATTRIBUTE, _pair(key, value)))
        if done.events or shape.eventful:
            events = (*done.events, *events_of(fact, start))
            parts += [_field(_EVENT, self._event(event)) for event in events]
        return b"".join(parts)

    def readable(self, done: Finished) -> ReadableSpan:
        """The same as an object of the SDK."""
        attributes = cleaned(repeating_attributes(done), self._clean)
        add_own(attributes, done, fields_of(type(done.fact)).once, self._clean)
        return self._readable(done, attributes)

    def _shape(self, done: Finished) -> _Shape:
        span = _span(self._readable(done, cleaned(repeating_attributes(done), self._clean)))
        for name in _BY_HAND:
            span.ClearField(name)
        fields = fields_of(type(done.fact))
        own = tuple((field, key, _before_double(key)) for field, key in fields.once)
        return _Shape(span.SerializeToString(), own, fields.eventful)

    def _readable(self, done: Finished, attributes: Mapping[str, AttributeValue]) -> ReadableSpan:
        error = is_error(done.fact, done.outcome)
        return ReadableSpan(
            done.name,
            span_context(done.context),
            parent=None if done.parent is None else span_context(done.parent),
            resource=self._resource,
            attributes=attributes,
            events=[
                Event(one.name, cleaned(one.attributes, self._clean), one.time_ns)
                for one in (*done.events, *events_of(done.fact, done.start_ns))
            ],
            links=[link_of(link) for link in done.links],
            kind=KINDS[done.rule.kind],
            status=Status(StatusCode.ERROR if error else StatusCode.UNSET),
            start_time=done.start_ns,
            end_time=done.start_ns + done.duration_ns,
            instrumentation_scope=self._scope,
        )

    def _event(self, event: SpanEvent) -> bytes:
        attributes = cleaned(event.attributes, self._clean)
        return b"".join(
            (
                _moment(0x09, event.time_ns),
                _field(b"\x12", event.name.encode()),
                *(_field(b"\x1a", _pair(key, value)) for key, value in attributes.items()),
            )
        )


def _span(span: ReadableSpan) -> Any:
    return encode_spans([span]).resource_spans[0].scope_spans[0].spans[0]


def _officially(span: ReadableSpan) -> bytes:
    encoded: bytes = _span(span).SerializeToString()
    return encoded


def _before_double(key: str) -> bytes:
    """All of an attribute but its value, where that is a number of eight bytes."""
    return _field(_ATTRIBUTE, _pair(key, 0.0))[: -len(_double(0x21, 0.0))]


def _pair(key: str, value: object) -> bytes:
    """A KeyValue."""
    return _field(b"\x0a", key.encode()) + _field(b"\x12", _any(value))


def _any(value: object) -> bytes:
    """An AnyValue."""
    match value:
        case float():
            return _double(0x21, value)
        case str():
            return _field(b"\x0a", value.encode())
        case bool():
            return b"\x10\x01" if value else b"\x10\x00"
        case int():
            return b"\x18" + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)
        case list() | tuple():
            values = b"".join([_field(b"\x0a", _any(one)) for one in value])
            return _field(b"\x2a", values)
        case _:
            return _any(str(value))


def _field(tag: bytes, value: bytes) -> bytes:
    size = len(value)
    if size < 0x80:
        return b"%b%c%b" % (tag, size, value)
    return tag + _varint(size) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
