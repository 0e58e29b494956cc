"""What an HTTP request of one life says in its headers, beside its body.

The parameters a server wants mirrored come with its list of tools, so they are as current as the
listing: compiled once when a tool is listed, looked up by each call.

Source: MCP 2026-07-28 basic/transports/streamable-http › Request Metadata, Custom Headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from observant_host.decisions import terms
from observant_host.transports.base import Outbound
from observant_host.wire.mirrored_headers import encode_value, mcp_name, mirror

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from observant_host.decisions.catalogue import ListedTool
    from observant_host.peers.eras import Era, Params
    from observant_host.wire.mirrored_headers import Mirrored


class Headers:
    """Of one life over HTTP. A modern request has them all, a legacy one at most its version."""

    def __init__(self) -> None:
        self._mirrored: dict[str, tuple[Mirrored, ...]] = {}

    def listed(self, tools: Iterable[ListedTool]) -> None:
        """The tools of the current listing: from now on their annotations hold."""
        self._mirrored = {tool.name: tool.mirrored for tool in tools if tool.mirrored}

    def outbound(
        self, era: Era, frame: bytes, *, request_id: int, method: str, params: Params
    ) -> Outbound:
        """The frame with its headers. Raises InvalidCall where a value cannot be mirrored."""
        if era.name is not terms.Era.MODERN:
            return Outbound(frame, method, request_id, era.version_header)
        name = mcp_name(method, params)
        annotated = self._mirrored.get(name or "") if method == "tools/call" else None
        return Outbound(
            frame,
            method,
            request_id,
            era.version_header,
            None if name is None else encode_value(name),
            mirror(annotated, _arguments(params)) if annotated else (),
            modern=True,
        )


def _arguments(params: Params) -> Raw | Mapping[str, Any] | None:
    if isinstance(params, Raw):
        return msgspec.json.decode(params, type=dict[str, Raw]).get("arguments")
    return None if params is None else params.get("arguments")
