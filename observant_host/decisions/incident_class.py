"""Why an incident happened: rules that each look for one cause, and the surest of them wins.

A rule that finds nothing is silent. Where several are equally sure the earlier in RULES wins: what
this host or a person did comes before what is said of a server. The others' reasons stay visible.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from observant_host.decisions.incident_terms import (
    Confidence,
    IncidentClass,
    IncidentKind,
    Piece,
    Seen,
    Verdict,
    is_modern,
)

if TYPE_CHECKING:
    from collections.abc import Callable

STALL_SURE_MS: Final = 1000.0
"""A loop that stood still for so long reads no answer in time."""
FELL_TOGETHER: Final = 2
"""Other servers of one host that fall in the same minutes: more than chance."""
METHOD_NOT_FOUND: Final = -32601


def classify(seen: Seen) -> Verdict:
    """The surest class, with why; the other rules' reasons follow as "also: …"."""
    found = [verdict for rule in RULES if (verdict := rule(seen)) is not None]
    if not found:
        return Verdict(IncidentClass.UNKNOWN, Confidence.LOW, _nothing(seen))
    best = min(found, key=lambda one: _SURENESS[one.confidence])
    others = [f"also: {why}" for one in found if one is not best for why in one.why]
    return Verdict(best.name, best.confidence, (*best.why, *others))


def timeout_line(seen: Seen) -> str | None:
    """Which probe timeout would have met a slow answer; None where silence decided nothing."""
    if not seen.silent:
        return None
    late = seen.late_proof
    given = _timeout_s(seen)
    now = f" (it is {given:g} s)" if given is not None else ""
    if late is not None and late.get("elapsed_ms") is not None:
        took = float(late["elapsed_ms"]) / 1000
        needed = f"a probe timeout of {math.ceil(took + 0.001)} s would have met it"
        return f"{needed}: the answer came after {took:.1f} s{now}"
    if seen.healed_modern:
        return f"how long it would have needed is not known: it answered another probe in time{now}"
    return f"no probe timeout is known that would have met it: no answer ever came{now}"


def _timeout_s(seen: Seen) -> float | None:
    limits = [one["timeout_ms"] for one in seen.evidence if one.get("timeout_ms") is not None]
    return limits[0] / 1000 if limits else None


def specification_violation(seen: Seen) -> Verdict | None:
    """What this host must never do: it would be its own defect."""
    why = [*_spoken_against_proof(seen)]
    if seen.kind is IncidentKind.DOWNGRADE:
        if seen.modern_in_life:
            why.append("legacy was chosen in a life that had already given modern evidence")
        if not seen.legacy_offered:
            why.append("legacy was chosen though no legacy revision was allowed")
        if seen.reason != "initialize_ok":
            why.append(
                f"legacy was chosen for the reason {seen.reason or 'none'}, which proves none"
            )
    if not why:
        return None
    defect = "this is a defect of observant-host: please report it with this report"
    return Verdict(IncidentClass.SPECIFICATION_VIOLATION, Confidence.HIGH, (*why, defect))


def _spoken_against_proof(seen: Seen) -> list[str]:
    proven = False
    for one in seen.evidence:
        if proven and one.get("step") == "initialize":
            return ["initialize was sent after the server had given modern evidence"]
        proven = proven or is_modern(one)
    return []


def allowance(seen: Seen) -> Verdict | None:
    """What a person allowed, or did not, or no longer."""
    if seen.kind is IncidentKind.DOWNGRADE:
        return _allowed(seen)
    if seen.kind is IncidentKind.OUTAGE:
        return None
    if seen.reason in _ENDED:
        return Verdict(IncidentClass.ALLOWANCE, Confidence.HIGH, (_ENDED[seen.reason],))
    if not seen.proven and seen.reason in _AMBIGUOUS:
        why = "it never proved modern in this record, and nobody allowed the legacy handshake"
        return Verdict(IncidentClass.ALLOWANCE, Confidence.MEDIUM, (why,))
    return None


def _allowed(seen: Seen) -> Verdict | None:
    if not seen.legacy_offered or not seen.expected:
        return None
    if seen.allowed_by:
        why = f"{seen.allowed_by} allowed the legacy handshake since it was last modern"
        return Verdict(IncidentClass.ALLOWANCE, Confidence.HIGH, (why,))
    if seen.first_legacy and not seen.proven:
        why = "it is the first legacy decision about this server, and its configuration allows it"
        return Verdict(IncidentClass.ALLOWANCE, Confidence.HIGH, (why,))
    why = "the decision was expected: a permission stood for it, though nobody's act is recorded"
    return Verdict(IncidentClass.ALLOWANCE, Confidence.MEDIUM, (why,))


def host_side(seen: Seen) -> Verdict | None:
    """Our loop or our machine: stalls, or many servers at once on this host alone."""
    many = len(seen.fell) >= FELL_TOGETHER and seen.witnesses == 1
    why = []
    confidence = Confidence.LOW
    if seen.stall_ms and (seen.silent or seen.reason not in _NO_MATTER_OF_TIME):
        why.append(f"this host's event loop stood still for {seen.stall_ms / 1000:.1f} s then")
        sure = seen.stall_ms >= STALL_SURE_MS and (seen.silent or many)
        confidence = Confidence.HIGH if sure else Confidence.MEDIUM
    if many:
        share = f"{len(seen.fell) + 1} of this host's {seen.peers} servers fell in the same minutes"
        well = f", and on none of the {seen.hosts - 1} other hosts" if seen.hosts > 1 else ""
        why.append(share + well)
        if confidence is Confidence.LOW and (well or 2 * (len(seen.fell) + 1) > seen.peers):
            confidence = Confidence.MEDIUM
    return Verdict(IncidentClass.HOST_SIDE, confidence, tuple(why)) if why else None


