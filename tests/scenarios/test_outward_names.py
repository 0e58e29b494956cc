"""What dashboards, rules and people's scripts rely on: every name, with its labels, really seen.

The lists are written out here and not taken from the code, so that a name cannot change in both
places at once. What cannot occur with servers on stdio yet is listed too, and must not be emitted:
once it is, it has to move.
"""

from __future__ import annotations

import asyncio
import re

import pytest

from observant_host.telemetry import call_series
from observant_host.telemetry.label_values import METHODS as LABEL_METHODS
from observant_host.telemetry.metric_list import METRICS as SERVED
from observant_host.telemetry.rules import RULES
from tests.scenarios.everything import Told, everything
from tests.scenarios.served import serve_and_read

pytestmark = pytest.mark.timeout(300)  # the first test waits for all that is told

METRICS = {
    "observant_host_peer_state": "peer state",
    "observant_host_peer_unavailable": "peer cause",
    "observant_host_peer_expected": "peer",
    "observant_host_peer_last_ready_timestamp_seconds": "peer",
    "observant_host_peer_era": "peer era",
    "observant_host_peer_last_downgrade_timestamp_seconds": "peer",
    "observant_host_peer_last_refused_timestamp_seconds": "peer",
    "observant_host_legacy_allowance_expiry_timestamp_seconds": "peer",
    "observant_host_probes_total": "peer outcome",
    "observant_host_legacy_probes_total": "peer outcome",
    "observant_host_probe_duration_seconds_count": "",
    "observant_host_era_decisions_total": "peer direction",
    "observant_host_era_decisions_by_reason_total": "reason direction expected",
    "observant_host_calls_total": "peer outcome fault",
    "observant_host_call_duration_seconds_count": "peer",
    "observant_host_overhead_seconds_count": "stage",
    "observant_host_attempts_total": "peer",
    "observant_host_retries_total": "peer reason",
    "observant_host_retry_denied_total": "reason",
    "observant_host_deadline_exceeded_total": "peer scope",
    "observant_host_inflight_calls": "peer",
    "observant_host_queued_calls": "peer",
    "observant_host_tool_calls_total": "peer tool outcome",
    "observant_host_tool_duration_seconds_sum": "peer tool",
    "observant_host_tool_duration_seconds_count": "peer tool",
    "observant_host_peer_restarts_total": "peer",
    "observant_host_restarts_by_reason_total": "reason",
    "observant_host_peer_transitions_total": "peer to",
    "observant_host_peer_processes": "peer",
    "observant_host_peer_resident_memory_bytes": "peer",
    "observant_host_peer_cpu_seconds_total": "peer",
    "observant_host_peer_open_fds": "peer",
    "observant_host_subscription_up": "peer",
    "observant_host_subscription_reconnects_total": "peer",
    "observant_host_subscription_gap_seconds_total": "peer",
    "observant_host_catalogue_tools": "peer",
    "observant_host_catalogue_collisions": "peer",
    "observant_host_catalogue_refresh_failing": "peer",
    "observant_host_catalogue_info": "digest",
    "observant_host_config_last_reload_successful": "",
    "observant_host_config_info": "hash",
    "observant_host_event_loop_lag_seconds_count": "",
    "observant_host_telemetry_spans_total": "result",
    "observant_host_telemetry_sink_up": "sink",
    "observant_host_record_bytes": "stream",
    "observant_host_label_overflow_total": "metric",
    "observant_host_build_info": "version python",
    "mcp_client_operation_duration_seconds_count": "mcp_method_name era error_type",
    "observant_host_http_requests_total": "route code",
    "observant_host_auth_failures_total": "reason",
    "observant_host_clients": "era",
    "mcp_server_operation_duration_seconds_count": "mcp_method_name era error_type",
}
"""Sample name to its labels; each seen with a value above 0."""

METRICS_TO_COME = ("observant_host_pin_drift",)
"""With pins."""

