"""Which servers need a person, why, and what that person can do: one table over a server's state.

A *decision* waits for a person and harms nobody who did not rely on the server; an *outage* is a
server that should work and does not; *standing* is what a person switched off and may have
forgotten.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.terms import OUTAGES, Cause, PeerState, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping


class Level(StrEnum):
    """In the order of a list: what cannot go on without a person comes first."""

    DECISION = "decision"
    OUTAGE = "outage"
    STANDING = "standing"


class Attention(msgspec.Struct, frozen=True):
    """`acts` are offered as buttons, the first as what probably helps; `command` is the same for a
    terminal, "" where nothing is offered."""

    level: Level
    acts: tuple[str, ...]
    command: str = ""


_OF_CAUSE: Final[Mapping[Cause, tuple[str, ...]]] = {
    Cause.POLICY: ("retry", "disable"),
    Cause.AUTH: ("retry", "disable"),
    Cause.CONFIG: ("reload",),
    Cause.PROCESS: ("retry", "disable"),
    Cause.NETWORK: ("retry", "disable"),
    Cause.PROTOCOL: ("retry", "disable"),
}

ALLOWABLE: Final = frozenset(
    {
        Reason.AMBIGUOUS_TIMEOUT,
        Reason.AMBIGUOUS_CLOSED,
        Reason.AMBIGUOUS_ERROR,
        Reason.AMBIGUOUS_EMPTY,
        Reason.AMBIGUOUS_MALFORMED,
        Reason.WAS_MODERN,
        Reason.ALLOWANCE_EXPIRED,
        Reason.ALLOWANCE_MISMATCH,
    }
)
"""Reasons of a refusal that a person's `allow` can end."""

_DOWN: Final = frozenset({PeerState.UNAVAILABLE, PeerState.BACKOFF, PeerState.DEGRADED})


def attention(
    server: str,
    *,
    state: PeerState,
    cause: Cause | None,
    reason: str,
    ruling: str | None,
    expects_modern: bool = False,
) -> Attention | None:
    """None where nobody is needed.

    `ruling` is a person's hold, disable or drain that stands; `expects_modern` is the
    configuration's `expect_era = "modern"`, which no `allow` overrules.
    """
    if ruling is not None:
        return _offering(Level.STANDING, ("enable",), server)
    if state is PeerState.DEGRADED:
        return _offering(Level.OUTAGE, ("retry", "restart"), server)
    if state not in _DOWN or cause is None:
        return None
    acts = _OF_CAUSE[cause]
    if cause is Cause.POLICY and reason in ALLOWABLE and not expects_modern:
        acts = ("allow", *acts)
    return _offering(Level.OUTAGE if cause in OUTAGES else Level.DECISION, acts, server)


def _offering(level: Level, acts: tuple[str, ...], server: str) -> Attention:
    first = acts[0]
    about = "" if first == "reload" else f" {server}"
    return Attention(level, acts, f"observant-host {first}{about}")
