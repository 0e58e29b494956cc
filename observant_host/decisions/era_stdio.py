"""The table of eras for servers on a pipe.

Silence and an early end are evidence here, and a process that ended is replaced by a fresh one.

Source: MCP 2026-07-28 basic/transports/stdio › Backward Compatibility.
"""

from __future__ import annotations

from typing import Final

from observant_host.decisions.era_table import (
    ACCEPTED,
    LATE,
    LATE_ANSWERS,
    MODERN_ANSWERS,
    SECOND_ANSWERS,
    Do,
    Phase,
    Row,
    Rows,
    Table,
    complete,
    end,
    refuse,
)
from observant_host.decisions.evidence_kinds import ONLY_HTTP, EvidenceKind
from observant_host.decisions.terms import Reason

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

_AMBIGUOUS_REFUSED: Final[Rows] = {kind: refuse(reason) for kind, reason in AMBIGUOUS.items()}
_AMBIGUOUS_ALLOWED: Final[Rows] = {
    kind: (Do.INITIALIZE, Phase.INITIALIZING, reason) for kind, reason in AMBIGUOUS.items()
} | {
    _K.CLOSED: (Do.RESPAWN_AND_INITIALIZE, Phase.INITIALIZING_FRESH, Reason.AMBIGUOUS_CLOSED),
}
_OUTAGE: Final[Rows] = {_K.TIMEOUT: refuse(Reason.AMBIGUOUS_TIMEOUT)}


def _all_refused(reason: Reason) -> Rows:
    return dict.fromkeys(AMBIGUOUS, refuse(reason))


_PROBING: Final[dict[Phase, Rows]] = {
    Phase.PROBING: _AMBIGUOUS_REFUSED,
    Phase.PROBING_ALLOWED: _AMBIGUOUS_ALLOWED,
    Phase.PROBING_ALLOWED_PROVEN: {**_AMBIGUOUS_ALLOWED, **_OUTAGE},
    Phase.PROBING_REFUSED: {**_all_refused(Reason.WAS_MODERN), **_OUTAGE},
    Phase.PROBING_EXPIRED: _all_refused(Reason.ALLOWANCE_EXPIRED),
    Phase.PROBING_EXPIRED_PROVEN: {**_all_refused(Reason.ALLOWANCE_EXPIRED), **_OUTAGE},
    Phase.PROBING_MISMATCH: _all_refused(Reason.ALLOWANCE_MISMATCH),
    Phase.PROBING_MISMATCH_PROVEN: {**_all_refused(Reason.ALLOWANCE_MISMATCH), **_OUTAGE},
}


def _spent(reason: Reason) -> Row:
    return Do.REFUSE, Phase.INITIALIZE_SPENT, reason


_INITIALIZED: Final[Rows] = {
    **ACCEPTED,
    _K.INITIALIZE_ERROR: _spent(Reason.LEGACY_PROBE_ERROR),
    _K.INITIALIZE_INVALID: _spent(Reason.LEGACY_PROBE_INVALID),
    _K.INITIALIZE_REVISION: _spent(Reason.LEGACY_UNSUPPORTED_REVISION),
    _K.INITIALIZE_TIMEOUT: _spent(Reason.LEGACY_PROBE_TIMEOUT),
    _K.INITIALIZE_CLOSED: refuse(Reason.LEGACY_PROBE_CLOSED),
}

_SPENT: Final[Rows] = {
    **LATE_ANSWERS,
    _K.INITIALIZE_MODERN: LATE,
    _K.INITIALIZE_OK: end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.INITIALIZE_ERROR: end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.INITIALIZE_INVALID: end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.INITIALIZE_REVISION: end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.ERROR: end(Reason.LEGACY_PROBE_ERROR),
    _K.EMPTY: end(Reason.LEGACY_PROBE_INVALID),
    _K.MALFORMED: end(Reason.LEGACY_PROBE_INVALID),
    _K.NOISE: refuse(Reason.LEGACY_PROBE_TIMEOUT),
    _K.TIMEOUT: refuse(Reason.LEGACY_PROBE_TIMEOUT),
    _K.CLOSED: refuse(Reason.LEGACY_PROBE_CLOSED),
}
"""A life is kept after its failed `initialize` (it may be downloading) until it says something."""

_NOT_STARTED: Final[Rows] = {_K.SPAWN_FAILED: refuse(Reason.SPAWN_FAILED)}

_ROWS: Final[dict[Phase, Rows]] = {
    **{
        phase: {**MODERN_ANSWERS, **ambiguous, **_NOT_STARTED}
        for phase, ambiguous in _PROBING.items()
    },
    Phase.RETRYING: {**SECOND_ANSWERS, **_AMBIGUOUS_REFUSED},
    Phase.INITIALIZING: {**_INITIALIZED, **LATE_ANSWERS},
    Phase.INITIALIZING_FRESH: {**_INITIALIZED, **_NOT_STARTED},
    Phase.INITIALIZE_SPENT: _SPENT,
    Phase.LEGACY: LATE_ANSWERS,
}

_NOT_ASKED: Final = "no initialize was written in this phase"
_NO_DISCOVER: Final = "a fresh process is asked to initialize first, never to discover"
_NOTHING_NEW: Final = (
    "once initialize is written, a late answer to discover counts only if it proves a modern server"
)
_STARTED: Final = "the process has already started"
_ENDS: Final = "once an era is chosen, the end of the life is the supervisor's"
_ANSWERED: Final = "initialize was already answered, or its end already judged"
_NO_HTTP: Final = "a pipe has no HTTP answers, and no HTTP+SSE to go on to"


def _why_not(phase: Phase, kind: EvidenceKind) -> str:
    if phase not in _ROWS or kind in ONLY_HTTP:
        return _NO_HTTP
    if kind is _K.SPAWN_FAILED:
        return _STARTED
    if kind.startswith("initialize"):
        return _ANSWERED if phase in (Phase.LEGACY, Phase.INITIALIZE_SPENT) else _NOT_ASKED
    if phase is Phase.INITIALIZING_FRESH:
        return _NO_DISCOVER
    return _ENDS if phase is Phase.LEGACY and kind is _K.CLOSED else _NOTHING_NEW


STDIO: Final[Table] = complete(FIRST, _ROWS, _why_not)
