"""What may be asked of a server: what it announced, in the words of its revision.

Source: MCP 2026-07-28 basic/versioning › Capability Negotiation, server/utilities/completion,
server/utilities/logging; the same pages of the legacy revisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.wire.envelope import Params

COMPLETE: Final = "completion/complete"

LOG_LEVELS: Final = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)
"""From chatty to silent."""

LOGGING_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that are long or deep enough that a caller wants to read along."""

ANNOUNCED: Final[Mapping[str, str]] = {
    COMPLETE: "completions",
    "resources/read": "resources",
    "logging/setLevel": "logging",
}
"""Methods that reach a server without being listed by it, and the capability each needs. Tools and
prompts are only ever called as listed, and listed only where announced."""

_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode

OLDEST: Final = "2024-11-05"
"""This revision has completion, but no capability to announce it by."""
FIRST_WITH_CONTEXT: Final = "2025-06-18"
"""The first revision whose completion takes a `context`."""


def not_announced(method: str, capabilities: Mapping[str, Any], *, version: str) -> str | None:
    """The capability that a server would have to announce for this method, None if it may be
    asked."""
    needed = ANNOUNCED.get(method)
    if needed is None or needed in capabilities:
        return None
    if method == COMPLETE and version == OLDEST:
        return None if {"prompts", "resources"} & capabilities.keys() else needed
    return needed


def in_revision(method: str, params: Params, *, version: str) -> Params:
    """The parameters without what the server's revision does not know."""
    if method != COMPLETE or version >= FIRST_WITH_CONTEXT or params is None:
        return params
    fields = _fields(params) if isinstance(params, Raw) else params
    return {key: value for key, value in fields.items() if key != "context"}
