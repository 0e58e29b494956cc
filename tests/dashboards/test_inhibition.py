"""What need not be said twice is not, within its scope; what became of an era is always said.

Alertmanager has no tester for inhibition: a real one is given alerts of two instances and asked
which of them it holds back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from tests.dashboards.alert_files import ALERTS, PREFIX, names
from tests.dashboards.alertmanager import alertmanager
from tests.dashboards.prometheus import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.dashboards.alertmanager import Alertmanager

pytestmark = pytest.mark.prometheus

NEVER = {"UnexpectedDowngrade", "DowngradeWave", "LegacyRefused"}

BY_JOB = {
    *("HostDown", "ErrorBudgetBurn", "ReplicasDisagree", "PeerDownEverywhere"),
    "NoNorthboundTraffic",
}
"""Alerts of a whole job: they carry no instance."""
OF_INSTANCE = {
    *("InstanceUnreachable", "MetricsMissing", "HostLosingPeers", "DowngradeWave"),
    *("EventLoopLag", "ConfigReloadFailed", "TelemetryDropping", "RecordNotWritten"),
    *("NorthboundErrors", "AuthFailureBurst"),
}

Key = tuple[str, str, str]
"""Name, instance and peer of an alert; "" for what it does not carry."""


def of(name: str, instance: str, peer: str) -> Key:
    """The alert with the labels that its rule gives it."""
    return (
        name,
        "" if name in BY_JOB else instance,
        "" if name in OF_INSTANCE or name in BY_JOB - {"PeerDownEverywhere"} else peer,
    )


def held_back(folder: Path, *sources: Key) -> set[Key]:
    """Every alert there is, for two instances and two servers, beside `sources`: which of them are
    inhibited? No alert of a source's name is posted but the source."""
    asked = {one[0] for one in sources}
    fleet = {
        of(name, instance, peer)
        for name in names()
        if name not in asked
        for instance in ("a", "b")
        for peer in ("s", "t")
    }
    labels = {
        key: {
            k: v
            for k, v in (
                ("alertname", PREFIX + key[0]),
                ("job", "observant-host"),
                ("instance", key[1]),
                ("peer", key[2]),
            )
            if v
        }
        for key in (*fleet, *sources)
    }
    # Other sources among the fleet would hold things back themselves.
    told = {key: one for key, one in labels.items() if key in sources or key[0] not in SOURCES}
    targets = {key for key in fleet if key[0] in SOURCES}
    with alertmanager(folder) as running:
        running.post(list(told.values()))
        found = _judged(running, len(told))
        held = {_key(one) for one in found if one["status"]["inhibitedBy"]}
        assert not held & set(sources), "a source holds itself back"
    return held | _held_sources(folder, sources, targets, labels)


SOURCES = {
    *("HostDown", "InstanceUnreachable", "HostLosingPeers", "PeerDownEverywhere", "PeerDown"),
}


def _held_sources(
    folder: Path, sources: tuple[Key, ...], targets: set[Key], labels: dict[Key, dict[str, str]]
) -> set[Key]:
    """Alerts that are sources of other rules: each alone beside `sources`."""
    held = set[Key]()
    with alertmanager(folder / "sources") as running:
        by_name = sorted({key[0] for key in targets})
        for number, name in enumerate(by_name):
            # a job of its own keeps one name's alerts apart from the next one's
            own = {"job": f"job-{number}"}
            keys = [key for key in targets if key[0] == name]
            running.post([{**labels[key], **own} for key in (*keys, *sources)])
            found = _judged(running, len({*keys, *sources}), own["job"])
            held |= {_key(one) for one in found if one["status"]["inhibitedBy"]} - set(sources)
    return held


def _judged(running: Alertmanager, count: int, job: str = "") -> list[dict]:
    """Alerts of this job (of all), once all of them were looked at for inhibition.

    That happens in the order in which they were posted and some time after the API shows them: a
    pair that is posted last and is inhibited tells that it has.
    """
    mark = {"job": f"mark of {job}", "instance": "m", "peer": "m"}
    running.post([{**mark, "alertname": PREFIX + name} for name in ("PeerDown", "ListenDown")])

    def judged() -> list[dict] | None:
        found = running.alerts()
        marks = [one for one in found if one["labels"]["job"] == mark["job"]]
        those = [one for one in found if one not in marks and job in ("", one["labels"]["job"])]
        done = any(one["status"]["inhibitedBy"] for one in marks)
        return those if done and len(those) == count else None

    return until("every alert is there and judged", judged)


