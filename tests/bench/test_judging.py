"""What counts as met, missed, noisy or not measured; and what the gate says of a figure."""

from __future__ import annotations

import pytest

from tests.bench import cases, gate, growth, limits
from tests.bench.judging import judge
from tests.bench.limits import Limit, broken
from tests.bench.samples import ENOUGH_ROUNDS, Sample, best, noisy, of, rotated, rounded
from tests.bench.targets import ALL, COLUMNS, Target

NAMES = {"mcp", "bare", "direct", "fastmcp proxy", "ours", *COLUMNS}


def runs(way: str, *values: float, figure: str = "cpu", others: float = 0.0) -> list[Sample]:
    """One sample a round; seven at least, so that their number is no reason to doubt."""
    padded = [*values, *[values[-1]] * (ENOUGH_ROUNDS - len(values))]
    return [
        Sample("case", way, number, {figure: value}, others) for number, value in enumerate(padded)
    ]


def target(**keys: object) -> Target:
    given = {"work": "w", "case": "case", "way": "ours", "figure": "cpu", "limit": 2.0}
    return Target(**(given | keys))  # type: ignore[arg-type]  # keys of a test


OURS, THEIRS = runs("ours", 6, 4, 9), runs("mcp", 3, 2, 8)

VERDICTS = {
    "plain, within": (target(limit=4), OURS, 4, "met"),
    "plain, beyond": (target(limit=3.9), OURS, 4, "missed"),
    "a ratio of minima": (target(base="mcp", how="ratio"), OURS + THEIRS, 2, "met"),
    "a ratio beyond": (target(base="mcp", how="ratio", limit=1.9), OURS + THEIRS, 2, "missed"),
    "what is added": (target(base="mcp", how="added", limit=1.9), OURS + THEIRS, 2, "missed"),
    "at least, reached": (target(at_least=True, limit=4), OURS, 4, "met"),
    "at least, not reached": (target(at_least=True, limit=5), OURS, 4, "missed"),
    "more is better: the most of all rounds": (
        target(figure="calls_s@16", at_least=True, limit=9),
        runs("ours", 6, 9, figure="calls_s@16"),
        9,
        "met",
    ),
    "another figure of the base": (
        target(base="mcp", base_figure="floor", how="ratio"),
        OURS + runs("mcp", 8, figure="floor"),
        0.5,
        "met",
    ),
    "nothing measured": (target(), [], None, "not measured"),
    "ours only": (target(base="mcp", how="ratio"), OURS, None, "not measured"),
    "theirs only": (target(base="mcp", how="ratio"), THEIRS, None, "not measured"),
    "a base of nothing": (
        target(base="mcp", how="ratio"),
        OURS + runs("mcp", 0),
        None,
        "not measured",
    ),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_target_is_met_missed_or_not_measured(name: str) -> None:
    wanted, samples, measured, verdict = VERDICTS[name]
    found = judge(wanted, samples)
    assert (found.measured, found.verdict, found.noisy) == (measured, verdict, False)


def test_a_few_rounds_are_noise() -> None:
    assert noisy(OURS[: ENOUGH_ROUNDS - 1])
    assert not noisy(OURS)


def test_others_at_work_in_half_of_the_rounds_are_noise() -> None:
    busy, idle = runs("ours", 1, others=0.5), runs("ours", 1)
    assert not noisy([*busy[:3], *idle[:4]])
    assert noisy([*busy[:4], *idle[:3]])


def test_noise_of_the_base_is_noise_of_the_ratio_but_not_of_what_has_no_base() -> None:
    busy = runs("mcp", 2, others=0.5)
    assert judge(target(base="mcp", how="ratio"), OURS + busy).noisy
    assert not judge(target(), OURS + busy).noisy


def test_each_round_begins_with_another_way() -> None:
    ways = ["a", "b", "c"]
    assert [rotated(ways, number) for number in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]


def test_the_best_is_of_one_way_and_of_one_figure() -> None:
    assert best(of(OURS + THEIRS, "case", "mcp"), "cpu") == 2
    assert best(of(OURS, "another case", "ours"), "cpu") is None
    assert best(OURS, "another figure") is None


def test_figures_keep_four_digits() -> None:
    assert rounded({"a": 123456.0, "b": 0.00123456, "c": 0}) == {"a": 123500, "b": 0.001235, "c": 0}


def test_every_target_is_of_a_case_and_of_ways_that_are_run() -> None:
    own = cases.Cases({})
    known = own.all() | growth.cases(own)
    for one in ALL:
        assert one.case in known, one
        assert one.way in known[one.case].ways, one
        assert not one.base or one.base in known[one.case].ways, one
        assert (one.how == "plain") == (not one.base), one
        assert one.state in {"", *COLUMNS}, one


def test_every_way_has_its_number_of_calls() -> None:
    for counts in cases.CALLS.values():
        assert counts.keys() == {"bare", "mcp", *cases.STATES}
        assert all(set(one) == {1, 16} for one in counts.values())


LIMITS = {"a": Limit(10, 12)}

BROKEN = {
    "at the limit": ({"a": 12.0}, []),
    "above it": ({"a": 12.1}, ["a: 12.1, at most 12 (it was 10)"]),
    "not measured": ({}, ["a: not measured"]),
    "without a limit": (
        {"a": 1.0, "b": 2.0},
        ["b: 2, and limits.toml has no limit for it"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_gate_says_what_is_broken(name: str) -> None:
    figures, sentences = BROKEN[name]
    assert broken(LIMITS, figures) == sentences


def test_a_renewed_table_allows_what_was_measured_and_its_room() -> None:
    figures = {"calls": 100.0, "CPU to bare loop": 2.0}
    renewed = limits.read(limits.written(figures))
    assert renewed == {"calls": Limit(100, 109), "CPU to bare loop": Limit(2, 4)}
    assert not broken(renewed, figures)


def test_the_committed_table_allows_what_it_says_was_measured() -> None:
    table = limits.read(gate.LIMITS.read_text())
    assert not broken(table, {name: one.measured for name, one in table.items()})
    assert set(gate.WAYS) <= set(table)
