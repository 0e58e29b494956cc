"""States, causes and eras as numbers, since a timeline and a matrix can only colour numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dashboards.generate.panels import AMBER, BLUE, GREEN, GREY, RED
from observant_host.decisions.terms import Cause, Era, PeerState

if TYPE_CHECKING:
    from collections.abc import Mapping

COLOURS: Final[Mapping[str, str]] = {
    PeerState.READY: GREEN,
    PeerState.STARTING: BLUE,
    PeerState.DEGRADED: AMBER,
    PeerState.BACKOFF: AMBER,
    PeerState.UNAVAILABLE: RED,
    PeerState.DISABLED: GREY,
    PeerState.STOPPED: GREY,
}
CAUSE_COLOURS: Final[Mapping[str, str]] = {
    Cause.POLICY: BLUE,
    Cause.AUTH: BLUE,
    Cause.CONFIG: BLUE,
    Cause.PROCESS: RED,
    Cause.NETWORK: RED,
    Cause.PROTOCOL: RED,
}
ERA_COLOURS: Final[Mapping[str, str]] = {Era.MODERN: GREEN, Era.LEGACY: AMBER, Era.UNKNOWN: GREY}

PERSON: Final = "policy|auth|config"
"""Causes that wait for a person."""
OUTAGE: Final = "process|network|protocol"


def mapping(colours: Mapping[str, str]) -> dict[int, tuple[str, str]]:
    """Number to (word, colour), as `coded` numbers them."""
    return {n: (str(word), colour) for n, (word, colour) in enumerate(colours.items(), start=1)}


def coded(metric: str, label: str, words: Mapping[str, str], *, by: str) -> str:
    """The number of the word that is true, by these labels."""
    each = " or ".join(
        f'(:{metric}{{{label}="{word}"}} == 1) * {n}' for n, word in enumerate(words, start=1)
    )
    return f"max by ({by}) ({each})"


STATE: Final = mapping(COLOURS)
CAUSE: Final = mapping(CAUSE_COLOURS)
ERA: Final = mapping(ERA_COLOURS)


def state(by: str) -> str:
    return coded("peer_state", "state", COLOURS, by=by)


def cause(by: str) -> str:
    return coded("peer_unavailable", "cause", CAUSE_COLOURS, by=by)


def era(by: str) -> str:
    return coded("peer_era", "era", ERA_COLOURS, by=by)