def _key(one: dict) -> Key:
    labels = one["labels"]
    name = labels["alertname"].removeprefix(PREFIX)
    return name, labels.get("instance", ""), labels.get("peer", "")


def everything(*kinds: str, instances: str = "ab", peers: str = "st") -> set[Key]:
    return {of(name, instance, peer) for name in kinds for instance in instances for peer in peers}


def test_nothing_of_a_job_is_up(tmp_path: Path) -> None:
    held = held_back(tmp_path, ("HostDown", "", ""))
    assert held == everything("InstanceUnreachable", "MetricsMissing")


def test_an_instance_that_cannot_be_reached_silences_all_of_its_own_but_what_became_of_eras(
    tmp_path: Path,
) -> None:
    held = held_back(tmp_path, ("InstanceUnreachable", "a", ""))
    of_a = {
        of(name, "a", peer)
        for name in set(names()) - NEVER - BY_JOB - {"InstanceUnreachable"}
        for peer in "st"
    }
    assert held == of_a


def test_a_host_that_loses_its_servers_silences_those_of_its_own(tmp_path: Path) -> None:
    held = held_back(tmp_path, ("HostLosingPeers", "a", ""))
    assert held == everything("PeerDown", "PeerFlapping", "PeerErrorShare", instances="a")


def test_a_server_that_is_out_everywhere_is_not_out_on_each_host_too(tmp_path: Path) -> None:
    held = held_back(tmp_path, ("PeerDownEverywhere", "", "s"))
    assert held == everything("PeerDown", peers="s")


def test_of_a_server_that_is_out_nothing_else_is_expected_on_that_host(tmp_path: Path) -> None:
    held = held_back(tmp_path, ("PeerDown", "a", "s"))
    kinds = ("ListenDown", "CatalogueRefreshFailing", "PeerFlapping")
    assert held == everything(*kinds, instances="a", peers="s")


def test_all_sources_at_once_hold_back_no_word_about_an_era(tmp_path: Path) -> None:
    sources = [
        *(("HostDown", "", ""), ("InstanceUnreachable", "a", ""), ("HostLosingPeers", "a", "")),
        *(("PeerDownEverywhere", "", "s"), ("PeerDown", "a", "s")),
    ]
    with alertmanager(tmp_path) as running:
        every = [*sources, *everything(*NEVER, instances="a", peers="s")]
        running.post(
            [
                {"alertname": PREFIX + name, "job": "observant-host"}
                | ({"instance": instance} if instance else {})
                | ({"peer": peer} if peer else {})
                for name, instance, peer in every
            ]
        )
        found = _judged(running, len(every))
    held = {_key(one)[0] for one in found if one["status"]["inhibitedBy"]}
    assert not held & NEVER
    assert held == {"InstanceUnreachable", "HostLosingPeers", "PeerDown"}


def test_another_job_is_another_fleet(tmp_path: Path) -> None:
    with alertmanager(tmp_path) as running:
        running.post(
            [
                {"alertname": f"{PREFIX}InstanceUnreachable", "job": "one", "instance": "a"},
                {"alertname": f"{PREFIX}EventLoopLag", "job": "two", "instance": "a"},
                {"alertname": f"{PREFIX}EventLoopLag", "job": "one", "instance": "a"},
            ]
        )
        found = _judged(running, 3)
    held = {one["labels"]["job"] for one in found if one["status"]["inhibitedBy"]}
    assert held == {"one"}


def test_what_holds_back_outlasts_what_it_holds_back() -> None:
    """Of alerts that are kept after their fault is over; else its end would notify of them all."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    kept = {
        rule["alert"]: int(rule.get("keep_firing_for", "0m")[:-1])
        for group in groups
        for rule in group["rules"]
    }
    assert kept[f"{PREFIX}HostLosingPeers"] > kept[f"{PREFIX}PeerDown"] > 0
    assert kept[f"{PREFIX}PeerDownEverywhere"] > kept[f"{PREFIX}PeerDown"]
