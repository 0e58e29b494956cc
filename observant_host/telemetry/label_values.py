"""The values that labels may have: everything else becomes the catch-all, never a new series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions.asking import LOG_LEVELS
from observant_host.decisions.freshness import Found
from observant_host.decisions.terms import Cause, Direction, Era, PeerState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OUTCOMES: Final = (
    *("ok", "tool_error", "rpc_error", "invalid", "unavailable", "timeout", "cancelled"),
    "error",
)
FAULTS: Final = ("none", "caller", "peer", "host", "policy")
SCOPES: Final = ("queue", "connect", "probe", "attempt", "call", "list", "ack", "shutdown")
RETRY_REASONS: Final = (
    *("not_sent", "lost", "header_mismatch", "session_lost", "rate_limited"),
    "input_round",
)
DENIAL_REASONS: Final = ("not_idempotent", "budget", "deadline", "unavailable")
ROUTES: Final = (
    *("/mcp", "/healthz", "/readyz", "/metrics", "/api/v1", "/.well-known", "/"),
    "other",
)
"""Of our own listeners: groups of paths. "/" is the console, "other" what is served nowhere."""
HTTP_CODES: Final = (
    *("200", "202", "204", "302", "303", "304", "400", "401", "403", "404", "405", "406", "408"),
    *("409", "411", "413", "414", "415", "421", "429", "431", "499", "500", "501", "502", "503"),
    "504",
)
AUTH_FAILURES: Final = ("missing", "invalid", "expired", "scope", "rate", "origin", "host")
SINKS: Final = ("span", "metric", "log", "recorder", "otlp")
STREAMS: Final = ("decisions", "traces")
SPAN_RESULTS: Final = ("exported", "failed", "dropped")
METHODS: Final = (
    *("server/discover", "initialize", "ping", "subscriptions/listen", "completion/complete"),
    *("tools/list", "tools/call", "prompts/list", "prompts/get", "logging/setLevel"),
    *("resources/list", "resources/read", "resources/templates/list"),
    *("resources/subscribe", "resources/unsubscribe"),
    *("tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list"),
)
RPC_CODES: Final = (
    *("-32700", "-32600", "-32601", "-32602", "-32603"),
    *("-32020", "-32021", "-32022", "-32002", "-32042"),
)
ERROR_TYPES: Final = (
    *("", *RPC_CODES, "rpc_error", "tool_error", "timeout", "cancelled", "unavailable"),
    *("invalid_call", "invalid_result", "input_refused", "call_error", "transport_error"),
    *("transport_closed", "spawn_failed", "queue_full"),
)
NOISE: Final = (
    *("not_json", "not_a_message", "oversized", "unterminated", "message_flood"),
    *("late_reply", "duplicate_reply", "foreign_reply", "no_id_reply", "broken_reply"),
    *("request_from_modern_server", "request_from_unknown_server", "server_request_id_reused"),
    *("cancelled_unknown_request", "answer_failed", "notification_unknown"),
    *("progress_unexpected", "progress_callback_failed", "log_callback_failed"),
    *("write_queue_full", "write_after_end"),
    *("subscription_foreign", "subscription_early", "subscription_unasked"),
    "updated_callback_failed",
)
STAGES: Final = ("host", "queue")
LOGGED_LEVELS: Final = (*LOG_LEVELS, "")
"""Of log messages of servers; "" for a level that the protocol does not have."""
STRUCTURED_PROBLEMS: Final = ("mismatch", "missing", "unusable_schema", "not_judged")


def every(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "state": every(PeerState),
    "to": every(PeerState),
    "cause": every(Cause),
    "era": every(Era),
    "direction": every(Direction),
    "expected": ("true", "false"),
    "fault": FAULTS,
    "scope": SCOPES,
    "stage": STAGES,
    "sink": SINKS,
    "stream": STREAMS,
    "result": SPAN_RESULTS,
    "mcp_method_name": METHODS,
    "error_type": ERROR_TYPES,
    "kind": NOISE,
    "level": LOGGED_LEVELS,
    "found": every(Found),
    "problem": STRUCTURED_PROBLEMS,
    "route": ROUTES,
    "code": HTTP_CODES,
}
"""Labels that mean the same everywhere."""
