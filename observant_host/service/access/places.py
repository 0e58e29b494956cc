"""What each listener serves, and the groups that its paths are counted in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

SERVED: Final[Mapping[str, frozenset[str]]] = {
    "admin": frozenset({"health", "metrics", "api", "console"}),
    "mcp": frozenset({"health", "mcp"}),
    "metrics": frozenset({"health", "open metrics"}),
}
"""By listener. Without an `admin_listen` the first serves what the second does, too."""

GROUPS: Final = ("/mcp", "/healthz", "/readyz", "/metrics", "/api/v1", "/.well-known")
"""Path prefixes that are groups of their own; everything else that is served is the console."""


def served_at(listener: str, *, alone: bool) -> frozenset[str]:
    """`alone`: agents have no listener of their own."""
    if listener == "admin" and alone:
        return SERVED["admin"] | SERVED["mcp"]
    return SERVED[listener]


def group_of(request: web.Request) -> str:
    """The group of a request's route: never what somebody made up."""
    resource = request.match_info.route.resource
    if resource is None:
        return "other"
    path = resource.canonical
    for group in GROUPS:
        if path == group or path.startswith(group + "/"):
            return group
    return "/"
