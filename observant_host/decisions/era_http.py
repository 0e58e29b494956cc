"""The table of eras for servers behind a URL: only an answer is evidence here.

A refused login, a pause that was asked for, an outage and silence say nothing of an era, since what
stands between may have said it: they are causes, and never lead to `initialize`. HTTP+SSE is tried
last, where both POSTs found no such thing and the allowance covers 2024-11-05. A failed
`initialize` ends the life: there is no process that may merely be slow to start.

Source: MCP 2026-07-28 basic/transports/streamable-http › Backward Compatibility; MCP 2024-11-05
basic/transports › HTTP with SSE.
"""

from __future__ import annotations

from typing import Final

from observant_host.decisions.era_table import (
    ACCEPTED,
    LATE_ANSWERS,
    MODERN_ANSWERS,
    SECOND_ANSWERS,
    Do,
    Phase,
    Rows,
    Table,
    complete,
    end,
    refuse,
)
from observant_host.decisions.evidence_kinds import ONLY_PIPES, EvidenceKind
from observant_host.decisions.terms import Reason

FIRST: Final[dict[Phase, str]] = {
    Phase.PROBING: "no allowance",
    Phase.PROBING_ALLOWED: "allowed, but not 2024-11-05",
    Phase.PROBING_ALLOWED_SSE: "allowed, 2024-11-05 too",
    Phase.OPENING_SSE: "allowed, 2024-11-05 too, and configured as HTTP+SSE",
    Phase.PROBING_REFUSED: "allowed, was modern",
    Phase.PROBING_EXPIRED: "allowance expired",
    Phase.PROBING_MISMATCH: "allowance for another fingerprint",
}

_K = EvidenceKind

AMBIGUOUS: Final[dict[EvidenceKind, Reason]] = {
    _K.HTTP_REFUSED: Reason.AMBIGUOUS_ERROR,
    _K.HTTP_ERROR: Reason.AMBIGUOUS_ERROR,
    _K.HTTP_EMPTY: Reason.AMBIGUOUS_EMPTY,
    _K.HTTP_MALFORMED: Reason.AMBIGUOUS_MALFORMED,
}
"""Answers that prove neither era, whatever their error code."""

CAUSES: Final[dict[EvidenceKind, Reason]] = {
    _K.HTTP_LOGIN: Reason.AUTH_REQUIRED,
    _K.HTTP_FORBIDDEN: Reason.FORBIDDEN,
    _K.HTTP_RATE_LIMITED: Reason.RATE_LIMITED,
    _K.HTTP_UNREACHABLE: Reason.UNREACHABLE,
    _K.HTTP_TIMEOUT: Reason.UNREACHABLE,
    _K.HTTP_FAILED: Reason.HTTP_UNAVAILABLE,
    _K.HTTP_REDIRECTED: Reason.HTTP_UNAVAILABLE,
}
"""What is no evidence at all, whoever is asked whatever."""

_CAUSES_REFUSED: Final[Rows] = {kind: refuse(reason) for kind, reason in CAUSES.items()}
_CAUSES_END: Final[Rows] = {kind: end(reason) for kind, reason in CAUSES.items()}
_ANSWERED_END: Final[Rows] = {
    kind: row
    for kind, row in _CAUSES_END.items()
    if kind not in (_K.HTTP_UNREACHABLE, _K.HTTP_TIMEOUT)
}

_AMBIGUOUS_REFUSED: Final[Rows] = {kind: refuse(reason) for kind, reason in AMBIGUOUS.items()}
_AMBIGUOUS_ALLOWED: Final[Rows] = {
    kind: (Do.INITIALIZE, Phase.INITIALIZING, reason) for kind, reason in AMBIGUOUS.items()
}
_REFUSED_TWICE: Final[Rows] = {
    _K.HTTP_REFUSED: (Do.INITIALIZE, Phase.INITIALIZING_OR_SSE, Reason.AMBIGUOUS_ERROR)
}


def _all_refused(reason: Reason) -> Rows:
    return dict.fromkeys(AMBIGUOUS, refuse(reason))


_PROBING: Final[dict[Phase, Rows]] = {
    Phase.PROBING: _AMBIGUOUS_REFUSED,
    Phase.PROBING_ALLOWED: _AMBIGUOUS_ALLOWED,
    Phase.PROBING_ALLOWED_SSE: {**_AMBIGUOUS_ALLOWED, **_REFUSED_TWICE},
    Phase.PROBING_REFUSED: _all_refused(Reason.WAS_MODERN),
    Phase.PROBING_EXPIRED: _all_refused(Reason.ALLOWANCE_EXPIRED),
    Phase.PROBING_MISMATCH: _all_refused(Reason.ALLOWANCE_MISMATCH),
}

