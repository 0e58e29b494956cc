"""Messages of the legacy revisions, which carry no modern key at all.

Deployed legacy servers refuse requests with keys that they do not know, so keys of the modern era
in a caller's `_meta` are left out too. `initialize` is written here and nowhere else.

Source: MCP 2025-11-25 basic/lifecycle › Initialization, basic/index; the same in older revisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.wire.envelope import TRACE_KEYS, ClientInfo, Params, message, split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

_MODERN_PREFIX: Final = "io.modelcontextprotocol/"


def initialize(
    request_id: int,
    *,
    version: str,
    capabilities: Raw | Mapping[str, Any],
    client_info: ClientInfo,
) -> bytes:
    """The first message of a legacy life, offering `version`."""
    params = {
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": client_info,
    }
    return request(request_id, "initialize", params)


def request(
    request_id: int,
    method: str,
    params: Params,
    *,
    progress_token: int | None = None,
    meta: Mapping[str, Any] | None = None,
) -> bytes:
    """One legacy request as bytes. Raises InvalidCall where `params` is no JSON object."""
    body = _body(params, meta, progress_token)
    return message({"jsonrpc": "2.0", "id": request_id, "method": method}, body)


def notification(method: str, params: Params = None) -> bytes:
    """One legacy notification as bytes."""
    return message({"jsonrpc": "2.0", "method": method}, _body(params, None, None))


def _body(
    params: Params, meta: Mapping[str, Any] | None, progress_token: int | None
) -> dict[str, Any]:
    body, merged = split(params)
    if meta:
        merged.update(meta)
    kept = {key: value for key, value in merged.items() if not _is_modern(key)}
    if progress_token is not None:
        kept["progressToken"] = progress_token
    if kept:
        body["_meta"] = kept
    return body


def _is_modern(key: str) -> bool:
    return key in TRACE_KEYS or key.startswith(_MODERN_PREFIX)
