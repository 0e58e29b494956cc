"""The one place where a modern request gets its stamp.

Each modern request says again which revision it speaks, what the client can do and who it is; a
server infers nothing from earlier ones. The caller's own `_meta` is kept, the protocol's keys win.

Source: MCP 2026-07-28 basic/index › _meta; schema RequestMetaObject.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from observant_host.errors import InvalidCall

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
TRACE_KEYS: Final = frozenset({"traceparent", "tracestate", "baggage"})

Params = Mapping[str, Any] | Raw | None
"""Parameters as a mapping (values may be Raw, which pass through untouched), or all of them raw."""

NEWLINE: Final = 10
RETURN: Final = 13
"""As bytes of a frame: a search for an integer is several times faster than one for a byte string.
"""

encode: Final = msgspec.json.Encoder().encode
_decode_object: Final = msgspec.json.Decoder(dict[str, Raw]).decode


_BEGIN: Final = b'{"jsonrpc":"2.0","id":'
_PARAMS: Final = b',"params":'
_META: Final = b',"_meta":{'


class ClientInfo(msgspec.Struct, frozen=True):
    name: str
    version: str


def stamp(
    request_id: int,
    method: str,
    params: Params,
    *,
    version: str,
    capabilities: Raw | Mapping[str, Any],
    client_info: ClientInfo,
    traceparent: str | None = None,
    tracestate: str | None = None,
    progress_token: int | None = None,
    meta: Mapping[str, Any] | None = None,
) -> bytes:
    """One modern request as bytes, without a line end and without a newline inside.

    `_meta` is merged from `params["_meta"]`, then `meta`, then the protocol's keys. Raises
    InvalidCall where `params` or its `_meta` is no JSON object.
    """
    body, merged = split(params)
    if meta:
        merged.update(meta)
    if traceparent is not None:
        _put_trace(merged, traceparent, tracestate)
    if progress_token is not None:
        merged["progressToken"] = progress_token
    merged[PROTOCOL_VERSION] = version
    merged[CLIENT_CAPABILITIES] = capabilities
    merged[CLIENT_INFO] = client_info
    body["_meta"] = merged
    return on_one_line(
        encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": body})
    )


class Stamp:
    """The stamp of one life's requests, most of which is the same each time: encoded once.

    It writes what `stamp` writes, byte for byte.
    """

    def __init__(
        self, *, version: str, capabilities: Raw | Mapping[str, Any], client_info: ClientInfo
    ) -> None:
        self._version = version
        self._capabilities = capabilities
        self._client_info = client_info
        constant = {
            PROTOCOL_VERSION: version,
            CLIENT_CAPABILITIES: capabilities,
            CLIENT_INFO: client_info,
        }
        self._end = encode(constant)[1:] + b"}}"

    def request(
        self,
        request_id: int,
        method: str,
        params: Params,
        traceparent: str | None = None,
        tracestate: str | None = None,
        progress_token: int | None = None,
    ) -> bytes:
        """As `stamp`."""
        if not params or isinstance(params, Raw) or "_meta" in params or tracestate is not None:
            return stamp(
                request_id,
                method,
                params,
                version=self._version,
                capabilities=self._capabilities,
                client_info=self._client_info,
                traceparent=traceparent,
                tracestate=tracestate,
                progress_token=progress_token,
            )
        trace = b"" if traceparent is None else b'"traceparent":"%b",' % traceparent.encode()
        token = b"" if progress_token is None else b'"progressToken":%d,' % progress_token
        head, number = b',"method":' + encode(method), b"%d" % request_id
        body = encode(params)[:-1]
        return on_one_line(
            b"".join((_BEGIN, number, head, _PARAMS, body, _META, trace, token, self._end))
        )


def stamp_notification(
    method: str,
    params: Params,
    *,
    traceparent: str | None = None,
    tracestate: str | None = None,
    meta: Mapping[str, Any] | None = None,
) -> bytes:
    """One modern notification: only requests carry version, capabilities and client info."""
    body, merged = split(params)
    if meta:
        merged.update(meta)
    if traceparent is not None:
        _put_trace(merged, traceparent, tracestate)
    if merged:
        body["_meta"] = merged
    return message({"jsonrpc": "2.0", "method": method}, body)


def with_log_level(params: Params, level: str) -> dict[str, Any]:
    """The parameters of a request whose log messages are wanted, from `level` on."""
    body, meta = split(params)
    meta[LOG_LEVEL] = level
    return {**body, "_meta": meta}


def split(params: Params) -> tuple[dict[str, Any], dict[str, Any]]:
    """Copies of the parameters without `_meta`, and of `_meta`. Raises InvalidCall."""
    if params is None:
        return {}, {}
    body = _object(params, "params") if isinstance(params, Raw) else dict(params)
    meta = body.pop("_meta", None)
    if meta is None:
        return body, {}
    if isinstance(meta, Mapping):
        return body, dict(meta)
    return body, _object(meta, "params._meta")


def message(head: dict[str, Any], body: dict[str, Any]) -> bytes:
    """A message as bytes; empty parameters are left out."""
    if body:
        head["params"] = body
    return on_one_line(encode(head))


def on_one_line(frame: bytes) -> bytes:
    """Raw values may be pretty-printed: a newline is only ever white space in JSON, so blank it."""
    if NEWLINE in frame or RETURN in frame:
        return frame.replace(b"\n", b" ").replace(b"\r", b" ")
    return frame


def _put_trace(meta: dict[str, Any], traceparent: str, tracestate: str | None) -> None:
    """Both or neither: a caller's tracestate does not belong to our traceparent."""
    meta["traceparent"] = traceparent
    meta.pop("tracestate", None)
    if tracestate is not None:
        meta["tracestate"] = tracestate


def _object(value: Any, where: str) -> dict[str, Any]:
    if isinstance(value, Raw):
        try:
            decoded: dict[str, Any] = _decode_object(value)
        except (msgspec.MsgspecError, RecursionError):
            pass
        else:
            return decoded
    raise InvalidCall(f"`{where}` must be a JSON object")
