"""The results as Markdown: the tables of targets, each figure beside what it must reach. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.judging import judge
from tests.bench.samples import best
from tests.bench.targets import CALLS, COLUMNS, GROWTH, REST

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.bench.judging import Verdict
    from tests.bench.machine import Machine
    from tests.bench.samples import Sample
    from tests.bench.targets import Target

NONE = "–"
MARKS = {"met": "met", "missed": "**missed**", "not measured": "not measured"}
LEGEND = (
    "Each cell: measured (target), met or missed; minimum over minimum of all rounds. "
    "`~`: fewer than seven rounds, or others used the machine meanwhile."
)


def number(value: float) -> str:
    """Three digits that mean something, thousands apart."""
    short = float(f"{value:.3g}")
    return f"{short:,.0f}" if abs(short) >= 1000 else f"{short:g}"


def cell(verdict: Verdict) -> str:
    target = verdict.target
    unit = f" {target.unit}" if target.unit else ""
    bound = f"{'≥' if target.at_least else '≤'} {number(target.limit)}{unit}"
    if verdict.measured is None:
        return f"{MARKS['not measured']} ({bound})"
    mark = "~" if verdict.noisy else ""
    return f"{mark}{number(verdict.measured)} ({bound}) {MARKS[verdict.verdict]}"


def calls_table(samples: Sequence[Sample]) -> str:
    """A row for each piece of work and what it is compared with, a column a state of telemetry."""
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for target in CALLS:
        row = rows.setdefault((target.work, target.against), {})
        row.setdefault(target.state, []).append(cell(judge(target, samples)))
    lines = [_line("work", "against", *COLUMNS.values()), _line(*["---"] * (2 + len(COLUMNS)))]
    for (work, against), found in rows.items():
        cells = ("; ".join(found.get(state, [])) for state in COLUMNS)
        lines.append(_line(work, against or NONE, *cells))
    return "\n".join(lines)


def table(targets: Iterable[Target], samples: Sequence[Sample]) -> str:
    """A row for each."""
    lines = [_line("work", "against", "measured (target)"), _line(*["---"] * 3)]
    lines += [
        _line(target.work, target.against or NONE, cell(judge(target, samples)))
        for target in targets
    ]
    return "\n".join(lines)


def figures_table(samples: Sequence[Sample], case: str) -> str:
    """The best of each figure that every way of a case has, as they were measured."""
    found = [one for one in samples if one.case == case]
    ways = list(dict.fromkeys(one.way for one in found))
    names = list(dict.fromkeys(name for one in found for name in one.figures))
    lines = [_line(case, *names), _line(*["---"] * (1 + len(names)))]
    for way in ways:
        of_way = [one for one in found if one.way == way]
        values = (best(of_way, name) for name in names)
        lines.append(_line(way, *(NONE if v is None else number(v) for v in values)))
    return "\n".join(lines)


def machine_lines(machine: Machine, at: str, samples: Sequence[Sample]) -> str:
    others = sorted(one.others for one in samples)
    noise = f"{others[len(others) // 2]:.0%}" if others else NONE
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    return (
        f"{machine.cpu}, {machine.cores} cores, {machine.memory_mib:,} MiB; {machine.kernel}; "
        f"{machine.python}; {versions}. Measured until {at}; others used {noise} of the machine "
        "in the median of the runs."
    )


def document(machine: Machine, at: str, samples: Sequence[Sample], plots: Iterable[str]) -> str:
    parts = [
        "# What a call costs",
        machine_lines(machine, at, samples),
        LEGEND,
        calls_table(samples),
        table(REST, samples),
        table(GROWTH, samples),
        *(f"![{name.removesuffix('.svg')}]({name})" for name in plots),
        "## Best of each figure",
        *(figures_table(samples, case) for case in dict.fromkeys(one.case for one in samples)),
    ]
    return "\n\n".join(parts) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
