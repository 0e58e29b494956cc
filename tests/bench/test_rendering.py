"""The tables and curves say what the samples say, and that something is missing where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.bench import capacity_table, rendering, running
from tests.bench.charts import charts
from tests.bench.machine import Machine
from tests.bench.samples import ENOUGH_ROUNDS, Sample
from tests.bench.targets import ALL, COLUMNS, GROWTH, REST
from tests.project import readme_blocks

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MACHINE = Machine("CPU X", 2, 2048, "Linux 6", "CPython 3.11", {"observant-host": "0.1.0"})


def sample(case: str, way: str, **figures: float) -> Sample:
    named = {name.replace("_at_", "@"): value for name, value in figures.items()}
    return Sample(case, way, 0, named)


def rounds_of(case: str, way: str, figures: dict[str, float]) -> list[Sample]:
    return [Sample(case, way, number, figures) for number in range(ENOUGH_ROUNDS)]


def test_numbers_have_three_digits() -> None:
    shown = {0.0123456: "0.0123", 1.2: "1.2", 12.345: "12.3", 999.9: "1,000", 12_345: "12,300"}
    assert {value: rendering.number(value) for value in shown} == shown


def test_every_target_has_its_cell_without_a_single_sample() -> None:
    text = rendering.document(MACHINE, "now", (), ())
    assert text.count("not measured") == len(ALL)
    for heading in COLUMNS.values():
        assert heading in text


def test_a_cell_shows_measured_target_and_verdict() -> None:
    samples = [
        *rounds_of("stdio", "metrics", {"cpu_us@16": 10.0}),
        *rounds_of("stdio", "mcp", {"cpu_us@16": 100.0}),
        *rounds_of("stdio", "bare", {"cpu_us@16": 2.0}),
    ]
    table = rendering.calls_table(samples)
    assert "0.1 (≤ 0.1) met" in table
    assert "5 (≤ 2.2) **missed**" in table


def test_doubtful_figures_are_marked() -> None:
    samples = [sample("import", "ours", cpu_ms=1), sample("import", "mcp", cpu_ms=4)]
    assert "~0.25 (≤ 0.5) met" in rendering.table(REST, samples)


def test_linear_growth_is_the_many_beside_the_fewer() -> None:
    figures = {"cpu_us@16": 100.0, "cpu_us@256": 120.0}
    said = rendering.table(GROWTH, rounds_of("growth-calls", "metrics", figures))
    assert "256 in flight, not 16 | the same with fewer | 1.2 (≤ 1.25) met" in said


def test_at_least_is_shown_as_such() -> None:
    samples = rounds_of("gateway-stdio", "metrics", {"calls_s@16": 12_000.0, "p50_ms@16": 2.5})
    assert "12,000 (≥ 10,000 /s) met; 2.5 (≤ 3 ms) met" in rendering.calls_table(samples)


def test_the_machine_and_its_noise_are_named() -> None:
    samples = [Sample("c", "w", number, {}, others) for number, others in enumerate((0, 0.2, 1))]
    said = rendering.machine_lines(MACHINE, "today", samples)
    assert "CPU X, 2 cores" in said
    assert "20%" in said
    assert rendering.NONE in rendering.machine_lines(MACHINE, "today", ())


def test_every_figure_of_every_way_is_listed_by_its_best() -> None:
    samples = [sample("c", "a", x=3, y=1), sample("c", "a", x=2), sample("c", "b", x=5)]
    assert rendering.figures_table(samples, "c").splitlines()[2:] == [
        "| a | 2 | 1 |",
        "| b | 5 | – |",
    ]


def test_plots_are_shown_in_the_document() -> None:
    assert "![cpu](cpu.svg)" in rendering.document(MACHINE, "now", (), ["cpu.svg"])


GROWN = [
    sample(
        "growth-calls", "bare", cpu_us_at_1=50, cpu_us_at_16=8, calls_s_at_1=9, calls_s_at_16=70
    ),
    sample(
        "growth-calls", "bare", cpu_us_at_1=40, cpu_us_at_16=9, calls_s_at_1=8, calls_s_at_16=90
    ),
    sample("growth-servers", "1", memory_mib=50, idle_cpu_ms_s=1),
    sample("growth-servers", "201", memory_mib=70, idle_cpu_ms_s=21),
    sample("growth-scrape", "1k", series=1000, scrape_ms=20, cpu_ms=10),
]


def test_curves_join_the_best_of_all_rounds_in_order() -> None:
    drawn = {chart.name: chart for chart in charts(GROWN)}
    assert drawn["cpu-by-calls-in-flight"].lines == {"bare asyncio loop": [(1, 40), (16, 8)]}
    assert drawn["calls-by-calls-in-flight"].lines == {"bare asyncio loop": [(1, 9), (16, 90)]}
    assert drawn["memory-by-servers"].lines == {"metrics only": [(1, 50), (201, 70)]}
    assert drawn["cpu-by-servers"].lines == {"metrics only": [(1, 1), (201, 21)]}
    assert drawn["scrape-by-series"].lines == {"time": [(1000, 20)], "CPU": [(1000, 10)]}


def test_nothing_measured_is_nothing_drawn() -> None:
    assert charts(()) == []


RATE = {
    "rate": 2000,
    "cores": 0.5,
    "calls_s_core": 4000,
    "twice_calls_s": 3900,
    "twice_p50_ms": 2,
    "twice_p99_ms": 30,
    "twice_refused": 7,
    "after_p99_ms": 1.5,
}


def test_an_operator_is_answered() -> None:
    samples = [
        *GROWN,
        Sample("capacity-rate", "metrics", 0, RATE),
        Sample("capacity-rate", "metrics", 1, {"rate": 0}),
        Sample("capacity-rate", "metrics", 2, RATE | {"rate": 1000, "calls_s_core": 9000}),
        sample("capacity-servers", "1000", servers=1000, ready_ms=9000, memory_mib=120),
        sample("capacity-disk", "on", bytes_a_call=1048.576, packed_bytes_a_call=104.8576),
        sample("capacity-start", "cold", ready_ms=2500),
        sample("capacity-start", "warm", ready_ms=1200),
    ]
    said = capacity_table.table(samples)
    assert "metrics only: 4,000 (2,000 calls/s on 0.5 of a core)" in said
    assert "3,900 calls/s answered, p50 2 ms, p99 30 ms, 7 refused; p99 1.5 ms after" in said
    assert "102 KiB of the host, 0.1 ms of CPU a second (from 1 to 201 servers)" in said
    assert "1,000 tried: ready in 9 s, the host then has 120 MiB" in said
    assert "1,000 series in 20 ms" in said
    assert "100 MiB, once compressed (1,000 MiB as written)" in said
    assert "2.5 s / 1.2 s" in said
    assert "not measured" not in said


def test_an_operator_is_told_what_was_not_measured() -> None:
    unmeasured = capacity_table.table(GROWN[2:3])
    assert unmeasured.count("not measured") == len(capacity_table.QUESTIONS)


def test_results_survive_the_file_and_other_cases_stay(tmp_path: Path) -> None:
    path = tmp_path / "results" / "results.json"
    results = running.Results(MACHINE, "now", (sample("a", "x", f=1), sample("b", "x", f=2)))
    running.write(path, results)
    assert running.read(path) == results
    assert [one.case for one in results.without("a")] == ["b"]
    assert running.read(tmp_path / "none.json") is None
    assert msgspec.json.decode(path.read_bytes())["machine"]["cpu"] == "CPU X"


def test_the_readme_shows_the_committed_results_or_that_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.json"
    monkeypatch.setattr(readme_blocks, "RESULTS", path)
    assert readme_blocks.costs() == readme_blocks.capacity() == "Not measured yet."
    running.write(path, running.Results(MACHINE, "now", tuple(GROWN)))
    assert "CPU X, 2 cores" in readme_blocks.costs()
    assert readme_blocks.capacity().startswith("On CPU X:")
    assert "1,000 series in 20 ms" in readme_blocks.capacity()
