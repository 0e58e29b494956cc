"""Trace ids as plain values, so that no code but this room knows a telemetry library.

Formats follow W3C Trace Context level 1; in MCP they travel as `_meta.traceparent` and
`_meta.tracestate` (MCP 2026-07-28 basic › _meta, SEP-414).
"""

from __future__ import annotations

import os
import random
import re
from typing import Final

import msgspec

_TRACEPARENT: Final = re.compile(
    r"^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?\Z"
)
_TRACESTATE: Final = re.compile(r"[\t -~]{0,512}")
"""A tracestate that is passed on: of the characters and length that W3C Trace Context 3.3.1 has.
Bytes of a header that are no text would be text to nobody behind us."""

_random: Final = random.Random()  # noqa: S311 - trace ids identify, they protect nothing
os.register_at_fork(after_in_child=_random.seed)  # else all workers of a program give the same ids
random_bits: Final = _random.getrandbits


class TraceContext(msgspec.Struct, frozen=True, gc=False):
    """One span's identity: 128 and 64 bit integers, never 0.

    `origin` is the telemetry library's own object for it, kept so that a child need not rebuild
    it, or who gave these ids where no library did; None: they came from elsewhere. It takes no part
    in comparisons.
    """

    trace_id: int
    span_id: int
    sampled: bool = False
    tracestate: str = ""
    origin: object | None = None

    def traceparent(self) -> str:
        return "00-%032x-%016x-%02x" % (self.trace_id, self.span_id, self.sampled)  # noqa: UP031 - twice as fast as format()

    @property
    def trace_hex(self) -> str:
        return f"{self.trace_id:032x}"

    @property
    def span_hex(self) -> str:
        return f"{self.span_id:016x}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TraceContext):
            return NotImplemented
        return (self.trace_id, self.span_id, self.sampled, self.tracestate) == (
            other.trace_id,
            other.span_id,
            other.sampled,
            other.tracestate,
        )

    def __hash__(self) -> int:
        return hash((self.trace_id, self.span_id))


class Link(msgspec.Struct, frozen=True):
    """A relation across traces; `type` is a word like `retry_of`, `caused_by`, `resumes`."""

    context: TraceContext
    type: str


def new_trace_id() -> int:
    return random_bits(128) or 1


def new_span_id() -> int:
    return random_bits(64) or 1


def parse(traceparent: object, tracestate: object = None) -> TraceContext | None:
    """The context that a peer sent, or None where it is not exactly as W3C writes it."""
    if not isinstance(traceparent, str) or (found := _TRACEPARENT.match(traceparent)) is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if (
        version == "ff"
        or (version == "00" and more)
        or not (int(trace_id, 16) and int(span_id, 16))
    ):
        return None
    if not isinstance(tracestate, str) or _TRACESTATE.fullmatch(tracestate) is None:
        tracestate = ""
    return TraceContext(int(trace_id, 16), int(span_id, 16), bool(int(flags, 16) & 1), tracestate)
