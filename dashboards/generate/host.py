"""The host process itself: does it hold anything up, and is what it tells complete?"""

from __future__ import annotations

from typing import Final

from dashboards.generate.agents import HOST_NORTHBOUND
from dashboards.generate.board import Board, Row
from dashboards.generate.panels import AMBER, RED, Column, Lines, Query, Stat, Table
from dashboards.generate.promql import query


def one(text: str, legend: str = "{{instance}}", *, exemplars: bool = False) -> Query:
    return Query(expr=query(text), legend=legend, exemplars=exemplars)


def quantile(q: float, bucket: str, by: str, legend: str) -> Query:
    return one(
        f"histogram_quantile({q}, sum by (le, {by}) (rate(:{bucket}[R])))",
        f"{legend} p{q * 100:g}",
    )


NOW: Final = Row(
    title="Now",
    panels=[
        Stat(
            title="Up",
            description="Hosts that answer scrapes.",
            queries=[one("sum(:up)", "")],
            width=4,
        ),
        Stat(
            title="Started",
            description="The latest start of a host.",
            queries=[one("max(:process_start_time_seconds) * 1000", "")],
            unit="dateTimeFromNow",
            width=4,
        ),
        Stat(
            title="Configuration",
            description="Hosts whose last reading of the configuration failed.",
            queries=[one("count(:config_last_reload_successful == 0) or vector(0)", "")],
            thresholds=[(1, RED)],
            width=4,
        ),
        Stat(
            title="Event loop, p99",
            description="How much later than asked the loop wakes a sleeper.",
            queries=[
                one(
                    "histogram_quantile(0.99, "
                    "sum by (le) (rate(:event_loop_lag_seconds_bucket[R])))",
                    "",
                )
            ],
            unit="s",
            thresholds=[(0.1, AMBER), (0.25, RED)],
            width=4,
        ),
        Stat(
            title="Sinks down",
            description="Of telemetry: what is told meanwhile is lost in that sink.",
            queries=[one("count(:telemetry_sink_up == 0) or vector(0)", "")],
            thresholds=[(1, RED)],
            width=4,
        ),
        Stat(
            title="Spans lost",
            description="Share of the spans for the exporter that failed or were dropped.",
            queries=[
                one(
                    '(sum(increase(:telemetry_spans_total{result=~"failed|dropped"}[$__range])) '
                    "/ sum(increase(:telemetry_spans_total[$__range])))",
                    "",
                )
            ],
            unit="percentunit",
            thresholds=[(0.001, AMBER), (0.1, RED)],
            width=4,
        ),
    ],
)

WORK: Final = Row(
    title="Work",
    panels=[
        Lines(
            title="Added time",
            description="Time of calls that no server spent, by where it went.",
            unit="s",
            queries=[
                quantile(q, "overhead_seconds_bucket", "stage", "{{stage}}")
                for q in (0.5, 0.95, 0.99)
            ],
        ),
        Lines(
            title="Event loop lag",
            description="How much later than asked the loop wakes a sleeper, by host.",
            unit="s",
            queries=[
                quantile(q, "event_loop_lag_seconds_bucket", "instance", "{{instance}}")
                for q in (0.5, 0.99)
            ],
        ),
        Lines(
            title="In flight",
            description="Calls that servers are working on.",
            width=6,
            queries=[one("sum by (instance) (:inflight_calls)")],
        ),
        Lines(
            title="Queued",
            description="Calls that wait for a place with their server.",
            width=6,
            queries=[one("sum by (instance) (:queued_calls)")],
        ),
        Lines(
            title="Requests, p95 by method",
            description="Duration of MCP requests as the client saw them.",
            unit="s",
            width=6,
            queries=[
                one(
                    "histogram_quantile(0.95, sum by (le, mcp_method_name) "
                    "(rate(:mcp_client_operation_duration_seconds_bucket[R])))",
                    "{{mcp_method_name}}",
                    exemplars=True,
                )
            ],
        ),
        Lines(
            title="Failed requests",
            description="MCP requests by method and kind of error.",
            unit="reqps",
            width=6,
            stacked=True,
            queries=[
                one(
                    "sum by (mcp_method_name, error_type) (rate("
                    ':mcp_client_operation_duration_seconds_count{error_type!=""}[R]))',
                    "{{mcp_method_name}} {{error_type}}",
                )
            ],
        ),
    ],
)

