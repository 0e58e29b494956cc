"""What we say of ourselves: capabilities, identity, instructions.

Everything that a server may add while we run is announced from the start: a client looks once, and
lists that are empty now may not be in a minute.

Source: MCP 2026-07-28 server/discover, basic/versioning › Capability Negotiation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.service.mcp.outlet import encode, result_of
from observant_host.version import VERSION
from observant_host.wire.envelope import SERVER_INFO
from observant_host.wire.revisions import MODERN

if TYPE_CHECKING:
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.lists import Lists
    from observant_host.service.mcp.outlet import Response

OURSELVES: Final[dict[str, Any]] = {
    "name": "observant-host",
    "title": "observant-host",
    "version": VERSION,
}
OUR_META: Final[dict[str, Any]] = {SERVER_INFO: OURSELVES}
"""`_meta` of each result that is our own; a server's result keeps its own."""

CAPABILITIES: Final[dict[str, Any]] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}


def discovered(request_id: int | str, lists: Lists, caller: Caller) -> Response:
    """The answer to `server/discover`."""
    result: dict[str, Any] = {
        "resultType": "complete",
        "supportedVersions": MODERN,
        "capabilities": CAPABILITIES,
        **lists.hints(caller),
    }
    if (told := lists.instructions(caller)) is not None:
        result["instructions"] = told
    return result_of(request_id, encode({**result, "_meta": OUR_META}))
