"""Which era a server has: a person's allowance and the server's answers, looked up in one table.

Allowance and memory pick the first phase, the server gives the evidence, the clock is the driver's:
waiting is its business, and a new round is the supervisor's. The table is the transport's.

Source: MCP 2026-07-28 basic/transports/stdio and basic/transports/streamable-http › Backward
Compatibility, basic/versioning.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from observant_host.decisions.era_http import HTTP
from observant_host.decisions.era_stdio import STDIO
from observant_host.decisions.era_table import Do, Phase, Table
from observant_host.decisions.evidence import Evidence
from observant_host.decisions.evidence_kinds import EvidenceKind
from observant_host.decisions.terms import Cause, Direction, Era, Reason


class Permission(StrEnum):
    """May this round send `initialize`?

    EXPIRED and MISMATCH: a person allowed it once, it no longer stands. REFUSED: it stands, but the
    server was proven modern (memory, `expect_era = "modern"`, or late evidence just now).
    """

    NONE = "none"
    GRANTED = "granted"
    EXPIRED = "expired"
    MISMATCH = "mismatch"
    REFUSED = "refused"


class Step(msgspec.Struct, frozen=True):
    """One decision: what was, what came, what is, what to do, and why."""

    before: Phase
    evidence: Evidence
    after: Phase
    do: Do
    reason: Reason


TABLES: Final[dict[str, Table]] = {"stdio": STDIO, "memory": STDIO, "http": HTTP, "sse": HTTP}
"""By the kind of transport."""

_BY_PERMISSION: Final[dict[Permission, tuple[Phase, Phase]]] = {
    Permission.NONE: (Phase.PROBING, Phase.PROBING),
    Permission.GRANTED: (Phase.PROBING_ALLOWED, Phase.PROBING_ALLOWED_PROVEN),
    Permission.EXPIRED: (Phase.PROBING_EXPIRED, Phase.PROBING_EXPIRED_PROVEN),
    Permission.MISMATCH: (Phase.PROBING_MISMATCH, Phase.PROBING_MISMATCH_PROVEN),
    Permission.REFUSED: (Phase.PROBING_REFUSED, Phase.PROBING_REFUSED),
}


def first_phase(
    permission: Permission,
    *,
    proven: bool = False,
    shown_modern: bool = False,
    initialize_sent: bool = False,
    transport: str = "stdio",
    sse_allowed: bool = False,
) -> Phase:
    """Where a round begins: with `server/discover`, but in OPENING_SSE with the GET of Do.TRY_SSE.

    `proven`: memory or `expect_era` says modern. `shown_modern`: this very life has given modern
    evidence in an earlier round. `initialize_sent`: this very life was sent its one `initialize`,
    in vain (over HTTP such a life has ended). `transport` is what the configuration says ("sse":
    this is an HTTP+SSE server); `sse_allowed`: the allowance covers 2024-11-05, its revision.
    """
    if initialize_sent:
        return Phase.INITIALIZE_SPENT
    if shown_modern and permission is Permission.GRANTED:
        return Phase.PROBING_REFUSED
    if TABLES[transport] is not HTTP:
        return _BY_PERMISSION[permission][proven or shown_modern]
    if permission is Permission.GRANTED and sse_allowed:
        return Phase.OPENING_SSE if transport == "sse" else Phase.PROBING_ALLOWED_SSE
    return _BY_PERMISSION[permission][False]  # silence is an outage there in any case


def step(phase: Phase, evidence: Evidence, *, transport: str = "stdio") -> Step:
    """The decision. Raises KeyError for a pair that cannot happen: that is a bug in the driver."""
    do, after, reason = TABLES[transport].rows[phase, evidence.kind]
    return Step(before=phase, evidence=evidence, after=after, do=do, reason=reason)


def cause_of(
    reason: Reason,
    *,
    transport: str = "stdio",
    proven: bool = False,
    kind: EvidenceKind | None = None,
) -> Cause | None:
    """The cause of being unavailable for this reason; None where the reason is a success.

    `transport` is "stdio", "memory", "http" or "sse": what is a matter of the process there is one
    of the network here. `proven`: the server was modern before, or has just shown it. `kind` is
    that of the evidence: a redirect that is not followed is a person's to decide.
    """
    if kind is EvidenceKind.HTTP_REDIRECTED:
        return Cause.CONFIG
    cause = _CAUSES[reason]
    if reason is Reason.AMBIGUOUS_TIMEOUT and proven:
        cause = Cause.PROCESS
    if cause is Cause.PROCESS and TABLES[transport] is HTTP:
        return Cause.NETWORK
    return cause


def direction_of(previous: Era, selected: Era) -> Direction:
    """How this decision compares with the era before: refusing to choose is no direction."""
    if selected is Era.UNKNOWN or previous is selected:
        return Direction.NONE
    if previous is Era.UNKNOWN:
        return Direction.FIRST
    return Direction.UPGRADE if selected is Era.MODERN else Direction.DOWNGRADE


_CAUSES: Final[dict[Reason, Cause | None]] = {
    Reason.DISCOVER_OK: None,
    Reason.MODERN_ERROR_RETRY: None,
    Reason.INITIALIZE_OK: None,
    Reason.AMBIGUOUS_TIMEOUT: Cause.POLICY,
    Reason.AMBIGUOUS_ERROR: Cause.POLICY,
    Reason.AMBIGUOUS_EMPTY: Cause.POLICY,
    Reason.AMBIGUOUS_MALFORMED: Cause.POLICY,
    Reason.WAS_MODERN: Cause.POLICY,
    Reason.ALLOWANCE_EXPIRED: Cause.POLICY,
    Reason.ALLOWANCE_MISMATCH: Cause.POLICY,
    Reason.AMBIGUOUS_CLOSED: Cause.PROCESS,
    Reason.LEGACY_PROBE_TIMEOUT: Cause.PROCESS,
    Reason.LEGACY_PROBE_CLOSED: Cause.PROCESS,
    Reason.SPAWN_FAILED: Cause.PROCESS,
    Reason.MODERN_ERROR_UNFIXABLE: Cause.PROTOCOL,
    Reason.NO_MUTUAL_VERSION: Cause.PROTOCOL,
    Reason.LEGACY_ONLY_ADVERTISED: Cause.PROTOCOL,
    Reason.LATE_MODERN_EVIDENCE: Cause.PROTOCOL,
    Reason.LEGACY_PROBE_ERROR: Cause.PROTOCOL,
    Reason.LEGACY_PROBE_INVALID: Cause.PROTOCOL,
    Reason.LEGACY_UNSUPPORTED_REVISION: Cause.PROTOCOL,
    Reason.AUTH_REQUIRED: Cause.AUTH,
    Reason.FORBIDDEN: Cause.AUTH,
    Reason.RATE_LIMITED: Cause.NETWORK,
    Reason.UNREACHABLE: Cause.NETWORK,
    Reason.HTTP_UNAVAILABLE: Cause.NETWORK,
    Reason.CONFIG_INVALID: Cause.CONFIG,
}