TELEMETRY: Final = Row(
    title="Telemetry and the record",
    panels=[
        Lines(
            title="Sinks",
            description="1 while a sink takes what it is given.",
            width=6,
            queries=[one("min by (instance, sink) (:telemetry_sink_up)", "{{instance}} {{sink}}")],
        ),
        Lines(
            title="Spans for the exporter",
            description="What became of them.",
            unit="cps",
            width=6,
            stacked=True,
            queries=[one("sum by (result) (rate(:telemetry_spans_total[R]))", "{{result}}")],
        ),
        Lines(
            title="Size of the record",
            description="On disk, by stream; each has a budget of its own.",
            unit="bytes",
            width=6,
            queries=[one("sum by (instance, stream) (:record_bytes)", "{{instance}} {{stream}}")],
        ),
        Lines(
            title="Lost from the record",
            description="Spans that could not be kept: a full disk, for instance.",
            unit="cps",
            width=6,
            queries=[
                one(
                    "sum by (instance, stream) (rate(:record_lost_total[R]))",
                    "{{instance}} {{stream}}",
                )
            ],
        ),
        Lines(
            title="Cost of a scrape",
            description="The whole scrape as Prometheus saw it, and the rendering in the host.",
            unit="s",
            width=8,
            queries=[
                one("max by (instance) (:scrape_duration_seconds)", "{{instance}} scrape"),
                one("max by (instance) (:metrics_render_seconds)", "{{instance}} rendering"),
            ],
        ),
        Lines(
            title="Series",
            description="Samples of one scrape.",
            width=8,
            queries=[one("max by (instance) (:scrape_samples_scraped)")],
        ),
        Lines(
            title="Labels over budget",
            description="Observations put under a catch-all label because a budget was spent.",
            unit="cps",
            width=8,
            queries=[one("sum by (instance, metric) (rate(:label_overflow_total[R]))")],
        ),
    ],
)

PROCESS: Final = Row(
    title="Process and configuration",
    panels=[
        Lines(
            title="CPU",
            description="Of the host's own process, in cores.",
            width=6,
            queries=[one("sum by (instance) (rate(:process_cpu_seconds_total[R]))")],
        ),
        Lines(
            title="Memory",
            description="Resident, of the host's own process.",
            unit="bytes",
            width=6,
            queries=[one("sum by (instance) (:process_resident_memory_bytes)")],
        ),
        Lines(
            title="Open descriptors",
            description="Share of what the process may open.",
            unit="percentunit",
            width=6,
            queries=[one(":process_open_fds / :process_max_fds")],
        ),
        Lines(
            title="Reading of the configuration",
            description="1 while the last reading was good.",
            width=6,
            queries=[one("min by (instance) (:config_last_reload_successful)")],
        ),
        Table(
            title="Hosts",
            description="What each runs.",
            width=24,
            height=6,
            queries=[
                one("max by (job, instance, version, python) (:build_info)", ""),
                one("max by (job, instance, hash) (:config_info)", ""),
                one("max by (job, instance) (:process_start_time_seconds) * 1000", ""),
            ],
            columns={
                "instance": Column(title="Host"),
                "version": Column(title="Version"),
                "python": Column(title="Python"),
                "hash": Column(title="Configuration"),
                "C": Column(title="Started", unit="dateTimeFromNow"),
            },
        ),
    ],
)

HOST: Final = Board(
    uid="observant-host-host",
    title="observant_host / Host",
    description="The host process itself: does it hold anything up, and is what it tells complete?",
    rows=[NOW, HOST_NORTHBOUND, WORK, TELEMETRY, PROCESS],
)
