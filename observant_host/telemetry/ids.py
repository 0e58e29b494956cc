"""Our own random ids, so that the record works without any tracing library configured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.telemetry.propagation import Link, TraceContext, random_bits
from observant_host.telemetry.rules import KEPT

if TYPE_CHECKING:
    from observant_host.telemetry.vocabulary import Fact

_LOW_64: Final = (1 << 64) - 1


class OwnIds:
    """A Starter without a library. `ratio` is the share of new traces that is marked sampled,
    as the SDK's ratio sampler does it; decisions, and what belongs to them, are always, with
    `decisions` (default: where anything is).

    It marks what it gave as the `origin`.
    """

    def __init__(self, *, ratio: float = 1.0, decisions: bool | None = None) -> None:
        self._bound = round(max(0.0, min(1.0, ratio)) * (_LOW_64 + 1))
        self._decisions = self._bound > 0 if decisions is None else decisions

    def start(
        self,
        fact: Fact,
        parent: TraceContext | None,
        links: tuple[Link, ...],
        start_ns: int,
    ) -> tuple[TraceContext, object | None]:
        sampled = self._decisions and type(fact) in KEPT
        if parent is not None:
            trace_id, state = parent.trace_id, parent.tracestate
            sampled = sampled or parent.sampled
        else:
            trace_id, state = random_bits(128) or 1, ""
            sampled = sampled or trace_id & _LOW_64 < self._bound
        return TraceContext(trace_id, random_bits(64) or 1, sampled, state, self), None

    def inside(self, context: TraceContext) -> TraceContext:
        """Of what is told inside something that has its identity from here."""
        return TraceContext(
            context.trace_id, random_bits(64) or 1, context.sampled, context.tracestate, self
        )

    def ambient(self) -> TraceContext | None:
        return None
