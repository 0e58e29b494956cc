"""The table of eras: (phase, kind of evidence) to (what to do, next phase, reason).

It has no loop. Nothing doubtful leads to `initialize` without an allowance, and nothing at all does
once a server has shown itself modern. A pair that is neither in `TRANSITIONS` nor in `IMPOSSIBLE`
is a bug, never a default.

Source: MCP 2026-07-28 basic/transports/stdio › Backward Compatibility, basic/versioning › Backward
Compatibility; stricter than both where they let ambiguity mean legacy.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from observant_host.decisions.evidence_kinds import EvidenceKind
from observant_host.decisions.terms import Reason


class Phase(StrEnum):
    """Where a round stands. PROVEN: the server was modern before, so its silence is an outage."""

    PROBING = "probing"
    PROBING_ALLOWED = "probing_allowed"
    PROBING_ALLOWED_PROVEN = "probing_allowed_proven"
    PROBING_REFUSED = "probing_refused"
    PROBING_EXPIRED = "probing_expired"
    PROBING_EXPIRED_PROVEN = "probing_expired_proven"
    PROBING_MISMATCH = "probing_mismatch"
    PROBING_MISMATCH_PROVEN = "probing_mismatch_proven"
    RETRYING = "retrying"
    INITIALIZING = "initializing"
    INITIALIZING_FRESH = "initializing_fresh"
    INITIALIZE_SPENT = "initialize_spent"
    MODERN = "modern"
    LEGACY = "legacy"
    UNAVAILABLE = "unavailable"
    ENDED = "ended"


class Do(StrEnum):
    """What the driver does next.

    DISCOVER_AGAIN: once more at `evidence.chosen`, with a new id. INITIALIZE: on the same process,
    once. RESPAWN_AND_INITIALIZE: in a fresh process, as its first message, once. ACCEPT_LEGACY:
    send `notifications/initialized`. REFUSE: the round ends without an era; a life that still lives
    is kept with its outstanding requests. END_LIFE: the round ends and the life must be ended; the
    next round begins in a fresh one.
    """

    USE_MODERN = "use_modern"
    DISCOVER_AGAIN = "discover_again"
    INITIALIZE = "initialize"
    RESPAWN_AND_INITIALIZE = "respawn_and_initialize"
    ACCEPT_LEGACY = "accept_legacy"
    REFUSE = "refuse"
    END_LIFE = "end_life"


Row = tuple[Do, Phase, Reason]


SENDS_INITIALIZE: Final = frozenset({Do.INITIALIZE, Do.RESPAWN_AND_INITIALIZE})

FIRST: Final[dict[Phase, str]] = {
    Phase.PROBING: "no allowance",
    Phase.PROBING_ALLOWED: "allowed",
    Phase.PROBING_ALLOWED_PROVEN: "allowed, was modern, memory only alerts",
    Phase.PROBING_REFUSED: "allowed, was modern",
    Phase.PROBING_EXPIRED: "allowance expired",
    Phase.PROBING_EXPIRED_PROVEN: "allowance expired, was modern",
    Phase.PROBING_MISMATCH: "allowance for another fingerprint",
    Phase.PROBING_MISMATCH_PROVEN: "allowance for another fingerprint, was modern",
    Phase.INITIALIZE_SPENT: "this life's initialize has failed",
}
"""The phases in which a round begins, and when."""

_K = EvidenceKind

AMBIGUOUS: Final[dict[EvidenceKind, Reason]] = {
    _K.TIMEOUT: Reason.AMBIGUOUS_TIMEOUT,
    _K.CLOSED: Reason.AMBIGUOUS_CLOSED,
    _K.ERROR: Reason.AMBIGUOUS_ERROR,
    _K.EMPTY: Reason.AMBIGUOUS_EMPTY,
    _K.MALFORMED: Reason.AMBIGUOUS_MALFORMED,
    _K.NOISE: Reason.AMBIGUOUS_MALFORMED,
}
"""Answers that prove neither era, whatever their error code."""


def _refuse(reason: Reason) -> Row:
    return Do.REFUSE, Phase.UNAVAILABLE, reason


_MODERN_ANSWERS: Final[dict[EvidenceKind, Row]] = {
    _K.DISCOVER_OK: (Do.USE_MODERN, Phase.MODERN, Reason.DISCOVER_OK),
    _K.DISCOVER_NO_MUTUAL: _refuse(Reason.NO_MUTUAL_VERSION),
    _K.DISCOVER_LEGACY_ONLY: _refuse(Reason.LEGACY_ONLY_ADVERTISED),
    _K.VERSION_MUTUAL: (Do.DISCOVER_AGAIN, Phase.RETRYING, Reason.MODERN_ERROR_RETRY),
    _K.VERSION_NO_MUTUAL: _refuse(Reason.NO_MUTUAL_VERSION),
    _K.VERSION_LEGACY_ONLY: _refuse(Reason.LEGACY_ONLY_ADVERTISED),
    _K.MODERN_ERROR: _refuse(Reason.MODERN_ERROR_UNFIXABLE),
}
"""The same in every phase that probes: an allowance changes nothing here."""

_SECOND_ANSWERS: Final[dict[EvidenceKind, Row]] = {
    **_MODERN_ANSWERS,
    _K.VERSION_MUTUAL: _refuse(Reason.MODERN_ERROR_UNFIXABLE),
    _K.VERSION_NO_MUTUAL: _refuse(Reason.MODERN_ERROR_UNFIXABLE),
    _K.VERSION_LEGACY_ONLY: _refuse(Reason.MODERN_ERROR_UNFIXABLE),
}

_LATE: Final[Row] = (Do.END_LIFE, Phase.ENDED, Reason.LATE_MODERN_EVIDENCE)
_LATE_ANSWERS: Final[dict[EvidenceKind, Row]] = dict.fromkeys(_MODERN_ANSWERS, _LATE)

_AMBIGUOUS_REFUSED: Final[dict[EvidenceKind, Row]] = {
    kind: _refuse(reason) for kind, reason in AMBIGUOUS.items()
}
_AMBIGUOUS_ALLOWED: Final[dict[EvidenceKind, Row]] = {
    kind: (Do.INITIALIZE, Phase.INITIALIZING, reason) for kind, reason in AMBIGUOUS.items()
} | {
    _K.CLOSED: (
        Do.RESPAWN_AND_INITIALIZE,
        Phase.INITIALIZING_FRESH,
        Reason.AMBIGUOUS_CLOSED,
    )
}
_OUTAGE: Final[dict[EvidenceKind, Row]] = {_K.TIMEOUT: _refuse(Reason.AMBIGUOUS_TIMEOUT)}


def _all_refused(reason: Reason) -> dict[EvidenceKind, Row]:
    return dict.fromkeys(AMBIGUOUS, _refuse(reason))


_PROBING: Final[dict[Phase, dict[EvidenceKind, Row]]] = {
    Phase.PROBING: _AMBIGUOUS_REFUSED,
    Phase.PROBING_ALLOWED: _AMBIGUOUS_ALLOWED,
    Phase.PROBING_ALLOWED_PROVEN: _AMBIGUOUS_ALLOWED | _OUTAGE,
    Phase.PROBING_REFUSED: _all_refused(Reason.WAS_MODERN) | _OUTAGE,
    Phase.PROBING_EXPIRED: _all_refused(Reason.ALLOWANCE_EXPIRED),
    Phase.PROBING_EXPIRED_PROVEN: _all_refused(Reason.ALLOWANCE_EXPIRED) | _OUTAGE,
    Phase.PROBING_MISMATCH: _all_refused(Reason.ALLOWANCE_MISMATCH),
    Phase.PROBING_MISMATCH_PROVEN: _all_refused(Reason.ALLOWANCE_MISMATCH) | _OUTAGE,
}

_INITIALIZED: Final[dict[EvidenceKind, Row]] = {
    _K.INITIALIZE_OK: (Do.ACCEPT_LEGACY, Phase.LEGACY, Reason.INITIALIZE_OK),
    _K.INITIALIZE_ERROR: (Do.REFUSE, Phase.INITIALIZE_SPENT, Reason.LEGACY_PROBE_ERROR),
    _K.INITIALIZE_INVALID: (Do.REFUSE, Phase.INITIALIZE_SPENT, Reason.LEGACY_PROBE_INVALID),
    _K.INITIALIZE_REVISION: (
        Do.REFUSE,
        Phase.INITIALIZE_SPENT,
        Reason.LEGACY_UNSUPPORTED_REVISION,
    ),
    _K.INITIALIZE_TIMEOUT: (Do.REFUSE, Phase.INITIALIZE_SPENT, Reason.LEGACY_PROBE_TIMEOUT),
    _K.INITIALIZE_CLOSED: _refuse(Reason.LEGACY_PROBE_CLOSED),
    _K.INITIALIZE_MODERN: _LATE,
}


def _end(reason: Reason) -> Row:
    return Do.END_LIFE, Phase.ENDED, reason


_SPENT: Final[dict[EvidenceKind, Row]] = {
    **_LATE_ANSWERS,
    _K.INITIALIZE_MODERN: _LATE,
    _K.INITIALIZE_OK: _end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.INITIALIZE_ERROR: _end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.INITIALIZE_INVALID: _end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.INITIALIZE_REVISION: _end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.ERROR: _end(Reason.LEGACY_PROBE_ERROR),
    _K.EMPTY: _end(Reason.LEGACY_PROBE_INVALID),
    _K.MALFORMED: _end(Reason.LEGACY_PROBE_INVALID),
    _K.NOISE: _refuse(Reason.LEGACY_PROBE_TIMEOUT),
    _K.TIMEOUT: _refuse(Reason.LEGACY_PROBE_TIMEOUT),
    _K.CLOSED: _refuse(Reason.LEGACY_PROBE_CLOSED),
}
"""A life is kept after its failed `initialize` (it may be downloading) until it says something."""

_NOT_STARTED: Final[dict[EvidenceKind, Row]] = {_K.SPAWN_FAILED: _refuse(Reason.SPAWN_FAILED)}

_ROWS: Final[dict[Phase, dict[EvidenceKind, Row]]] = {
    **{phase: _MODERN_ANSWERS | ambiguous | _NOT_STARTED for phase, ambiguous in _PROBING.items()},
    Phase.RETRYING: _SECOND_ANSWERS | _AMBIGUOUS_REFUSED,
    Phase.INITIALIZING: _INITIALIZED | _LATE_ANSWERS,
    Phase.INITIALIZING_FRESH: _INITIALIZED | _NOT_STARTED,
    Phase.INITIALIZE_SPENT: _SPENT,
    Phase.LEGACY: _LATE_ANSWERS,
}

TRANSITIONS: Final[dict[tuple[Phase, EvidenceKind], Row]] = {
    (phase, kind): row for phase, rows in _ROWS.items() for kind, row in rows.items()
}

_OVER: Final = {
    Phase.MODERN: "a modern server is never demoted, whatever it answers later",
    Phase.UNAVAILABLE: "the round is over; a late answer is the first evidence of a new round",
    Phase.ENDED: "the life is over",
}
_NOT_ASKED: Final = "no initialize was written in this phase"
_NO_DISCOVER: Final = "a fresh process is asked to initialize first, never to discover"
_NOTHING_NEW: Final = (
    "once initialize is written, a late answer to discover counts only if it proves a modern server"
)
_STARTED: Final = "the process has already started"
_ENDS: Final = "once an era is chosen, the end of the life is the supervisor's"
_ANSWERED: Final = "initialize was already answered, or its end already judged"


def _impossible(phase: Phase, kind: EvidenceKind) -> str:
    """Why a pair that has no row cannot happen."""
    if phase in _OVER:
        return _OVER[phase]
    if kind is _K.SPAWN_FAILED:
        return _STARTED
    if kind.startswith("initialize"):
        return _ANSWERED if phase in (Phase.LEGACY, Phase.INITIALIZE_SPENT) else _NOT_ASKED
    if phase is Phase.INITIALIZING_FRESH:
        return _NO_DISCOVER
    return _ENDS if phase is Phase.LEGACY and kind is _K.CLOSED else _NOTHING_NEW


IMPOSSIBLE: Final[dict[tuple[Phase, EvidenceKind], str]] = {
    (phase, kind): _impossible(phase, kind)
    for phase in Phase
    for kind in EvidenceKind
    if (phase, kind) not in TRANSITIONS
}
