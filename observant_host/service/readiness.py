"""Whether traffic may be sent here: by the servers that somebody called required, not by all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.terms import PeerState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from observant_host.config import ReadyWhen
    from observant_host.supervision.peer_state import ServerView

UP: Final = frozenset({PeerState.READY, PeerState.DEGRADED})


class Readiness(msgspec.Struct, frozen=True):
    """`why` is a sentence; `waiting` are the servers that it waits for."""

    ready: bool
    why: str
    waiting: tuple[str, ...] = ()


def readiness(
    views: Mapping[str, ServerView],
    *,
    required: Collection[str],
    ready_when: ReadyWhen,
    published: bool,
    draining: bool,
) -> Readiness:
    """`published`: start-up is over. `draining`: from the signal to end on."""
    if draining:
        return Readiness(False, "the host is draining")
    if not published:
        return Readiness(False, "the host is starting: the catalogue is not published yet")
    enabled = [view for view in views.values() if view.state is not PeerState.DISABLED]
    match ready_when:
        case "published":
            return Readiness(True, "the catalogue is published")
        case "any":
            return _any_up(enabled)
        case "all":
            return _all_up(enabled, "enabled")
        case "required":
            return _all_up([view for view in enabled if view.name in required], "required")


def _any_up(views: list[ServerView]) -> Readiness:
    if not views or any(view.state in UP for view in views):
        return Readiness(True, "at least one server is ready")
    return Readiness(False, "no server is ready", tuple(view.name for view in views))


def _all_up(views: list[ServerView], kind: str) -> Readiness:
    waiting = tuple(view.name for view in views if view.state not in UP)
    if not waiting:
        return Readiness(True, f"every {kind} server is ready")
    return Readiness(False, f"{kind} servers are not ready: {', '.join(waiting)}", waiting)
