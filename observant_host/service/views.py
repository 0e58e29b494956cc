"""What the API answers: the documents of the command line's `--json`, and one shape of errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.errors import CallError, ConfigError, HostError, InvalidCall
from observant_host.routing.call_result import error_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from observant_host.errors import Outcome
    from observant_host.routing.call_result import CallResult
    from observant_host.supervision.peer_state import ServerView

STATUS: Final[dict[Outcome, int]] = {
    "ok": 200,
    "tool_error": 200,
    "rpc_error": 200,
    "invalid": 400,
    "unavailable": 503,
    "timeout": 504,
    "cancelled": 499,
}
"""HTTP status by a call's outcome; an unknown name is 404 instead of 400."""


def servers_json(views: Iterable[ServerView]) -> bytes:
    """The document of `status --json`."""
    return msgspec.json.encode({"servers": list(views)})


def decisions_json(server: str, decisions: Sequence[dict[str, Any]]) -> bytes:
    """The document of `explain --json`."""
    return msgspec.json.encode({"server": server, "decisions": list(decisions)})


def call_json(result: CallResult) -> bytes:
    """The document of `call --json`; the result's bytes go out as they came."""
    return msgspec.json.encode(result.to_json())


def failed_call_json(error: CallError, *, name: str) -> bytes:
    """The document of `call --json` for a call without a result."""
    return msgspec.json.encode(error_json(error, name=name))


def status_of(error: HostError) -> int:
    """HTTP status of an error."""
    if isinstance(error, InvalidCall) and error.unknown:
        return 404
    if isinstance(error, ConfigError):
        return 400
    return STATUS[error.outcome] if isinstance(error, CallError) else 500


def problem_json(error: HostError) -> bytes:
    """An error of any other request: its kind, and a sentence for a person."""
    fields: dict[str, object] = {"type": error.error_type, "message": str(error)}
    if isinstance(error, InvalidCall):
        fields["unknown"] = error.unknown
    if isinstance(error, ConfigError):
        fields["problems"] = error.problems
    return msgspec.json.encode({"error": fields})
