"""Every query of every dashboard against a real Prometheus, while a host's servers misbehave."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.dashboards.faults import faulty_host
from tests.dashboards.grafana import FILES, Asked, every_query, filled, panels, read
from tests.dashboards.prometheus import Prometheus, Refused, prometheus, until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.prometheus, pytest.mark.timeout(180)]

QUERIES = [one for name in FILES for one in every_query(name)]

MAY_BE_EMPTY = {
    "host: Labels over budget A": "2,001 different tools are called (tests of the metrics do that)",
}
"""Queries that a short test need not fill, each with what fills it."""

FILLED_WITHIN_S = 60.0
RULES = {
    "groups": [
        {
            "name": "always",
            "rules": [
                {
                    "alert": "ObservantHostTestAlert",
                    "expr": "observant_host_peer_unavailable",
                    "labels": {"severity": "warning", "owner": "vendor"},
                }
            ],
        }
    ]
}
"""An alert without waiting: the shipped ones wait for minutes."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """One Prometheus over one faulty host, for all tests of this file."""
    folder = tmp_path_factory.mktemp("live")
    with faulty_host(folder / "host") as host:
        (folder / "rules.json").write_text(json.dumps(RULES))
        labels = {"cluster": "test", "namespace": "here"}
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(folder / "rules.json")],
            "scrape_configs": [
                {
                    "job_name": "observant-host",
                    "static_configs": [{"targets": [host.address], "labels": labels}],
                }
            ],
        }
        with prometheus(folder / "prometheus", json.dumps(config)) as found:
            until(
                "Prometheus has scraped the host",
                lambda: True if found.targets().get("observant-host") == "up" else None,
            )
            yield found


def answer(live: Prometheus, one: Asked) -> list[dict[str, Any]]:
    """Its series now. Grafana asks most queries over time, tables and single numbers once."""
    expr = filled(one.expr)
    return live.query(expr) if one.instant else live.query_range(expr, seconds=60, step=5)


def test_prometheus_understands_every_query(live: Prometheus) -> None:
    refused = {}
    for one in QUERIES:
        try:
            live.format_query(filled(one.expr))
        except Refused as error:
            refused[one.name] = str(error)
    assert refused == {}


def test_every_query_finds_something_while_things_go_wrong(live: Prometheus) -> None:
    empty = list(QUERIES)
    end = time.monotonic() + FILLED_WITHIN_S
    while any(one.name not in MAY_BE_EMPTY for one in empty) and time.monotonic() < end:
        time.sleep(1)
        empty = [one for one in empty if not answer(live, one)]
    kinds = [one.kind for one in QUERIES]
    print(
        f"\ndashboards: {len(FILES)}, panels: {sum(len(panels(read(f))) for f in FILES)}, queries: "
        f"{len(QUERIES)} ({kinds.count('panel')} of panels, {kinds.count('annotation')} of "
        f"annotations, {kinds.count('variable')} of variables), "
        f"empty: {[one.name for one in empty] or 'none'}"
    )
    assert {one.name for one in empty} <= MAY_BE_EMPTY.keys()


def labels_of(live: Prometheus, expr: str) -> set[str]:
    """The labels of its series in the last minute."""
    found = live.query_range(filled(expr), seconds=60, step=5)
    return set[str]().union(*(one["metric"] for one in found))


@pytest.mark.parametrize("name", FILES)
def test_legends_and_columns_name_labels_that_are_there(live: Prometheus, name: str) -> None:
    """After the test above: by now every query has found something."""
    for panel in panels(read(name)):
        queries = {target["refId"]: target for target in panel["targets"]}
        labels = {key: labels_of(live, one["expr"]) for key, one in queries.items()}
        if panel["type"] != "table":
            for key, one in queries.items():
                wanted = set(re.findall(r"\{\{(\w+)\}\}", one["legendFormat"]))
                assert wanted <= labels[key] or not labels[key], panel["title"]
            continue
        first, *_ = panel["transformations"]
        if first["id"] == "groupingToMatrix":
            assert {first["options"]["columnField"], first["options"]["rowField"]} <= labels["A"]
            continue
        named = panel["transformations"][1]["options"]["include"]["names"]
        columns = {one for one in named if not one.startswith("Value")}
        assert columns <= set[str]().union(*labels.values()), panel["title"]
        if len(queries) > 1:  # else Grafana keeps a row for each metric
            assert "__name__" not in set[str]().union(*labels.values()), panel["title"]


def test_few_queries_may_be_empty_and_each_is_one() -> None:
    assert MAY_BE_EMPTY.keys() <= {one.name for one in QUERIES}
    assert len(MAY_BE_EMPTY) <= 0.05 * len(QUERIES)


def test_the_exemplars_of_calls_are_kept(live: Prometheus) -> None:
    asked = "observant_host_call_duration_seconds_bucket"
    found = until(
        "an exemplar with a trace",
        lambda: live.exemplars(asked, seconds=60) or None,
    )
    assert len(found[0]["exemplars"][0]["labels"]["trace_id"]) == 32
