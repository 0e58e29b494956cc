"""All hosts and servers: is anything wrong, and whose is it?"""

from __future__ import annotations

from typing import Final

from dashboards.generate import codes
from dashboards.generate.agents import NORTHBOUND
from dashboards.generate.board import Board, Row
from dashboards.generate.panels import (
    AMBER,
    GREEN,
    RED,
    Bars,
    Column,
    Lines,
    Query,
    Stat,
    States,
    Table,
    to_peer,
    to_traces,
)
from dashboards.generate.promql import query

ROW_LINK: Final = to_peer("${__data.fields.peer}")
LINE_LINK: Final = to_peer("${__field.labels.peer}")
DOWNGRADES: Final = to_traces(
    "Downgrades in Tempo",
    '{name="observant_host.era.decide" && span.observant_host.era.direction="downgrade"}',
)
WHERE: Final = {
    "peer": Column(title="Server", link=ROW_LINK),
    "instance": Column(title="Host"),
}
ADVICE: Final = {
    "policy": "observant-host explain $1, then update the server or allow it",
    "auth": "give $1 valid credentials, then observant-host probe $1",
    "config": "observant-host config check names the key of $1 to mend",
}


def one(text: str, legend: str = "", *, exemplars: bool = False) -> Query:
    return Query(expr=query(text), legend=legend, exemplars=exemplars)


def advised() -> str:
    """Servers that wait for a person, with the next step as a label."""
    each = " or ".join(
        f'label_replace(:peer_unavailable{{cause="{cause}"}} == 1, '
        f'"next_step", "{text}", "peer", "(.*)")'
        for cause, text in ADVICE.items()
    )
    return f"sum by (job, instance, peer, cause, next_step) ({each})"


NOW: Final = Row(
    title="Now",
    panels=[
        Stat(
            title="Hosts up",
            description="Hosts that answer scrapes.",
            queries=[one("sum(:up)")],
        ),
        Stat(
            title="Servers ready",
            description="Share of the servers that are wished to be up which are ready.",
            queries=[
                one(
                    'sum((:peer_state{state="ready"} == 1) and on (job, instance, peer) '
                    ":peer_expected) / sum(:peer_expected)"
                )
            ],
            unit="percentunit",
            thresholds=[(0, RED), (0.9, AMBER), (1, GREEN)],
        ),
        Stat(
            title="In outage",
            description="Servers that are down for their process, the network or the protocol.",
            queries=[one(f'count(:peer_unavailable{{cause=~"{codes.OUTAGE}"}}) or vector(0)')],
            thresholds=[(1, RED)],
        ),
        Stat(
            title="Waiting for a person",
            description="Servers that only a person can bring up: refused, without a login, or "
            "misconfigured. The table below says what to do.",
            queries=[one(f'count(:peer_unavailable{{cause=~"{codes.PERSON}"}}) or vector(0)')],
            thresholds=[(1, AMBER)],
        ),
        Stat(
            title="Calls",
            description="Routed calls a second, over all servers.",
            queries=[one("sum(rate(:calls_total[R]))")],
            unit="reqps",
        ),
        Stat(
            title="Host faults",
            description="Share of the calls that failed by the host's own fault.",
            queries=[
                one('sum(rate(:calls_total{fault="host"}[R])) / (sum(rate(:calls_total[R])) > 0)')
            ],
            unit="percentunit",
            thresholds=[(0.001, AMBER), (0.01, RED)],
        ),
        Stat(
            title="Added time, p95",
            description="Time of calls that no server spent: our own work and our queue.",
            queries=[
                one("histogram_quantile(0.95, sum by (le) (rate(:overhead_seconds_bucket[R])))")
            ],
            unit="s",
            thresholds=[(0.1, AMBER), (1, RED)],
        ),
        Stat(
            title="Running legacy",
            description="Servers that are spoken to in the old protocol now.",
            queries=[one('count(:peer_era{era="legacy"} == 1) or vector(0)')],
        ),
    ],
)

