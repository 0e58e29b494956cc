"""One server, or a few: what is its state, why, and how do its calls fare?"""

from __future__ import annotations

from typing import Final

from dashboards.generate import codes
from dashboards.generate.board import Board, Row
from dashboards.generate.panels import AMBER, GREEN, RED, Stat, States
from dashboards.generate.peer_calls import CALLS, CHANGES, LIMITS
from dashboards.generate.peer_queries import DECISIONS, LIVES, gauge, one, quarter, rates
from dashboards.generate.promql import PEERS

STATE: Final = Row(
    title="State",
    panels=[
        Stat(
            title="Ready on",
            description="Share of the hosts on which it is ready.",
            queries=[
                one('sum(:peer_state{state="ready"}) / count(:peer_state{state="ready"})', "")
            ],
            unit="percentunit",
            thresholds=[(0, RED), (0.9, AMBER), (1, GREEN)],
            width=4,
        ),
        Stat(
            title="Last ready",
            description="The latest moment on any host; kept over restarts of the host.",
            queries=[one("max(:peer_last_ready_timestamp_seconds) * 1000", "")],
            unit="dateTimeFromNow",
            width=4,
        ),
        Stat(
            title="Last refused",
            description="When the policy last refused it.",
            queries=[one("max(:peer_last_refused_timestamp_seconds) * 1000", "")],
            unit="dateTimeFromNow",
            width=4,
        ),
        Stat(
            title="Last downgrade",
            description="When it last went from modern to legacy.",
            queries=[one("max(:peer_last_downgrade_timestamp_seconds) * 1000", "")],
            unit="dateTimeFromNow",
            width=4,
        ),
        Stat(
            title="Allowance ends in",
            description="Until the permission to speak the old protocol is over.",
            queries=[one("min(:legacy_allowance_expiry_timestamp_seconds) - time()", "")],
            unit="s",
            thresholds=[(0, RED), (3 * 86400, AMBER), (14 * 86400, GREEN)],
            width=4,
        ),
        Stat(
            title="Required",
            description="On how many hosts readiness waits for it.",
            queries=[one("count(:peer_required) or vector(0)", "")],
            width=4,
        ),
        States(
            title="State",
            description="By host.",
            height=6,
            queries=[one(codes.state("peer, instance"), "{{peer}} on {{instance}}")],
            mappings=codes.STATE,
            links=[DECISIONS],
        ),
        States(
            title="Cause of being unavailable",
            description="Blue waits for a person, red is an outage; empty while it is available.",
            height=5,
            queries=[one(codes.cause("peer, instance"), "{{peer}} on {{instance}}")],
            mappings=codes.CAUSE,
            links=[DECISIONS],
        ),
        States(
            title="Protocol era",
            description="Of the current life; unknown while none is decided.",
            height=5,
            queries=[one(codes.era("peer, instance"), "{{peer}} on {{instance}}")],
            mappings=codes.ERA,
            links=[DECISIONS],
        ),
    ],
)

PROBES: Final = Row(
    title="Eras and probes",
    panels=[
        quarter(
            "Probes",
            "server/discover by outcome: a timeout proves nothing, a valid answer is modern.",
            rates("probes_total", "outcome"),
            links=[DECISIONS],
            unit="cps",
            stacked=True,
        ),
        quarter(
            "Legacy handshakes",
            "initialize by outcome; only ever sent where it is allowed.",
            rates("legacy_probes_total", "outcome"),
            links=[DECISIONS],
            unit="cps",
            stacked=True,
        ),
        quarter(
            "Decisions",
            "Era decisions by direction.",
            rates("era_decisions_total", "direction", exemplars=True),
            links=[DECISIONS],
            unit="cps",
            stacked=True,
        ),
        quarter(
            "Time of probes, all servers of the host",
            "Compare with probe_timeout_s: what lies at it has timed out. Each probe's own time "
            "and limit are in its span.",
            [
                one(
                    "histogram_quantile(0.5, "
                    "sum by (le) (rate(:probe_duration_seconds_bucket[R])))",
                    "p50",
                ),
                one(
                    "histogram_quantile(0.95, "
                    "sum by (le) (rate(:probe_duration_seconds_bucket[R])))",
                    "p95",
                    exemplars=True,
                ),
            ],
            unit="s",
        ),
    ],
)

LIVES_ROW: Final = Row(
    title="Lives and processes",
    panels=[
        quarter(
            "Restarts",
            "Lives that were begun again after one ended.",
            rates("peer_restarts_total", exemplars=True),
            links=[LIVES],
            unit="cps",
        ),
        quarter(
            "Restarts by reason, all servers of the host",
            "Why lives were begun again.",
            [one("sum by (reason) (rate(:restarts_by_reason_total[R]))", "{{reason}}")],
            unit="cps",
            stacked=True,
        ),
        quarter(
            "Changes of state",
            "By the state it went to.",
            rates("peer_transitions_total", "to", exemplars=True),
            links=[DECISIONS],
            unit="cps",
            stacked=True,
        ),
        quarter("Processes", "In its process group.", gauge("peer_processes")),
        quarter(
            "Memory",
            "Resident, of its process group.",
            gauge("peer_resident_memory_bytes"),
            unit="bytes",
        ),
        quarter(
            "CPU",
            "Of its process group, in cores.",
            [
                one(
                    "sum by (peer, instance) (rate(:peer_cpu_seconds_total[R]))",
                    "{{peer}} on {{instance}}",
                )
            ],
        ),
        quarter("Open descriptors", "Of its process group.", gauge("peer_open_fds")),
        quarter(
            "What it sent in vain",
            "Frames that were no message, or none that anybody waited for.",
            rates("frames_dropped_total", "kind"),
            unit="cps",
            stacked=True,
        ),
    ],
)

PEER: Final = Board(
    uid="observant-host-peer",
    title="observant_host / Server",
    description="One server, or a few: what is its state, why, and how do its calls fare?",
    rows=[STATE, PROBES, LIVES_ROW, CALLS, LIMITS, CHANGES],
    scope=PEERS,
)
