"""What agents may ask of us, and how a request that cannot be taken is refused.

Tables first: which methods there are, what each needs, and which HTTP status an error has. A
refusal is a value; whoever serves it writes it down.

Source: MCP 2026-07-28 basic/index › _meta, Error Codes; basic/versioning; server/discover;
basic/transports/streamable-http › Protocol Version Header.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw

from observant_host.decisions.asking import LOG_LEVELS
from observant_host.wire.envelope import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    TRACE_KEYS,
)
from observant_host.wire.revisions import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    MODERN,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)

if TYPE_CHECKING:
    from observant_host.wire.jsonrpc import Request

Era = Literal["modern", "legacy"]

STATUS_OK: Final = 200

DOOR_STATUS: Final[Mapping[int, int]] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 404,
    INVALID_PARAMS: 400,
    INTERNAL_ERROR: 500,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_PROTOCOL_VERSION: 400,
}
"""HTTP status of what is refused before anything was done. An error of the work itself (an unknown
tool, a resource that is not there) is an answer: 200, but for a capability the client lacks."""

MAX_REMEMBERED: Final = 1024
"""Bytes of a `_meta` whose reading is remembered; usual ones have a third of it. One that is never
said again (it has a token, or a trace) displaces what nobody has said for longest."""
MAX_SHOWN: Final = 128
"""Characters of a caller's own wrong words that are repeated to it."""


class Refusal(msgspec.Struct, frozen=True):
    """A JSON-RPC error, and the HTTP status where HTTP carries it."""

    code: int
    message: str
    data: Any = None
    status: int = STATUS_OK


class Method(msgspec.Struct, frozen=True):
    """`capability` is ours that it needs, None where every server has it. `names` is the parameter
    that says what it is about, and that the `Mcp-Name` header repeats."""

    capability: str | None = None
    cacheable: bool = False
    names: str | None = None


METHODS: Final[Mapping[str, Method]] = {
    "server/discover": Method(cacheable=True),
    "tools/list": Method("tools", cacheable=True),
    "tools/call": Method("tools", names="name"),
    "prompts/list": Method("prompts", cacheable=True),
    "prompts/get": Method("prompts", names="name"),
    "resources/list": Method("resources", cacheable=True),
    "resources/templates/list": Method("resources", cacheable=True),
    "resources/read": Method("resources", cacheable=True, names="uri"),
    "completion/complete": Method("completions"),
    "subscriptions/listen": Method(),
}
"""Requests of the modern revision. Everything else is unknown here: `initialize`, `ping`,
`logging/setLevel` and `resources/subscribe` belong to the legacy ones."""


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """A modern request's `_meta`. `others` are the keys that are neither the protocol's nor the
    trace's: they go on to the server. Requests share it: nothing in it is ever changed."""

    version: str
    capabilities: Mapping[str, Any]
    client_name: str | None = None
    client_version: str | None = None
    log_level: str | None = None
    progress_token: int | str | None = None
    trace: Mapping[str, Any] = {}
    others: Mapping[str, Raw] = {}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One request that was read: its parameters' members are still raw. `target` is what it names,
    by METHODS, where that is a string."""

    id: int | str
    method: str
    era: Era
    params: Mapping[str, Raw]
    meta: Meta
    target: str | None = None

    def value(self, key: str) -> Any:
        """A parameter decoded; None where it is absent, null or cannot be decoded."""
        return _value(self.params.get(key))

    def text(self, key: str) -> str | None:
        """A parameter that is a string, else None."""
        value = self.value(key)
        return value if isinstance(value, str) else None


def read_request(
    message: Request,
    *,
    era: Era,
    version: str | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> Question | Refusal:
    """`version` and `capabilities` are those of a legacy session; a modern request says both.

    Whether its version is served is `unsupported`'s matter, so that headers can be looked at first.
    """
    params = read_params(message.params)
    if isinstance(params, Refusal):
        return params
    if era == "modern":
        raw = bytes(params.get("_meta", b""))
        meta = _read_before(raw) if 0 < len(raw) <= MAX_REMEMBERED else read_meta(params)
    else:
        meta = read_legacy_meta(params, version=version or "", capabilities=capabilities or {})
    if isinstance(meta, Refusal):
        return meta
    known = METHODS.get(message.method)
    target = None if known is None or known.names is None else _value(params.get(known.names))
    return Question(
        id=message.id,
        method=message.method,
        era=era,
        params=params,
        meta=meta,
        target=target if isinstance(target, str) else None,
    )


def at_the_door(code: int, message: str, data: Any = None) -> Refusal:
    """A refusal before anything was done."""
    return Refusal(code, message, data, DOOR_STATUS[code])


def method_of(name: str, capabilities: Mapping[str, Any]) -> Method | Refusal:
    """What is known of a method, by the capabilities that we announce."""
    known = METHODS.get(name)
    if known is None:
        return at_the_door(METHOD_NOT_FOUND, f"there is no method {_shown(name)}")
    if known.capability is not None and known.capability not in capabilities:
        why = {"reason": f"the capability {known.capability} is not announced"}
        return at_the_door(METHOD_NOT_FOUND, f"{name} is not served here", why)
    return known


def era_of(method: str, *, says_version: bool, header: str | None, has_session: bool) -> Era:
    """Whose rules a message follows: each is looked at alone.

    `says_version`: its `_meta` has the modern key; `header`: its MCP-Protocol-Version.
    """
    if says_version:
        return "modern"
    if method == "initialize" or header in LEGACY:
        return "legacy"
    return "legacy" if has_session and header not in MODERN else "modern"


def read_params(params: Raw | None) -> dict[str, Raw] | Refusal:
    """The parameters' members, each still raw."""
    if params is None:
        return {}
    try:
        found: dict[str, Raw] = _object(params)
    except (msgspec.MsgspecError, RecursionError):
        return at_the_door(INVALID_PARAMS, "`params` must be a JSON object")
    return found