VALUES = {
    ("peer_state", "state"): "starting ready degraded backoff unavailable disabled stopped",
    ("peer_unavailable", "cause"): "policy config process protocol",
    ("peer_era", "era"): "modern legacy unknown",
    ("probes_total", "outcome"): "ok modern_error error empty malformed timeout closed",
    (
        "legacy_probes_total",
        "outcome",
    ): "ok timeout error invalid closed unsupported_revision modern_evidence",
    ("era_decisions_total", "direction"): "first none upgrade downgrade",
    ("era_decisions_by_reason_total", "direction"): "first none upgrade downgrade",
    ("era_decisions_by_reason_total", "expected"): "true false",
    ("era_decisions_by_reason_total", "reason"): (
        "discover_ok modern_error_unfixable no_mutual_version legacy_only_advertised "
        "late_modern_evidence initialize_ok ambiguous_timeout ambiguous_closed ambiguous_error "
        "ambiguous_empty ambiguous_malformed legacy_probe_timeout legacy_probe_error "
        "legacy_probe_invalid legacy_probe_closed legacy_unsupported_revision was_modern "
        "allowance_expired allowance_mismatch spawn_failed config_invalid"
    ),
    ("calls_total", "outcome"): "ok tool_error rpc_error invalid unavailable timeout cancelled",
    ("calls_total", "fault"): "none caller peer host policy",
    ("retries_total", "reason"): "not_sent lost input_round",
    ("retry_denied_total", "reason"): "not_idempotent budget deadline unavailable",
    ("deadline_exceeded_total", "scope"): "queue connect probe attempt call list ack shutdown",
    (
        "restarts_by_reason_total",
        "reason",
    ): ("exit signal unresponsive memory silent late_modern_evidence connection_lost operator"),
    (
        "peer_transitions_total",
        "to",
    ): "starting ready degraded backoff unavailable disabled stopped",
    ("telemetry_spans_total", "result"): "exported",
    ("telemetry_sink_up", "sink"): "span metric log recorder otlp",
    ("record_bytes", "stream"): "decisions traces",
    (
        "tool_calls_total",
        "outcome",
    ): "ok tool_error rpc_error invalid unavailable timeout cancelled",
}
"""Every value of each label that servers on stdio can cause by now: exactly these, above 0."""

VALUES_TO_COME = {
    ("peer_unavailable", "cause"): "auth network",
    ("probes_total", "outcome"): "http_candidate http_other",
    ("era_decisions_by_reason_total", "reason"): (
        "auth_required forbidden rate_limited unreachable http_unavailable"
    ),
    ("retries_total", "reason"): "header_mismatch session_lost rate_limited",
    (
        "restarts_by_reason_total",
        "reason",
    ): "protocol_violation reload",
    ("telemetry_spans_total", "result"): "failed dropped",
}
"""What other transports, operators and faults of telemetry cause; no stdio scenario does."""

METHODS = (
    *("server/discover", "initialize", "completion/complete"),
    *("tools/list", "tools/call", "prompts/list", "prompts/get"),
    *("resources/list", "resources/read", "resources/templates/list", "subscriptions/listen"),
)

METHODS_OF_SPANS = (
    *LABEL_METHODS,
    "roots/list",
    "elicitation/create",
    "sampling/",
    "notifications/",
)
"""How the spans of requests and notifications begin; a tool's or prompt's name may follow."""

ELSEWHERE_SERVED = {
    "observant_host_structured_content_problems_total",  # tests of structured content
}
"""Metrics that other tests cause."""
ELSEWHERE_RECORDED: set[str] = set()
"""Spans that other tests cause, each named there."""

