"""One incident put together: episodes of several hosts, what is known around them, and its class.

The document is `incidents --json`; text and Markdown are made from it and from nothing else.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.incident_class import classify, timeout_line
from observant_host.decisions.incident_terms import IncidentKind, Piece, Seen
from observant_host.incidents.before import changes_before
from observant_host.incidents.episodes import QUIET_NS, SECOND, Episode
from observant_host.incidents.index import Call
from observant_host.incidents.moments import iso_time
from observant_host.incidents.timeline import Timeline
from observant_host.wire.revisions import LEGACY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from observant_host.incidents.moments import Decided, Moment

Calls = Callable[[str, int, int], Iterable[Call]]
"""(server, since_ns, until_ns): its calls that ended then."""

EVIDENCE_SHOWN: Final = 8
"""Pieces of evidence of one incident: what it began with, and what ended it."""
TRACES_SHOWN: Final = 20
TOLD_LATE_NS: Final = 15 * SECOND
"""A stall or a loss is told so long after it happened, at most."""
_SAME: Final = ("step", "version", "outcome", "rpc_code", "http_status", "content_type", "late")
PROBE_NS: Final = 30 * SECOND
"""How long before the first sign of a fall a stall may have been its cause."""


class Told(msgspec.Struct, frozen=True):
    """Everything that was read, and how far."""

    timeline: Timeline
    until_ns: int
    calls: Calls


def grouped(episodes: Iterable[Episode]) -> list[list[Episode]]:
    """Episodes that are one incident: one server, one kind, several hosts, the same minutes."""
    groups: list[list[Episode]] = []
    for one in episodes:
        for group in reversed(groups):
            first = group[0]
            if one.start_ns - first.start_ns > QUIET_NS:
                continue
            if (one.kind, one.peer) == (first.kind, first.peer) and _other_host(one, group):
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _other_host(one: Episode, group: Sequence[Episode]) -> bool:
    return all(one.host != other.host for other in group)


def account(group: Sequence[Episode], told: Told) -> dict[str, Any]:
    """The object of one incident in `incidents --json`."""
    first, end_ns = group[0], _end(group)
    hosts = [one.host for one in group]
    seen = _seen(group, told)
    verdict = classify(seen)
    began = first.began
    counts, failed = _calls(group, told)
    sign_ns = _first_sign(first)
    acts = [act.at_ns for one in group for act in one.acts if act.at_ns >= first.start_ns]
    return {
        "id": _id(first),
        "kind": first.kind.value,
        "server": first.peer,
        "start": iso_time(first.start_ns),
        "end": iso_time(end_ns) if end_ns is not None else None,
        "class": verdict.name.value,
        "confidence": verdict.confidence.value,
        "why": list(verdict.why),
        "before": changes_before(first, seen.fell, told.timeline),
        "calls": counts,
        "witnesses": sorted(hosts),
        "trace_ids": _traces(group, failed),
        "from": _era_before(first),
        "to": began.selected if first.kind is IncidentKind.DOWNGRADE and began else "unknown",
        "version": began.version if began is not None else None,
        "trigger": began.trigger if began is not None else _ended_by(first),
        "reason": seen.reason,
        "cause": next((one.cause for one in first.moves), None),
        "expected": seen.expected,
        "detail": _detail(first),
        "evidence": _distinct((*seen.evidence, *seen.after))[:EVIDENCE_SHOWN],
        "server_version": {"before": seen.version_before, "after": seen.version_after},
        "ended_as": first.ended_as,
        "times": max(one.times for one in group),
        "noticed_s": _seconds(first.start_ns - sign_ns),
        "acted_s": _seconds(min(acts) - first.start_ns) if acts else None,
        "healed_s": _seconds(end_ns - first.start_ns) if end_ns and _healed(group) else None,
        "timeout": timeout_line(seen),
        "telemetry_lost": lost_in(
            told.timeline, hosts, since_ns=sign_ns, until_ns=end_ns or told.until_ns
        ),
    }


def lost_in(
    timeline: Timeline, hosts: Iterable[str], *, since_ns: int, until_ns: int
) -> int | None:
    """Spans that these hosts say they lost then; None where one does not say such things."""
    total = 0
    for host in hosts:
        losses = [one for one in timeline.losses(host) if one.at_ns <= until_ns + TOLD_LATE_NS]
        if not losses:
            return None
        total += sum(one.spans for one in losses if one.at_ns >= since_ns)
    return total


def _seen(group: Sequence[Episode], told: Told) -> Seen:
    first = group[0]
    began, closed = first.began, first.closed_by
    after = _after(first)
    return Seen(
        kind=first.kind,
        reason=began.reason if began is not None else _reason(first),
        expected=began.expected if began is not None else True,
        evidence=began.evidence if began is not None else (),
        after=tuple(
            piece
            for one in (*first.decisions[1:], *([closed] if closed is not None else []))
            for piece in one.evidence
        ),
        proven=first.proven,
        first_legacy=first.first_legacy,
        legacy_offered=began is not None and not set(began.candidates).isdisjoint(LEGACY),
        modern_in_life=first.modern_in_life,
        allowed_by=first.allowed_by,
        version_before=first.before.server_version if first.before is not None else None,
        version_after=after.server_version if after is not None else None,
        healed_modern=closed is not None and closed.selected == "modern",
        restarted=any(one.at_ns >= first.start_ns for one in first.restarts),
        stall_ms=_stall_ms(first, told.timeline),
        fell=told.timeline.fell_with(first),
        peers=len(told.timeline.peers_of(first.host)),
        witnesses=len(group),
        hosts=len(told.timeline.hosts_of(first.peer)),
        noted=_noted(first),
    )


def _after(first: Episode) -> Decided | None:
    """The decision that says what the server is since: the one in legacy, else the last known."""
    if first.kind is IncidentKind.DOWNGRADE:
        return first.began
    if first.closed_by is not None:
        return first.closed_by
    known = [one for one in first.decisions if one.server_version is not None]
    return known[-1] if known else None


def _stall_ms(first: Episode, timeline: Timeline) -> float:
    since = _first_sign(first) - PROBE_NS
    until = first.start_ns + TOLD_LATE_NS
    return timeline.longest_stall_ms(first.host, since_ns=since, until_ns=until)


def _first_sign(first: Episode) -> int:
    """When it could have been known at the earliest: the end of a life, the probe's beginning."""
    signs = [first.start_ns]
    if first.began is not None and first.began.at_ns <= first.start_ns:
        signs.append(first.began.start_ns)
    signs += [one.at_ns for one in first.restarts if one.at_ns <= first.start_ns]
    return min(signs)


