"""What the Prometheus library does for a scrape, in one place that is loaded at the first one.

It brings an HTTP server and more: a process that nobody scrapes does not hold it, and one that is
scraped loads it in the thread that renders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder
from prometheus_client.samples import Exemplar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.registry import Collector

__all__ = [
    "CollectorRegistry",
    "CounterMetricFamily",
    "Exemplar",
    "Family",
    "GaugeMetricFamily",
    "choose_encoder",
    "registry_of",
]


def registry_of(collectors: Iterable[Collector]) -> CollectorRegistry:
    """Of this host's own, with the figures of its process."""
    registry = CollectorRegistry()
    for one in collectors:
        registry.register(one)
    ProcessCollector(registry=registry)
    return registry