def read_meta(params: Mapping[str, Raw]) -> Meta | Refusal:
    """A modern request's `_meta`, or what is missing or wrong in it. Whether the version is one of
    ours is `unsupported`'s matter."""
    if "_meta" not in params:
        return at_the_door(INVALID_PARAMS, "`params` lacks `_meta`")
    fields = _fields(params)
    if isinstance(fields, Refusal):
        return fields
    known = fields[0]
    if not isinstance(known.version, str):
        return _lacks(PROTOCOL_VERSION)
    if not isinstance(known.capabilities, dict):
        return _lacks(CLIENT_CAPABILITIES)
    if known.log_level is not None and known.log_level not in LOG_LEVELS:
        return at_the_door(INVALID_PARAMS, f"`{LOG_LEVEL}` must be one of {', '.join(LOG_LEVELS)}")
    return _meta(*fields, version=known.version, capabilities=known.capabilities)


@lru_cache(maxsize=256)  # clients: each says the same of itself with every request
def _read_before(raw: bytes) -> Meta | Refusal:
    return read_meta({"_meta": Raw(raw)})


def read_legacy_meta(
    params: Mapping[str, Raw], *, version: str, capabilities: Mapping[str, Any]
) -> Meta | Refusal:
    """The `_meta` of a request in a session, which agreed on version and capabilities."""
    fields = _fields(params)
    if isinstance(fields, Refusal):
        return fields
    return _meta(*fields, version=version, capabilities=capabilities)


def says_version(params: Raw | None) -> bool:
    """Whether a message carries the modern stamp, before anything else is known of it."""
    if params is None:
        return False
    try:
        meta = _stamped(params).meta
    except (msgspec.MsgspecError, RecursionError):
        return False
    return isinstance(meta, dict) and PROTOCOL_VERSION in meta


