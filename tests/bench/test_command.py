"""The command: which cases it runs, what it keeps, and what it says when it cannot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from tests.bench import command, running
from tests.bench.cases import Case, ProgramError
from tests.bench.targets import CALLS, REST
from tests.bench.venvs import NoIndexError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PYTHONS = {"bare": "b", "mcp": "m", "fastmcp": "f", "plot": "p"}


def run(cases: Mapping[str, Case], path: Path, **keys: bool) -> tuple[running.Results, list[str]]:
    said: list[str] = []
    results = running.run(
        cases, path, rounds=3, quiet_s=0, tell=said.append, kept=lambda _: None, **keys
    )
    return results, said


def test_ways_are_run_in_turn_and_a_failed_one_is_told(tmp_path: Path) -> None:
    order: list[str] = []

    def way(name: str) -> dict[str, float]:
        order.append(name)
        if name == "bad":
            raise ProgramError("line\nthe reason")
        return {"f": len(order)}

    case = Case("", {name: lambda name=name: way(name) for name in ("good", "bad")})
    results, said = run({"c": case}, tmp_path / "r.json")
    assert order == ["good", "bad", "bad", "good", "good", "bad"]
    assert [(one.way, one.round) for one in results.samples] == [
        ("good", 0),
        ("good", 1),
        ("good", 2),
    ]
    assert sum("the reason" in line for line in said) == 3


def test_a_run_is_taken_up_where_it_stopped(tmp_path: Path) -> None:
    runs: list[str] = []

    def case(name: str) -> Case:
        return Case("", {"w": lambda: runs.append(name) or {"f": 1.0}}, rounds=1)

    run({"a": case("a")}, tmp_path / "r.json")
    results, _ = run({"a": case("a"), "b": case("b")}, tmp_path / "r.json", resume=True)
    assert runs == ["a", "b"]
    assert [one.case for one in results.samples] == ["a", "b"]
    run({"a": case("a")}, tmp_path / "r.json")
    assert runs == ["a", "b", "a"]


def test_figures_of_another_machine_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    run({"a": Case("", {"w": lambda: {"f": 1.0}})}, path)
    kept = json.loads(path.read_text())
    kept["machine"]["cpu"] = "another"
    path.write_text(json.dumps(kept))
    results, said = run({"b": Case("", {"w": lambda: {"f": 1.0}})}, path)
    assert {one.case for one in results.samples} == {"b"}
    assert "another machine" in said[0]


def test_parts_and_cases_can_be_chosen() -> None:
    own = command.Cases(PYTHONS)
    assert set(command.chosen(own, ("tables",), "")) == {one.case for one in (*CALLS, *REST)}
    assert set(command.chosen(own, ("growth",), "")) < set(command.chosen(own, command.PARTS, ""))
    assert set(command.chosen(own, command.PARTS, "stdio,growth-calls")) == {
        "stdio",
        "growth-calls",
    }


def test_an_unknown_case_is_answered_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "pythons", lambda tell: PYTHONS)
    done = CliRunner().invoke(command.main, ["--only", "stdoi"])
    assert done.exit_code == 2
    assert "no case stdoi; there are stdio, http" in done.output


def test_a_missing_index_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(tell: object) -> dict[str, str]:
        raise NoIndexError("mcp could not be installed: try UV_DEFAULT_INDEX")

    monkeypatch.setattr(command, "pythons", unreachable)
    done = CliRunner().invoke(command.main, [])
    assert done.exit_code == 1
    assert "try UV_DEFAULT_INDEX" in done.output


@pytest.mark.parametrize("as_json", [True, False])
def test_verdicts_come_as_json_or_as_tables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, as_json: bool
) -> None:
    monkeypatch.setattr(command, "pythons", lambda tell: PYTHONS)
    case = Case("", {"ours": lambda: {"cpu_ms": 1.0}, "mcp": lambda: {"cpu_ms": 4.0}})
    monkeypatch.setattr(command, "chosen", lambda *_: {"import": case})
    argv = ["--into", str(tmp_path), "--quick", *(["--json"] if as_json else [])]
    done = CliRunner().invoke(command.main, argv)
    assert done.exit_code == 0, done.output
    if as_json:
        (one,) = (v for v in json.loads(done.stdout) if v["target"]["case"] == "import")
        assert (one["measured"], one["verdict"], one["noisy"]) == (0.25, "met", True)
    else:
        assert "~0.25 (≤ 0.5) met" in done.stdout
    assert "~0.25 (≤ 0.5) met" in (tmp_path / "results.md").read_text()
