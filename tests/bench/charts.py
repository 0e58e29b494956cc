"""The curves of growth as data: what is drawn, without drawing it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.bench.samples import best, of
from tests.bench.targets import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.bench.samples import Sample

Points = list[tuple[float, float]]
LABELS = {"bare": "bare asyncio loop", **COLUMNS}


class Chart(msgspec.Struct, frozen=True):
    """`lines`: label to points, from the least x to the greatest. `doubling`: of the x axis."""

    name: str
    title: str
    x: str
    y: str
    lines: dict[str, Points]
    doubling: bool = False


def charts(samples: Sequence[Sample]) -> list[Chart]:
    """Those of which something was measured."""
    made = (
        _by_flight(samples, "cpu-by-calls-in-flight", "CPU a call", "µs", "cpu_us"),
        _by_flight(samples, "calls-by-calls-in-flight", "calls a second", "calls/s", "calls_s"),
        _by_way(samples, "memory-by-servers", "memory of an idle host", "MiB", "memory_mib"),
        _by_way(samples, "cpu-by-servers", "CPU of an idle host", "ms a second", "idle_cpu_ms_s"),
        _by_series(samples),
    )
    return [chart for chart in made if chart.lines]


def _by_flight(samples: Sequence[Sample], name: str, title: str, y: str, figure: str) -> Chart:
    """A line for each way; its points are the figures named FIGURE@CALLS."""
    lines: dict[str, Points] = {}
    for way in _ways(samples, "growth-calls"):
        runs = of(samples, "growth-calls", way)
        at = {name for one in runs for name in one.figures if name.startswith(f"{figure}@")}
        points = [(float(one.partition("@")[2]), best(runs, one)) for one in at]
        lines[LABELS[way]] = sorted((x, y) for x, y in points if y is not None)
    return Chart(name, title, "calls in flight", y, lines, doubling=True)


def _by_way(samples: Sequence[Sample], name: str, title: str, y: str, figure: str) -> Chart:
    """One line; each way is a number of servers."""
    ways = _ways(samples, "growth-servers")
    found = ((float(way), best(of(samples, "growth-servers", way), figure)) for way in ways)
    points = sorted((x, y) for x, y in found if y is not None)
    return Chart(name, title, "servers", y, {"metrics only": points} if points else {})


def _by_series(samples: Sequence[Sample]) -> Chart:
    runs = [one for one in samples if one.case == "growth-scrape"]
    sizes = {
        way: best(of(runs, "growth-scrape", way), "series") for way in _ways(runs, "growth-scrape")
    }
    lines: dict[str, Points] = {}
    for figure, label in (("scrape_ms", "time"), ("cpu_ms", "CPU")):
        found = (
            (size, best(of(runs, "growth-scrape", way), figure)) for way, size in sizes.items()
        )
        points = sorted((x, y) for x, y in found if x is not None and y is not None)
        lines |= {label: points} if points else {}
    return Chart("scrape-by-series", "one scrape of /metrics", "series", "ms", lines)


def _ways(samples: Iterable[Sample], case: str) -> list[str]:
    return list(dict.fromkeys(one.way for one in samples if one.case == case))
