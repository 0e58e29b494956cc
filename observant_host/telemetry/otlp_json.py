"""Spans as OTLP JSON, the format of collectors' file exporter: one request a line.

Written by hand because the official encoder costs as much as a whole call of an ordinary client
(80 microseconds a span, and through the GIL it sets the host's slowest calls); with what spans have
in common encoded once, this costs a few. The official one is the reference in the tests.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.telemetry.rules import STRINGS, events_of, is_error, link_attributes
from observant_host.telemetry.shapes import Shapes, fields_of, repeating_attributes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.propagation import Link
    from observant_host.telemetry.rules import SpanEvent, Value

EVENT_TEXT: Final = 2048
"""Characters of one text in an event: an excerpt of a reply, a tail of stderr."""

_KINDS: Final = {"internal": b"1", "server": b"2", "client": b"3"}

_json: Final = msgspec.json.Encoder().encode


class _Pieces(msgspec.Struct, frozen=True):
    """What spans of one shape have in common, encoded: name and kind up to the first time,
    attributes, and the status with what closes the line. `own`: field, encoded key with the comma
    before it, and whether it is told as text, of what is each span's own. `eventful`: its fact
    tells of events."""

    named: bytes
    attributes: bytes
    own: tuple[tuple[str, bytes, bool], ...]
    eventful: bool
    end: bytes


class OtlpJson:
    """Encodes finished operations. For one thread."""

    def __init__(self, resource: Mapping[str, Value], *, version: str, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._shapes = Shapes(self._pieces, cleaner)
        self._keys: dict[str, bytes] = {}
        self._head = b"".join(
            (
                b'{"resourceSpans":[{"resource":{"attributes":[',
                self._attributes(resource),
                b']},"scopeSpans":[{"scope":{"name":"observant_host","version":',
                _json(version),
                b'},"spans":[',
            )
        )

    def line(self, done: Finished) -> bytes:
        """One complete request with one span, and its newline."""
        context, parent = done.context, done.parent
        shape = self._shapes.of(done)
        parts = [
            self._head,
            b'{"traceId":"%032x","spanId":"%016x"' % (context.trace_id, context.span_id)
            if parent is None
            else b'{"traceId":"%032x","spanId":"%016x","parentSpanId":"%016x"'
            % (context.trace_id, context.span_id, parent.span_id),
        ]
        if context.tracestate:
            parts.append(b',"traceState":' + _json(context.tracestate))
        parts += (
            b',"flags":1' if context.sampled else b',"flags":0',
            shape.named,
            b'%d","endTimeUnixNano":"%d","attributes":['
            % (done.start_ns, done.start_ns + done.duration_ns),
            shape.attributes,
        )
        fact = done.fact
        for field, head, is_text in shape.own:
            value = getattr(fact, field)
            if type(value) is int:  # an id, a pid
                parts.append(
                    b'%b{"stringValue":"%d"}}' % (head, value)
                    if is_text
                    else b'%b{"intValue":"%d"}}' % (head, value)
                )
            elif value is not None and value != "":
                parts.append(head + self._typed(value) + b"}")
        if done.links:
            parts.append(b"," + self._attributes(link_attributes(done.links)))
        parts.append(b"]")
        if done.events or shape.eventful:
            events = (*done.events, *events_of(fact, done.start_ns))
            parts.append(b',"events":[' + b",".join(map(self._event, events)) + b"]")
        if done.links:
            parts.append(b',"links":[' + b",".join(map(self._link, done.links)) + b"]")
        parts.append(shape.end)
        return b"".join(parts)

    def _pieces(self, done: Finished) -> _Pieces:
        error = is_error(done.fact, done.outcome)
        fields = fields_of(type(done.fact))
        return _Pieces(
            named=b"".join(
                (
                    b',"name":',
                    _json(self._cleaner.text(done.name)),
                    b',"kind":',
                    _KINDS[done.rule.kind],
                    b',"startTimeUnixNano":"',
                )
            ),
            attributes=self._attributes(repeating_attributes(done)),
            own=tuple((field, b"," + self._key(key), key in STRINGS) for field, key in fields.once),
            eventful=fields.eventful,
            end=(b',"status":{"code":2}' if error else b"") + b"}]}]}]}\n",
        )

    def _attributes(self, attributes: Mapping[str, Value], limit: int | None = None) -> bytes:
        return b",".join(
            [self._key(key) + self._value(value, limit) for key, value in attributes.items()]
        )

    def _key(self, key: str) -> bytes:
        """Of our own vocabulary, but for the words of an event: those are few."""
        if (known := self._keys.get(key)) is None:
            known = b'{"key":' + _json(key) + b',"value":'
            if len(self._keys) < MAX_KEYS:
                self._keys[key] = known
        return known

    def _value(self, value: object, limit: int | None = None) -> bytes:
        """A typed value, and the bracket that closes its pair."""
        return self._typed(value, limit) + b"}"

    def _typed(self, value: object, limit: int | None = None) -> bytes:
        match value:
            case float():
                return (
                    b'{"doubleValue":%r}' % value if isfinite(value) else b'{"doubleValue":"NaN"}'
                )
            case str():
                return b'{"stringValue":%b}' % _json(self._cleaner.text(value, limit=limit))
            case bool():
                return b'{"boolValue":true}' if value else b'{"boolValue":false}'
            case int():
                return b'{"intValue":"%d"}' % value
            case list() | tuple():
                values = b",".join([self._typed(one, limit) for one in value])
                return b'{"arrayValue":{"values":[%b]}}' % values
            case _:
                return self._typed(str(value), limit)

    def _event(self, event: SpanEvent) -> bytes:
        return b'{"timeUnixNano":"%d","name":%b,"attributes":[%b]}' % (
            event.time_ns,
            _json(self._cleaner.text(event.name)),
            self._attributes(event.attributes, EVENT_TEXT),
        )

    def _link(self, link: Link) -> bytes:
        return b'{"traceId":"%032x","spanId":"%016x","attributes":[%b]}' % (
            link.context.trace_id,
            link.context.span_id,
            self._attributes({"observant_host.link.type": link.type}),
        )


MAX_KEYS: Final = 1024
"""Encoded keys kept: several times the vocabulary."""
