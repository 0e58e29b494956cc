"""What is true at the moment of a scrape: states of peers from one snapshot, and our own health.

A gauge kept up to date piece by piece shows a peer in two states at once; a snapshot cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.terms import PeerState
from observant_host.telemetry.metric_list import METRICS, PREFIX, SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from prometheus_client.core import Metric as Family

    from observant_host.telemetry.vocabulary import PeerSnapshot


class SelfReport(msgspec.Struct, frozen=True):
    """How telemetry itself is: sinks that are up, spans for the exporter, the record's size."""

    sinks: dict[str, bool] = {}
    spans: dict[str, int] = {}
    record_bytes: dict[str, int] = {}
    record_lost: dict[str, int] = {}


_FIELDS: Final = {
    "peer_era_expected": "era_expected",
    "peer_last_ready_timestamp_seconds": "last_ready_s",
    "peer_last_downgrade_timestamp_seconds": "last_downgrade_s",
    "peer_last_refused_timestamp_seconds": "last_refused_s",
    "legacy_allowance_expiry_timestamp_seconds": "allowance_expires_s",
    "inflight_calls": "inflight",
    "queued_calls": "queued",
    "peer_processes": "processes",
    "peer_resident_memory_bytes": "resident_bytes",
    "peer_cpu_seconds_total": "cpu_seconds",
    "peer_open_fds": "open_fds",
    "catalogue_tools": "tools",
    "catalogue_collisions": "collisions",
    "catalogue_refresh_failing": "refresh_failing",
    "subscription_up": "subscription_up",
}
"""Metric to field of PeerSnapshot, where the value is the number itself; None gives no series."""

_WISHES: Final = {"peer_expected": "expected", "peer_required": "required"}
"""Gauges that mean a wish exist only where the wish does."""

_HOST: Final = ("catalogue_info", "config_info", "config_last_reload_successful")
"""Values of the host: the latest only, so that a new digest replaces the old one."""


class ScrapeCollector:
    """A prometheus collector over the latest snapshot. Collected in a thread, fed on the loop."""

    def __init__(self, report: Callable[[], SelfReport]) -> None:
        self._report = report
        self._snapshot: Callable[[], Sequence[PeerSnapshot]] = tuple
        self._peers: Sequence[PeerSnapshot] = ()
        self._count: Callable[[], Mapping[str, int]] = dict
        self._clients: Mapping[str, int] = {}
        self._host: dict[str, tuple[str, float]] = {}
        self._levels: dict[tuple[str, str], float] = {}
        self.render_seconds = 0.0

    def watch(self, snapshot: Callable[[], Sequence[PeerSnapshot]]) -> None:
        self._snapshot = snapshot

    def watch_clients(self, count: Callable[[], Mapping[str, int]]) -> None:
        self._count = count

    def take(self) -> None:
        """Read the states now; called on the event loop, before rendering in a thread."""
        self._peers = tuple(self._snapshot())
        self._clients = self._count()

    def level(self, name: str, label: str, value: float) -> bool:
        """Remember a value told outside the snapshot; False where this is not its metric."""
        short = name.removeprefix(PREFIX)
        if short in _HOST:
            self._host[name] = (label, value)
        elif name in SNAPSHOT:
            self._levels[name, label] = value
        else:
            return False
        return True

    def forget(self, peer: str) -> None:
        for key in [key for key in self._levels if key[1] == peer]:
            del self._levels[key]

    def collect(self) -> Iterator[Family]:
        peers = self._peers
        yield _states(peers)
        yield _causes(peers)
        yield _eras(peers)
        for short, field in _FIELDS.items():
            yield self._numbers(PREFIX + short, field, peers)
        for short, field in _WISHES.items():
            wanted = [((peer.peer,), 1.0) for peer in peers if getattr(peer, field)]
            yield _family(PREFIX + short, wanted)
        for short in _HOST:
            yield self._of_host(PREFIX + short)
        clients = [((era,), float(n)) for era, n in self._clients.items()]
        yield _family(PREFIX + "clients", clients)
        yield from self._own()

    def _numbers(self, name: str, field: str, peers: Sequence[PeerSnapshot]) -> Family:
        levels = {key[1]: value for key, value in list(self._levels.items()) if key[0] == name}
        for peer in peers:
            if (value := getattr(peer, field)) is not None:
                levels[peer.peer] = float(value)
        return _family(name, [((peer,), value) for peer, value in levels.items()])

    def _of_host(self, name: str) -> Family:
        if name not in self._host:
            return _family(name, [])
        label, value = self._host[name]
        return _family(name, [((label,) if METRICS[name].labels else (), value)])

    def _own(self) -> Iterator[Family]:
        report = self._report()
        for short, values in (
            ("telemetry_sink_up", report.sinks),
            ("telemetry_spans_total", report.spans),
            ("record_bytes", report.record_bytes),
            ("record_lost_total", report.record_lost),
        ):
            yield _family(PREFIX + short, [((key,), float(n)) for key, n in values.items()])
        yield _family(PREFIX + "metrics_render_seconds", [((), self.render_seconds)])


def _family(name: str, samples: Sequence[tuple[tuple[str, ...], float]]) -> Family:
    from observant_host.telemetry.families import CounterMetricFamily, GaugeMetricFamily

    metric = METRICS[name]
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(name, metric.help, labels=metric.labels)
    for values, number in samples:
        family.add_metric(values, number)
    return family


def _states(peers: Sequence[PeerSnapshot]) -> Family:
    return _family(
        PREFIX + "peer_state",
        [((p.peer, state), float(p.state == state)) for p in peers for state in PeerState],
    )


def _causes(peers: Sequence[PeerSnapshot]) -> Family:
    unavailable = [p for p in peers if p.state == PeerState.UNAVAILABLE and p.cause is not None]
    return _family(
        PREFIX + "peer_unavailable", [((p.peer, str(p.cause)), 1.0) for p in unavailable]
    )


def _eras(peers: Sequence[PeerSnapshot]) -> Family:
    return _family(PREFIX + "peer_era", [((p.peer, p.era), 1.0) for p in peers])