INTERNAL, SERVER, CLIENT = 1, 2, 3
SPANS = {
    "observant_host.peer.start": INTERNAL,
    "observant_host.transport.connect": CLIENT,
    "observant_host.era.decide": INTERNAL,
    "server/discover": CLIENT,
    "initialize": CLIENT,
    "observant_host.call": INTERNAL,
    "tools/call echo": CLIENT,
    "prompts/get greet": CLIENT,
    "resources/read": CLIENT,
    "completion/complete greet": CLIENT,
    "tools/list": CLIENT,
    "prompts/list": CLIENT,
    "resources/list": CLIENT,
    "resources/templates/list": CLIENT,
    "subscriptions/listen": CLIENT,
    "observant_host.subscription.lost": INTERNAL,
    "observant_host.subscription.gap": INTERNAL,
    "observant_host.catalogue.refresh": INTERNAL,
    "observant_host.peer.restart": INTERNAL,
    "observant_host.peer.state": INTERNAL,
    "observant_host.deadline": INTERNAL,
    "observant_host.watchdog.check": INTERNAL,
    "observant_host.operator": INTERNAL,
    "ping": SERVER,
    "roots/list": SERVER,
    "elicitation/create": SERVER,
    "notifications/message": SERVER,
    "notifications/tools/list_changed": SERVER,
}

ATTRIBUTES = {
    "observant_host.peer.start": {"observant_host.peer.start.trigger": {"boot", "restart", "wake"}},
    "observant_host.era.decide": {
        "observant_host.era.trigger": {"boot", "restart", "manual", "late_evidence", "look"},
        "observant_host.era.expected": {True, False},
        "observant_host.era.direction": {"first", "none", "upgrade", "downgrade"},
    },
    "observant_host.deadline": {
        "observant_host.deadline.scope": {
            *("queue", "probe", "attempt", "call", "list", "ack", "shutdown")
        }
    },
    "observant_host.catalogue.refresh": {
        "observant_host.catalogue.trigger": {"boot", "list_changed", "state"}
    },
    "observant_host.operator": {
        "observant_host.operator.verb": {"probe", "allow", "examine"},
        "observant_host.operator.principal": {"ann"},
    },
    "observant_host.watchdog.check": {
        "observant_host.watchdog.verdict": {"unresponsive", "hopeless"},
        "observant_host.watchdog.health": {"wedged"},
    },
    "observant_host.peer.restart": {
        "observant_host.restart.reason": {
            "exit",
            "signal",
            "unresponsive",
            "memory",
            "silent",
            "late_modern_evidence",
            "connection_lost",
        }
    },
}
"""Span to attribute to values that must have been seen."""