def _noted(first: Episode) -> tuple[str, ...]:
    return tuple(
        f"its process or connection ended: {one.reason}"
        + (f", exit code {one.exit_code}" if one.exit_code is not None else "")
        for one in first.restarts[:1]
    )


def _distinct(pieces: Iterable[Piece]) -> list[Piece]:
    """Of pieces of evidence that say the same in a row, the first."""
    kept: list[Piece] = []
    for one in pieces:
        if not kept or any(one.get(key) != kept[-1].get(key) for key in _SAME):
            kept.append(one)
    return kept


def _detail(first: Episode) -> str:
    if first.began is not None:
        return first.began.detail
    return next((one.detail for one in first.moves), "")


def _reason(first: Episode) -> str:
    """Without a decision: how the life ended, or what the state says; never that all was well."""
    said = (one.reason for one in first.moves if one.reason not in ("discover_ok", "initialize_ok"))
    return next(said, "") or _ended_by(first)


def _ended_by(first: Episode) -> str:
    return first.restarts[0].reason if first.restarts else ""


def _era_before(first: Episode) -> str:
    if first.before is not None:
        return first.before.selected
    return first.began.previous if first.began is not None else "unknown"


def _end(group: Sequence[Episode]) -> int | None:
    """When the last host was well again; None while one is not."""
    ends = [one.end_ns for one in group]
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def _healed(group: Sequence[Episode]) -> bool:
    return all(one.ended_as in ("ready", "degraded", "modern") for one in group)


def _calls(group: Sequence[Episode], told: Told) -> tuple[dict[str, int], list[str]]:
    """(calls by outcome, traces of those that failed): in legacy, or while it was down."""
    counts: Counter[str] = Counter()
    failed: list[str] = []
    for one in group:
        until = one.end_ns if one.end_ns is not None else told.until_ns
        for call in told.calls(one.peer, _first_sign(one), until):
            if call.host != one.host or not _concerns(one, call.era):
                continue
            counts[call.outcome] += 1
            if call.trace_id and len(failed) < TRACES_SHOWN:
                failed.append(call.trace_id)
    return dict(sorted(counts.items())), failed


def _concerns(one: Episode, era: str) -> bool:
    return one.kind is not IncidentKind.DOWNGRADE or era == "legacy"


def _traces(group: Sequence[Episode], failed: Iterable[str]) -> list[str]:
    moments: list[Moment] = []
    for one in group:
        moments += [*one.decisions, *one.moves, *one.restarts]
        moments += [one.closed_by] if one.closed_by is not None else []
    ordered = [each.trace_id for each in sorted(moments, key=lambda moment: moment.at_ns)]
    return list(dict.fromkeys((*ordered, *failed)))[:TRACES_SHOWN]


def _id(first: Episode) -> str:
    """The same wherever and whenever the record of its first witness is read."""
    text = f"{first.kind}\0{first.peer}\0{first.host}\0{first.start_ns}"
    return "inc-" + hashlib.sha256(text.encode()).hexdigest()[:12]


def _seconds(nanoseconds: int) -> float:
    return round(nanoseconds / SECOND, 3)
