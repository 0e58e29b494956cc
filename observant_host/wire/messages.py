"""The results that the host itself looks into; all others pass through as bytes.

Each parser returns a value or a sentence part that names what is wrong; none raises. What a field
holds beyond what is asked for stays undecoded.

Source: MCP 2026-07-28 server/discover, server/utilities/pagination, basic/patterns/mrtr; legacy
basic/lifecycle › Initialization.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from observant_host.wire.envelope import SERVER_INFO

ListKey = Literal["tools", "prompts", "resources", "resourceTemplates"]
CacheScope = Literal["public", "private"]

MAX_INPUT_REQUESTS: Final = 100
"""Questions that one result may ask: more is no form that a person fills in."""

MAX_VERSIONS: Final = 100
"""Revisions that are read from a list; the protocol has five so far."""


class Discovered(msgspec.Struct, frozen=True, kw_only=True):
    """A valid DiscoverResult. `server_info` is for display only."""

    supported_versions: tuple[str, ...]
    capabilities: dict[str, Any]
    server_info: dict[str, Any] | None = None
    instructions: str | None = None
    ttl_ms: int = 0
    cache_scope: CacheScope = "private"


class Initialized(msgspec.Struct, frozen=True, kw_only=True):
    """A valid initialize result, but for whether its revision is one that was allowed."""

    version: str
    capabilities: dict[str, Any]
    server_info: dict[str, Any]
    instructions: str | None = None


class Peek(msgspec.Struct, frozen=True, gc=False):
    """What routing must know of a result. `problem` is set where it is no result object."""

    result_type: str | None = None
    is_error: bool = False
    problem: str | None = None


COMPLETE: Final = Peek("complete")
"""Most results."""


class Page(msgspec.Struct, frozen=True):
    """`next_cursor` is None at the end of the list; "" is a cursor like any other."""

    items: tuple[Raw, ...]
    next_cursor: str | None = None
    ttl_ms: int = 0
    cache_scope: CacheScope = "private"


class EmbeddedRequest(msgspec.Struct, frozen=True):
    method: str
    params: Raw | None


class InputRequired(msgspec.Struct, frozen=True):
    """`has_state` tells an absent state from any string: it is echoed exactly, or not at all.

    `raw_requests` are the bytes of `inputRequests`, None where there are none.
    """

    requests: dict[str, EmbeddedRequest]
    request_state: str | None
    has_state: bool
    raw_requests: Raw | None = None


class _PeekBody(msgspec.Struct, gc=False):
    resultType: Any = None  # noqa: N815 - the wire's name
    isError: Any = False  # noqa: N815 - the wire's name


_peek_body: Final = msgspec.json.Decoder(_PeekBody).decode
_object: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_list: Final = msgspec.json.Decoder(list[Raw]).decode
_any: Final = msgspec.json.Decoder().decode


def is_empty(raw: Raw) -> bool:
    """`null`, or an object without members: an answer that says nothing."""
    return bytes(raw).translate(None, b" \t\r\n") in (b"null", b"{}")


def peek(raw: Raw) -> Peek:
    """The discriminator of a result, and whether a tool says that it failed."""
    try:
        body = _peek_body(raw)
    except (msgspec.MsgspecError, RecursionError):
        return Peek(problem="the result is no JSON object")
    kind = body.resultType
    if kind == "complete" and body.isError is False:
        return COMPLETE
    if kind is not None and not isinstance(kind, str):
        return Peek(problem="`resultType` is no string")
    return Peek(kind, body.isError is True)


def parse_discover(raw: Raw) -> Discovered | str:
    """Strict about `supportedVersions` and `capabilities`, lenient about the rest."""
    fields = _fields(raw)
    if fields is None:
        return "the result is no JSON object"
    if (kind := _decoded(fields, "resultType")) not in (UNSET, None, "complete"):
        return f"`resultType` is {_shown(kind)}"
    versions = string_list(_decoded(fields, "supportedVersions"))
    if versions is None:
        return _lacks(fields, "supportedVersions", "a list of strings")
    capabilities = _decoded(fields, "capabilities")
    if not isinstance(capabilities, dict):
        return _lacks(fields, "capabilities", "an object")
    return Discovered(
        supported_versions=versions,
        capabilities=capabilities,
        server_info=_server_info(fields),
        instructions=_text(fields, "instructions"),
        ttl_ms=_ttl(fields),
        cache_scope=_scope(fields),
    )


def parse_initialize(raw: Raw) -> Initialized | str:
    """Strict, as it alone is positive evidence of a legacy server. The problem names the field."""
    fields = _fields(raw)
    if fields is None:
        return "the result is no JSON object"
    version = _text(fields, "protocolVersion")
    if not version:
        return _lacks(fields, "protocolVersion", "a non-empty string")
    capabilities = _decoded(fields, "capabilities")
    if not isinstance(capabilities, dict):
        return _lacks(fields, "capabilities", "an object")
    info = _decoded(fields, "serverInfo")
    if not isinstance(info, dict):
        return _lacks(fields, "serverInfo", "an object")
    for key in ("name", "version"):
        if not isinstance(info.get(key), str) or not info[key]:
            return f"`serverInfo.{key}` is {_shown(info.get(key, UNSET))}, not a non-empty string"
    return Initialized(
        version=version,
        capabilities=capabilities,
        server_info=info,
        instructions=_text(fields, "instructions"),
    )


def parse_page(raw: Raw, key: ListKey) -> Page | str:
    """One page of a list. A cursor that is no string is a problem: nobody can ask with it."""
    fields = _fields(raw)
    if fields is None:
        return "the result is no JSON object"
    try:
        items = _list(fields[key]) if key in fields else None
    except (msgspec.MsgspecError, RecursionError):
        items = None
    if items is None:
        return _lacks(fields, key, "a list")
    cursor = _decoded(fields, "nextCursor")
    if cursor not in (UNSET, None) and not isinstance(cursor, str):
        return f"`nextCursor` is {_shown(cursor)}, not a string"
    following = cursor if isinstance(cursor, str) else None
    return Page(tuple(items), following, _ttl(fields), _scope(fields))


def parse_hint(raw: Raw) -> tuple[int, CacheScope]:
    """How long (milliseconds) and for whom a result may be kept; (0, "private") where it does not
    say."""
    fields = _fields(raw)
    return (0, "private") if fields is None else (_ttl(fields), _scope(fields))


def parse_input_required(raw: Raw) -> InputRequired | str:
    """What the server asks of the user before it can go on."""
    fields = _fields(raw)
    if fields is None:
        return "the result is no JSON object"
    state = _decoded(fields, "requestState")
    has_state = state not in (UNSET, None)
    if has_state and not isinstance(state, str):
        return f"`requestState` is {_shown(state)}, not a string"
    requests = _embedded(fields)
    if isinstance(requests, str):
        return requests
    if not requests and not has_state:
        return "it has neither `inputRequests` nor `requestState`"
    text = state if isinstance(state, str) else None
    return InputRequired(requests, text, has_state, fields.get("inputRequests"))


def string_list(value: Any) -> tuple[str, ...] | None:
    """A list of strings as a bounded tuple; None for anything else."""
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        return None
    return tuple(value[:MAX_VERSIONS])


def _embedded(fields: dict[str, Raw]) -> dict[str, EmbeddedRequest] | str:
    raw = fields.get("inputRequests")
    if raw is None or bytes(raw) == b"null":
        return {}
    entries = _fields(raw)
    if entries is None:
        return "`inputRequests` is no object"
    if len(entries) > MAX_INPUT_REQUESTS:
        return f"`inputRequests` has {len(entries)} entries, more than {MAX_INPUT_REQUESTS}"
    requests: dict[str, EmbeddedRequest] = {}
    for key, entry in entries.items():
        inside = _fields(entry)
        method = None if inside is None else _text(inside, "method")
        if inside is None or not method:
            return f"`inputRequests` entry {_shown(key)} has no method"
        requests[key] = EmbeddedRequest(method, inside.get("params"))
    return requests


def _fields(raw: Raw) -> dict[str, Raw] | None:
    try:
        fields: dict[str, Raw] = _object(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return fields


def _decoded(fields: dict[str, Raw], key: str) -> Any:
    """The value, UNSET where the key is absent or its value cannot be decoded."""
    if key not in fields:
        return UNSET
    try:
        return _any(fields[key])
    except (msgspec.MsgspecError, RecursionError):
        return UNSET


def _text(fields: dict[str, Raw], key: str) -> str | None:
    value = _decoded(fields, key)
    return value if isinstance(value, str) else None


def _server_info(fields: dict[str, Raw]) -> dict[str, Any] | None:
    """From `_meta`, or from the stray top-level field that many servers still send."""
    meta = _decoded(fields, "_meta")
    for info in (
        meta.get(SERVER_INFO) if isinstance(meta, dict) else None,
        _decoded(fields, "serverInfo"),
    ):
        if isinstance(info, dict):
            return info
    return None


def _ttl(fields: dict[str, Raw]) -> int:
    value = _decoded(fields, "ttlMs")
    return max(0, value) if type(value) is int else 0


def _scope(fields: dict[str, Raw]) -> CacheScope:
    return "public" if _decoded(fields, "cacheScope") == "public" else "private"


def _lacks(fields: dict[str, Raw], key: str, wanted: str) -> str:
    return f"`{key}` is {_shown(_decoded(fields, key))}, not {wanted}"


def _shown(value: Any) -> str:
    """A value of the peer's in a sentence: its kind, and strings shortened."""
    match value:
        case UnsetType():
            return "missing"
        case None:
            return "null"
        case str():
            return f'"{value[:64]}"' if value.isprintable() else "an unprintable string"
        case dict():
            return "an object"
        case list():
            return "a list"
        case _:
            return str(value)[:64]
