"""New traces that the embedding program's sampler drops, known without asking its tracer.

Where one trace in a hundred is sampled, the other ninety-nine answers of the OpenTelemetry SDK cost
as much as the record of their calls. Its ratio sampler goes by the trace id alone. So the id is
taken from the tracer's own generator, as the tracer would; what is dropped by that id has no span;
and for what is not, the tracer is asked, and takes this id. Whatever is sampled is so by the
sampler itself, with the attributes and the trace state that it gives.

This is for the SDK's own classes, as they are. Where anybody else might decide or take notice
(another sampler, a subclass, the SDK's own metrics, which count spans that are dropped), or where
the sampler does not decide as it is thought to, the tracer is asked for each.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.context import Context

from observant_host.telemetry.propagation import TraceContext

if TYPE_CHECKING:
    from observant_host.telemetry.ids import OwnIds

MOST: Final = 0.5
"""A larger share is asked for one by one: a tracer that takes an id costs more than any other."""
_LOW_64: Final = (1 << 64) - 1
_ROOT: Final = Context()


class Foresight:
    """`ready`: whether anything is known of the tracer that was looked at last."""

    def __init__(self, own: OwnIds) -> None:
        self._own = own
        self._bound = 0
        self.forget()

    def forget(self) -> None:
        self.ready = False
        self._sampler: object | None = None

    def look(self, tracer: object) -> None:
        """At a tracer that has just given a valid span. Raises nothing."""
        bound = None
        try:
            sampler = getattr(tracer, "sampler", None)
            if sampler is self._sampler:
                return
            self._sampler = sampler
            if _is_plain(tracer):
                bound = _bound(sampler)
        except Exception:  # noqa: BLE001 - an SDK that is not as it was is asked for each, no more
            bound = None
        self.ready = bound is not None
        self._bound = bound or 0

    def root(self, tracer: Any) -> Any:
        """The context of a new trace that is dropped, else the tracer to be asked for its first
        span."""
        if tracer.sampler is not self._sampler:
            return tracer
        generator = tracer.id_generator
        trace_id = generator.generate_trace_id()
        if trace_id & _LOW_64 >= self._bound:
            return TraceContext(trace_id, generator.generate_span_id(), False, "", self._own)
        taking = copy(tracer)
        taking.id_generator = _Drawn(generator, trace_id)
        return taking


class _Drawn:
    """An id generator that has drawn its trace id already; all else is as the generator has it."""

    def __init__(self, generator: object, trace_id: int) -> None:
        self._generator = generator
        self._trace_id = trace_id

    def generate_trace_id(self) -> int:
        return self._trace_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)


def _is_plain(tracer: object) -> bool:
    """Whether it is the SDK's own, and counts no spans that it drops."""
    if type(tracer).__module__ != "opentelemetry.sdk.trace":
        return False  # without loading the SDK to see that it is not used
    from opentelemetry.sdk.trace import Tracer

    counting = getattr(tracer, "_tracer_metrics", None)  # since 1.40; 1.42 may have none to count
    return type(tracer) is Tracer and type(counting).__name__ in ("NoneType", "NoOpTracerMetrics")


def _bound(sampler: Any) -> int | None:
    """From which on the lower half of a new trace's id has it dropped; None: nobody knows."""
    from opentelemetry.sdk.trace import sampling

    if type(sampler) in (sampling.ParentBased, sampling.ParentBasedTraceIdRatio):
        sampler = getattr(sampler, "_root", None)  # public in its description only
    if sampler is sampling.ALWAYS_OFF:
        return 0
    if type(sampler) is not sampling.TraceIdRatioBased or sampler.rate > MOST:
        return None
    bound = sampler.bound
    return bound if all(_decides_by(sampler, bound, half) for half in (0, 1 << 127)) else None


def _decides_by(sampler: Any, bound: int, half: int) -> bool:
    """Whether it does at the edges, with this upper half of the id."""
    taken = [half | low for low in (0, bound - 1) if 0 <= low < bound]
    dropped = [half | low for low in (bound, _LOW_64)]

    def takes(trace_id: int) -> bool:
        return bool(sampler.should_sample(_ROOT, trace_id, "").decision.is_sampled())

    return all(map(takes, taken)) and not any(map(takes, dropped))
