"""The states of a peer as one table: what happened, and where that leads.

`unavailable` is sticky on purpose: neither a re-probe, nor the death of a kept process, nor a new
life leaves it. A peer that is refused would otherwise look alive, and its `since` would be a lie.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.terms import Cause, PeerState

if TYPE_CHECKING:
    from collections.abc import Mapping

S = PeerState


class Happened(StrEnum):
    """What can happen to a peer, seen from its supervisor."""

    LIFE_BEGAN = "life_began"
    LISTED = "listed"  # an era is chosen and the lists are read
    LISTED_IN_PART = "listed_in_part"  # an era is chosen, a layer is not as it should be
    NO_ERA = "no_era"  # a round ended without an era, or the peer cannot be started
    ERA_ENDED = "era_ended"  # a life that had an era ended; the next one will come
    LIFE_ENDED = "life_ended"  # a life without an era ended
    GAVE_UP = "gave_up"
    DISABLED = "disabled"
    ENABLED = "enabled"
    STOPPED = "stopped"


def _row(
    *, began: S, listed: S, in_part: S, no_era: S, era_ended: S, life_ended: S
) -> dict[Happened, S]:
    return {
        Happened.LIFE_BEGAN: began,
        Happened.LISTED: listed,
        Happened.LISTED_IN_PART: in_part,
        Happened.NO_ERA: no_era,
        Happened.ERA_ENDED: era_ended,
        Happened.LIFE_ENDED: life_ended,
        Happened.GAVE_UP: S.UNAVAILABLE,
        Happened.DISABLED: S.DISABLED,
        Happened.ENABLED: S.STARTING if began is not S.UNAVAILABLE else S.UNAVAILABLE,
        Happened.STOPPED: S.STOPPED,
    }


_ALIVE: Final = _row(
    began=S.STARTING,
    listed=S.READY,
    in_part=S.DEGRADED,
    no_era=S.UNAVAILABLE,
    era_ended=S.BACKOFF,
    life_ended=S.BACKOFF,
)
_STICKY: Final = _row(
    began=S.UNAVAILABLE,
    listed=S.READY,
    in_part=S.DEGRADED,
    no_era=S.UNAVAILABLE,
    era_ended=S.UNAVAILABLE,
    life_ended=S.UNAVAILABLE,
)

TRANSITIONS: Final[Mapping[tuple[S, Happened], S]] = {
    **{
        (state, what): after
        for state in (S.STARTING, S.READY, S.DEGRADED, S.BACKOFF)
        for what, after in _ALIVE.items()
    },
    **{(S.UNAVAILABLE, what): after for what, after in _STICKY.items()},
    **{(S.DISABLED, what): S.DISABLED for what in Happened},
    (S.DISABLED, Happened.ENABLED): S.STARTING,
    (S.DISABLED, Happened.STOPPED): S.STOPPED,
    **{(S.STOPPED, what): S.STOPPED for what in Happened},
}
"""Every state with everything that can happen. What comes too late (a life's end that is noticed
after the operator's act) changes nothing in `disabled` and `stopped`."""

_ENDED: Final = frozenset({S.DISABLED, S.STOPPED})
_ENDING: Final = frozenset({Happened.DISABLED, Happened.STOPPED})

_KEEPS_CAUSE: Final = frozenset({S.BACKOFF, S.STARTING})
"""States that carry over why the last life ended; the others set it anew or have none."""


class PeerStatus(msgspec.Struct, frozen=True, gc=False):
    """Where one peer stands. `since_ns` is the moment `state` was entered (epoch, UTC).

    `cause` is set in `unavailable`, and in `backoff` and the `starting` after it.
    """

    state: PeerState
    since_ns: int
    cause: Cause | None = None
    reason: str = ""
    detail: str = ""


def after(
    status: PeerStatus,
    what: Happened,
    *,
    now_ns: int,
    cause: Cause | None = None,
    reason: str = "",
    detail: str = "",
) -> PeerStatus:
    """The status after `what`. `since_ns` changes only with the state.

    `cause` None keeps the present one where the new state carries causes over.
    """
    state = TRANSITIONS[status.state, what]
    if state in _ENDED and state is status.state and what not in _ENDING:
        reason = detail = ""  # it comes too late to say anything of it
    return PeerStatus(
        state=state,
        since_ns=status.since_ns if state is status.state else now_ns,
        cause=_cause(status, state, cause=cause),
        reason=reason or status.reason,
        detail=detail or status.detail,
    )


def _cause(status: PeerStatus, state: PeerState, *, cause: Cause | None) -> Cause | None:
    if state is PeerState.UNAVAILABLE or state in _KEEPS_CAUSE:
        return cause if cause is not None else status.cause
    return None
