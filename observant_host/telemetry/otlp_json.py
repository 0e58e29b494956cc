"""Spans as OTLP JSON, the format of collectors' file exporter: one request a line.

Written by hand because the official encoder costs as much as a whole call of an ordinary client
(80 microseconds a span, and through the GIL it sets the host's slowest calls); with what spans have
in common encoded once, this costs a few. The official one is the reference in the tests.
"""

from __future__ import annotations

from itertools import chain
from math import inf, isfinite
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from observant_host.telemetry.finished import dequeued
from observant_host.telemetry.rules import STRINGS, events_of, is_error, link_attributes
from observant_host.telemetry.shapes import Shapes, fields_of, repeating_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from observant_host.telemetry.finished import Finished, OneOfMany
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.propagation import Link
    from observant_host.telemetry.rules import SpanEvent, Value
    from observant_host.telemetry.vocabulary import Fact

EVENT_TEXT: Final = 2048
"""Characters of one text in an event: an excerpt of a reply, a tail of stderr."""

_KINDS: Final = {"internal": b"1", "server": b"2", "client": b"3"}

_WHEN: Final = b',"flags":%d,"startTimeUnixNano":"%d","endTimeUnixNano":"%d"'
_ROOT: Final = b'{"traceId":"%032x","spanId":"%016x"' + _WHEN
_CHILD: Final = b'{"traceId":"%032x","spanId":"%016x","parentSpanId":"%016x"' + _WHEN
"""How spans begin."""
_COMMA: Final = (b",",)
_TAIL: Final = (b"]}]}]}\n",)
_ITS_ID: Final = 7_310_578_961_843_127_543
_ITS_MS: Final = 7_310_578_961.843127
_AN_ID, _A_MS = b"%d" % _ITS_ID, b"%r" % _ITS_MS
"""Stand for a request's id, or a moment, and for milliseconds while a form is made."""

_UNBOUNDED: Final = {inf: b'"Infinity"', -inf: b'"-Infinity"'}
"""And "NaN": what JSON has no number for. Source: ProtoJSON format, double."""

_json: Final = msgspec.json.Encoder().encode


