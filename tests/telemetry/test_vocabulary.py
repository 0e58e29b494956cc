"""The closed list and the code agree, in both directions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import observant_host
from observant_host.errors import RpcError
from observant_host.telemetry import vocabulary as v
from observant_host.telemetry.facade import Telemetry
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.label_values import NOISE
from observant_host.telemetry.metric_list import METRICS, NOT_YET_EMITTED, SNAPSHOT
from observant_host.telemetry.metrics import MetricSink
from observant_host.telemetry.rules import DECISION_SPANS, RULES, keys_of, span_name
from observant_host.telemetry.scrape import SelfReport
from tests.telemetry.facts import ALL, MOMENTS, OPERATIONS, every_kind

PACKAGE = Path(observant_host.__file__).parent

OUTWARD_SPANS = {
    "observant_host.peer.start",
    "observant_host.transport.connect",
    "observant_host.era.decide",
    "server/discover",
    "initialize",
    "observant_host.call",
    "tools/call search",
    "prompts/get greet",
    "resources/read",
    "tools/list",
    "observant_host.catalogue.refresh",
    "observant_host.peer.restart",
    "observant_host.peer.state",
    "observant_host.deadline",
    "observant_host.operator",
}
"""Names that people's queries and dashboards read: never renamed."""

OUTWARD_METRICS = """
peer_state{peer,state} peer_unavailable{peer,cause} peer_expected{peer}
peer_last_ready_timestamp_seconds{peer} peer_era{peer,era}
peer_last_downgrade_timestamp_seconds{peer} peer_last_refused_timestamp_seconds{peer}
legacy_allowance_expiry_timestamp_seconds{peer} probes_total{peer,outcome}
legacy_probes_total{peer,outcome} probe_duration_seconds era_decisions_total{peer,direction}
era_decisions_by_reason_total{reason,direction,expected} calls_total{peer,outcome,fault}
call_duration_seconds{peer} overhead_seconds{stage} attempts_total{peer}
retries_total{peer,reason} retry_denied_total{reason} deadline_exceeded_total{peer,scope}
inflight_calls{peer} queued_calls{peer} tool_calls_total{peer,tool,outcome}
tool_duration_seconds{peer,tool} peer_restarts_total{peer} restarts_by_reason_total{reason}
peer_transitions_total{peer,to} peer_processes{peer} peer_resident_memory_bytes{peer}
peer_cpu_seconds_total{peer} peer_open_fds{peer} catalogue_tools{peer}
catalogue_collisions{peer} catalogue_refresh_failing{peer} catalogue_info{digest}
config_last_reload_successful config_info{hash} event_loop_lag_seconds
telemetry_spans_total{result} telemetry_sink_up{sink} record_bytes{stream}
label_overflow_total{metric}
mcp_client_operation_duration_seconds{mcp_method_name,era,error_type}
"""


def test_every_fact_has_a_rule_and_every_rule_a_fact() -> None:
    assert set(RULES) == every_kind()


def test_the_outward_span_names_are_what_the_facts_give() -> None:
    assert {span_name(fact) for fact in ALL if RULES[type(fact)].span is not None} >= OUTWARD_SPANS


def test_every_decision_is_recorded_kept_by_samplers_and_logged() -> None:
    decisions = [rule for rule in RULES.values() if rule.stream == "decisions"]
    assert len(decisions) == 13
    for rule in decisions:
        assert rule.span in DECISION_SPANS
        assert rule.log is not None
        assert rule.log_ok


def test_attribute_keys_are_unique_within_a_fact_and_well_formed() -> None:
    for kind in RULES:
        keys = [key for _, key in keys_of(kind)]
        assert len(keys) == len(set(keys)), kind
        for key in keys:
            assert re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+", key), key


def test_the_outward_metrics_exist_with_exactly_their_labels() -> None:
    for entry in OUTWARD_METRICS.split():
        name, _, labels = entry.partition("{")
        name = name if name.startswith("mcp_") else "observant_host_" + name
        assert ",".join(METRICS[name].labels) == labels.rstrip("}"), name


