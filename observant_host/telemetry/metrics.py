"""The metric sink: what each fact does to which series.

On the path of every call: series come from a cache, exemplars only where the trace is sampled (a
dangling trace id is worse than none).
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector

from observant_host.telemetry import vocabulary as v
from observant_host.telemetry.children import Children
from observant_host.telemetry.label_values import AUTH_FAILURES, ERROR_TYPES, METHODS, NOISE
from observant_host.telemetry.metric_list import (
    METRICS,
    NO_PEER,
    OTHER,
    OTHER_TOOL,
    PREFIX,
    TOOL_BUDGET,
)
from observant_host.telemetry.render import Renderer
from observant_host.telemetry.scrape import ScrapeCollector, SelfReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from observant_host.telemetry.finished import Finished

_NS: Final = 1e-9
_KNOWN_METHODS: Final = frozenset(METHODS)
_KNOWN_ERRORS: Final = frozenset(ERROR_TYPES)
_KNOWN_NOISE: Final = frozenset(NOISE)

_CALLS: Final = PREFIX + "calls_total"
_CALL_DURATION: Final = PREFIX + "call_duration_seconds"
_OVERHEAD: Final = PREFIX + "overhead_seconds"
_TOOL_CALLS: Final = PREFIX + "tool_calls_total"
_TOOL_DURATION: Final = PREFIX + "tool_duration_seconds"
_OPERATION: Final = "mcp_client_operation_duration_seconds"
_SERVED: Final = "mcp_server_operation_duration_seconds"
_ATTEMPTS: Final = PREFIX + "attempts_total"
_HTTP: Final = PREFIX + "http_requests_total"
_AUTH_FAILURES: Final = PREFIX + "auth_failures_total"
_OVERFLOW: Final = PREFIX + "label_overflow_total"
EXPECTED_CODES: Final = ("200", "500", "503")
"""Of the MCP endpoint: series that alerts read exist at 0 from the start."""


class MetricSink:
    """Prometheus series on a registry of this host's own."""

    name: Final = "metric"

    def __init__(self, *, version: str = "", report: Callable[[], SelfReport] = SelfReport) -> None:
        self.registry = CollectorRegistry()
        self._children = Children()
        self._scrape = ScrapeCollector(report)
        self.registry.register(self._children)
        self.registry.register(self._scrape)
        ProcessCollector(registry=self.registry)
        self._renderer = Renderer(self.registry, self._scrape)
        self._tools: dict[tuple[str, str], str] = {}
        for reason in AUTH_FAILURES:
            self._children.series(_AUTH_FAILURES, reason)
        for code in EXPECTED_CODES:
            self._children.series(_HTTP, "/mcp", code)
        self._children.series(PREFIX + "build_info", version, platform.python_version()).set(1)
        self._handlers: Final[dict[type[v.Fact], Callable[[Any, Finished], None]]] = {
            v.RoutedCall: self._call,
            v.Request: self._request,
            v.NorthboundRequest: self._northbound,
            v.ListenOpen: self._listen,
            v.GapHealed: self._gap,
            v.EraDecide: self._era,
            v.PeerStateChanged: self._state,
            v.PeerRestart: self._restart,
            v.DeadlineExpired: self._deadline,
            v.RetryScheduled: self._retry,
            v.RetryDenied: self._denied,
            v.FrameDropped: self._frame,
            v.ServerMessage: self._message,
            v.CacheLookup: self._cache,
            v.StructuredContentProblem: self._structured,
            v.HttpAnswered: self._answered,
            v.AuthFailed: self._refused,
            v.ConfigLoaded: self._config,
            v.CatalogueRefresh: self._catalogue,
        }

    def wants(self, kind: type[v.Fact]) -> bool:
        return kind in self._handlers

    def emit(self, done: Finished) -> None:
        self._handlers[type(done.fact)](done.fact, done)

    def level(self, fact: v.PeerLevel | v.HostLevel, value: float) -> None:
        """Set a gauge, or observe a histogram. An unknown name is a bug: KeyError."""
        name = fact.metric if fact.metric in METRICS else PREFIX + fact.metric
        label = fact.peer if isinstance(fact, v.PeerLevel) else fact.label
        if not self._scrape.level(name, label, value):
            series = self._children.series(name, *([label] if METRICS[name].labels else []))
            (series.observe if METRICS[name].kind == "histogram" else series.set)(value)

    def peer_configured(self, peer: str, *, legacy_allowed: bool) -> None:
        self._children.configure(peer)
        if legacy_allowed:
            for outcome in METRICS[PREFIX + "legacy_probes_total"].allowed["outcome"]:
                self._children.series(PREFIX + "legacy_probes_total", peer, outcome)

    def peer_forgotten(self, peer: str) -> None:
        self._children.forget(peer)
        self._scrape.forget(peer)
        for key in [key for key in self._tools if key[0] == peer]:
            del self._tools[key]

    def watch_peers(self, snapshot: Callable[[], Sequence[v.PeerSnapshot]]) -> None:
        self._scrape.watch(snapshot)

    def watch_clients(self, count: Callable[[], Mapping[str, int]]) -> None:
        self._scrape.watch_clients(count)

    async def render(self, accept: str | None) -> tuple[bytes, str]:
        return await self._renderer.render(accept)

    # Facts

    def _call(self, fact: v.RoutedCall, done: Finished) -> None:
        peer = fact.peer or NO_PEER
        series = self._children.series
        seconds = done.duration_ns * _NS
        context = done.context
        fault = fact.fault if done.outcome not in ("ok", "tool_error") else "none"
        series(_CALLS, peer, done.outcome, fault).inc(context)
        series(_CALL_DURATION, peer).observe(seconds, context)
        if done.inner_ns:
            queued = fact.queued_ms / 1000
            own = max(0.0, seconds - done.inner_ns * _NS - queued)
            series(_OVERHEAD, "host").observe(own, context)
            series(_OVERHEAD, "queue").observe(queued, context)
        if fact.local_name and fact.method == "tools/call":
            tool = self._tool(peer, fact.local_name)
            series(_TOOL_CALLS, peer, tool, done.outcome).inc()
            series(_TOOL_DURATION, peer, tool).observe(seconds)

    def _request(self, fact: v.Request, done: Finished) -> None:
        method = fact.method if fact.method in _KNOWN_METHODS else OTHER
        error = done.error_type or ""
        if error not in _KNOWN_ERRORS:
            error = OTHER
        series = self._children.series
        seconds = done.duration_ns * _NS
        series(_OPERATION, method, fact.era, error).observe(seconds, done.context)
        if fact.purpose == "call":
            series(_ATTEMPTS, fact.peer).inc()
        elif fact.probe_outcome is not None:
            self._probe(fact, fact.probe_outcome, done)

    def _northbound(self, fact: v.NorthboundRequest, done: Finished) -> None:
        method = fact.method if fact.method in _KNOWN_METHODS else OTHER
        error = done.error_type or ""
        series = self._children.series(
            _SERVED, method, fact.era, error if error in _KNOWN_ERRORS else OTHER
        )
        series.observe(done.duration_ns * _NS, done.context)

    def _listen(self, fact: v.ListenOpen, done: Finished) -> None:
        error = done.error_type or ""
        series = self._children.series
        series(
            _OPERATION, fact.method, fact.era, error if error in _KNOWN_ERRORS else OTHER
        ).observe(done.duration_ns * _NS, done.context)
        if fact.reopened:
            series(PREFIX + "subscription_reconnects_total", fact.peer).inc(done.context)

    def _gap(self, fact: v.GapHealed, done: Finished) -> None:
        self._children.series(PREFIX + "subscription_gap_seconds_total", fact.peer).add(fact.gap_s)

    def _probe(self, fact: v.Request, outcome: str, done: Finished) -> None:
        if fact.method == "initialize":
            series = self._children.series(PREFIX + "legacy_probes_total", fact.peer, outcome)
            series.inc(done.context)
            return
        self._children.series(PREFIX + "probes_total", fact.peer, outcome).inc(done.context)
        self._children.series(PREFIX + "probe_duration_seconds").observe(
            done.duration_ns * _NS, done.context
        )

    def _era(self, fact: v.EraDecide, done: Finished) -> None:
        if not fact.reason:
            return  # cancelled before anything was decided
        expected = "true" if fact.expected else "false"
        series = self._children.series
        series(PREFIX + "era_decisions_total", fact.peer, fact.direction).inc(done.context)
        series(PREFIX + "era_decisions_by_reason_total", fact.reason, fact.direction, expected).inc(
            done.context
        )

    def _state(self, fact: v.PeerStateChanged, done: Finished) -> None:
        series = self._children.series(PREFIX + "peer_transitions_total", fact.peer, fact.state)
        series.inc(done.context)

    def _restart(self, fact: v.PeerRestart, done: Finished) -> None:
        self._children.series(PREFIX + "peer_restarts_total", fact.peer).inc(done.context)
        self._children.series(PREFIX + "restarts_by_reason_total", fact.reason).inc(done.context)

    def _deadline(self, fact: v.DeadlineExpired, done: Finished) -> None:
        series = self._children.series(PREFIX + "deadline_exceeded_total", fact.peer, fact.scope)
        series.inc(done.context)

    def _retry(self, fact: v.RetryScheduled, done: Finished) -> None:
        self._children.series(PREFIX + "retries_total", fact.peer, fact.reason).inc(done.context)

    def _denied(self, fact: v.RetryDenied, done: Finished) -> None:
        self._children.series(PREFIX + "retry_denied_total", fact.reason).inc(done.context)

    def _frame(self, fact: v.FrameDropped, done: Finished) -> None:
        kind = fact.kind if fact.kind in _KNOWN_NOISE else OTHER
        self._children.series(PREFIX + "frames_dropped_total", fact.peer, kind).inc()

    def _message(self, fact: v.ServerMessage, done: Finished) -> None:
        if fact.level is not None:
            name = PREFIX + "server_log_messages_total"
            self._children.series(name, fact.peer, fact.level).inc()

    def _cache(self, fact: v.CacheLookup, done: Finished) -> None:
        self._children.series(PREFIX + "cache_lookups_total", fact.peer, fact.found).inc()

    def _structured(self, fact: v.StructuredContentProblem, done: Finished) -> None:
        name = PREFIX + "structured_content_problems_total"
        self._children.series(name, fact.peer, fact.problem).inc()

    def _answered(self, fact: v.HttpAnswered, done: Finished) -> None:
        self._children.series(_HTTP, fact.route, fact.code).inc()

    def _refused(self, fact: v.AuthFailed, done: Finished) -> None:
        self._children.series(_AUTH_FAILURES, fact.reason).inc()

    def _config(self, fact: v.ConfigLoaded, done: Finished) -> None:
        self._scrape.level(PREFIX + "config_last_reload_successful", "", float(fact.successful))
        if fact.successful:
            self._scrape.level(PREFIX + "config_info", fact.hash, 1)

    def _catalogue(self, fact: v.CatalogueRefresh, done: Finished) -> None:
        if fact.digest:
            self._scrape.level(PREFIX + "catalogue_info", fact.digest, 1)

    def _tool(self, peer: str, tool: str) -> str:
        """The tool's label: its own while the budget lasts, then the catch-all."""
        key = (peer, tool)
        if (label := self._tools.get(key)) is None:
            if len(self._tools) >= TOOL_BUDGET:
                self._children.series(_OVERFLOW, _TOOL_CALLS).inc()
                return OTHER_TOOL
            label = self._tools[key] = tool
        return label