LINKS = {
    "subscriptions/listen": {"resumes"},
    "observant_host.subscription.lost": {"of_stream"},
    "observant_host.subscription.gap": {"of_stream", "caused_by"},
    "tools/call echo": {"retry_of"},
    "observant_host.peer.start": {"previous_generation"},
    "observant_host.peer.restart": {"caused_by", "previous_generation"},
    "observant_host.peer.state": {"caused_by"},
    "observant_host.era.decide": {"previous_decision"},
    "observant_host.catalogue.refresh": {"triggered_by"},
    "notifications/tools/list_changed": {"delivered_on"},
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    found, folder = Told(), tmp_path_factory.mktemp("names")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(call_series, "TOOL_BUDGET", 8)
        asyncio.run(everything(folder, found))
    serve_and_read(folder / "served", found)
    return found


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_served_with_its_labels(told: Told, name: str) -> None:
    seen = {labels for sample, labels in told.samples if sample == name}
    assert seen, f"{name} was not served"
    assert {" ".join(sorted(dict(labels))) for labels in seen} == {
        " ".join(sorted(METRICS[name].split()))
    }
    assert any(value > 0 for (sample, _), value in told.samples.items() if sample == name)


@pytest.mark.parametrize(("metric", "label"), VALUES)
def test_every_value_of_a_label_occurs_and_no_other(told: Told, metric: str, label: str) -> None:
    assert told.values(f"observant_host_{metric}", label) == set(VALUES[metric, label].split())


def test_what_is_to_come_is_not_there_yet(told: Told) -> None:
    served = {name for name, _ in told.samples}
    for name in METRICS_TO_COME:
        assert not {one for one in served if one.startswith(name)}, f"{name} is served: move it"
        assert name not in SERVED, f"{name} is made: move it"
    for key, values in VALUES_TO_COME.items():
        assert not set(values.split()) & set(VALUES.get(key, "").split())


def _metric_of(sample: str) -> str:
    return sample if sample in SERVED else re.sub(r"_(bucket|sum|count)$", "", sample)


def test_nothing_is_served_or_recorded_that_is_not_in_the_vocabulary(told: Told) -> None:
    served = {_metric_of(name) for name, _ in told.samples if not name.startswith("process_")}
    assert served <= set(SERVED)
    fixed = {rule.span for rule in RULES.values() if rule.span}
    by_method = tuple(METHODS_OF_SPANS)
    strange = {
        span["name"]
        for span in told.spans
        if span["name"] not in fixed and not span["name"].startswith(by_method)
    }
    assert not strange


def test_everything_in_the_vocabulary_occurs_in_some_scenario(told: Told) -> None:
    served = {_metric_of(name) for name, _ in told.samples}
    assert set(SERVED) - served == ELSEWHERE_SERVED
    fixed = {rule.span for rule in RULES.values() if rule.span}
    assert fixed - {span["name"] for span in told.spans} == ELSEWHERE_RECORDED


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_measured(told: Told, method: str) -> None:
    name = "mcp_client_operation_duration_seconds_count"
    assert method in told.values(name, "mcp_method_name")


def test_operations_are_measured_by_era_and_error(told: Told) -> None:
    name = "mcp_client_operation_duration_seconds_count"
    assert told.values(name, "era") == {"modern", "legacy", "unknown"}
    wanted = {"", "tool_error", "timeout", "cancelled", "unavailable", "-32602", "-32601", "-32021"}
    assert wanted < told.values(name, "error_type")


@pytest.mark.parametrize("name", SPANS)
def test_every_span_is_recorded_with_its_kind(told: Told, name: str) -> None:
    assert {span["kind"] for span in told.spans if span["name"] == name} == {SPANS[name]}


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_spans_carry_the_values_that_tell_them_apart(told: Told, name: str) -> None:
    spans = [span["attributes"] for span in told.spans if span["name"] == name]
    for key, wanted in ATTRIBUTES[name].items():
        seen = {attributes[key] for attributes in spans if key in attributes}
        assert wanted <= seen, key


@pytest.mark.parametrize("name", LINKS)
def test_spans_are_linked_to_what_they_follow_from(told: Told, name: str) -> None:
    known = {(span["traceId"], span["spanId"]) for span in told.spans}
    seen = set()
    for span in (one for one in told.spans if one["name"] == name):
        traces: dict[str, set[str]] = {}
        for link in span.get("links", []):
            assert (link["traceId"], link["spanId"]) in known, "a link that leads nowhere"
            kind = link["attributes"][0]["value"]["stringValue"]
            traces.setdefault(kind, set()).add(link["traceId"])
        for kind, ids in traces.items():  # several changes may lead to one merge
            assert span["attributes"][f"observant_host.{kind}.trace_id"] in ids
        seen |= set(traces)
    assert seen == LINKS[name]


def test_every_span_of_a_server_names_it_and_no_series_names_what_a_server_merely_lists(
    told: Told,
) -> None:
    nameless = {
        span["name"] for span in told.spans if "observant_host.peer.name" not in span["attributes"]
    }
    assert nameless <= {
        "observant_host.call",  # of a name that nobody has
        "prompts/get missing",  # of an agent, for a prompt that nobody has
        "observant_host.catalogue.refresh",
        "observant_host.host.lifecycle",
        "observant_host.config.load",
        "observant_host.loop.stalled",
        "observant_host.telemetry.lost",
    }
    assert "_other" in told.values("observant_host_tool_calls_total", "tool")
    assert "new" not in told.values("observant_host_tool_calls_total", "tool")
