"""What a captured message shows where its contents were not asked for: its form, and no content.

Arguments, results and what servers ask people are contents. What the protocol itself says (names,
versions, capabilities, cursors, codes) is shown, since it is what somebody captures frames for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.wire.envelope import PROTOCOL_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OURS: Final = PROTOCOL_VERSION.partition("/")[0] + "/"
"""Prefix of the protocol's own keys in `_meta`."""

PARAMS: Final = frozenset(
    {
        *("name", "protocolVersion", "capabilities", "clientInfo", "cursor", "level"),
        *("progressToken", "progress", "total", "requestId", "taskId", "notifications"),
    }
)
RESULT: Final = frozenset(
    {
        *("protocolVersion", "supportedVersions", "capabilities", "serverInfo", "resultType"),
        *("ttlMs", "cacheScope", "nextCursor", "isError", "taskId", "status"),
    }
)
ERROR: Final = frozenset({"code", "message"})
META: Final = frozenset({"progressToken", "traceparent", "tracestate"})


def redacted(message: Any) -> Any:
    """A JSON-RPC message (or a batch of them) without its contents."""
    if isinstance(message, list):
        return [redacted(one) for one in message]
    if not isinstance(message, dict):
        return shape(message)
    shown: dict[str, Any] = {}
    for key, value in message.items():
        if key in ("jsonrpc", "id", "method"):
            shown[key] = value
        elif key in PARTS:
            shown[key] = _members(value, PARTS[key])
        else:
            shown[key] = shape(value)
    return shown


PARTS: Final[Mapping[str, frozenset[str]]] = {"params": PARAMS, "result": RESULT, "error": ERROR}


def _members(value: Any, known: frozenset[str]) -> Any:
    if not isinstance(value, dict):
        return shape(value)
    return {
        key: _meta(one) if key == "_meta" else one if key in known else shape(one)
        for key, one in value.items()
    }


def _meta(value: Any) -> Any:
    if not isinstance(value, dict):
        return shape(value)
    return {
        key: one if key in META or key.startswith(OURS) else shape(one)
        for key, one in value.items()
    }


def shape(value: Any) -> str:
    """E.g. "(redacted: list of 3)"."""
    match value:
        case dict():
            said = f"object of {len(value)}"
        case list():
            said = f"list of {len(value)}"
        case str():
            said = f"string of {len(value)}"
        case None:
            said = "null"
        case _:
            said = "boolean" if isinstance(value, bool) else "number"
    return f"(redacted: {said})"


def masked(value: Any, mask: Callable[[str], str]) -> Any:
    """Every string in it, keys too, and numbers that are a secret, through `mask`."""
    match value:
        case str():
            return mask(value)
        case dict():
            return {mask(key): masked(one, mask) for key, one in value.items()}
        case list():
            return [masked(one, mask) for one in value]
        case int() | float() if not isinstance(value, bool):
            text = repr(value)
            told = mask(text)
            return value if told == text else told
        case _:
            return value
