"""A server's result on its way up: its bytes as they came, with what its revision leaves out.

Only the outermost object is ever looked at, and what is added goes before its first member.

Source: MCP 2026-07-28 basic/index › ResultType, server/utilities/caching.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from observant_host.decisions.northbound_errors import DETAILS, details
from observant_host.service.mcp.announced import OUR_META
from observant_host.service.mcp.outlet import encode, result_of

if TYPE_CHECKING:
    from observant_host.errors import CallError
    from observant_host.routing.call_result import CallResult
    from observant_host.service.mcp.outlet import Part, Response

COMPLETE: Final = b'"resultType":"complete"'
UNCACHED: Final = b'"ttlMs":0,"cacheScope":"private"'
ADDED: Final = frozenset(
    b"{" + words + end
    for words in (COMPLETE, UNCACHED, COMPLETE + b"," + UNCACHED)
    for end in (b"", b",")
)
"""Parts of a response that hold only what we put before a server's bytes."""


def complete(request_id: int | str, result: CallResult) -> Response:
    """The response with this result. One of a legacy server gets the `resultType` that every
    result has now."""
    raw = result.raw_view
    if result.typed or _head(raw).resultType:
        return result_of(request_id, raw)
    return result_of(request_id, _with(raw, (COMPLETE,)))


def contents(request_id: int | str, result: CallResult, *, private: bool) -> Response:
    """As `complete`, of a resource: how long it may be kept is always said. One that we kept
    ourselves (`attempts` is 0) has less left than its server gave it, so nothing is promised."""
    raw = result.raw_view
    head = _head(raw)
    added = () if head.resultType else (COMPLETE,)
    if head.ttlMs is None or head.cacheScope is None:
        return result_of(
            request_id, _with(_without(raw, "ttlMs", "cacheScope"), (*added, UNCACHED))
        )
    if result.attempts == 0 or (private and head.cacheScope != "private"):
        bare = _without(raw, "ttlMs", "cacheScope")
        ttl = head.ttlMs if result.attempts else 0
        scope = "private" if private else head.cacheScope
        hints = encode({"ttlMs": ttl, "cacheScope": scope})[1:-1]
        return result_of(request_id, _with(bare, (*added, hints)))
    return result_of(request_id, _with(raw, added))


def failed(request_id: int | str, error: CallError) -> Response:
    """A tool's failing, as a result: a sentence for the model, and the details for a program."""
    return result_of(
        request_id,
        encode(
            {
                "resultType": "complete",
                "content": [{"type": "text", "text": str(error)}],
                "isError": True,
                "_meta": {**OUR_META, DETAILS: details(error)},
            }
        ),
    )


class _Head(msgspec.Struct):
    resultType: Any = None  # noqa: N815 - the wire's name
    ttlMs: Any = None  # noqa: N815 - the wire's name
    cacheScope: Any = None  # noqa: N815 - the wire's name


def _head(raw: Raw) -> _Head:
    try:
        return _decode_head(raw)
    except (msgspec.MsgspecError, RecursionError):
        return _Head()


def _with(raw: Raw, added: tuple[bytes, ...]) -> tuple[Part, ...]:
    """The object with further members at its beginning; nothing is copied."""
    view = memoryview(raw)
    if not added:
        return (view,)
    opened = _OPENING.match(view)
    if opened is None:
        return (view,)
    empty = _EMPTY.match(view) is not None
    return (b"{" + b",".join(added) + (b"" if empty else b","), view[opened.end() :])


def _without(raw: Raw, *keys: str) -> Raw:
    try:
        members = _decode_members(raw)
    except (msgspec.MsgspecError, RecursionError):
        return raw
    return Raw(encode({key: one for key, one in members.items() if key not in keys}))


_MODERN: Final = b"{" + COMPLETE
_OPENING: Final = re.compile(rb"\s*\{")
_EMPTY: Final = re.compile(rb"\s*\{\s*\}")
_decode_head: Final = msgspec.json.Decoder(_Head).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
