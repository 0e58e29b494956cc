"""What clients of the legacy revisions are offered, and in which words they are refused.

Source: MCP 2025-11-25 basic/lifecycle, basic/transports › Protocol Version Header,
server/resources › Error Handling; the same pages of the older revisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions.asking import LOG_LEVELS
from observant_host.decisions.northbound_errors import LEGACY_NOT_FOUND
from observant_host.wire.revisions import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LEGACY,
    MODERN_ERRORS,
    PREFERRED_LEGACY,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

SINCE: Final[Mapping[str, str]] = {"completions": "2025-03-26"}
"""Server capabilities that came later than the first revision."""
TITLES: Final = "2025-06-18"
BATCHES: Final = "2025-03-26"
"""The one revision whose messages come in arrays."""
PRIMED: Final = "2025-11-25"
"""Since then a stream begins with an event that only has an id, so that it can be resumed."""

AT_ONCE: Final = frozenset(
    {"initialize", "ping", "logging/setLevel", "server/discover", "subscriptions/listen"}
)
"""Methods that are answered while servers still start; all others wait for the first catalogue."""


def agreed(requested: object) -> str:
    """The revision of a session: the client's, where we have it, else our latest."""
    return requested if isinstance(requested, str) and requested in LEGACY else PREFERRED_LEGACY


def known_header(version: str | None) -> bool:
    """Whether MCP-Protocol-Version may be that; older clients send none."""
    return version is None or version in LEGACY


def capabilities_in(capabilities: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """Ours, as far as the revision has words for them."""
    return {key: one for key, one in capabilities.items() if SINCE.get(key, "") <= revision}


def identity_in(ourselves: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """`serverInfo` of a revision."""
    return {key: one for key, one in ourselves.items() if key != "title" or revision >= TITLES}


def legacy_code(method: str, code: int) -> int:
    """An error's code in legacy words. What is invalid about reading is the URI: it is its only
    parameter."""
    if method == "resources/read" and code == INVALID_PARAMS:
        return LEGACY_NOT_FOUND
    return INTERNAL_ERROR if code in MODERN_ERRORS else code


def loud_enough(level: str, wanted: str | None) -> bool:
    """Whether a log message is for a client that asked for `wanted`; one that never asked gets
    information and worse."""
    if level not in LOG_LEVELS:
        return True
    return LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted or "info")