def unsupported(version: str) -> Refusal | None:
    """The refusal of a revision that is not served, or None."""
    if version in MODERN:
        return None
    return at_the_door(
        UNSUPPORTED_PROTOCOL_VERSION,
        f"protocol version {_shown(version)} is not served here; there is: {', '.join(MODERN)}",
        {"supported": list(MODERN), "requested": version[:MAX_SHOWN]},
    )


def lacks_capability(*needed: str) -> Refusal:
    """What is asked for needs a capability that the client has not declared."""
    return at_the_door(
        MISSING_CLIENT_CAPABILITY,
        f"this needs the client capability {', '.join(needed)}, which was not declared",
        {"requiredCapabilities": {one: {} for one in needed}},
    )


def _fields(params: Mapping[str, Raw]) -> tuple[_Known, Mapping[str, Raw]] | Refusal:
    """What `_meta` has for us, and what it has besides; nearly always nothing, which one look
    tells."""
    raw = params.get("_meta")
    if raw is None or bytes(raw) == b"null":
        return _Known(), {}
    try:
        return _ours_alone(raw), {}
    except (msgspec.MsgspecError, RecursionError):
        pass
    try:
        members: dict[str, Raw] = _object(raw)
        return _known(raw), {key: one for key, one in members.items() if _is_others(key)}
    except (msgspec.MsgspecError, RecursionError):
        return at_the_door(INVALID_PARAMS, "`params._meta` must be a JSON object")


def _meta(
    known: _Known, others: Mapping[str, Raw], *, version: str, capabilities: Mapping[str, Any]
) -> Meta | Refusal:
    token, client = known.token, known.client
    if token is not None and type(token) is not str and type(token) is not int:
        return at_the_door(INVALID_PARAMS, "`progressToken` must be a string or an integer")
    if type(client) is not dict:
        client = {}
    return Meta(
        version=version,
        capabilities=capabilities,
        client_name=_text(client.get("name")),
        client_version=_text(client.get("version")),
        log_level=known.log_level,
        progress_token=token,
        trace=known.trace(),
        others=others,
    )


def _lacks(key: str) -> Refusal:
    return at_the_door(INVALID_PARAMS, f"`params._meta` lacks `{key}`, or it is of the wrong type")


def _is_others(key: str) -> bool:
    return key not in _OURS and not key.startswith(_RESERVED)


def _value(raw: Raw | None) -> Any:
    try:
        return None if raw is None else _any(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _text(value: Any) -> str | None:
    return value[:MAX_SHOWN] if isinstance(value, str) else None


def _shown(text: str) -> str:
    return f'"{"".join(c if c.isprintable() else "?" for c in text[:MAX_SHOWN])}"'


class _Stamped(msgspec.Struct, rename={"meta": "_meta"}):
    meta: Any = None


class _Known(
    msgspec.Struct,
    rename={
        "version": PROTOCOL_VERSION,
        "capabilities": CLIENT_CAPABILITIES,
        "client": CLIENT_INFO,
        "log_level": LOG_LEVEL,
        "token": "progressToken",
    },
):
    """What `_meta` has for us; whatever is of another type is looked at by who needs it."""

    version: Any = None
    capabilities: Any = None
    client: Any = None
    log_level: Any = None
    token: Any = None
    traceparent: Any = UNSET
    tracestate: Any = UNSET
    baggage: Any = UNSET

    def trace(self) -> Mapping[str, Any]:
        if self.traceparent is UNSET and self.tracestate is UNSET and self.baggage is UNSET:
            return {}
        found = ((key, getattr(self, key)) for key in TRACE_KEYS)
        return {key: value for key, value in found if value is not UNSET}


class _OursAlone(_Known, forbid_unknown_fields=True):
    pass


_RESERVED: Final = "io.modelcontextprotocol/"
_OURS: Final = frozenset(_Known.__struct_encode_fields__)
_known: Final = msgspec.json.Decoder(_Known).decode
_ours_alone: Final = msgspec.json.Decoder(_OursAlone).decode
_object: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_any: Final = msgspec.json.Decoder().decode
_stamped: Final = msgspec.json.Decoder(_Stamped).decode
