"""What holds for the table of every transport: its shape, and the promise on each of its paths."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest

from observant_host.decisions.era import TABLES, step
from observant_host.decisions.era_diagram import diagram
from observant_host.decisions.era_http import HTTP
from observant_host.decisions.era_stdio import STDIO
from observant_host.decisions.era_table import OVER, SENDS_INITIALIZE, Do, Phase, Table
from observant_host.decisions.evidence import Evidence
from observant_host.decisions.evidence_kinds import PROVE_MODERN, EvidenceKind
from observant_host.decisions.terms import Reason
from tests.decisions.era_paths import every_path

PERMITTING = {
    Phase.PROBING_ALLOWED,
    Phase.PROBING_ALLOWED_PROVEN,
    Phase.PROBING_ALLOWED_SSE,
    Phase.OPENING_SSE,
}

for_each_table = pytest.mark.parametrize("table", [STDIO, HTTP], ids=["stdio", "http"])


def phases_of(table: Table) -> set[Phase]:
    return {before for before, _ in table.rows} | set(OVER)


def test_every_kind_of_transport_has_a_table() -> None:
    assert TABLES == {"stdio": STDIO, "memory": STDIO, "http": HTTP, "sse": HTTP}
    assert phases_of(STDIO) | phases_of(HTTP) == set(Phase)


@for_each_table
def test_every_pair_is_listed_or_impossible_with_a_reason(table: Table) -> None:
    every = {(phase, kind) for phase in Phase for kind in EvidenceKind}
    assert set(table.rows) | set(table.impossible) == every
    assert not set(table.rows) & set(table.impossible)
    assert all(len(why) > 10 for why in table.impossible.values())


def test_every_kind_of_evidence_and_every_action_has_its_use() -> None:
    for table in (STDIO, HTTP):
        assert set(Do) - {do for do, _, _ in table.rows.values()} <= {
            Do.RESPAWN_AND_INITIALIZE,
            Do.TRY_SSE,
        }
    rows = {**STDIO.rows, **HTTP.rows}
    assert {do for do, _, _ in rows.values()} == set(Do)
    assert {kind for _, kind in rows} == set(EvidenceKind)


@for_each_table
def test_the_table_terminates(table: Table) -> None:
    graph: dict[Phase, set[Phase]] = {}
    for (before, _), (_, after, _) in table.rows.items():
        graph.setdefault(before, set()).add(after)
    assert set(TopologicalSorter(graph).static_order()) == phases_of(table)


@for_each_table
def test_every_phase_is_reached_and_only_those_that_are_over_take_no_evidence(
    table: Table,
) -> None:
    reached = set(table.first) | {after for _, after, _ in table.rows.values()}
    assert reached == phases_of(table)
    assert {before for before, _ in table.rows} == phases_of(table) - set(OVER)


@for_each_table
def test_every_action_leads_where_it_says(table: Table) -> None:
    for (before, _), (do, after, _) in table.rows.items():
        match do:
            case Do.USE_MODERN:
                assert after is Phase.MODERN
            case Do.DISCOVER_AGAIN:
                assert after is Phase.RETRYING
            case Do.INITIALIZE:
                waiting = {Phase.INITIALIZING, Phase.INITIALIZING_OR_SSE, Phase.INITIALIZING_SSE}
                assert after in waiting
                assert (after is Phase.INITIALIZING_SSE) == (before is Phase.OPENING_SSE)
            case Do.RESPAWN_AND_INITIALIZE:
                assert after is Phase.INITIALIZING_FRESH
            case Do.TRY_SSE:
                assert after is Phase.OPENING_SSE
            case Do.ACCEPT_LEGACY:
                assert after is Phase.LEGACY
            case Do.REFUSE:
                assert after in (Phase.UNAVAILABLE, Phase.INITIALIZE_SPENT)
                assert before is not Phase.INITIALIZE_SPENT or after is Phase.UNAVAILABLE
            case Do.END_LIFE:
                assert after is Phase.ENDED


@pytest.mark.parametrize("transport", TABLES)
def test_a_pair_that_cannot_happen_is_a_bug_and_not_a_default(transport: str) -> None:
    for kind in (EvidenceKind.TIMEOUT, EvidenceKind.HTTP_ERROR):
        with pytest.raises(KeyError):
            step(Phase.MODERN, Evidence(kind=kind, step="discover"), transport=transport)


@for_each_table
def test_the_diagram_is_drawn_from_the_table(table: Table) -> None:
    lines = diagram(table).splitlines()
    assert lines[0] == "stateDiagram-v2"
    for phase, when in table.first.items():
        assert f"    [*] --> {phase}: {when}" in lines
    for (before, _), (do, after, reason) in table.rows.items():
        edge = next(
            line
            for line in lines
            if line.startswith(f"    {before} --> {after}: ") and line.endswith(f"/ {do}")
        )
        assert reason in edge
    drawn = [line for line in lines if "[*]" not in line and "-->" in line]
    assert len(drawn) == len({(b, a, d) for (b, _), (d, a, _) in table.rows.items()})


# The promise, on every path


@for_each_table
def test_no_path_without_an_allowance_sends_initialize(table: Table) -> None:
    for phase, paths in every_path(table).items():
        if phase not in PERMITTING:
            for path in paths:
                assert not any(do in SENDS_INITIALIZE for _, _, do in path), path
                assert not any(do is Do.TRY_SSE for _, _, do in path), path


@for_each_table
def test_no_path_sends_initialize_or_tries_another_transport_after_modern_evidence(
    table: Table,
) -> None:
    for paths in every_path(table).values():
        for path in paths:
            proven = False
            for _, kind, do in path:
                proven = proven or kind in PROVE_MODERN
                assert not (proven and (do in SENDS_INITIALIZE or do is Do.TRY_SSE)), path


@for_each_table
def test_no_path_chooses_two_eras_or_legacy_without_initialize(table: Table) -> None:
    for paths in every_path(table).values():
        for path in paths:
            actions = [do for _, _, do in path]
            assert sum(do in (Do.USE_MODERN, Do.ACCEPT_LEGACY) for do in actions) <= 1
            if Do.ACCEPT_LEGACY in actions:
                before = actions[: actions.index(Do.ACCEPT_LEGACY)]
                assert any(do in SENDS_INITIALIZE for do in before)


@for_each_table
def test_late_modern_evidence_ends_the_life_wherever_it_can_come(table: Table) -> None:
    late = (Do.END_LIFE, Phase.ENDED, Reason.LATE_MODERN_EVIDENCE)
    probing = {phase for phase in table.first if phase.startswith("probing")} | {Phase.RETRYING}
    for (phase, kind), row in table.rows.items():
        if kind in PROVE_MODERN and phase not in probing:
            assert row == late
    assert all(
        (phase, kind) in table.rows
        for phase in {after for do, after, _ in table.rows.values() if do is Do.INITIALIZE}
        | {Phase.LEGACY}
        for kind in PROVE_MODERN - {EvidenceKind.INITIALIZE_MODERN}
    )
