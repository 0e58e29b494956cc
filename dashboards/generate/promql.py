"""PromQL in short hand, checked against the list of metrics that the host serves.

`:calls_total{outcome="ok"}[R]` becomes the metric's whole name, with the matchers of the
dashboard's variables, over Grafana's `$__rate_interval`.
"""

from __future__ import annotations

import re
from typing import Final

from observant_host.telemetry.metric_list import METRICS, NOT_YET_EMITTED, PREFIX

HOSTS: Final = 'cluster=~"$cluster",namespace=~"$namespace",job=~"$job",instance=~"$instance"'
PEERS: Final = HOSTS + ',peer=~"$peer"'
"""For metrics that have this label; the others get HOSTS, whatever the dashboard."""

FOREIGN: Final = frozenset(
    {
        *("up", "scrape_duration_seconds", "scrape_samples_scraped", "ALERTS"),
        *("process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"),
        *("process_max_fds", "process_start_time_seconds"),
    }
)
"""Prometheus' own series, and those of every process with a Prometheus client."""

COMING: Final = tuple(name for name in NOT_YET_EMITTED)
"""Metrics that no dashboard shows yet: they come with pins."""

_SHORT: Final = re.compile(r":([a-zA-Z_]+)(?:\{([^}]*)\})?")
_PARTS: Final = ("_bucket", "_sum", "_count")


def whole_name(short: str) -> str:
    """The metric as it is served. Raises KeyError where nothing emits it."""
    if short in FOREIGN:
        return short
    name = short if short.startswith("mcp_") else PREFIX + short
    if listed(name) not in METRICS:
        raise KeyError(f"no metric {name} is served")
    return name


def listed(name: str) -> str:
    """The name under which METRICS lists a series: without the part of a histogram or summary."""
    for part in _PARTS:
        if name.endswith(part) and name.removesuffix(part) in METRICS:
            return name.removesuffix(part)
    return name


def query(text: str, *, scope: str = HOSTS) -> str:
    """`text` with every short hand written out."""

    def written(match: re.Match[str]) -> str:
        name = whole_name(match[1])
        known = METRICS.get(listed(name))
        of_peers = known is not None and "peer" in known.labels
        matchers = scope if of_peers else HOSTS
        return f"{name}{{{matchers}{',' + match[2] if match[2] else ''}}}"

    return _SHORT.sub(written, text).replace("[R]", "[$__rate_interval]")
