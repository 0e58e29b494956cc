"""The shipped rules, with short windows, over a host whose servers have every fault there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.dashboards.alert_files import (
    ALERTS,
    PREFIX,
    RULES,
    RUNBOOKS,
    blocks,
    recorded,
    shortened,
)
from tests.dashboards.faults import faulty_host
from tests.dashboards.prometheus import Prometheus, Refused, prometheus, until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.prometheus, pytest.mark.timeout(300)]

FACTOR = 60
"""An hour is a minute."""
FIRE_WITHIN_S = 120.0

FIRE = {
    ("PeerDown", "crashes"),
    ("PeerDown", "gone"),
    ("RestartLoop", "dies"),
    ("LegacyRefused", "old"),
    ("AuthRequired", "locked"),
    ("ConfigInvalid", "misconfigured"),
    ("UnexpectedDowngrade", "rolled_back"),
    ("RunningLegacyUnexpectedly", "rolled_back"),
    ("CatalogueRefreshFailing", "listless"),
    ("ListenDown", "deaf"),
    ("DeadlineBurn", "works"),
    ("ErrorBudgetBurn", ""),
}
"""What must fire, and for which server."""

STILL = {
    *("MetricsMissing", "PeerDownEverywhere", "ReplicasDisagree", "ConfigReloadFailed"),
    *("RecordNotWritten", "NameCollision", "ProcessLeak", "DowngradeWave"),
}
"""What must not: none of it happens. HostDown is not among them: a Prometheus looks for its targets
five seconds after its start, and with an hour for a minute that is long enough."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("live")
    for file in (RULES, ALERTS):
        (folder / file.name).write_text(shortened(file.read_text(), FACTOR))
    with faulty_host(folder / "host") as host:
        target = {"targets": [host.address], "labels": {"instance": "a:8700"}}
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(folder / file.name) for file in (RULES, ALERTS)],
            "scrape_configs": [{"job_name": "observant-host", "static_configs": [target]}],
        }
        with prometheus(folder / "prometheus", json.dumps(config)) as found:
            yield found


def firing(live: Prometheus) -> set[tuple[str, str]]:
    return {
        (one["metric"]["alertname"].removeprefix(PREFIX), one["metric"].get("peer", ""))
        for one in live.query('ALERTS{alertstate="firing"}')
    }


def rules(live: Prometheus) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = live.ask_get("rules")["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_the_right_alerts_fire_for_the_right_servers(live: Prometheus) -> None:
    seen = set[tuple[str, str]]()

    def fired() -> bool | None:
        seen.update(firing(live))
        return True if seen >= FIRE else None

    try:
        until("every alert fires", fired, within_s=FIRE_WITHIN_S)
    finally:
        print(f"\nfired: {sorted(seen)}\nmissing: {sorted(FIRE - seen)}")
    assert not {name for name, _ in seen} & STILL
    assert not {peer for name, peer in seen if name == "PeerDown"} & {"works", "old", "locked"}


def test_every_rule_was_evaluated_without_an_error(live: Prometheus) -> None:
    until(
        "all were evaluated", lambda: all(one["health"] != "unknown" for one in rules(live)) or None
    )
    assert {one["name"]: one["lastError"] for one in rules(live) if one["health"] != "ok"} == {}


def test_every_recorded_series_has_values(live: Prometheus) -> None:
    missing = set(recorded())

    def all_seen() -> bool | None:  # a scrape that a busy machine was late for leaves a hole
        missing.difference_update([name for name in missing if live.query(name)])
        return None if missing else True

    until("every series has a value", all_seen)


def test_every_query_of_every_runbook_is_answered(live: Prometheus) -> None:
    refused = {}
    for file in sorted(RUNBOOKS.glob("*.md")):
        for query in "".join(blocks(file.read_text(), "promql")).splitlines():
            asked = query.replace("SERVER", "works").replace("HOST", "a:8700")
            try:
                live.query(asked)
            except Refused as error:
                refused[f"{file.stem}: {query}"] = str(error)
    assert refused == {}
