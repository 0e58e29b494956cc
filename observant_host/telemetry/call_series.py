"""The series of calls and requests that are alike: found once by their labels, then only added to.

Two lookups a call, instead of one for each of its seven series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, cast

from observant_host.telemetry.label_values import ERROR_TYPES, METHODS
from observant_host.telemetry.metric_list import NO_PEER, OTHER, OTHER_TOOL, PREFIX, TOOL_BUDGET

if TYPE_CHECKING:
    from observant_host.telemetry import vocabulary as v
    from observant_host.telemetry.children import Children
    from observant_host.telemetry.finished import Measured
    from observant_host.telemetry.series import CounterSeries, HistogramSeries, SummarySeries

_NS: Final = 1e-9
_KNOWN_METHODS: Final = frozenset(METHODS)
_KNOWN_ERRORS: Final = frozenset(ERROR_TYPES)

_CALLS: Final = PREFIX + "calls_total"
_CALL_DURATION: Final = PREFIX + "call_duration_seconds"
_OVERHEAD: Final = PREFIX + "overhead_seconds"
_TOOL_CALLS: Final = PREFIX + "tool_calls_total"
_TOOL_DURATION: Final = PREFIX + "tool_duration_seconds"
_OPERATION: Final = "mcp_client_operation_duration_seconds"
_SERVED: Final = "mcp_server_operation_duration_seconds"
_HTTP: Final = PREFIX + "http_requests_total"
_ATTEMPTS: Final = PREFIX + "attempts_total"
_OVERFLOW: Final = PREFIX + "label_overflow_total"


class _OfCalls(NamedTuple):
    """Of calls of one tool (or of anything else, of one server) that end in the same way."""

    calls: CounterSeries
    duration: HistogramSeries
    tool_calls: CounterSeries | None
    tool_duration: SummarySeries | None


class CallSeries:
    """Bounded as the series are: known outcomes and faults, configured peers, budgeted tools."""

    def __init__(self, children: Children) -> None:
        self._series = children.series
        self._tools: set[tuple[str, str]] = set()
        self._calls: dict[tuple[str, str, str, str], _OfCalls] = {}
        self._attempts: dict[str, CounterSeries] = {}
        self._overheads: tuple[HistogramSeries, HistogramSeries] | None = None

    def forget(self, peer: str) -> None:
        """Its series are gone: they are found anew, and its tools cost nobody else's budget."""
        self._calls = {key: found for key, found in self._calls.items() if key[0] != peer}
        self._attempts.pop(peer, None)
        self._tools = {key for key in self._tools if key[0] != peer}

    def call(self, done: Measured) -> None:
        """A RoutedCall is over."""
        given = cast("v.RoutedCall", done.given)
        outcome, context = done.outcome, done.context
        fault = "none"
        if outcome != "ok" and outcome != "tool_error":
            fault = cast("v.RoutedCall", done.fact).fault
        tool = given.local_name if given.method == "tools/call" else ""
        key = (given.peer, tool, outcome, fault)
        calls, duration, tool_calls, tool_duration = self._calls.get(key) or self._find(key)
        seconds = done.duration_ns * _NS
        calls.inc(context)
        duration.observe(seconds, context)
        if inner_ns := done.inner_ns:
            queued = done.queued_s
            own, waiting = self._overheads or self._find_overheads()
            own.observe(max(0.0, seconds - inner_ns * _NS - queued), context)
            waiting.observe(queued, context)
        if tool_calls is not None and tool_duration is not None:
            tool_calls.inc()
            tool_duration.observe(seconds)

    def request(self, done: Measured) -> None:
        """A Request is over."""
        given = cast("v.Request", done.given)
        method, error = given.method, done.error_type or ""
        if method not in _KNOWN_METHODS:
            method = OTHER
        if error not in _KNOWN_ERRORS:
            error = OTHER
        context = done.context
        self._series(_OPERATION, method, given.era, error).observe(done.duration_ns * _NS, context)
        if given.purpose == "call":
            peer = given.peer
            (self._attempts.get(peer) or self._find_attempts(peer)).inc()

    def served(self, done: Measured) -> None:
        """A NorthboundRequest is over."""
        given = cast("v.NorthboundRequest", done.given)
        method, error = given.method, done.error_type or ""
        if method not in _KNOWN_METHODS:
            method = OTHER
        if error not in _KNOWN_ERRORS:
            error = OTHER
        series = self._series(_SERVED, method, given.era, error)
        series.observe(done.duration_ns * _NS, done.context)

    def answered(self, done: Measured) -> None:
        """An HttpAnswered."""
        given = cast("v.HttpAnswered", done.given)
        self._series(_HTTP, given.route, given.code).inc()

    def _find(self, key: tuple[str, str, str, str]) -> _OfCalls:
        peer, tool, outcome, fault = key
        shown, series = peer or NO_PEER, self._series
        label = self._tool(shown, tool) if tool else ""
        found = _OfCalls(
            series(_CALLS, shown, outcome, fault),
            series(_CALL_DURATION, shown),
            series(_TOOL_CALLS, shown, label, outcome) if tool else None,
            series(_TOOL_DURATION, shown, label) if tool else None,
        )
        if label != OTHER_TOOL:  # what is over the budget is counted each time, and not kept
            self._calls[key] = found
        return found

    def _find_overheads(self) -> tuple[HistogramSeries, HistogramSeries]:
        found = self._series(_OVERHEAD, "host"), self._series(_OVERHEAD, "queue")
        self._overheads = found
        return found

    def _find_attempts(self, peer: str) -> CounterSeries:
        found: CounterSeries = self._series(_ATTEMPTS, peer)
        self._attempts[peer] = found
        return found

    def _tool(self, peer: str, tool: str) -> str:
        """The tool's label: its own while the budget lasts, then the catch-all."""
        key = (peer, tool)
        if key not in self._tools:
            if len(self._tools) >= TOOL_BUDGET:
                self._series(_OVERFLOW, _TOOL_CALLS).inc()
                return OTHER_TOOL
            self._tools.add(key)
        return tool