def test_every_metric_has_help_bounded_labels_and_buckets_where_it_needs_them() -> None:
    configured = {"peer", "tool", "digest", "hash", "version", "python", "metric"}
    for metric in METRICS.values():
        assert metric.help.endswith("."), metric.name
        assert bool(metric.buckets) == (metric.kind == "histogram"), metric.name
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric.name
        unbounded = set(metric.labels) - set(metric.allowed) - configured
        assert not unbounded, metric.name
        for values in metric.eager:
            for label, value in zip(metric.labels[1:], values, strict=True):
                assert value in metric.allowed[label], metric.name


def test_names_of_later_capabilities_are_listed_and_not_served() -> None:
    assert not set(NOT_YET_EMITTED) & set(METRICS)


def report() -> SelfReport:
    return SelfReport(
        sinks={"span": True},
        spans={"exported": 1},
        record_bytes={"traces": 5},
        record_lost={"traces": 0},
    )


def full_snapshot() -> v.PeerSnapshot:
    return v.PeerSnapshot(
        peer="a",
        state="unavailable",
        cause="process",
        era="modern",
        era_expected=True,
        expected=True,
        required=True,
        last_ready_s=1.0,
        last_downgrade_s=1.0,
        last_refused_s=1.0,
        allowance_expires_s=1.0,
        tools=1,
        collisions=1,
        refresh_failing=True,
        processes=1,
        resident_bytes=1,
        cpu_seconds=1.0,
        open_fds=1,
        subscription_up=True,
    )


async def test_everything_on_the_list_is_emitted_and_nothing_else() -> None:
    """Tell every fact, every level and a full snapshot: what is rendered is exactly the list."""
    sink = MetricSink(version="1", report=report)
    telemetry = Telemetry(starter=OwnIds(), sinks=[sink], metrics=sink)
    telemetry.watch_peers(lambda: [full_snapshot()])
    telemetry.watch_clients(lambda: {"modern": 1})
    for fact in OPERATIONS:
        with telemetry.operation(fact), telemetry.operation(OPERATIONS[5]):
            pass
    for fact in MOMENTS:
        telemetry.count(fact)
    for number in range(2_001):
        tool = f"t{number}"
        telemetry.count(v.RoutedCall(name=tool, method="tools/call", peer="a", local_name=tool))
    telemetry.level(v.HostLevel(metric="event_loop_lag_seconds"), 0.01)
    text = (await telemetry.render())[0].decode()
    samples = {
        re.sub(r"(_bucket|_sum|_count)$", "", line.partition("{")[0].split()[0])
        for line in text.splitlines()
        if line and not line.startswith("#")
    }
    ours = {name for name in samples if not name.startswith("process_")}
    assert ours == set(METRICS)
    assert set(METRICS) >= SNAPSHOT


async def test_values_off_the_list_become_the_catch_all_instead_of_new_series() -> None:
    sink = MetricSink()
    telemetry = Telemetry(starter=OwnIds(), sinks=[sink], metrics=sink)
    for number in range(50):
        try:
            with telemetry.operation(
                v.Request(peer="a", method=f"made/up{number}", era="modern", probe_outcome=None)
            ):
                raise RpcError(-32050 - number, "text")
        except RpcError:
            pass
        telemetry.count(v.FrameDropped(peer="a", kind=f"kind{number}"))
        telemetry.count(v.RetryDenied(peer="a", reason="budget"))
    text = (await telemetry.render())[0].decode()
    assert 'mcp_method_name="_OTHER"} 50.0' in text
    assert 'error_type="_OTHER"' in text
    assert 'frames_dropped_total{kind="_OTHER",peer="a"} 50.0' in text
    assert "made/up" not in text


def test_every_kind_of_dropped_frame_that_the_code_names_is_on_the_list() -> None:
    named = set()
    for path in (PACKAGE / "peers").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                first = node.args[0] if node.args else None
                if node.func.attr in ("_drop", "_noise") and isinstance(first, ast.Constant):
                    named.add(first.value)
    assert named
    assert named <= set(NOISE)
