"""The series themselves: made from the metric list, cached by label values, removed with a peer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from prometheus_client import Counter, Gauge, Histogram, Summary

from observant_host.telemetry.metric_list import METRICS, OTHER, SNAPSHOT

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from observant_host.telemetry.metric_list import Metric

_KINDS: Final = {"counter": Counter, "gauge": Gauge, "summary": Summary}


class Children:
    """Series of the kept metrics. `series(name, *values)` is a dictionary lookup once made.

    The cache holds one entry a series: labels are enums, configured peers, and budgeted tools,
    so it is as bounded as the configuration.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._metrics: dict[str, Any] = {
            metric.name: _make(metric, registry)
            for metric in METRICS.values()
            if metric.name not in SNAPSHOT
        }
        self._series: dict[tuple[str, ...], Any] = {}

    def series(self, *key: str) -> Any:
        """The series of `key`: the metric's name, then its label values."""
        if (found := self._series.get(key)) is None:
            found = self._series[key] = self._child(key[0], key[1:])
        return found

    def configure(self, peer: str, *, skip: frozenset[str] = frozenset()) -> None:
        for metric in METRICS.values():
            if metric.name not in skip:
                for values in metric.eager:
                    self.series(metric.name, peer, *values)

    def forget(self, peer: str) -> None:
        for key in [k for k in self._series if k[1:2] == (peer,) and _of_peer(k[0])]:
            del self._series[key]
            self._metrics[key[0]].remove(*_allowed(METRICS[key[0]], key[1:]))

    def _child(self, name: str, values: tuple[str, ...]) -> Any:
        metric = self._metrics[name]
        return metric.labels(*_allowed(METRICS[name], values)) if values else metric


def _of_peer(name: str) -> bool:
    return METRICS[name].labels[:1] == ("peer",)


def _allowed(metric: Metric, values: tuple[str, ...]) -> tuple[str, ...]:
    """Values that are not on the list become the catch-all, instead of new series."""
    return tuple(
        value if label not in metric.allowed or value in metric.allowed[label] else OTHER
        for label, value in zip(metric.labels, values, strict=True)
    )


def _make(metric: Metric, registry: CollectorRegistry) -> Any:
    if metric.kind == "histogram":
        return Histogram(
            metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets
        )
    return _KINDS[metric.kind](metric.name, metric.help, metric.labels, registry=registry)