_INITIALIZED: Final[Rows] = {
    **ACCEPTED,
    **LATE_ANSWERS,
    **_ANSWERED_END,
    _K.INITIALIZE_REFUSED: end(Reason.LEGACY_PROBE_ERROR),
    _K.INITIALIZE_ERROR: end(Reason.LEGACY_PROBE_ERROR),
    _K.INITIALIZE_INVALID: end(Reason.LEGACY_PROBE_INVALID),
    _K.INITIALIZE_REVISION: end(Reason.LEGACY_UNSUPPORTED_REVISION),
    _K.INITIALIZE_TIMEOUT: end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.INITIALIZE_CLOSED: end(Reason.LEGACY_PROBE_CLOSED),
}

_OPENED: Final[Rows] = {
    **LATE_ANSWERS,
    **_CAUSES_END,
    # An endpoint proves nothing yet, so this step has no better reason: the answer to `initialize`
    # will have one.
    _K.SSE_OPENED: (Do.INITIALIZE, Phase.INITIALIZING_SSE, Reason.AMBIGUOUS_ERROR),
    _K.SSE_REFUSED: end(Reason.LEGACY_PROBE_ERROR),
    _K.SSE_INVALID: end(Reason.LEGACY_PROBE_INVALID),
    _K.SSE_TIMEOUT: end(Reason.LEGACY_PROBE_TIMEOUT),
    _K.SSE_CLOSED: end(Reason.LEGACY_PROBE_CLOSED),
}

_ROWS: Final[dict[Phase, Rows]] = {
    **{
        phase: {**MODERN_ANSWERS, **ambiguous, **_CAUSES_REFUSED}
        for phase, ambiguous in _PROBING.items()
    },
    Phase.RETRYING: {**SECOND_ANSWERS, **_AMBIGUOUS_REFUSED, **_CAUSES_REFUSED},
    Phase.INITIALIZING: _INITIALIZED,
    Phase.INITIALIZING_OR_SSE: {
        **_INITIALIZED,
        _K.INITIALIZE_REFUSED: (Do.TRY_SSE, Phase.OPENING_SSE, Reason.LEGACY_PROBE_ERROR),
    },
    Phase.OPENING_SSE: _OPENED,
    Phase.INITIALIZING_SSE: _INITIALIZED,
    Phase.LEGACY: LATE_ANSWERS,
}

_NOT_ITS_PHASE: Final = {
    Phase.PROBING_ALLOWED_PROVEN: "over HTTP silence is an outage, whatever is remembered",
    Phase.PROBING_EXPIRED_PROVEN: "over HTTP silence is an outage, whatever is remembered",
    Phase.PROBING_MISMATCH_PROVEN: "over HTTP silence is an outage, whatever is remembered",
    Phase.INITIALIZING_FRESH: "there is no process that could be started afresh",
    Phase.INITIALIZE_SPENT: "over HTTP a failed initialize ends the life",
}
_NO_PIPE: Final = "a URL is no pipe: its silence, its end and its errors are judged as HTTP"
_NOT_ASKED: Final = "no initialize was written in this phase"
_ANSWERED: Final = "initialize was already answered, or its end already judged"
_NO_GET: Final = "no GET was sent in this phase"
_LOST: Final = "what keeps initialize from being answered is judged as its end or its deadline"
_NOTHING_NEW: Final = (
    "once initialize is written, a late answer to discover counts only if it proves a modern server"
)
_SETTLED: Final = "once an era is chosen, a failed request is the supervisor's"


def _why_not(phase: Phase, kind: EvidenceKind) -> str:
    if phase in _NOT_ITS_PHASE:
        return _NOT_ITS_PHASE[phase]
    if kind in ONLY_PIPES:
        return _NO_PIPE
    if kind.startswith("sse"):
        return _NO_GET
    if kind.startswith("initialize"):
        return _ANSWERED if phase is Phase.LEGACY else _NOT_ASKED
    if kind in CAUSES:
        return _SETTLED if phase is Phase.LEGACY else _LOST
    return _NOTHING_NEW


HTTP: Final[Table] = complete(FIRST, _ROWS, _why_not)
