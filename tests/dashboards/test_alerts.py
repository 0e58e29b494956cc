"""Alerts say whose they are and what to do, and name nothing that the host does not emit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from dashboards.generate.promql import FOREIGN, listed
from observant_host.telemetry.metric_list import METRICS, NOT_YET_EMITTED
from tests.dashboards.alert_files import (
    ALERTS,
    COMING,
    PREFIX,
    ROOT,
    RULES,
    RUNBOOKS,
    Alert,
    alerts,
    names,
    promtool_tests,
    queries,
    recorded,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

REPEATED = {"PeerDown", "AllowanceExpiring", "ErrorBudgetBurn"}
"""Alerts of several rules: their severities differ, or their windows do."""

TARGET = {"job", "instance"}
"""Labels that every scraped series has."""
OURS = {"slo", "long", "short"}
"""Labels that our own rules set."""

_NAME = re.compile(
    r"\b(?:observant_host_\w+|mcp_(?!method_name\b)\w+|up|ALERTS|process_\w+|scrape_\w+)\b"
)
_RECORD = re.compile(r"\b[a-z_]+:[a-z_]+:\w+")
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)\{([^}]*)\}")
_MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
_GROUPED = re.compile(r"\b(?:by|on|group_left|group_right|without|ignoring) ?\(([^)]*)\)")


def expressions() -> Iterator[tuple[str, str]]:
    for record, exprs in recorded().items():
        yield from ((record, expr) for expr in exprs)
    for one in alerts():
        yield one.name, one.expr
    for file in sorted(RUNBOOKS.glob("*.md")):
        yield from ((file.stem, query) for query in queries(file.read_text()))


EXPRESSIONS = list(expressions())


def known(name: str) -> bool:
    return name in FOREIGN or listed(name) in METRICS


@pytest.mark.parametrize("name", names())
def test_an_alert_says_what_it_is_whose_it_is_and_where_to_read_on(name: str) -> None:
    for one in alerts():
        if one.name == name:
            check(one)


def check(one: Alert) -> None:
    assert one.labels["severity"] in ("critical", "warning", "info")
    assert one.labels["owner"] in ("yours", "vendor", "decision")
    notes = one.annotations
    assert notes.keys() == {"summary", "description", "runbook_url", "dashboard_url"}
    assert "{{" not in notes["summary"], "the summary is the same for the whole group"
    assert notes["summary"].endswith(".")
    assert notes["description"].rstrip().endswith((".", ".)"))
    assert "{{" in notes["description"]
    assert notes["runbook_url"].endswith(f"/dashboards/runbooks/{one.runbook.name}")
    assert one.runbook.is_file()


def test_an_alert_leads_to_a_dashboard_that_exists() -> None:
    uids = {
        yaml.safe_load(file.read_text())["uid"]: file.stem for file in ROOT.glob("grafana/*.json")
    }
    for one in alerts():
        found = re.match(r"http://localhost:3000/d/([\w-]+)\?", one.annotations["dashboard_url"])
        assert found, one.name
        assert found[1] in uids, one.name


def test_only_these_alerts_have_several_rules_and_no_two_of_those_are_alike() -> None:
    all_names = [one.name for one in alerts()]
    assert {name for name in all_names if all_names.count(name) > 1} == REPEATED
    told = [(one.name, *sorted(one.labels.items())) for one in alerts()]
    assert len(told) == len(set(told))


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert {file.stem for file in RUNBOOKS.glob("*.md")} == {PREFIX + name for name in names()}


def test_alerts_that_are_still_to_come_wait_for_metrics_that_nothing_emits() -> None:
    for name, waiting in COMING.items():
        assert set(waiting) <= set(NOT_YET_EMITTED), f"write {name}: what it needs is emitted now"
        assert name not in names()


def test_every_metric_that_is_asked_for_is_emitted() -> None:
    for where, expr in EXPRESSIONS:
        bare = re.sub(r'"[^"]*"', '""', expr)
        series = set(_RECORD.findall(bare))
        assert series <= recorded().keys(), where
        asked = set(_NAME.findall(_RECORD.sub("", bare)))
        assert asked or series or where.endswith(":budget"), where
        assert {name for name in asked if not known(name)} == set(), where


def test_every_label_that_is_matched_exists_and_has_that_value() -> None:
    for where, name, body in [
        (where, *found) for where, expr in EXPRESSIONS for found in _SELECTOR.findall(expr)
    ]:
        metric = METRICS.get(listed(name))
        for label, operator, value in _MATCHER.findall(body):
            if label in TARGET or (metric is None and ":" in name):
                continue
            assert metric is not None, f"{where}: {name}"
            assert label in metric.labels, f"{where}: {name} has no label {label}"
            if label in metric.allowed and value:
                values = value.split("|") if "~" in operator else [value]
                assert set(values) <= set(metric.allowed[label]), f"{where}: {label}={value}"


def test_every_label_that_is_grouped_by_is_a_label_of_something() -> None:
    every = {label for metric in METRICS.values() for label in metric.labels}
    for where, expr in EXPRESSIONS:
        for inside in _GROUPED.findall(expr):
            found = {label.strip() for label in inside.split(",") if label.strip()}
            assert found <= every | TARGET | OURS | {"le"}, where


def test_counters_are_increased_only_where_they_exist_from_the_start() -> None:
    """A series that is first seen at 1 has an increase of 0: alerts read eager children only."""
    lazy = set[str]()
    for _, expr in [*((r, e) for r, es in recorded().items() for e in es), *map(_pair, alerts())]:
        for name, body in re.findall(r"(?:rate|increase)\((\w+)(?:\{([^}]*)\})?\[", expr):
            metric = METRICS.get(listed(name))
            if metric is None or metric.kind != "counter" or "peer" not in metric.labels:
                continue
            if not metric.eager:
                lazy.add(name)
            for label, operator, value in _MATCHER.findall(body):
                at = metric.labels.index(label) - 1
                exist = {values[at] for values in metric.eager}
                if operator in ("=", "=~"):
                    lazy |= {f"{name} {value}" for value in value.split("|") if value not in exist}
    assert not lazy


def _pair(one: Alert) -> tuple[str, str]:
    return one.name, one.expr


def test_every_recorded_series_is_read_by_an_alert_a_rule_or_a_runbook() -> None:
    read = {name for where, expr in EXPRESSIONS for name in _RECORD.findall(expr) if name != where}
    assert recorded().keys() == read


@pytest.mark.parametrize("name", names())
def test_an_alert_is_shown_to_fire_and_not_to_fire(name: str) -> None:
    fires = quiet = False
    for _, test in promtool_tests():
        for asked in test["promql_expr_test"]:
            found = re.search(r'alertname(=~?)"([^"]*)"', asked["expr"])
            assert found, asked["expr"]
            if re.fullmatch(found[2], PREFIX + name):
                fires |= bool(asked["exp_samples"])
                quiet |= not asked["exp_samples"] and test["name"] != QUIET_NIGHT
    assert fires
    assert quiet


QUIET_NIGHT = "A quiet night"


def test_every_severity_of_an_alert_is_shown_to_fire() -> None:
    shown = "\n".join(
        sample["labels"]
        for _, test in promtool_tests()
        for asked in test["promql_expr_test"]
        for sample in asked["exp_samples"]
    )
    for one in alerts():
        words = [f'alertname="{PREFIX}{one.name}"', *(f'{k}="{v}"' for k, v in one.labels.items())]
        found = [line for line in shown.splitlines() if all(word in line for word in words)]
        assert found, f"{one.name} {one.labels}"


def test_shortening_leaves_no_window_as_it_was_and_no_name_changed() -> None:
    for file in (RULES, ALERTS):
        text = file.read_text()
        short = shortened(text, 7)
        assert not re.findall(r"\[\d+[mhd]\]|offset \d+[mhd]|for: \d+[mhd]", short)
        assert not re.findall(r"\* (?:3600|60)\b", short)
        assert _RECORD.findall(short) == _RECORD.findall(text)
        yaml.safe_load(short)
    assert shortened("x[5m] offset 1h > 15 * 60", 60) == "x[5s] offset 60s > 15 * 1"
    assert shortened("        for: 2m\n", 60) == "        for: 2s\n"
    assert shortened("x[1m]", 60) == "x[4s]"
