"""24 hours of a healthy, mixed fleet, as a promtool test in which no alert may fire.

Three replicas, each redeployed twice, one after the other; calls by day and few at night. Nothing
in it is perfect, since no fleet is: a server crashes once, another is away for two minutes, some
calls run out of time, one queue fills for a minute.

python -m tests.dashboards.quiet_night      writes dashboards/prometheus/tests/quiet_night.yaml
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from observant_host.telemetry.metric_list import METRICS, PREFIX
from tests.dashboards.alert_files import ALERTS, TESTS
from tests.dashboards.alert_files import PREFIX as OURS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILE = TESTS / "quiet_night.yaml"
NAME = "A quiet night"
MINUTES = 24 * 60
REPLICAS = ("a:8700", "b:8700", "c:8700")
DEPLOYS = (3 * 60, 15 * 60)
"""Minutes at which the first replica is redeployed; the others follow."""
ROLL = 4
AWAY = 4
SCRAPED = 4
EVALUATED = 8
"""Minutes between samples, and between evaluations: one of each a minute keeps promtool busy
for a quarter of an hour."""

MIB = 1024 * 1024
DAY = 86_400

Value = float | None
Series = tuple[str, "Callable[[int], Value]"]


class Replica:
    """One instance; `began(t)` is the minute of its present start, None while it is away."""

    def __init__(self, number: int) -> None:
        self.instance = REPLICAS[number]
        self._down = [minute + number * ROLL for minute in DEPLOYS]

    def began(self, minute: int) -> int | None:
        if any(down <= minute < down + AWAY for down in self._down):
            return None
        return max([0, *(down + AWAY for down in self._down if down + AWAY <= minute)])

    def deployed(self, minute: int) -> int:
        """How often it was redeployed."""
        return sum(minute >= down for down in self._down)

    def up(self, minute: int) -> Value:
        return 0 if self.began(minute) is None else 1

    def series(self, name: str, value: Callable[[int], Value], **labels: str) -> Series:
        """A series that is there while the instance is."""
        inside = ", ".join(
            f'{k}="{v}"'
            for k, v in {"job": "observant-host", "instance": self.instance, **labels}.items()
        )
        return (
            f"{PREFIX}{name}{{{inside}}}",
            lambda minute: None if self.began(minute) is None else value(minute),
        )

    def counter(self, name: str, pace: Callable[[int], float], **labels: str) -> Series:
        """Counts `pace` a minute, from 0 at each start."""
        total = {0: 0.0}
        for minute in range(1, MINUTES + 1):
            began = self.began(minute)
            fresh = began is None or began == minute
            total[minute] = 0.0 if fresh else total[minute - 1] + pace(minute)
        return self.series(name, lambda minute: total[minute], **labels)

    def gauge(self, name: str, value: float, **labels: str) -> Series:
        return self.series(name, lambda _: value, **labels)


def busy(minute: int) -> float:
    """Calls a minute: many by day, next to none at night."""
    return max(0.0, round(30 * math.sin((minute - 300) / MINUTES * 2 * math.pi)))


def night(minute: int) -> float:
    return float(minute % 97 == 0)


class Peer:
    """A server on one replica. `away`: minutes in which it is not ready."""

    def __init__(
        self, name: str, era: str, *, away: tuple[tuple[int, int, str], ...] = (), **traits: object
    ) -> None:
        self.name = name
        self.era = era
        self.away = away
        self.traits = traits

    def state(self, replica: Replica, minute: int) -> str:
        if self.era == "unknown":
            return "disabled"
        if replica.began(minute) == minute:
            return "starting"
        found = [state for begin, end, state in self.away if begin <= minute < end]
        return found[0] if found else "ready"

    def series(self, replica: Replica) -> Iterator[Series]:
        yield from self._standing(replica)
        yield from self._counting(replica)
        if self.era != "unknown":
            yield from self._running(replica)

    def _standing(self, on: Replica) -> Iterator[Series]:
        peer = self.name
        if self.era != "unknown":
            yield on.gauge("peer_expected", 1, peer=peer)
        if self.traits.get("required"):
            yield on.gauge("peer_required", 1, peer=peer)
        for state in METRICS[PREFIX + "peer_state"].allowed["state"]:
            yield on.series(
                "peer_state",
                lambda minute, state=state: float(self.state(on, minute) == state),
                peer=peer,
                state=state,
            )
        yield on.series("peer_unavailable", self._unavailable(on), peer=peer, cause="network")
        for era in ("modern", "legacy", "unknown"):
            yield on.gauge("peer_era", float(self.era == era), peer=peer, era=era)
        if self.era != "unknown":
            yield on.gauge("peer_era_expected", 1, peer=peer)
            yield on.series("peer_last_ready_timestamp_seconds", self._last_ready(on), peer=peer)
        if self.era == "legacy":
            name = "legacy_allowance_expiry_timestamp_seconds"
            yield on.gauge(name, 180 * DAY, peer=peer)
            yield on.gauge("peer_last_downgrade_timestamp_seconds", -30 * DAY, peer=peer)

    def _unavailable(self, on: Replica) -> Callable[[int], Value]:
        return lambda minute: 1 if self.state(on, minute) == "unavailable" else None

    def _last_ready(self, on: Replica) -> Callable[[int], Value]:
        last = {-1: 0.0}
        for minute in range(MINUTES + 1):
            ready = on.began(minute) is not None and self.state(on, minute) == "ready"
            last[minute] = 60.0 * minute if ready else last[minute - 1]
        return lambda minute: last[minute]

    def _counting(self, on: Replica) -> Iterator[Series]:
        peer, idle = self.name, bool(self.traits.get("idle"))
        for outcome, fault in METRICS[PREFIX + "calls_total"].eager:
            pace = PACES.get((outcome, fault), _never)
            yield on.counter(
                "calls_total", _never if idle else pace, peer=peer, outcome=outcome, fault=fault
            )
        for to in ("ready", "degraded", "backoff", "unavailable"):
            yield on.counter(
                "peer_transitions_total",
                lambda minute, to=to: (
                    float(self.state(on, minute) == to) * (self.state(on, minute - 1) != to)
                ),
                peer=peer,
                to=to,
            )
        yield on.counter(
            "peer_restarts_total",
            lambda minute: float(any(minute == end for _, end, _ in self.away)),
            peer=peer,
        )
        for outcome in ("ok", "timeout", "error", "closed"):
            silent = self.traits.get("silent") and outcome == "timeout"
            yield on.counter(
                "probes_total",
                lambda minute, yes=silent: float(bool(yes) and minute % 60 == 7),
                peer=peer,
                outcome=outcome,
            )

    def _running(self, on: Replica) -> Iterator[Series]:
        peer = self.name
        if self.traits.get("tells"):
            yield on.gauge("subscription_up", 1, peer=peer)
        yield on.gauge("catalogue_collisions", float(bool(self.traits.get("collides"))), peer=peer)
        yield on.gauge("catalogue_refresh_failing", 0, peer=peer)
        yield on.series(
            "queued_calls",
            lambda minute: 40.0 if minute == 700 and not on.up(0) else 0.0,
            peer=peer,
        )
        if not self.traits.get("remote"):
            yield on.gauge("peer_processes", 3, peer=peer)
            yield on.series(
                "peer_resident_memory_bytes", lambda minute: _memory(on, minute), peer=peer
            )


def _never(_: int) -> float:
    return 0.0


PACES: dict[tuple[str, str], Callable[[int], float]] = {
    ("ok", "none"): lambda minute: busy(minute) or night(minute),
    ("tool_error", "none"): lambda minute: busy(minute) // 10,
    ("rpc_error", "peer"): lambda minute: float(busy(minute) > 20 and minute % 13 == 0),
    ("timeout", "peer"): lambda minute: float(busy(minute) > 10 and minute % 31 == 0),
    ("timeout", "host"): lambda minute: float(minute in (350, 700)),
    ("unavailable", "policy"): lambda minute: float(minute % 11 == 0),
    ("cancelled", "caller"): lambda minute: float(busy(minute) > 5 and minute % 5 == 0),
}


AGENTS: dict[str, Callable[[int], float]] = {
    "200": lambda minute: 7 * busy(minute) + night(minute),
    "400": lambda minute: busy(minute) // 7,
    "500": lambda minute: float(minute == 611),
    "503": lambda minute: 3.0 * any(-3 <= minute - down <= 0 for down in DEPLOYS),
}


def _memory(on: Replica, minute: int) -> float:
    """Grows after each start until its caches are full, and breathes by day."""
    age = minute - (on.began(minute) or 0)
    return MIB * (80 + min(age, 40) * 5 + busy(minute) * 2)


PEERS = (
    Peer("modern", "modern", required=True, tells=True, collides=True),
    Peer("legacy", "legacy", required=True, collides=True),
    Peer("silent", "legacy", silent=True),
    Peer("plain", "modern", away=((608, 612, "backoff"),)),
    Peer("remote", "modern", remote=True, tells=True, away=((420, 422, "unavailable"),)),
    Peer("idle", "modern", idle=True),
    Peer("off", "unknown", idle=True),
)


def of_host(on: Replica) -> Iterator[Series]:
    yield f'up{{job="observant-host", instance="{on.instance}"}}', on.up
    yield on.gauge("build_info", 1, version="0.1.0", python="3.11.7")
    yield on.gauge("config_last_reload_successful", 1)
    for number in range(len(DEPLOYS) + 1):
        current = _while_deployed(on, number)
        yield on.series("config_info", current, hash=f"h{number}")
        yield on.series("catalogue_info", current, digest=f"sha256:{number}")
    for code, pace in AGENTS.items():
        yield on.counter("http_requests_total", pace, route="/mcp", code=code)
    for reason in ("missing", "invalid"):
        yield on.counter("auth_failures_total", night, reason=reason)
    for sink in ("metric", "log", "span", "recorder"):
        yield on.gauge("telemetry_sink_up", 1, sink=sink)
    for stream in ("decisions", "traces"):
        yield on.gauge("record_lost_total", 0, stream=stream)
    for bound, share in (("0.01", 236), ("0.1", 239), ("0.25", 239), ("1.0", 240), ("+Inf", 240)):
        name = "event_loop_lag_seconds_bucket"
        yield on.counter(name, lambda _, share=share: float(share), le=bound)


def _while_deployed(on: Replica, number: int) -> Callable[[int], Value]:
    return lambda minute: 1 if on.deployed(minute) == number else None


def notation(value: Callable[[int], Value]) -> str:
    """In promtool's short hand: runs of one value or of one step; "stale" where a series ends, as
    a scrape without it says."""
    values = [value(minute) for minute in range(0, MINUTES + 1, SCRAPED)]
    last = len(values) - 1
    parts: list[str] = []
    at = 0
    while at <= last:
        first = values[at]
        if first is None:
            end = at
            while end <= last and values[end] is None:
                end += 1
            gap = end - at
            if at:
                parts.append("stale")
                gap -= 1
            parts += [f"_x{gap}"] if gap else []
            at = end
            continue
        end = at
        following = values[at + 1] if at < last else None
        step = following - first if following is not None else 0.0
        while end < last and values[end + 1] is not None and _step(values, end) == step:
            end += 1
        times = end - at
        sign = "+" if step >= 0 else "-"
        parts.append(
            f"{first:.12g}{sign}{abs(step):.12g}x{times}"
            if times and step
            else f"{first:.12g}x{times}"
            if times
            else f"{first:.12g}"
        )
        at = end + 1
    return " ".join(parts)


def _step(values: list[Value], at: int) -> float:
    before, after = values[at], values[at + 1]
    assert before is not None
    assert after is not None
    return after - before


def text() -> str:
    from yaml import safe_load

    lines = [
        "# 24 hours of a healthy, mixed fleet. Made by: python -m tests.dashboards.quiet_night",
        "rule_files: [../rules.yaml, ../alerts.yaml]",
        f"evaluation_interval: {EVALUATED}m",
        "group_eval_order:",
        "  - observant-host-records-servers",
        "  - observant-host-records-objectives",
        *(f"  - {group['name']}" for group in safe_load(ALERTS.read_text())["groups"]),
        "",
        "tests:",
        f"  - name: {NAME}",
        f"    interval: {SCRAPED}m",
        "    input_series:",
    ]
    for number in range(len(REPLICAS)):
        replica = Replica(number)
        every = [*of_host(replica), *(one for peer in PEERS for one in peer.series(replica))]
        for name, value in every:
            written = notation(value)
            if not written.startswith(f"_x{MINUTES // SCRAPED + 1}"):
                lines += [f"      - series: {name}", f"        values: {written}"]
    lines += [
        "    promql_expr_test:",
        "      # Every alert that fired at any time of these 24 hours.",
        f'      - expr: max_over_time(ALERTS{{alertname=~"{OURS}.+", alertstate="firing"}}[1d])',
        f"        eval_time: {MINUTES}m",
        "        exp_samples: []",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
