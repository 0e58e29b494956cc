"""How a call that failed is told to an agent: as a result that a model reads, or as an error.

A tool's failing is a result with `isError`, so that the model sees it, decides and goes on; that a
name does not exist, or that a server refused the request itself, is a protocol error. What has no
`isError` (prompts, resources, completion) fails as an error either way.

Source: MCP 2026-07-28 server/tools › Error Handling; server/resources › Error Handling; basic/index
› Error Codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from observant_host.decisions.northbound import STATUS_OK, Refusal, at_the_door
from observant_host.errors import CallError, InvalidCall, RpcError
from observant_host.wire.revisions import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
)

LEGACY_NOT_FOUND: Final = -32002
"""What older revisions called a resource that is not there."""

RESERVED: Final = range(-32099, -32019)
"""Codes of the protocol itself: one that it has not defined must not be sent.

Source: MCP 2026-07-28 basic/index › Error Codes.
"""

BETWEEN_US: Final = frozenset({HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION})
"""About the hop between us and the server: the agent that asked can do nothing about it."""

DETAILS: Final = "observant-host/error"
"""Key in `_meta` or in an error's `data` of what is known of a failed call."""


def refusal_of(error: CallError, *, method: str) -> Refusal | None:
    """The JSON-RPC error that this failure is, or None where it is a result with `isError`."""
    if isinstance(error, RpcError):
        return passed_on(error)
    if isinstance(error, InvalidCall) and (error.unknown or method != "tools/call"):
        return Refusal(INVALID_PARAMS, str(error))
    if method == "tools/call":
        return None
    return Refusal(INTERNAL_ERROR, str(error), {DETAILS: details(error)})


def passed_on(error: RpcError) -> Refusal:
    """A server's own error: its code, message and data, but for codes that mean something else, or
    nothing, on our side."""
    message = error.rpc_message or str(error)
    code = error.code
    if code == MISSING_CLIENT_CAPABILITY and isinstance(error.data, Mapping):
        return at_the_door(code, message, error.data)
    if code == LEGACY_NOT_FOUND:
        return Refusal(INVALID_PARAMS, message, error.data, STATUS_OK)
    if code == 0 or code in RESERVED:
        return Refusal(INTERNAL_ERROR, message, {"code": code, "data": error.data})
    return Refusal(code, message, error.data)


def details(error: CallError) -> dict[str, Any]:
    """What is known of a failed call, for a program: words of the closed lists."""
    known: dict[str, Any] = {
        "error_type": error.error_type,
        "outcome": error.outcome,
        "delivery": error.delivery,
        "fault": error.fault,
    }
    if error.call is not None:
        known |= {"server": error.call.server, "trace_id": error.call.trace_id}
    retry_after_s = getattr(error, "retry_after_s", None)
    if retry_after_s is not None:
        known["retry_after_s"] = retry_after_s
    return known
