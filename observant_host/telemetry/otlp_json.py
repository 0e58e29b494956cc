"""Spans as OTLP JSON, the format of collectors' file exporter: one request a line.

Written by hand because the official encoder costs as much as a whole call of an ordinary client
(80 microseconds a span, and through the GIL it sets the host's slowest calls); with the pieces
that repeat encoded once, this costs a few. The official one is the reference in the tests.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, get_args

import msgspec

from observant_host.telemetry.rules import (
    ELSEWHERE,
    ERROR_TYPE,
    OUTCOME,
    attribute,
    events_of,
    extra_attributes,
    is_error,
    keys_of,
    link_attributes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.propagation import Link
    from observant_host.telemetry.rules import SpanEvent, Value
    from observant_host.telemetry.vocabulary import Fact

MAX_CACHED: Final = 4096
"""Encoded attribute pairs kept: peers, tools, methods and outcomes, with room."""
MAX_KNOWN: Final = 512
"""Encoded values kept for each field of each fact: below two MiB in all."""
EVENT_TEXT: Final = 2048
"""Characters of one text in an event: an excerpt of a reply, a tail of stderr."""

_KINDS: Final = {"internal": b"1", "server": b"2", "client": b"3"}
_ONCE: Final = frozenset({"jsonrpc.request.id", "process.pid"})
"""Attributes whose values do not come again: caching them would push out those that do."""

_json: Final = msgspec.json.Encoder().encode


class _Field(msgspec.Struct, frozen=True):
    """One field of a fact: its encoded key, and the pieces of the values it had so far."""

    name: str
    key: str
    head: bytes
    once: bool
    known: dict[object, bytes]


def _once(name: str, key: str, kind: object) -> bool:
    """Numbers that are measured, ids, and what is told as events: never the same twice."""
    measured = kind is float or float in get_args(kind)
    return measured or key in _ONCE or name in ELSEWHERE


class OtlpJson:
    """Encodes finished operations. For one thread."""

    def __init__(self, resource: Mapping[str, Value], *, version: str, cleaner: Cleaner) -> None:
        self._cleaner = cleaner
        self._version = cleaner.version
        self._pairs: dict[tuple[str, type, object], bytes] = {}
        self._keys: dict[str, bytes] = {}
        self._plans: dict[type[Fact], tuple[_Field, ...]] = {}
        self._names: dict[str, bytes] = {}
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
        context = done.context
        if self._version != self._cleaner.version:
            self._version = self._cleaner.version
            self._pairs.clear()
            self._names.clear()
            self._plans.clear()
        parts = [
            self._head,
            b'{"traceId":"%032x","spanId":"%016x"' % (context.trace_id, context.span_id),
        ]
        if done.parent is not None:
            parts.append(b',"parentSpanId":"%016x"' % done.parent.span_id)
        if context.tracestate:
            parts.append(b',"traceState":' + _json(context.tracestate))
        parts += (
            b',"flags":%d,"name":' % context.sampled,
            self._name(done.name),
            b',"kind":',
            _KINDS[done.rule.kind],
            b',"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":['
            % (done.start_ns, done.start_ns + done.duration_ns),
            self._of_fact(done),
            b"]",
        )
        if events := (*done.events, *events_of(done.fact, done.start_ns)):
            parts.append(b',"events":[' + b",".join(map(self._event, events)) + b"]")
        if done.links:
            parts.append(b',"links":[' + b",".join(map(self._link, done.links)) + b"]")
        if is_error(done.fact, done.outcome):
            parts.append(b',"status":{"code":2}')
        parts.append(b"}]}]}]}\n")
        return b"".join(parts)

    def _name(self, name: str) -> bytes:
        if (known := self._names.get(name)) is None:
            if len(self._names) >= MAX_CACHED:
                self._names.clear()
            known = self._names[name] = _json(self._cleaner.text(name))
        return known

    def _of_fact(self, done: Finished) -> bytes:
        """What `done.attributes` says, without making it: one lookup a field."""
        fact = done.fact
        pieces = []
        values = msgspec.structs.astuple(fact)
        for field, value in zip(self._plan(type(fact)), values, strict=True):
            piece = None if field.once else field.known.get(value)
            if piece is None:
                piece = self._field(field, value)
            if piece:
                pieces.append(piece)
        for key, extra in extra_attributes(fact).items():
            pieces.append(self._pair(key, extra))
        pieces.append(self._pair(OUTCOME, done.outcome))
        if done.error_type is not None:
            pieces.append(self._pair(ERROR_TYPE, done.error_type))
        for key, extra in link_attributes(done.links).items():
            pieces.append(self._key(key) + self._value(extra) + b"}")
        return b",".join(pieces)

    def _plan(self, kind: type[Fact]) -> tuple[_Field, ...]:
        if (plan := self._plans.get(kind)) is None:
            types = {field.name: field.type for field in msgspec.structs.fields(kind)}
            plan = self._plans[kind] = tuple(
                _Field(name, key, self._key(key), once=_once(name, key, types[name]), known={})
                for name, key in keys_of(kind)
            )
        return plan

    def _field(self, field: _Field, value: object) -> bytes:
        plain = attribute(field.name, field.key, value)
        piece = b"" if plain is None else field.head + self._value(plain) + b"}"
        if not field.once:
            if len(field.known) >= MAX_KNOWN:
                field.known.clear()
            field.known[value] = piece
        return piece

    def _attributes(self, attributes: Mapping[str, Value]) -> bytes:
        return b",".join([self._pair(key, value) for key, value in attributes.items()])

    def _pair(self, key: str, value: Value) -> bytes:
        kind = type(value)
        if kind is float or kind is list or key in _ONCE:
            return self._key(key) + self._value(value) + b"}"
        cached = (key, kind, value)
        if (known := self._pairs.get(cached)) is None:
            if len(self._pairs) >= MAX_CACHED:
                self._pairs.clear()
            known = self._pairs[cached] = self._key(key) + self._value(value) + b"}"
        return known

    def _key(self, key: str) -> bytes:
        if (known := self._keys.get(key)) is None:
            known = self._keys[key] = b'{"key":' + _json(key) + b',"value":'
        return known

    def _value(self, value: object, limit: int | None = None) -> bytes:
        match value:
            case bool():
                return b'{"boolValue":true}' if value else b'{"boolValue":false}'
            case int():
                return b'{"intValue":"%d"}' % value
            case float():
                text = repr(value) if math.isfinite(value) else '"NaN"'
                return b'{"doubleValue":%s}' % text.encode()
            case list() | tuple():
                return b'{"arrayValue":{"values":[%s]}}' % b",".join(map(self._value, value))
            case _:
                return b'{"stringValue":%s}' % _json(self._cleaner.text(str(value), limit=limit))

    def _event(self, event: SpanEvent) -> bytes:
        pairs = [
            self._key(key) + self._value(value, EVENT_TEXT) + b"}"
            for key, value in event.attributes.items()
        ]
        return b'{"timeUnixNano":"%d","name":%s,"attributes":[%s]}' % (
            event.time_ns,
            self._name(event.name),
            b",".join(pairs),
        )

    def _link(self, link: Link) -> bytes:
        return b'{"traceId":"%032x","spanId":"%016x","attributes":[%s]}' % (
            link.context.trace_id,
            link.context.span_id,
            self._pair("observant_host.link.type", link.type),
        )
