"""Counters and histograms as plain numbers: what one observation costs is a call's to pay.

The library's own types take a lock and walk the buckets for each observation, several times the
cost of adding. Everything here is updated on the event loop and read at a scrape, where it is
turned into the library's families for rendering. Exemplars are kept as trace contexts and become
text only then.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import msgspec

from observant_host.telemetry.propagation import TraceContext

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family
    from prometheus_client.samples import Exemplar

Labels = dict[str, str]


class CounterSeries(msgspec.Struct, eq=False, gc=False):
    value: float = 0.0
    exemplar: tuple[TraceContext, float] | None = None

    def inc(self, context: TraceContext | None = None) -> None:
        """One more. The context becomes the exemplar if its trace is sampled."""
        self.value += 1
        if context is not None and context.sampled:
            self.exemplar = (context, 1.0)

    def add(self, amount: float) -> None:
        """So much more; never less."""
        self.value += amount

    def collect(self, family: Family, name: str, labels: Labels) -> None:
        family.add_sample(name, labels, self.value, exemplar=_exemplar(self.exemplar))


class GaugeSeries(msgspec.Struct, eq=False, gc=False):
    value: float = 0.0

    def set(self, value: float) -> None:
        self.value = value

    def collect(self, family: Family, name: str, labels: Labels) -> None:
        family.add_sample(name, labels, self.value)


class HistogramSeries:
    """`bounds` ascending, without the infinite one."""

    __slots__ = ("bounds", "counts", "exemplars", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.exemplars: dict[int, tuple[TraceContext, float]] = {}
        self.sum = 0.0

    def observe(self, value: float, context: TraceContext | None = None) -> None:
        """Add one value. The context becomes its bucket's exemplar if its trace is sampled."""
        bucket = bisect_left(self.bounds, value)
        self.counts[bucket] += 1
        self.sum += value
        if context is not None and context.sampled:
            self.exemplars[bucket] = (context, value)

    def collect(self, family: Family, name: str, labels: Labels) -> None:
        total = 0
        for bucket, count in enumerate(self.counts):
            total += count
            bound = str(float(self.bounds[bucket])) if bucket < len(self.bounds) else "+Inf"
            family.add_sample(
                name + "_bucket",
                labels | {"le": bound},
                total,
                exemplar=_exemplar(self.exemplars.get(bucket)),
            )
        family.add_sample(name + "_count", labels, total)
        family.add_sample(name + "_sum", labels, self.sum)


class SummarySeries:
    """Count and sum."""

    __slots__ = ("count", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.count += 1
        self.sum += value

    def collect(self, family: Family, name: str, labels: Labels) -> None:
        family.add_sample(name + "_count", labels, self.count)
        family.add_sample(name + "_sum", labels, self.sum)


def _exemplar(seen: tuple[TraceContext, float] | None) -> Exemplar | None:
    """62 of the 128 characters that the format allows, whatever the ids."""
    if seen is None:
        return None
    context, value = seen
    from observant_host.telemetry.families import Exemplar

    return Exemplar({"trace_id": context.trace_hex, "span_id": context.span_hex}, value)
