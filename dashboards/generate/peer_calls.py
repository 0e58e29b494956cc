"""The server's dashboard: calls, their limits, and what its lists do."""

from __future__ import annotations

from typing import Final

from dashboards.generate.board import Row
from dashboards.generate.panels import Column, Table
from dashboards.generate.peer_queries import FAILED, STREAMS, gauge, one, quantiles, quarter, rates

CALLS: Final = Row(
    title="Calls",
    panels=[
        quarter(
            "Calls by outcome and fault",
            "Whose fault a failed call was: the caller's, server's, host's, or the policy's.",
            rates("calls_total", "outcome", "fault", exemplars=True),
            links=[FAILED],
            unit="reqps",
            stacked=True,
            width=12,
        ),
        quarter(
            "Duration",
            "As callers saw it; the dots are single calls with their traces.",
            quantiles("call_duration_seconds_bucket"),
            links=[FAILED],
            unit="s",
            width=12,
        ),
        Table(
            title="Tools that were called",
            description="Within the chosen time. Beyond a budget of tools the rest is `_other`.",
            width=24,
            queries=[
                one("sum by (peer, tool) (rate(:tool_calls_total[R]))"),
                one(
                    'sum by (peer, tool) (increase(:tool_calls_total{outcome!="ok"}[$__range])) / '
                    "sum by (peer, tool) (increase(:tool_calls_total[$__range]))"
                ),
                one(
                    "sum by (peer, tool) (increase(:tool_duration_seconds_sum[$__range])) / "
                    "sum by (peer, tool) (increase(:tool_duration_seconds_count[$__range]))"
                ),
            ],
            columns={
                "peer": Column(title="Server"),
                "tool": Column(title="Tool"),
                "A": Column(title="Calls a second", unit="reqps"),
                "B": Column(title="Not ok", unit="percentunit"),
                "C": Column(title="Mean time", unit="s"),
            },
        ),
        quarter(
            "Structured content that does not fit",
            "Results that are not known to fit their tool's output schema.",
            rates("structured_content_problems_total", "problem"),
            unit="cps",
            stacked=True,
        ),
        quarter(
            "Reads of resources",
            "By whether a kept answer was still fresh.",
            rates("cache_lookups_total", "found"),
            unit="reqps",
            stacked=True,
        ),
        quarter(
            "Its log messages",
            "By level; those beyond a few a second are dropped frames.",
            rates("server_log_messages_total", "level"),
            unit="cps",
            stacked=True,
            width=12,
        ),
    ],
)

LIMITS: Final = Row(
    title="Retries, deadlines, queue",
    panels=[
        quarter(
            "Requests for each call",
            "Over 1 where requests are repeated.",
            [
                one(
                    "sum by (peer) (rate(:attempts_total[R])) / "
                    "sum by (peer) (rate(:calls_total[R]))"
                )
            ],
        ),
        quarter(
            "Retries",
            "Repeated requests by reason.",
            rates("retries_total", "reason"),
            links=[FAILED],
            unit="cps",
            stacked=True,
        ),
        quarter(
            "Denied retries, all servers of the host",
            "Requests that were not repeated, by reason.",
            [one("sum by (reason) (rate(:retry_denied_total[R]))", "{{reason}}")],
            unit="cps",
            stacked=True,
        ),
        quarter(
            "Deadlines that passed",
            "By scope: who had the time when it ran out.",
            rates("deadline_exceeded_total", "scope", exemplars=True),
            links=[FAILED],
            unit="cps",
            stacked=True,
        ),
        quarter("In flight", "Calls that it is working on.", gauge("inflight_calls"), width=12),
        quarter("Queued", "Calls that wait for a place.", gauge("queued_calls"), width=12),
    ],
)

CHANGES: Final = Row(
    title="Lists and changes",
    panels=[
        quarter(
            "Stream of changes",
            "1 while a wanted stream stands.",
            gauge("subscription_up"),
            links=[STREAMS],
        ),
        quarter(
            "Streams opened again",
            "After one was lost.",
            rates("subscription_reconnects_total", exemplars=True),
            links=[STREAMS],
            unit="cps",
        ),
        quarter(
            "Untold changes",
            "Share of the time in which it could not tell of changes, counted when that was over.",
            rates("subscription_gap_seconds_total"),
            links=[STREAMS],
            unit="percentunit",
        ),
        quarter(
            "Due refreshes that fail",
            "1 while the list is due and cannot be read.",
            gauge("catalogue_refresh_failing"),
        ),
        quarter("Tools", "In the catalogue.", gauge("catalogue_tools"), width=12),
        quarter(
            "Names that others hold",
            "Its tools whose bare name belongs to another server.",
            gauge("catalogue_collisions"),
            width=12,
        ),
    ],
)
