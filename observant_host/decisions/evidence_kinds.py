"""The kinds of evidence: the closed list that the table of eras has a column for each of.

HTTP will add its own; an answer that fits none of these must not exist.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from observant_host.decisions.terms import LegacyProbeOutcome, ProbeOutcome


class EvidenceKind(StrEnum):
    """The columns of the table of eras. The first seven prove a modern server."""

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

    INITIALIZE_OK = "initialize_ok"
    INITIALIZE_ERROR = "initialize_error"
    INITIALIZE_INVALID = "initialize_invalid"
    INITIALIZE_REVISION = "initialize_revision"
    INITIALIZE_TIMEOUT = "initialize_timeout"
    INITIALIZE_CLOSED = "initialize_closed"
    INITIALIZE_MODERN = "initialize_modern"


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
    EvidenceKind.INITIALIZE_OK: LegacyProbeOutcome.OK,
    EvidenceKind.INITIALIZE_ERROR: LegacyProbeOutcome.ERROR,
    EvidenceKind.INITIALIZE_INVALID: LegacyProbeOutcome.INVALID,
    EvidenceKind.INITIALIZE_REVISION: LegacyProbeOutcome.UNSUPPORTED_REVISION,
    EvidenceKind.INITIALIZE_TIMEOUT: LegacyProbeOutcome.TIMEOUT,
    EvidenceKind.INITIALIZE_CLOSED: LegacyProbeOutcome.CLOSED,
    EvidenceKind.INITIALIZE_MODERN: LegacyProbeOutcome.MODERN_EVIDENCE,
}
