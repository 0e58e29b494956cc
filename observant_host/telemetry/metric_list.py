"""Every metric this host serves: name, kind, help, labels, allowed values, buckets. Data, not code.

Labels are enums, configured names, or names under a budget; nothing that a peer sends becomes a
label value unchecked. Counters that alerts read are created at 0 with their peer (`eager`): a
series first seen at 1 has an increase of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from observant_host.decisions.terms import (
    LegacyProbeOutcome,
    ProbeOutcome,
    Reason,
    RestartReason,
)
from observant_host.telemetry.label_values import (
    ALLOWED,
    AUTH_FAILURES,
    DENIAL_REASONS,
    OUTCOMES,
    RETRY_REASONS,
    every,
)

PREFIX: Final = "observant_host_"
OTHER: Final = "_OTHER"
"""What a label says when the value is not one of the allowed ones (semantic conventions' word)."""
OTHER_TOOL: Final = "_other"
"""What the tool label says once the budget of called tools is spent."""
NO_PEER: Final = "_none"
"""The peer label of a call that no server owns; no configured name can be this."""
TOOL_BUDGET: Final = 2_000
"""Called (peer, tool) pairs with series of their own: with three series each, under 10,000."""

Kind = Literal["counter", "gauge", "histogram", "summary"]


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric. `eager`: label values (after `peer`) whose series exist from configuration on."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    allowed: Mapping[str, tuple[str, ...]] = {}
    buckets: tuple[float, ...] = ()
    eager: tuple[tuple[str, ...], ...] = ()


CALL_BUCKETS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
OVERHEAD_BUCKETS: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
SEMCONV_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
LAG_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


def _metric(
    name: str,
    kind: Kind,
    text: str,
    *labels: str,
    buckets: tuple[float, ...] = (),
    eager: tuple[tuple[str, ...], ...] = (),
    **allowed: tuple[str, ...],
) -> Metric:
    return Metric(
        name=name if name.startswith("mcp_") else PREFIX + name,
        kind=kind,
        help=text,
        labels=labels,
        allowed={key: ALLOWED[key] for key in labels if key in ALLOWED} | allowed,
        buckets=buckets,
        eager=eager,
    )


_LISTED: Final = (
    # States, read from one snapshot of all peers at each scrape.
    _metric("peer_state", "gauge", "1 for the state a peer is in.", "peer", "state"),
    _metric(
        "peer_unavailable",
        "gauge",
        "1 while a peer is unavailable, by cause; absent otherwise.",
        *("peer", "cause"),
    ),
    _metric("peer_expected", "gauge", "1 where a peer is wished to be up.", "peer"),
    _metric("peer_required", "gauge", "1 where readiness waits for a peer.", "peer"),
    _metric(
        "peer_last_ready_timestamp_seconds",
        "gauge",
        "When a peer was last ready; survives restarts of the host.",
        "peer",
    ),
    _metric(
        "peer_era",
        "gauge",
        "1 for the protocol era of a peer; other eras are absent.",
        *("peer", "era"),
    ),
    _metric(
        "peer_era_expected",
        "gauge",
        "0 while the last era chosen goes against what was expected of a peer.",
        "peer",
    ),
    _metric(
        "peer_last_downgrade_timestamp_seconds",
        "gauge",
        "When a peer last went from modern to legacy.",
        "peer",
    ),
    _metric(
        "peer_last_refused_timestamp_seconds",
        "gauge",
        "When the policy last refused a peer.",
        "peer",
    ),
    _metric(
        "legacy_allowance_expiry_timestamp_seconds",
        "gauge",
        "When the allowance to speak the legacy era ends.",
        "peer",
    ),
    _metric("inflight_calls", "gauge", "Calls that a peer is working on.", "peer"),
    _metric("queued_calls", "gauge", "Calls that wait for a place with a peer.", "peer"),
    _metric("peer_processes", "gauge", "Processes in a peer's process group.", "peer"),
    _metric(
        "peer_resident_memory_bytes",
        "gauge",
        "Resident memory of a peer's process group.",
        "peer",
    ),
    _metric(
        "peer_cpu_seconds_total", "counter", "CPU time used by a peer's process group.", "peer"
    ),
    _metric("peer_open_fds", "gauge", "Open descriptors of a peer's process group.", "peer"),
    _metric("catalogue_tools", "gauge", "Tools of a peer in the catalogue.", "peer"),
    _metric(
        "catalogue_collisions", "gauge", "Tools of a peer whose bare name another holds.", "peer"
    ),
    _metric(
        "catalogue_refresh_failing", "gauge", "1 while a due refresh of the list fails.", "peer"
    ),
    _metric("subscription_up", "gauge", "1 while a wanted stream of changes stands.", "peer"),
    _metric("catalogue_info", "gauge", "1 for the digest of the current catalogue.", "digest"),
    # Eras.
    _metric(
        "probes_total",
        "counter",
        "Era probes (server/discover) by outcome.",
        *("peer", "outcome"),
        outcome=every(ProbeOutcome),
        eager=(("ok",), ("timeout",), ("error",), ("closed",)),
    ),
    _metric(
        "legacy_probes_total",
        "counter",
        "Legacy handshakes (initialize) by outcome.",
        *("peer", "outcome"),
        outcome=every(LegacyProbeOutcome),
    ),
    _metric(
        "probe_duration_seconds",
        "histogram",
        "How long era probes took, whatever their outcome.",
        buckets=CALL_BUCKETS,
    ),
    _metric(
        "era_decisions_total",
        "counter",
        "Era decisions by direction.",
        *("peer", "direction"),
        eager=(("downgrade",),),
    ),
    _metric(
        "era_decisions_by_reason_total",
        "counter",
        "Era decisions by reason, direction, and whether they were expected.",
        *("reason", "direction", "expected"),
        reason=every(Reason),
    ),
    # Calls.
    _metric(
        "calls_total",
        "counter",
        "Routed calls by outcome and whose fault it was.",
        *("peer", "outcome", "fault"),
        outcome=OUTCOMES,
        eager=(
            *(("ok", "none"), ("tool_error", "none"), ("rpc_error", "peer"), ("invalid", "peer")),
            *(("unavailable", "peer"), ("unavailable", "host")),
            *(("timeout", "peer"), ("timeout", "host")),
        ),
    ),
    _metric(
        "call_duration_seconds",
        "histogram",
        "How long routed calls took, as their callers saw it.",
        "peer",
        buckets=CALL_BUCKETS,
        eager=((),),
    ),
    _metric(
        "overhead_seconds",
        "histogram",
        "Time of routed calls that no peer spent: waiting in our queue, or our own work.",
        "stage",
        buckets=OVERHEAD_BUCKETS,
    ),
    _metric("attempts_total", "counter", "Requests sent for calls.", "peer", eager=((),)),
    _metric(
        "retries_total",
        "counter",
        "Repeated requests by reason.",
        *("peer", "reason"),
        reason=RETRY_REASONS,
    ),
    _metric(
        "retry_denied_total",
        "counter",
        "Requests that were not repeated, by reason.",
        "reason",
        reason=DENIAL_REASONS,
    ),
    _metric(
        "deadline_exceeded_total",
        "counter",
        "Deadlines that passed, by scope.",
        *("peer", "scope"),
    ),
    _metric(
        "tool_calls_total",
        "counter",
        "Calls of tools by outcome; only tools that were called, under a budget.",
        *("peer", "tool", "outcome"),
        outcome=OUTCOMES,
    ),
    _metric(
        "tool_duration_seconds",
        "summary",
        "How long calls of tools took; only tools that were called, under a budget.",
        *("peer", "tool"),
    ),
    _metric(
        "mcp_client_operation_duration_seconds",
        "histogram",
        "Duration of MCP requests as the client saw them (OpenTelemetry semantic conventions).",
        *("mcp_method_name", "era", "error_type"),
        buckets=SEMCONV_BUCKETS,
    ),
    _metric(
        "mcp_server_operation_duration_seconds",
        "histogram",
        "Duration of MCP requests of agents as we served them (OpenTelemetry conventions).",
        *("mcp_method_name", "era", "error_type"),
        buckets=SEMCONV_BUCKETS,
    ),
    # Lives.
    _metric(
        "peer_restarts_total",
        "counter",
        "Lives that were begun again after one ended.",
        "peer",
        eager=((),),
    ),
    _metric(
        "restarts_by_reason_total",
        "counter",
        "Lives that were begun again, by reason.",
        "reason",
        reason=every(RestartReason),
    ),
    _metric(
        "peer_transitions_total",
        "counter",
        "Changes of a peer's state, by the state it went to.",
        *("peer", "to"),
        eager=(("ready",), ("degraded",), ("backoff",)),
    ),
    _metric(
        "frames_dropped_total",
        "counter",
        "What peers sent that was no message, or none that anybody waited for.",
        *("peer", "kind"),
    ),
    _metric(
        "server_log_messages_total",
        "counter",
        "Log messages of servers by level; those beyond a few a second are dropped frames.",
        *("peer", "level"),
    ),
    _metric(
        "cache_lookups_total",
        "counter",
        "Reads of resources that a kept answer might have served, by what was found.",
        *("peer", "found"),
    ),
    _metric(
        "structured_content_problems_total",
        "counter",
        "Results whose structured content is not known to fit their tool's output schema.",
        *("peer", "problem"),
    ),
    # Streams of changes.
    _metric(
        "subscription_reconnects_total",
        "counter",
        "Streams of changes that were opened again after one was lost.",
        "peer",
        eager=((),),
    ),
    _metric(
        "subscription_gap_seconds_total",
        "counter",
        "Seconds for which a server could not tell of changes, counted once all was read anew.",
        "peer",
        eager=((),),
    ),
    _metric(
        "http_requests_total",
        "counter",
        "Requests that the network listeners answered, by group of paths and status.",
        *("route", "code"),
    ),
    _metric(
        "auth_failures_total",
        "counter",
        "Requests that were not let in, by reason.",
        "reason",
        reason=AUTH_FAILURES,
    ),
    _metric(
        "clients",
        "gauge",
        "Clients: sessions of the legacy era; callers and programs that asked in 5 min.",
        "era",
        era=("modern", "legacy"),
    ),
    # The host and its own telemetry.
    _metric(
        "config_last_reload_successful", "gauge", "1 while the last reading of the config was good."
    ),
    _metric("config_info", "gauge", "1 for the hash of the effective configuration.", "hash"),
    _metric(
        "event_loop_lag_seconds",
        "histogram",
        "How much later than asked the event loop wakes a sleeper.",
        buckets=LAG_BUCKETS,
    ),
    _metric("telemetry_spans_total", "counter", "Spans for the OTLP exporter.", "result"),
    _metric("telemetry_sink_up", "gauge", "1 while a sink accepts what it is given.", "sink"),
    _metric("record_bytes", "gauge", "Size of the record on disk.", "stream"),
    _metric(
        "record_lost_total", "counter", "Spans that the record could not keep.", "stream"
    ),
    _metric(
        "label_overflow_total",
        "counter",
        "Observations put under the catch-all label because a budget was spent.",
        "metric",
    ),
    _metric("metrics_render_seconds", "gauge", "How long the previous scrape took to render."),
    _metric("build_info", "gauge", "1, with the version of this host.", "version", "python"),
)  # fmt: skip

METRICS: Final[Mapping[str, Metric]] = {metric.name: metric for metric in _LISTED}

SNAPSHOT: Final = frozenset(
    PREFIX + name
    for name in (
        *("peer_state", "peer_unavailable", "peer_expected", "peer_required", "peer_era"),
        "peer_era_expected",
        *("peer_last_ready_timestamp_seconds", "peer_last_downgrade_timestamp_seconds"),
        *("peer_last_refused_timestamp_seconds", "legacy_allowance_expiry_timestamp_seconds"),
        *("inflight_calls", "queued_calls", "peer_processes", "peer_resident_memory_bytes"),
        *("peer_cpu_seconds_total", "peer_open_fds", "catalogue_tools", "catalogue_collisions"),
        *("catalogue_refresh_failing", "catalogue_info", "config_info", "subscription_up"),
        *("config_last_reload_successful", "telemetry_spans_total", "telemetry_sink_up"),
        *("record_bytes", "record_lost_total", "metrics_render_seconds"),
        "clients",
    )
)
"""Metrics made at each scrape instead of being kept."""

NOT_YET_EMITTED: Final = (PREFIX + "pin_drift",)
"""Names that are spoken for: they appear with pins."""
