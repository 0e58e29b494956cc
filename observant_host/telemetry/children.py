"""The series of each metric: made from the metric list, found by label values, gone with a peer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.telemetry.metric_list import METRICS, OTHER, SNAPSHOT
from observant_host.telemetry.series import (
    CounterSeries,
    GaugeSeries,
    HistogramSeries,
    SummarySeries,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric as Family

    from observant_host.telemetry.metric_list import Metric


_EAGER: Final = tuple((metric, values) for metric in METRICS.values() for values in metric.eager)
"""What every peer has from the start: a start of hundreds makes tens of thousands of these."""


class Children:
    """A collector of all kept metrics. `series(name, *values)` is a lookup once it was made.

    It holds one entry a series: labels are enums, configured peers, and budgeted tools, so it is
    as bounded as the configuration. What was asked for is remembered beside what it became, where
    a value off the list was replaced.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[str, ...], Any] = {}
        self._series: dict[str, dict[tuple[str, ...], Any]] = {
            name: {} for name in METRICS if name not in SNAPSHOT
        }
        for name in self._series:
            if not METRICS[name].labels:
                self.series(name)

    def series(self, *key: str) -> Any:
        """The series of `key`: the metric's name, then its label values."""
        if (found := self._asked.get(key)) is None:
            metric = METRICS[key[0]]
            found = self._series[key[0]].setdefault(_allowed(metric, key[1:]), _make(metric))
            self._asked[key] = found
        return found

    def configure(self, peer: str) -> None:
        for metric, values in _EAGER:
            if (key := (metric.name, peer, *values)) not in self._asked:
                made = self._series[metric.name].setdefault(key[1:], _make(metric))
                self._asked[key] = made

    def forget(self, peer: str) -> None:
        for name, series in self._series.items():
            if METRICS[name].labels[:1] == ("peer",):
                for values in [values for values in series if values[0] == peer]:
                    del series[values]
        for key in [key for key in self._asked if key[1:2] == (peer,)]:
            del self._asked[key]

    def collect(self) -> Iterator[Family]:
        from observant_host.telemetry.families import Family

        for name, series in self._series.items():
            metric = METRICS[name]
            base = name.removesuffix("_total") if metric.kind == "counter" else name
            family = Family(base, metric.help, metric.kind)
            for values, one in list(series.items()):
                one.collect(family, name, dict(zip(metric.labels, values, strict=True)))
            yield family


def _allowed(metric: Metric, values: tuple[str, ...]) -> tuple[str, ...]:
    """Values that are not on the list become the catch-all, instead of new series."""
    return tuple(
        value if label not in metric.allowed or value in metric.allowed[label] else OTHER
        for label, value in zip(metric.labels, values, strict=True)
    )


def _make(metric: Metric) -> CounterSeries | GaugeSeries | HistogramSeries | SummarySeries:
    match metric.kind:
        case "counter":
            return CounterSeries()
        case "gauge":
            return GaugeSeries()
        case "histogram":
            return HistogramSeries(metric.buckets)
        case "summary":
            return SummarySeries()
