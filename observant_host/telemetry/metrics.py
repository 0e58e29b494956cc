"""The metric sink: what each fact does to which series.

On the path of every call: series come from a cache, exemplars only where the trace is sampled (a
dangling trace id is worse than none).
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any, Final

from observant_host.telemetry import vocabulary as v
from observant_host.telemetry.call_series import CallSeries
from observant_host.telemetry.children import Children
from observant_host.telemetry.label_values import AUTH_FAILURES, ERROR_TYPES, NOISE
from observant_host.telemetry.metric_list import (
    METRICS,
    OTHER,
    PREFIX,
)
from observant_host.telemetry.render import Renderer
from observant_host.telemetry.scrape import ScrapeCollector, SelfReport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from observant_host.telemetry.finished import Finished, Measured, OneOfMany

_NS: Final = 1e-9
_KNOWN_ERRORS: Final = frozenset(ERROR_TYPES)
_KNOWN_NOISE: Final = frozenset(NOISE)

_OPERATION: Final = "mcp_client_operation_duration_seconds"
_HTTP: Final = PREFIX + "http_requests_total"
_AUTH_FAILURES: Final = PREFIX + "auth_failures_total"
EXPECTED_CODES: Final = ("200", "500", "503")
"""Of the MCP endpoint: series that alerts read exist at 0 from the start."""


class MetricSink:
    """Prometheus series on a registry of this host's own."""

    name: Final = "metric"

    def __init__(self, *, version: str = "", report: Callable[[], SelfReport] = SelfReport) -> None:
        self._children = Children()
        self._scrape = ScrapeCollector(report)
        self._renderer = Renderer(self._scrape, self._children)
        self._calls = CallSeries(self._children, self._probed)
        for reason in AUTH_FAILURES:
            self._children.series(_AUTH_FAILURES, reason)
        for code in EXPECTED_CODES:
            self._children.series(_HTTP, "/mcp", code)
        self._children.series(PREFIX + "build_info", version, platform.python_version()).set(1)
        self._handlers: Final[dict[type[v.Fact], Callable[[Any, Finished], None]]] = {
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
            v.AuthFailed: self._refused,
            v.ConfigLoaded: self._config,
            v.CatalogueRefresh: self._catalogue,
        }
        self._meters: Final[dict[type[v.Fact], Callable[[Measured], None]]] = {
            v.RoutedCall: self._calls.call,
            v.Request: self._calls.request,
            v.NorthboundRequest: self._calls.served,
            v.HttpAnswered: self._calls.answered,
        }

    def wants(self, kind: type[v.Fact]) -> bool:
        return kind in self._handlers or kind in self._meters

    def meter(self, kind: type[v.Fact]) -> Callable[[Measured], None] | None:
        """What is on the path of every call is measured as it stands; see `Meter`."""
        return self._meters.get(kind)

    def alike(self, call: Finished, request: Finished) -> Callable[[OneOfMany], None] | None:
        """Their series, found once for all that are like these; see `Repetitive`."""
        routed, sent = call.fact, request.fact
        if not isinstance(routed, v.RoutedCall) or not isinstance(sent, v.Request):
            return None
        return self._calls.alike(routed, sent)

    def emit(self, done: Finished) -> None:
        if (meter := self._meters.get(type(done.fact))) is not None:
            meter(done)
        else:
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
        self._calls.forget(peer)

    def watch_peers(self, snapshot: Callable[[], Sequence[v.PeerSnapshot]]) -> None:
        self._scrape.watch(snapshot)

    def watch_clients(self, count: Callable[[], Mapping[str, int]]) -> None:
        self._scrape.watch_clients(count)

    async def render(self, accept: str | None) -> tuple[bytes, str]:
        return await self._renderer.render(accept)

    # Facts

    def _probed(self, done: Measured) -> None:
        fact = done.fact
        if isinstance(fact, v.Request) and fact.probe_outcome is not None:
            self._probe(fact, fact.probe_outcome, done)

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

    def _probe(self, fact: v.Request, outcome: str, done: Measured) -> None:
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

    def _refused(self, fact: v.AuthFailed, done: Finished) -> None:
        self._children.series(_AUTH_FAILURES, fact.reason).inc()

    def _config(self, fact: v.ConfigLoaded, done: Finished) -> None:
        self._scrape.level(PREFIX + "config_last_reload_successful", "", float(fact.successful))
        if fact.successful:
            self._scrape.level(PREFIX + "config_info", fact.hash, 1)

    def _catalogue(self, fact: v.CatalogueRefresh, done: Finished) -> None:
        if fact.digest:
            self._scrape.level(PREFIX + "catalogue_info", fact.digest, 1)
