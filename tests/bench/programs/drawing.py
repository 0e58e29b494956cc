"""Draws charts as SVG. Run by an interpreter that has matplotlib, which nothing else here needs.

{"folder": …, "charts": [of `charts.Chart`]}
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from driving import result, task

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "observant-host"  # the same figures draw the same file
mpl.rcParams["svg.fonttype"] = "none"
from matplotlib import pyplot  # noqa: E402  # after the choice of what draws

INCHES = (6.4, 3.2)


def draw(chart: dict, folder: Path) -> None:
    figure, axes = pyplot.subplots(figsize=INCHES, layout="constrained")
    for label, points in chart["lines"].items():
        axes.plot(*zip(*points, strict=True), marker="o", label=label)
    if chart["doubling"]:
        axes.set_xscale("log", base=2)
        ticks = sorted({x for points in chart["lines"].values() for x, _ in points})
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.set_ylim(bottom=0)
    axes.set(title=chart["title"], xlabel=chart["x"], ylabel=chart["y"])
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(folder / f"{chart['name']}.svg", metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    given = task()
    for chart in given["charts"]:
        draw(chart, Path(given["folder"]))
    result({"drawn": len(given["charts"])})


main()
