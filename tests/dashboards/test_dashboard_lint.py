"""The rules of grafana/dashboard-linter, and a few of our own, over the checked-in dashboards.

https://github.com/grafana/dashboard-linter/tree/main/docs/rules
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboards.generate.promql import FOREIGN, listed
from observant_host.telemetry.metric_list import METRICS
from observant_host.telemetry.rules import COMMON, DECISION_SPANS, OUTCOME, RULES, keys_of
from tests.dashboards.grafana import FILES, every_query, metrics_of, panels, read, selected
from tests.support.many import for_each

BOARDS = {name: read(name) for name in FILES}
EVERY_PANEL = {
    f"{name}, panel {number}: {panel['title']}": (board, panel)
    for name, board in BOARDS.items()
    for number, panel in enumerate(panels(board))
}
EVERY_QUERY = {
    f"{number}, {one.name}": (one,)
    for number, one in enumerate(one for name in FILES for one in every_query(name))
}

EXCLUDED = {
    "template-datasource-rule": "the rule wants exactly one data source; a second variable, tempo, "
    "leads from a metric to its traces, as kubernetes-mixin's dashboards have one for Loki",
}
"""Rules that are broken on purpose, as in the linter's own .lint files."""

ANY_PROCESS = {"le", "cluster", "namespace", "job", "instance", "version", "python"}
OF_ALERTS = {"alertname", "alertstate", "severity", "owner"}


def variables(board: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in board["templating"]["list"]}


@pytest.fixture(params=FILES)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    return BOARDS[request.param]


# A dashboard as a whole


def test_it_can_be_imported_and_stays_the_same_dashboard(board: dict[str, Any]) -> None:
    assert re.fullmatch(r"observant-host-\w+", board["uid"])
    assert "id" not in board  # Grafana gives it
    assert "__inputs" not in board  # nothing to answer at import
    assert board["schemaVersion"] >= 39
    assert board["editable"] is False  # uneditable-dashboard
    assert board["timezone"] == "utc"
    assert board["refresh"] == "10s"
    assert "observant-host" in board["tags"]
    assert board["description"]


def test_uids_and_titles_are_unique() -> None:
    for key in ("uid", "title"):
        assert len({board[key] for board in BOARDS.values()}) == len(BOARDS)


