"""Prometheus' own tools read what operators load: syntax, lint, and every test of every alert."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.dashboards import quiet_night
from tests.dashboards.alert_files import (
    ALERTS,
    PREFIX,
    ROOT,
    RULES,
    RUNBOOKS,
    TESTS,
    alerts,
    queries,
    shortened,
)
from tests.dashboards.prometheus import needed

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(file.name for file in TESTS.glob("*.yaml"))

prometheus = pytest.mark.prometheus


def run(tool: str, *arguments: object, within_s: float = 60) -> tuple[int, str]:
    done = subprocess.run(
        [needed(tool), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


LINT = ("--lint=all", "--lint-fatal")


@prometheus
def test_promtool_has_nothing_to_say_about_the_rules_and_the_configuration() -> None:
    assert run("promtool", "check", "rules", *LINT, RULES, ALERTS)[0] == 0
    assert run("promtool", "check", "config", *LINT, ROOT / "prometheus/prometheus.yml")[0] == 0


@prometheus
def test_amtool_takes_the_alertmanager_configuration() -> None:
    code, said = run("amtool", "check-config", ROOT / "alertmanager.yml")
    assert code == 0, said


@prometheus
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FILES)
def test_alerts_fire_and_keep_still_as_promised(name: str) -> None:
    code, said = run("promtool", "test", "rules", TESTS / name, within_s=590)
    assert code == 0, said


@prometheus
def test_every_query_of_every_runbook_parses(tmp_path: Path) -> None:
    asked = [query for file in sorted(RUNBOOKS.glob("*.md")) for query in queries(file.read_text())]
    assert len(asked) > 60
    rules = [{"record": f"query:{n}", "expr": query} for n, query in enumerate(asked)]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "runbooks", "rules": rules}]}))
    code, said = run("promtool", "check", "rules", file)
    assert code == 0, said


@prometheus
@pytest.mark.timeout(300)
def test_every_description_is_filled_in(tmp_path: Path) -> None:
    """Each firing test once more, with no annotations expected: what promtool got instead shows
    each description as an operator gets it."""
    shown = dict[str, str]()
    for name in FILES:
        if name == quiet_night.FILE.name:
            continue
        document = yaml.safe_load((TESTS / name).read_text())
        document["rule_files"] = [str(RULES), str(ALERTS)]
        document["tests"] = [
            as_alert_test(test) for test in document["tests"] if firing(test) - shown.keys()
        ]
        (tmp_path / name).write_text(yaml.safe_dump(document))
        if not document["tests"]:
            continue
        _, said = run("promtool", "test", "rules", tmp_path / name, within_s=290)
        for alert, text in re.findall(
            rf'alertname="{PREFIX}(\w+)".*?\n?.*?description="(.*?)", runbook_url', said
        ):
            shown[alert] = text
    assert shown.keys() == {one.name for one in alerts()}
    for alert, text in shown.items():
        assert not re.search(r"<error|no value|\{\{|%!|NaN|  ", text), f"{alert}: {text}"


def firing(test: dict[str, object]) -> set[str]:
    """Names of the alerts that it shows to fire."""
    asked = test["promql_expr_test"]
    assert isinstance(asked, list)
    shown = {alert_of(one) for one in asked if one["exp_samples"]}
    return {name.removeprefix(PREFIX) for name in shown}


def alert_of(asked: dict[str, str]) -> str:
    return re.findall(r'alertname="(\w+)"', asked["expr"])[0]


def as_alert_test(test: dict[str, object]) -> dict[str, object]:
    asked = test["promql_expr_test"]
    assert isinstance(asked, list)
    return {
        **{key: value for key, value in test.items() if key != "promql_expr_test"},
        "alert_rule_test": [
            {
                "eval_time": one["eval_time"],
                "alertname": alert_of(one),
                "exp_alerts": [],
            }
            for one in asked
            if one["exp_samples"]
        ],
    }


def test_the_quiet_night_is_what_its_program_makes_now() -> None:
    assert quiet_night.FILE.read_text() == quiet_night.text()


@prometheus
@pytest.mark.parametrize("factor", [60, 20])
def test_shortened_windows_are_still_rules(tmp_path: Path, factor: int) -> None:
    for file in (RULES, ALERTS):
        (tmp_path / file.name).write_text(shortened(file.read_text(), factor))
    shutil.copy(ROOT / "prometheus/prometheus.yml", tmp_path)
    code, said = run("promtool", "check", "config", *LINT, tmp_path / "prometheus.yml")
    assert code == 0, said
