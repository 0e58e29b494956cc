"""The series of calls and requests that are alike: found once by their labels, then only added to.

Two lookups a call, instead of one for each of its seven series.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from observant_host.telemetry.label_values import ERROR_TYPES, METHODS
from observant_host.telemetry.metric_list import NO_PEER, OTHER, OTHER_TOOL, PREFIX, TOOL_BUDGET

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.telemetry import vocabulary as v
    from observant_host.telemetry.children import Children
    from observant_host.telemetry.finished import Measured, OneOfMany
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
    """Bounded as the series are: known outcomes and faults, configured peers, budgeted tools.
    `probed` is told of a Request that is no call's.

    Adding to a series is written out where no trace is sampled, whose exemplar it would be: a call
    adds to nine of them, and each method called would cost more than what it does.
    """

    def __init__(self, children: Children, probed: Callable[[Measured], None]) -> None:
        self._series = children.series
        self._probed = probed
        self._tools: set[tuple[str, str]] = set()
        self._calls: dict[tuple[str, str, str, str], _OfCalls] = {}
        self._sent: dict[tuple[str, str, str], tuple[HistogramSeries, CounterSeries]] = {}
        self._overheads: tuple[HistogramSeries, HistogramSeries] | None = None

    def forget(self, peer: str) -> None:
        """Its series are gone: they are found anew, and its tools cost nobody else's budget."""
        self._calls = {key: found for key, found in self._calls.items() if key[0] != peer}
        self._sent = {key: found for key, found in self._sent.items() if key[0] != peer}
        self._tools = {key for key in self._tools if key[0] != peer}

    def call(self, done: Measured) -> None:
        """A RoutedCall is over."""
        given: Any = done.given  # a RoutedCall: what its meter is for
        outcome, context, fault = done.outcome, done.context, "none"
        if outcome != "ok" and outcome != "tool_error":
            fault = cast("v.RoutedCall", done.fact).fault
        tool = given.local_name if given.method == "tools/call" else ""
        key = (given.peer, tool, outcome, fault)
        calls, duration, tool_calls, tool_duration = self._calls.get(key) or self._find(key)
        seconds = done.duration_ns * _NS
        if context.sampled:
            calls.inc(context)
            duration.observe(seconds, context)
        else:
            calls.value += 1
            duration.counts[bisect_left(duration.bounds, seconds)] += 1
            duration.sum += seconds
        if tool_calls is not None and tool_duration is not None:
            tool_calls.value += 1
            tool_duration.count += 1
            tool_duration.sum += seconds
        if inner_ns := done.inner_ns:
            own, waiting = self._overheads or self._find_overheads()
            queued = done.queued_s
            ours = seconds - inner_ns * _NS - queued
            if context.sampled or queued or ours < 0.0:
                own.observe(max(0.0, ours), context)
                waiting.observe(queued, context)
            else:
                own.counts[bisect_left(own.bounds, ours)] += 1
                own.sum += ours
                waiting.counts[0] += 1

    def request(self, done: Measured) -> None:
        """A Request is over."""
        given: Any = done.given  # a Request: what its meter is for
        if given.purpose != "call" or done.error_type is not None:
            self._uncommon(given, done)
            return
        key = (given.peer, given.method, given.era)
        duration, attempts = self._sent.get(key) or self._find_sent(key)
        seconds, context = done.duration_ns * _NS, done.context
        attempts.value += 1
        if context.sampled:
            duration.observe(seconds, context)
        else:
            duration.counts[bisect_left(duration.bounds, seconds)] += 1
            duration.sum += seconds

    def alike(self, call: v.RoutedCall, request: v.Request) -> Callable[[OneOfMany], None] | None:
        """What counts calls and requests like these, which ended well: what `call` and `request`
        do, with nothing left to be found. None where its tool is over the budget."""
        tool = call.local_name if call.method == "tools/call" else ""
        if not self._affords(call.peer or NO_PEER, tool):
            return None
        key = (call.peer, tool, "ok", "none")
        calls, duration, tool_calls, tool_duration = self._calls.get(key) or self._find(key)
        if tool_calls is None or tool_duration is None:
            return None
        sent_key = (request.peer, request.method, request.era)
        sent, attempts = self._sent.get(sent_key) or self._find_sent(sent_key)
        own, waiting = self._overheads or self._find_overheads()

        def add(done: OneOfMany) -> None:
            outer, took, inner, stood, queued = done.outer, done.duration_ns, done.inner_ns, 0, 0.0
            if queued_ns := done.queued_ns:
                queued = queued_ns * _NS
                stood = bisect_left(waiting.bounds, queued)
                waiting.sum += queued
            seconds, inside, ours = took * _NS, inner * _NS, (took - inner - queued_ns) * _NS
            whole = bisect_left(duration.bounds, seconds)
            part = bisect_left(sent.bounds, inside)
            share = bisect_left(own.bounds, ours)
            calls.value += 1.0
            duration.counts[whole] += 1
            duration.sum += seconds
            sent.counts[part] += 1
            sent.sum += inside
            own.counts[share] += 1
            own.sum += ours
            waiting.counts[stood] += 1
            if outer.sampled:
                calls.exemplar = (outer, 1.0)
                duration.exemplars[whole] = (outer, seconds)
                sent.exemplars[part] = (done.context, inside)
                own.exemplars[share] = (outer, ours)
                waiting.exemplars[stood] = (outer, queued)
            attempts.value += 1.0
            tool_calls.value += 1.0
            tool_duration.count += 1
            tool_duration.sum += seconds

        return add

    def _uncommon(self, given: v.Request, done: Measured) -> None:
        method, error = given.method, done.error_type or ""
        if method not in _KNOWN_METHODS:
            method = OTHER
        if error not in _KNOWN_ERRORS:
            error = OTHER
        series = self._series(_OPERATION, method, given.era, error)
        series.observe(done.duration_ns * _NS, done.context)
        if given.purpose == "call":
            self._series(_ATTEMPTS, given.peer).inc()
        else:
            self._probed(done)

    def served(self, done: Measured) -> None:
        """A NorthboundRequest is over."""
        given: Any = done.given  # a NorthboundRequest
        method, error = given.method, done.error_type or ""
        if method not in _KNOWN_METHODS:
            method = OTHER
        if error not in _KNOWN_ERRORS:
            error = OTHER
        series = self._series(_SERVED, method, given.era, error)
        series.observe(done.duration_ns * _NS, done.context)

    def answered(self, done: Measured) -> None:
        """An HttpAnswered."""
        fact: Any = done.fact  # an HttpAnswered
        self._series(_HTTP, fact.route, fact.code).value += 1

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

    def _find_sent(self, key: tuple[str, str, str]) -> tuple[HistogramSeries, CounterSeries]:
        peer, method, era = key
        shown = method if method in _KNOWN_METHODS else OTHER
        found = self._series(_OPERATION, shown, era, ""), self._series(_ATTEMPTS, peer)
        self._sent[key] = found
        return found

    def _tool(self, peer: str, tool: str) -> str:
        """The tool's label: its own while the budget lasts, then the catch-all."""
        if not self._affords(peer, tool):
            self._series(_OVERFLOW, _TOOL_CALLS).inc()
            return OTHER_TOOL
        self._tools.add((peer, tool))
        return tool

    def _affords(self, peer: str, tool: str) -> bool:
        return (peer, tool) in self._tools or len(self._tools) < TOOL_BUDGET
