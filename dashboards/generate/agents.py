"""Those who ask this host: how much, how well they are served, and who was not let in."""

from __future__ import annotations

from typing import Final

from dashboards.generate.board import Row
from dashboards.generate.panels import AMBER, RED, Lines, Query, Stat
from dashboards.generate.promql import query


def one(text: str, legend: str = "", *, exemplars: bool = False) -> Query:
    return Query(expr=query(text), legend=legend, exemplars=exemplars)


def slowest(by: str, legend: str) -> Query:
    """p95 of what agents were served."""
    return one(
        f"histogram_quantile(0.95, sum by (le, {by}) "
        "(rate(:mcp_server_operation_duration_seconds_bucket[R])))",
        legend,
        exemplars=True,
    )


CLIENTS: Final = Lines(
    title="Clients",
    description="Sessions of the legacy era; callers and programs of the modern one that asked "
    "within five minutes.",
    width=6,
    stacked=True,
    queries=[one("sum by (era) (:clients)", "{{era}}")],
)

NORTHBOUND: Final = Row(
    title="Agents",
    panels=[
        Stat(
            title="Requests of agents",
            description="A second, at /mcp of all hosts.",
            queries=[one('sum(rate(:http_requests_total{route="/mcp"}[R]))')],
            unit="reqps",
            width=4,
        ),
        Stat(
            title="Errors of hosts",
            description="Share of the requests at /mcp that were answered 500 or 503.",
            queries=[
                one(
                    'sum(rate(:http_requests_total{route="/mcp",code=~"500|503"}[R])) / '
                    '(sum(rate(:http_requests_total{route="/mcp"}[R])) > 0)'
                )
            ],
            unit="percentunit",
            thresholds=[(0.01, AMBER), (0.05, RED)],
            width=4,
        ),
        Stat(
            title="Not let in",
            description="Requests within the chosen time, whatever the reason.",
            queries=[one("sum(increase(:auth_failures_total[$__range]))")],
            thresholds=[(1, AMBER), (30, RED)],
            width=4,
        ),
        CLIENTS,
        Lines(
            title="Served within, p95",
            description="From an agent's request to its answer, by era; the time that servers "
            "took is in it.",
            unit="s",
            width=6,
            queries=[slowest("era", "{{era}}")],
        ),
    ],
)
"""Of the fleet."""

HOST_NORTHBOUND: Final = Row(
    title="Agents",
    panels=[
        Lines(
            title="Answers",
            description="Of the network's listeners, by group of paths and status.",
            unit="reqps",
            width=8,
            stacked=True,
            queries=[
                one("sum by (route, code) (rate(:http_requests_total[R]))", "{{route}} {{code}}")
            ],
        ),
        Lines(
            title="Served within, p95 by method",
            description="From an agent's request to its answer.",
            unit="s",
            width=8,
            queries=[slowest("mcp_method_name", "{{mcp_method_name}}")],
        ),
        Lines(
            title="Requests answered with an error",
            description="Of agents, by method and kind; a tool's own error is none.",
            unit="reqps",
            width=8,
            stacked=True,
            queries=[
                one(
                    "sum by (mcp_method_name, error_type) (rate("
                    ':mcp_server_operation_duration_seconds_count{error_type!=""}[R]))',
                    "{{mcp_method_name}} {{error_type}}",
                )
            ],
        ),
        Lines(
            title="Not let in, by reason",
            description="Requests a second.",
            unit="reqps",
            width=8,
            queries=[one("sum by (reason) (rate(:auth_failures_total[R]))", "{{reason}}")],
        ),
        Lines(
            title="Clients by host",
            description="Sessions of the legacy era; callers and programs of the modern one that "
            "asked within five minutes.",
            width=8,
            queries=[one("sum by (instance, era) (:clients)", "{{instance}} {{era}}")],
        ),
    ],
)
"""Of one host."""