class _Pieces(msgspec.Struct, frozen=True):
    """What spans of one shape have in common, encoded: name, kind and attributes, and the status
    with what closes the span. `own`: field, encoded key with the comma before it, and whether it is
    told as text, of what is each span's own. `eventful`: its fact tells of events."""

    common: bytes
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
        return b"".join(self.pieces_of([(self.span(done),)]))

    def pieces_of(self, spans: Sequence[Sequence[bytes]]) -> list[bytes]:
        """One complete request with these encoded spans, and its newline: in pieces as they are,
        since to put them together costs more than to write them."""
        parts: list[Sequence[bytes]] = [_COMMA] * (2 * len(spans) + 1)
        parts[1::2] = spans
        parts[0], parts[-1] = (self._head,), _TAIL
        return list(chain.from_iterable(parts))

    def span(self, done: Finished) -> bytes:
        """One span, to go into a request."""
        context, parent, start = done.context, done.parent, done.start_ns
        shape = self._shapes.of(done)
        ids, when = (context.trace_id, context.span_id), (start, start + done.duration_ns)
        parts = [
            _ROOT % (*ids, context.sampled, *when)
            if parent is None
            else _CHILD % (*ids, parent.span_id, context.sampled, *when),
            shape.common,
        ]
        self._add_own(parts, shape, done.fact)
        if done.links:
            parts.append(b"," + self._attributes(link_attributes(done.links)))
        parts.append(b"]")
        if context.tracestate:
            parts.append(b',"traceState":' + _json(context.tracestate))
        if done.events or shape.eventful:
            events = (*done.events, *events_of(done.fact, start))
            parts.append(b',"events":[' + b",".join(map(self._event, events)) + b"]")
        if done.links:
            parts.append(b',"links":[' + b",".join(map(self._link, done.links)) + b"]")
        parts.append(shape.end)
        return b"".join(parts)

    def pair(self, call: Finished, request: Finished) -> Callable[[OneOfMany], tuple[bytes, ...]]:
        """What encodes calls, each after its request, that differ from these two in numbers only:
        what `span` would give of both, but for what all of them have in common in pieces that are
        made once. Not for what has a trace state."""
        masker, version = self._cleaner.masker, -1
        of_request = of_call = root = child = late_id = of_late = late_end = b""

        def encoded(done: OneOfMany) -> tuple[bytes, ...]:
            nonlocal version, of_request, of_call, root, child, late_id, of_late, late_end
            if version != masker.version:
                version = masker.version
                of_request, after_id = self._around_id(request)
                of_call, root, child = self._common(call), after_id + _ROOT, after_id + _CHILD
                late_id, of_late, late_end = self._late(call, request)
            outer, inner, parent, began = done.outer, done.context, done.parent, done.start_ns
            trace_id, span_id = outer.trace_id, outer.span_id
            sent, when = began + done.lead_ns, (outer.sampled, began, began + done.duration_ns)
            ids = trace_id, inner.span_id, span_id, inner.sampled, sent, sent + done.inner_ns
            if queued_ns := done.queued_ns:
                queued_ms = _as_ms(queued_ns)
                return (
                    _CHILD % ids,
                    of_request,
                    late_id % (done.id, _as_ms(done.deadline_ns)),
                    _ROOT % (trace_id, span_id, *when)
                    if parent is None
                    else _CHILD % (trace_id, span_id, parent.span_id, *when),
                    of_late,
                    late_end % (queued_ms, began + queued_ns, queued_ms),
                )
            return (
                _CHILD % ids,
                of_request,
                root % (done.id, trace_id, span_id, *when)
                if parent is None
                else child % (done.id, trace_id, span_id, parent.span_id, *when),
                of_call,
            )

        return encoded

    def _around_id(self, request: Finished) -> tuple[bytes, bytes]:
        """What spans of such requests have in common before their id, and a form of it and what
        comes after."""
        numbered = replace(request.fact, request_id=_ITS_ID)
        common = self._common(replace(request, fact=numbered))
        before, after = common.split(_AN_ID)
        return before, b"%d" + _form(after) + b","

    def _late(self, call: Finished, request: Finished) -> tuple[bytes, bytes, bytes]:
        """Of what stood in line first: a form of a request's id and what comes after, what calls
        have in common before that time, and a form of it and what comes after."""
        sent = replace(request.fact, request_id=_ITS_ID, deadline_ms=_ITS_MS)
        routed, events = replace(call.fact, queued_ms=_ITS_MS), (dequeued(_ITS_ID, _ITS_MS),)
        _, after_id = self._common(replace(request, fact=sent)).split(_AN_ID)
        of_call = self._common(replace(call, fact=routed, events=events))
        before, after, end = of_call.split(_A_MS)
        return (
            b"%d" + _form(after_id) + b",",
            before,
            b"%b" + _form(b"%b%b%b" % (after, _A_MS, end)),
        )

    def _common(self, done: Finished) -> bytes:
        """Of one span, all that comes after its numbers."""
        shape = self._pieces(done)
        parts = [shape.common]
        self._add_own(parts, shape, done.fact)
        parts.append(b"]")
        if done.events:
            parts.append(b',"events":[' + b",".join(map(self._event, done.events)) + b"]")
        return b"".join((*parts, shape.end))

    def _add_own(self, parts: list[bytes], shape: _Pieces, fact: Fact) -> None:
        for field, head, is_text in shape.own:
            value = getattr(fact, field)
            if type(value) is int:  # an id, a pid
                parts.append(
                    b'%b{"stringValue":"%d"}}' % (head, value)
                    if is_text
                    else b'%b{"intValue":"%d"}}' % (head, value)
                )
            elif type(value) is float and isfinite(value):
                parts.append(b'%b{"doubleValue":%r}}' % (head, value))
            elif value is not None and value != "":
                parts.append(head + self._typed(value) + b"}")

    def _pieces(self, done: Finished) -> _Pieces:
        error = is_error(done.fact, done.outcome)
        fields = fields_of(type(done.fact))
        name, kind = _json(self._cleaner.text(done.name)), _KINDS[done.rule.kind]
        return _Pieces(
            common=b',"name":%b,"kind":%b,"attributes":[%b'
            % (name, kind, self._attributes(repeating_attributes(done))),
            own=tuple((field, b"," + self._key(key), key in STRINGS) for field, key in fields.once),
            eventful=fields.eventful,
            end=b',"status":{"code":2}}' if error else b"}",
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
                known = b"%r" % value if isfinite(value) else _UNBOUNDED.get(value, b'"NaN"')
                return b'{"doubleValue":%b}' % known
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


def _form(text: bytes) -> bytes:
    """With holes for what stands in it for an id, a moment and milliseconds."""
    return text.replace(b"%", b"%%").replace(_AN_ID, b"%d").replace(_A_MS, b"%b")


def _as_ms(duration_ns: int) -> bytes:
    """The same number: the shortest digits of a float cost more than the rest of a span."""
    return b"%d.%06d" % divmod(duration_ns, 1_000_000)


MAX_KEYS: Final = 1024
"""Encoded keys kept: several times the vocabulary."""