PERSON: Final = Row(
    title="Needs a person",
    panels=[
        Table(
            title="Servers that wait for a person",
            description="Nothing here gets better by waiting. Last ready is empty for a server "
            "that never was.",
            width=24,
            queries=[
                one(advised()),
                one(
                    ":peer_last_ready_timestamp_seconds * 1000 and on (job, instance, peer) "
                    f':peer_unavailable{{cause=~"{codes.PERSON}"}}'
                ),
                one(
                    ":peer_last_refused_timestamp_seconds * 1000 and on (job, instance, peer) "
                    f':peer_unavailable{{cause=~"{codes.PERSON}"}}'
                ),
            ],
            columns={
                **WHERE,
                "cause": Column(title="Cause"),
                "next_step": Column(title="What to do"),
                "B": Column(title="Last ready", unit="dateTimeFromNow"),
                "C": Column(title="Last refused", unit="dateTimeFromNow"),
            },
        ),
    ],
)

SERVERS: Final = Row(
    title="Servers",
    panels=[
        Table(
            title="State of each server on each host",
            description="A red row is a server that is down everywhere: look at the server. A red "
            "column is a host that has lost its servers: look at the host.",
            height=10,
            queries=[one(codes.state("instance, peer"))],
            matrix=("instance", "peer"),
            row_link=to_peer("${__value.text}"),
            mappings=codes.STATE,
        ),
        Bars(
            title="Down, by server",
            description="Share of the hosts on which a server is in outage: near 100 % it is the "
            "server itself.",
            width=6,
            height=10,
            unit="percentunit",
            queries=[
                one(
                    f'sum by (peer) (:peer_unavailable{{cause=~"{codes.OUTAGE}"}}) / '
                    "sum by (peer) (:peer_expected)",
                    "{{peer}}",
                )
            ],
            links=[LINE_LINK],
            thresholds=[(0.5, RED)],
        ),
        Bars(
            title="Lost, by host",
            description="Share of its servers that a host has lost to outages: over half it is "
            "the host itself.",
            width=6,
            height=10,
            unit="percentunit",
            queries=[
                one(
                    f'sum by (instance) (:peer_unavailable{{cause=~"{codes.OUTAGE}"}}) / '
                    "sum by (instance) (:peer_expected)",
                    "{{instance}}",
                )
            ],
            thresholds=[(0.5, RED)],
        ),
        States(
            title="States over time",
            description="The state of every server on every host.",
            height=10,
            queries=[one(codes.state("instance, peer"), "{{peer}} on {{instance}}")],
            mappings=codes.STATE,
            links=[LINE_LINK],
        ),
    ],
)

ALERTS: Final = Row(
    title="Alerts",
    panels=[
        Table(
            title="Firing alerts",
            description="Of this project's rules, as Prometheus sees them; runbooks carry the "
            "same names.",
            width=24,
            height=6,
            queries=[one(':ALERTS{alertname=~"ObservantHost.+",alertstate="firing"}')],
            columns={
                "alertname": Column(title="Alert"),
                "severity": Column(title="Severity"),
                "owner": Column(title="Whose"),
                **WHERE,
            },
        ),
    ],
)