def test_panels_have_ids_of_their_own_and_do_not_overlap(board: dict[str, Any]) -> None:
    ids = [panel["id"] for panel in board["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


# template-* rules


def test_the_data_source_is_a_variable(board: dict[str, Any]) -> None:
    found = {n: v for n, v in variables(board).items() if v["type"] == "datasource"}
    assert found.keys() == {"datasource", "tempo"}, EXCLUDED["template-datasource-rule"]
    assert found["datasource"]["query"] == "prometheus"
    assert found["datasource"]["label"] == "Data Source"
    assert found["tempo"]["query"] == "tempo"


@pytest.mark.parametrize("name", ["job", "instance", "peer"])
def test_what_is_chosen_from_many_is_multi_and_may_be_all(board: dict[str, Any], name: str) -> None:
    one = variables(board).get(name)
    if one is None:
        assert name == "peer"
        assert board["uid"] != "observant-host-peer"
        return
    assert one["datasource"]["uid"] == "${datasource}"
    assert (one["type"], one["multi"], one["includeAll"], one["allValue"]) == (
        *("query", True, True),
        ".+",
    )
    assert one["query"]["query"].startswith("label_values(")  # template-label-promql


def test_variables_follow_the_time_range(board: dict[str, Any]) -> None:
    for one in variables(board).values():
        if one["type"] == "query":
            assert one["refresh"] == 2, one["name"]  # template-on-time-change-reload


# panel-* rules


@for_each(EVERY_PANEL)
def test_a_panel_says_what_it_shows_in_which_unit(
    board: dict[str, Any], panel: dict[str, Any]
) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert panel["targets"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]
        assert target["refId"]
    assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@for_each(EVERY_PANEL)
def test_lines_have_their_legend_as_a_table_and_no_points(
    board: dict[str, Any], panel: dict[str, Any]
) -> None:
    if panel["type"] != "timeseries":
        return
    legend = panel["options"]["legend"]
    assert (legend["displayMode"], legend["placement"]) == ("table", "right")
    assert panel["fieldConfig"]["defaults"]["custom"]["showPoints"] == "never"
    for target in panel["targets"]:
        assert target["legendFormat"]
        for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
            assert label in grouped_by(target["expr"]), (target["expr"], label)


def grouped_by(expr: str) -> set[str]:
    groups = re.findall(r"\bby \(([^)]*)\)", expr)
    if not groups:
        return ANY_PROCESS
    return {label.strip() for group in groups for label in group.split(",")}


@for_each(EVERY_PANEL)
def test_a_table_shows_columns_that_its_queries_have(
    board: dict[str, Any], panel: dict[str, Any]
) -> None:
    if panel["type"] != "table" or panel["transformations"][0]["id"] != "merge":
        return
    names = panel["transformations"][1]["options"]["include"]["names"]
    single = len(panel["targets"]) == 1
    values = {"Value"} if single else {f"Value #{t['refId']}" for t in panel["targets"]}
    labels: set[str] = set()
    for target in panel["targets"]:
        labels |= {"next_step"} if "next_step" in target["expr"] else set()
        for metric in metrics_of(target["expr"]):
            labels |= set(METRICS[metric].labels) if metric in METRICS else OF_ALERTS | {"peer"}
    assert set(names) - values <= labels | {"instance"}


# target-* rules


@for_each(EVERY_QUERY)
def test_a_query_selects_by_job_and_instance(one: Any) -> None:
    for metric, labels in selected(one.expr):
        wanted = {"job", "instance"} if one.kind != "variable" else set()
        assert wanted <= labels, metric


@for_each(EVERY_QUERY)
def test_a_query_asks_for_metrics_and_labels_that_are_emitted(one: Any) -> None:
    assert selected(one.expr)
    for series, labels in selected(one.expr):
        metric = listed(series)
        assert metric in METRICS or metric in FOREIGN, metric
        known = ANY_PROCESS | (set(METRICS[metric].labels) if metric in METRICS else OF_ALERTS)
        assert labels <= known, metric


@for_each(EVERY_QUERY)
def test_a_query_matches_only_values_that_a_label_can_have(one: Any) -> None:
    for metric, body in re.findall(r"(\w+)\{([^}]*)\}", one.expr):
        allowed = METRICS[listed(metric)].allowed if listed(metric) in METRICS else {}
        for label, text in re.findall(r'(\w+)=~?"([^"]*)"', body):
            for value in text.split("|"):
                assert label not in allowed or value in allowed[label], (metric, label, value)


@for_each(EVERY_QUERY)
def test_a_rate_is_over_grafanas_interval(one: Any) -> None:
    spans = re.findall(r"\b(?:rate|irate|increase)\((?:[^()]*)\[([^\]]+)\]", one.expr)
    assert len(spans) == len(re.findall(r"\b(?:rate|irate|increase)\(", one.expr))
    for span in spans:  # a number of events in the whole time shown is no rate
        assert span in ("$__rate_interval", "$__range")


@for_each(EVERY_QUERY)
def test_a_counter_is_never_shown_raw(one: Any) -> None:
    bare = re.sub(r"\b(?:rate|irate|increase)\([^()]*\)", "", one.expr)
    for series, _ in selected(bare):
        metric = METRICS.get(listed(series))
        assert metric is None or metric.kind == "gauge", series  # target-counter-agg


# links


def links(board: dict[str, Any]) -> list[str]:
    found = []
    for panel in panels(board):
        config = panel["fieldConfig"]
        found += [link["url"] for link in config["defaults"]["links"]]
        for override in config["overrides"]:
            for one in override["properties"]:
                found += [link["url"] for link in one["value"]] if one["id"] == "links" else []
    return found


def test_links_lead_to_dashboards_and_variables_that_exist() -> None:
    uids = {board["uid"]: board for board in BOARDS.values()}
    seen = 0
    for board in BOARDS.values():
        for url in links(board):
            parts = urlsplit(url)
            if parts.path.startswith("/d/"):
                target = variables(uids[parts.path.removeprefix("/d/")])
                assert set(re.findall(r"var-(\w+)=", url)) <= target.keys()
                assert set(re.findall(r"\$\{(\w+):queryparam\}", url)) <= target.keys()
                seen += 1
    assert seen


def test_trace_queries_name_spans_and_attributes_that_are_emitted() -> None:
    attributes = {key for fact in RULES for _, key in keys_of(fact)} | {OUTCOME, *COMMON.values()}
    spans = {rule.span for rule in RULES.values()}
    seen = 0
    for board in BOARDS.values():
        for url in links(board):
            if not url.startswith("/explore"):
                continue
            (pane,) = parse_qs(urlsplit(url).query)["panes"]
            assert set(re.findall(r"name=\\\"([\w./]+)\\\"", pane)) <= spans | DECISION_SPANS
            assert set(re.findall(r"span\.([a-z_.]+)(?:=|!=)", pane)) <= attributes
            seen += 1
    assert seen


def test_exemplars_are_shown_where_histograms_and_alertable_counters_are() -> None:
    shown = {
        metric
        for board in BOARDS.values()
        for panel in panels(board)
        for target in panel["targets"]
        if target["exemplar"]
        for metric in metrics_of(target["expr"])
    }
    assert {
        "observant_host_call_duration_seconds",
        "observant_host_calls_total",
        "observant_host_era_decisions_total",
        "observant_host_peer_transitions_total",
        "observant_host_deadline_exceeded_total",
    } <= shown
