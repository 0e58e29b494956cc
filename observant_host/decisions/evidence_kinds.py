"""The kinds of evidence: the closed list that the table of eras has a column for each of.

An answer that fits none of these must not exist.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from observant_host.decisions.terms import LegacyProbeOutcome, ProbeOutcome


class EvidenceKind(StrEnum):
    """The columns of the tables of eras.

    The first seven prove a modern server. A *_REFUSED is HTTP 400, 404 or 405 without a body that
    only a modern server writes: after two of these there may be HTTP+SSE. From HTTP_LOGIN to
    HTTP_REDIRECTED nothing is said of an era. SSE_* is what came of the GET for HTTP+SSE.
    """

    DISCOVER_OK = "discover_ok"
    DISCOVER_NO_MUTUAL = "discover_no_mutual"
    DISCOVER_LEGACY_ONLY = "discover_legacy_only"
    VERSION_MUTUAL = "version_mutual"
    VERSION_NO_MUTUAL = "version_no_mutual"
    VERSION_LEGACY_ONLY = "version_legacy_only"
    MODERN_ERROR = "modern_error"

    ERROR = "error"
    EMPTY = "empty"
    MALFORMED = "malformed"
    NOISE = "noise"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    SPAWN_FAILED = "spawn_failed"

    HTTP_REFUSED = "http_refused"
    HTTP_ERROR = "http_error"
    HTTP_EMPTY = "http_empty"
    HTTP_MALFORMED = "http_malformed"

    HTTP_LOGIN = "http_login"
    HTTP_FORBIDDEN = "http_forbidden"
    HTTP_RATE_LIMITED = "http_rate_limited"
    HTTP_UNREACHABLE = "http_unreachable"
    HTTP_TIMEOUT = "http_timeout"
    HTTP_FAILED = "http_failed"
    HTTP_REDIRECTED = "http_redirected"

    INITIALIZE_OK = "initialize_ok"
    INITIALIZE_ERROR = "initialize_error"
    INITIALIZE_INVALID = "initialize_invalid"
    INITIALIZE_REVISION = "initialize_revision"
    INITIALIZE_TIMEOUT = "initialize_timeout"
    INITIALIZE_CLOSED = "initialize_closed"
    INITIALIZE_MODERN = "initialize_modern"
    INITIALIZE_REFUSED = "initialize_refused"

    SSE_OPENED = "sse_opened"
    SSE_REFUSED = "sse_refused"
    SSE_INVALID = "sse_invalid"
    SSE_TIMEOUT = "sse_timeout"
    SSE_CLOSED = "sse_closed"


PROVE_MODERN: Final = frozenset(
    {
        EvidenceKind.DISCOVER_OK,
        EvidenceKind.DISCOVER_NO_MUTUAL,
        EvidenceKind.DISCOVER_LEGACY_ONLY,
        EvidenceKind.VERSION_MUTUAL,
        EvidenceKind.VERSION_NO_MUTUAL,
        EvidenceKind.VERSION_LEGACY_ONLY,
        EvidenceKind.MODERN_ERROR,
        EvidenceKind.INITIALIZE_MODERN,
    }
)

ONLY_PIPES: Final = frozenset(
    {
        EvidenceKind.ERROR,
        EvidenceKind.EMPTY,
        EvidenceKind.MALFORMED,
        EvidenceKind.NOISE,
        EvidenceKind.TIMEOUT,
        EvidenceKind.CLOSED,
        EvidenceKind.SPAWN_FAILED,
    }
)
ONLY_HTTP: Final = frozenset(
    kind
    for kind in EvidenceKind
    if kind.startswith(("http", "sse")) or kind is EvidenceKind.INITIALIZE_REFUSED
)

OUTCOMES: Final[dict[EvidenceKind, ProbeOutcome | LegacyProbeOutcome]] = {
    EvidenceKind.DISCOVER_OK: ProbeOutcome.OK,
    EvidenceKind.DISCOVER_NO_MUTUAL: ProbeOutcome.OK,
    EvidenceKind.DISCOVER_LEGACY_ONLY: ProbeOutcome.OK,
    EvidenceKind.VERSION_MUTUAL: ProbeOutcome.MODERN_ERROR,
    EvidenceKind.VERSION_NO_MUTUAL: ProbeOutcome.MODERN_ERROR,
    EvidenceKind.VERSION_LEGACY_ONLY: ProbeOutcome.MODERN_ERROR,
    EvidenceKind.MODERN_ERROR: ProbeOutcome.MODERN_ERROR,
    EvidenceKind.ERROR: ProbeOutcome.ERROR,
    EvidenceKind.EMPTY: ProbeOutcome.EMPTY,
    EvidenceKind.MALFORMED: ProbeOutcome.MALFORMED,
    EvidenceKind.NOISE: ProbeOutcome.MALFORMED,
    EvidenceKind.TIMEOUT: ProbeOutcome.TIMEOUT,
    EvidenceKind.CLOSED: ProbeOutcome.CLOSED,
    EvidenceKind.SPAWN_FAILED: ProbeOutcome.CLOSED,
    EvidenceKind.HTTP_REFUSED: ProbeOutcome.HTTP_CANDIDATE,
    EvidenceKind.HTTP_ERROR: ProbeOutcome.HTTP_CANDIDATE,
    EvidenceKind.HTTP_EMPTY: ProbeOutcome.HTTP_CANDIDATE,
    EvidenceKind.HTTP_MALFORMED: ProbeOutcome.HTTP_CANDIDATE,
    EvidenceKind.HTTP_LOGIN: ProbeOutcome.HTTP_OTHER,
    EvidenceKind.HTTP_FORBIDDEN: ProbeOutcome.HTTP_OTHER,
    EvidenceKind.HTTP_RATE_LIMITED: ProbeOutcome.HTTP_OTHER,
    EvidenceKind.HTTP_UNREACHABLE: ProbeOutcome.HTTP_OTHER,
    EvidenceKind.HTTP_TIMEOUT: ProbeOutcome.TIMEOUT,
    EvidenceKind.HTTP_FAILED: ProbeOutcome.HTTP_OTHER,
    EvidenceKind.HTTP_REDIRECTED: ProbeOutcome.HTTP_OTHER,
    EvidenceKind.INITIALIZE_OK: LegacyProbeOutcome.OK,
    EvidenceKind.INITIALIZE_ERROR: LegacyProbeOutcome.ERROR,
    EvidenceKind.INITIALIZE_INVALID: LegacyProbeOutcome.INVALID,
    EvidenceKind.INITIALIZE_REVISION: LegacyProbeOutcome.UNSUPPORTED_REVISION,
    EvidenceKind.INITIALIZE_TIMEOUT: LegacyProbeOutcome.TIMEOUT,
    EvidenceKind.INITIALIZE_CLOSED: LegacyProbeOutcome.CLOSED,
    EvidenceKind.INITIALIZE_MODERN: LegacyProbeOutcome.MODERN_EVIDENCE,
    EvidenceKind.INITIALIZE_REFUSED: LegacyProbeOutcome.ERROR,
    EvidenceKind.SSE_OPENED: LegacyProbeOutcome.OK,
    EvidenceKind.SSE_REFUSED: LegacyProbeOutcome.ERROR,
    EvidenceKind.SSE_INVALID: LegacyProbeOutcome.INVALID,
    EvidenceKind.SSE_TIMEOUT: LegacyProbeOutcome.TIMEOUT,
    EvidenceKind.SSE_CLOSED: LegacyProbeOutcome.CLOSED,
}

LEGACY_OUTCOMES: Final[dict[EvidenceKind, LegacyProbeOutcome]] = {
    EvidenceKind.MODERN_ERROR: LegacyProbeOutcome.MODERN_EVIDENCE,
    EvidenceKind.HTTP_LOGIN: LegacyProbeOutcome.ERROR,
    EvidenceKind.HTTP_FORBIDDEN: LegacyProbeOutcome.ERROR,
    EvidenceKind.HTTP_RATE_LIMITED: LegacyProbeOutcome.ERROR,
    EvidenceKind.HTTP_UNREACHABLE: LegacyProbeOutcome.CLOSED,
    EvidenceKind.HTTP_TIMEOUT: LegacyProbeOutcome.TIMEOUT,
    EvidenceKind.HTTP_FAILED: LegacyProbeOutcome.ERROR,
    EvidenceKind.HTTP_REDIRECTED: LegacyProbeOutcome.ERROR,
}
"""Of what is about no probe in particular, where a legacy probe met it."""