def false_timeout(seen: Seen) -> Verdict | None:
    """A slow modern server that was taken for a silent one."""
    if not seen.silent:
        return None
    name = IncidentClass.FALSE_TIMEOUT
    if seen.late_proof is not None:
        after = seen.late_proof.get("elapsed_ms")
        when = f" after {float(after) / 1000:.1f} s" if after is not None else ""
        why = f"its modern answer to the probe came all the same{when}, past the deadline"
        return Verdict(name, Confidence.HIGH, (why,))
    if seen.healed_modern and not seen.replaced:
        how = "after it was started afresh" if seen.restarted else "by itself"
        confidence = Confidence.LOW if seen.restarted else Confidence.MEDIUM
        why = f"it gave no answer in time, and was modern again later {how}, in no other version"
        return Verdict(name, confidence, (why,))
    if seen.proven:
        why = "it was modern before and was only silent now: nothing says that it changed"
        return Verdict(name, Confidence.LOW, (why,))
    return None


def intermediary(seen: Seen) -> Verdict | None:
    """Somebody between us and the server answered: a proxy, a login page, a load balancer."""
    judged = [found for one in seen.evidence if (found := _foreign(one)) is not None]
    return min(judged, key=lambda one: _SURENESS[one.confidence]) if judged else None


def _foreign(one: Piece) -> Verdict | None:
    status = one.get("http_status")
    kind = str(one.get("content_type") or "").lower()
    body = str(one.get("excerpt") or "").lstrip().lower()
    if not isinstance(status, int):
        return None
    page = kind.startswith(_PAGES) or body.startswith(("<!doctype html", "<html"))
    text = bool(kind and body) and not kind.startswith(_OURS)
    if not page and not (text and 400 <= status < 500 and status not in _LOGIN):
        return None
    sure = page and 400 <= status < 500 and status not in _LOGIN
    what = "an HTML page" if page else f"a body of {kind.partition(';')[0]}"
    why = f"HTTP {status} with {what}: no MCP server answers so, something in between does"
    return Verdict(
        IncidentClass.INTERMEDIARY, Confidence.HIGH if sure else Confidence.MEDIUM, (why,)
    )


def server_rollback(seen: Seen) -> Verdict | None:
    """The server itself became another one."""
    name = IncidentClass.SERVER_ROLLBACK
    if seen.replaced:
        why = f"the server was version {seen.version_before} before and {seen.version_after} after"
        sure = seen.kind is not IncidentKind.OUTAGE
        return Verdict(name, Confidence.HIGH if sure else Confidence.MEDIUM, (why,))
    if not seen.proven or seen.kind is IncidentKind.OUTAGE:
        return None
    codes = {one.get("rpc_code") for one in seen.evidence if one.get("step") == "discover"}
    if METHOD_NOT_FOUND in codes:
        why = "it was modern before and then did not know server/discover, as old servers do not"
        back = "; later it was modern again, in no other version that it tells of"
        confidence = Confidence.LOW if seen.healed_modern else Confidence.MEDIUM
        return Verdict(name, confidence, (why + back if seen.healed_modern else why,))
    if not seen.healed_modern and any(one.get("outcome") in _ANSWERED for one in seen.evidence):
        why = "it was modern before and then answered server/discover as old servers do"
        return Verdict(name, Confidence.LOW, (why,))
    return None


def _nothing(seen: Seen) -> tuple[str, ...]:
    if seen.noted:
        return seen.noted
    said = f" ({seen.reason})" if seen.reason else ""
    return (f"nothing in the record says why{said}",)


RULES: Final[tuple[Callable[[Seen], Verdict | None], ...]] = (
    specification_violation,
    allowance,
    host_side,
    false_timeout,
    intermediary,
    server_rollback,
)

_SURENESS: Final = {one: number for number, one in enumerate(Confidence)}
_ENDED: Final = {
    "allowance_expired": "the permission for the legacy handshake is over",
    "allowance_mismatch": "the permission was for another command: the fingerprint changed",
}
_AMBIGUOUS: Final = frozenset(
    {"ambiguous_error", "ambiguous_empty", "ambiguous_malformed", "ambiguous_timeout"}
)
_NO_MATTER_OF_TIME: Final = frozenset(
    {
        *(*_ENDED, "was_modern", "config_invalid", "spawn_failed", "unreachable"),
        *("auth_required", "forbidden", "rate_limited"),
        *("ambiguous_error", "ambiguous_empty", "ambiguous_malformed"),
        *("no_mutual_version", "legacy_only_advertised", "modern_error_unfixable"),
    }
)
"""What was found would have been found by a loop that never stood still, too."""
_ANSWERED: Final = frozenset({"error", "empty", "malformed", "http_candidate"})
_LOGIN: Final = frozenset({401, 403})
_PAGES: Final = ("text/html", "application/xhtml")
_OURS: Final = ("application/json", "text/event-stream", "application/problem+json")
