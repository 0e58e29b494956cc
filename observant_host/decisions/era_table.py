"""What the tables of eras are made of: phases, actions, and the rows that all transports share.

A table takes (phase, kind of evidence) to (what to do, next phase, reason). It has no loop. Nothing
doubtful leads to `initialize` without an allowance, and nothing at all does once a server has shown
itself modern. A pair that is neither in `rows` nor in `impossible` is a bug, never a default.

Source: MCP 2026-07-28 basic/versioning › Backward Compatibility, basic/transports/stdio and
basic/transports/streamable-http › Backward Compatibility; stricter than these where they let
ambiguity mean legacy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from observant_host.decisions.evidence_kinds import EvidenceKind
from observant_host.decisions.terms import Reason


class Phase(StrEnum):
    """Where a round stands.

    PROVEN: the server was modern before, so its silence is an outage. SSE: the allowance covers
    2024-11-05, whose HTTP transport is HTTP+SSE.
    """

    PROBING = "probing"
    PROBING_ALLOWED = "probing_allowed"
    PROBING_ALLOWED_PROVEN = "probing_allowed_proven"
    PROBING_ALLOWED_SSE = "probing_allowed_sse"
    PROBING_REFUSED = "probing_refused"
    PROBING_EXPIRED = "probing_expired"
    PROBING_EXPIRED_PROVEN = "probing_expired_proven"
    PROBING_MISMATCH = "probing_mismatch"
    PROBING_MISMATCH_PROVEN = "probing_mismatch_proven"
    RETRYING = "retrying"
    INITIALIZING = "initializing"
    INITIALIZING_FRESH = "initializing_fresh"
    INITIALIZING_OR_SSE = "initializing_or_sse"
    INITIALIZE_SPENT = "initialize_spent"
    OPENING_SSE = "opening_sse"
    INITIALIZING_SSE = "initializing_sse"
    MODERN = "modern"
    LEGACY = "legacy"
    UNAVAILABLE = "unavailable"
    ENDED = "ended"


class Do(StrEnum):
    """What the driver does next.

    DISCOVER_AGAIN: once more at `evidence.chosen`, with a new id. INITIALIZE: on the same process
    or connection, once. RESPAWN_AND_INITIALIZE: in a fresh process, as its first message, once.
    TRY_SSE: one GET of the same URL for an HTTP+SSE stream, within what is left of the time for
    `initialize`. ACCEPT_LEGACY: send `notifications/initialized`. REFUSE: the round ends without an
    era; a life that still lives is kept with its outstanding requests. END_LIFE: the round ends and
    the life must be ended; the next round begins in a fresh one.
    """

    USE_MODERN = "use_modern"
    DISCOVER_AGAIN = "discover_again"
    INITIALIZE = "initialize"
    RESPAWN_AND_INITIALIZE = "respawn_and_initialize"
    TRY_SSE = "try_sse"
    ACCEPT_LEGACY = "accept_legacy"
    REFUSE = "refuse"
    END_LIFE = "end_life"


Pair = tuple[Phase, EvidenceKind]
Row = tuple[Do, Phase, Reason]
Rows = Mapping[EvidenceKind, Row]

SENDS_INITIALIZE: Final = frozenset({Do.INITIALIZE, Do.RESPAWN_AND_INITIALIZE})

OVER: Final = {
    Phase.MODERN: "a modern server is never demoted, whatever it answers later",
    Phase.UNAVAILABLE: "the round is over; a late answer is the first evidence of a new round",
    Phase.ENDED: "the life is over",
}
"""Phases that take no evidence, and why."""


class Table(msgspec.Struct, frozen=True):
    """One transport's. `first`: the phases in which a round begins, and when."""

    first: Mapping[Phase, str]
    rows: Mapping[Pair, Row]
    impossible: Mapping[Pair, str]


def complete(
    first: Mapping[Phase, str],
    rows: Mapping[Phase, Rows],
    why_not: Callable[[Phase, EvidenceKind], str],
) -> Table:
    """The table of these rows; `why_not` says of every other pair why it cannot happen."""
    listed = {(phase, kind): row for phase, each in rows.items() for kind, row in each.items()}
    impossible = {
        (phase, kind): OVER.get(phase) or why_not(phase, kind)
        for phase in Phase
        for kind in EvidenceKind
        if (phase, kind) not in listed
    }
    return Table(first, listed, impossible)


def refuse(reason: Reason) -> Row:
    return Do.REFUSE, Phase.UNAVAILABLE, reason


def end(reason: Reason) -> Row:
    return Do.END_LIFE, Phase.ENDED, reason


_K = EvidenceKind

MODERN_ANSWERS: Final[Rows] = {
    _K.DISCOVER_OK: (Do.USE_MODERN, Phase.MODERN, Reason.DISCOVER_OK),
    _K.DISCOVER_NO_MUTUAL: refuse(Reason.NO_MUTUAL_VERSION),
    _K.DISCOVER_LEGACY_ONLY: refuse(Reason.LEGACY_ONLY_ADVERTISED),
    _K.VERSION_MUTUAL: (Do.DISCOVER_AGAIN, Phase.RETRYING, Reason.MODERN_ERROR_RETRY),
    _K.VERSION_NO_MUTUAL: refuse(Reason.NO_MUTUAL_VERSION),
    _K.VERSION_LEGACY_ONLY: refuse(Reason.LEGACY_ONLY_ADVERTISED),
    _K.MODERN_ERROR: refuse(Reason.MODERN_ERROR_UNFIXABLE),
}
"""The same in every phase that probes: an allowance changes nothing here."""

SECOND_ANSWERS: Final[Rows] = {
    **MODERN_ANSWERS,
    _K.VERSION_MUTUAL: refuse(Reason.MODERN_ERROR_UNFIXABLE),
    _K.VERSION_NO_MUTUAL: refuse(Reason.MODERN_ERROR_UNFIXABLE),
    _K.VERSION_LEGACY_ONLY: refuse(Reason.MODERN_ERROR_UNFIXABLE),
}

LATE: Final[Row] = end(Reason.LATE_MODERN_EVIDENCE)
LATE_ANSWERS: Final[Rows] = dict.fromkeys(MODERN_ANSWERS, LATE)
"""What our `server/discover` may still bring once `initialize` was written."""

ACCEPTED: Final[Rows] = {
    _K.INITIALIZE_OK: (Do.ACCEPT_LEGACY, Phase.LEGACY, Reason.INITIALIZE_OK),
    _K.INITIALIZE_MODERN: LATE,
}