ERAS: Final = Row(
    title="Protocol eras",
    panels=[
        Lines(
            title="Servers by era",
            description="How many servers speak which protocol era.",
            width=8,
            stacked=True,
            queries=[one("sum by (era) (:peer_era)", "{{era}}")],
        ),
        Table(
            title="Running legacy",
            description="Servers that are spoken to in the old protocol now, and whether that was "
            "to be expected of them.",
            width=8,
            queries=[
                one('sum by (job, instance, peer) (:peer_era{era="legacy"} == 1)'),
                one(
                    "sum by (job, instance, peer) (:peer_era_expected and on (job, instance, peer) "
                    '(:peer_era{era="legacy"} == 1))'
                ),
            ],
            columns={**WHERE, "B": Column(title="Expected", unit="bool_yes_no")},
        ),
        Table(
            title="Allowances by expiry",
            description="When each permission to speak the old protocol ends.",
            width=8,
            queries=[one("sort(:legacy_allowance_expiry_timestamp_seconds - time())")],
            columns={**WHERE, "A": Column(title="Ends in", unit="s")},
        ),
        Table(
            title="Refused",
            description="When the policy last refused a server; also from before a restart.",
            width=8,
            queries=[one(":peer_last_refused_timestamp_seconds * 1000")],
            columns={**WHERE, "A": Column(title="Last refused", unit="dateTimeFromNow")},
        ),
        Table(
            title="Downgraded",
            description="When a server last went from modern to legacy; also from before a "
            "restart.",
            width=8,
            queries=[one(":peer_last_downgrade_timestamp_seconds * 1000")],
            columns={**WHERE, "A": Column(title="Last downgrade", unit="dateTimeFromNow")},
            links=[DOWNGRADES],
        ),
        Table(
            title="Decisions by reason",
            description="Era decisions within the chosen time, and whether they were expected.",
            width=8,
            queries=[
                one(
                    "sum by (reason, direction, expected) "
                    "(increase(:era_decisions_by_reason_total[$__range])) > 0"
                )
            ],
            columns={
                "reason": Column(title="Reason"),
                "direction": Column(title="Direction"),
                "expected": Column(title="Expected"),
                "A": Column(title="Decisions"),
            },
        ),
    ],
)

CALLS: Final = Row(
    title="Calls",
    panels=[
        Lines(
            title="Success",
            description="Share of a server's calls that ended ok or with the tool's own error.",
            width=8,
            unit="percentunit",
            queries=[
                one(
                    'sum by (peer) (rate(:calls_total{outcome=~"ok|tool_error"}[R])) / '
                    "sum by (peer) (rate(:calls_total[R]))",
                    "{{peer}}",
                )
            ],
            links=[LINE_LINK],
        ),
        Lines(
            title="Volume",
            description="Calls a second by server.",
            width=8,
            unit="reqps",
            stacked=True,
            queries=[one("sum by (peer) (rate(:calls_total[R]))", "{{peer}}", exemplars=True)],
            links=[LINE_LINK],
        ),
        Lines(
            title="Duration, p95",
            description="As callers saw it, by server.",
            width=8,
            unit="s",
            queries=[
                one(
                    "histogram_quantile(0.95, "
                    "sum by (le, peer) (rate(:call_duration_seconds_bucket[R])))",
                    "{{peer}}",
                    exemplars=True,
                )
            ],
            links=[LINE_LINK],
        ),
    ],
)

VERSIONS: Final = Row(
    title="Builds and configurations",
    panels=[
        Table(
            title="Builds",
            description="Hosts by version.",
            width=8,
            queries=[one("count by (version, python) (:build_info)")],
            columns={
                "version": Column(title="Version"),
                "python": Column(title="Python"),
                "A": Column(title="Hosts"),
            },
        ),
        Table(
            title="Configurations",
            description="Hosts by the hash of their effective configuration.",
            width=8,
            queries=[one("count by (hash) (:config_info)")],
            columns={"hash": Column(title="Configuration"), "A": Column(title="Hosts")},
        ),
        Table(
            title="Catalogues",
            description="Hosts by the digest of their catalogue: replicas of one configuration "
            "should agree.",
            width=8,
            queries=[one("count by (digest) (:catalogue_info)")],
            columns={"digest": Column(title="Catalogue"), "A": Column(title="Hosts")},
        ),
    ],
)

FLEET: Final = Board(
    uid="observant-host-fleet",
    title="observant_host / Fleet",
    description="All hosts and servers: is anything wrong, and whose is it?",
    rows=[NOW, NORTHBOUND, PERSON, SERVERS, ALERTS, ERAS, CALLS, VERSIONS],
)
