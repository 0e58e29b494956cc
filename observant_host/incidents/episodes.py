"""From moments to episodes: when one server on one host was down, refused, or spoken to in legacy.

A fold over the moments in order of time; nothing here is judged, only put together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.incident_terms import IncidentKind, is_modern
from observant_host.decisions.terms import OUTAGES, Trigger
from observant_host.incidents.moments import Acted, Decided, Dropped, Moment, Moved, Restarted

if TYPE_CHECKING:
    from collections.abc import Iterable

SECOND: Final = 1_000_000_000
QUIET_NS: Final = 300 * SECOND
"""What comes again within five minutes is the same incident, here and on other hosts."""


class Episode(msgspec.Struct, kw_only=True):
    """One server on one host. `end_ns` None: it still lasts.

    before: the last decision that chose an era before it. closed_by: the one that ended it.
    was_up: the server worked when it began. ended_as: the state that ended it, or "modern".
    times: how often it came again.
    """

    kind: IncidentKind
    host: str
    peer: str
    start_ns: int
    end_ns: int | None = None
    decisions: list[Decided] = []
    moves: list[Moved] = []
    restarts: list[Restarted] = []
    acts: list[Acted] = []
    before: Decided | None = None
    closed_by: Decided | None = None
    proven: bool = False
    first_legacy: bool = False
    modern_in_life: bool = False
    allowed_by: str = ""
    was_up: bool = False
    ended_as: str = ""
    settled: bool = True
    times: int = 1

    @property
    def began(self) -> Decided | None:
        """The decision that it began with; None where it began with the end of a process."""
        return self.decisions[0] if self.decisions else None


def episodes(moments: Iterable[Moment]) -> list[Episode]:
    """Every episode of every server on every host, in order of their beginning."""
    folds: dict[tuple[str, str], _Fold] = {}
    for moment in sorted(moments, key=_order):
        if moment.peer:
            key = moment.host, moment.peer
            if (fold := folds.get(key)) is None:
                fold = folds[key] = _Fold(*key)
            fold.take(moment)
    found = [one for fold in folds.values() for one in _joined(fold.found)]
    return sorted(found, key=lambda one: (one.start_ns, one.host, one.peer))


def _order(moment: Moment) -> tuple[int, int]:
    return moment.at_ns, _RANK.get(type(moment), 0)


_RANK: Final[dict[type[Moment], int]] = {Acted: 0, Dropped: 1, Restarted: 2, Decided: 3, Moved: 4}
"""Of what happened in the same nanosecond: what follows from what."""

_FALLEN: Final = frozenset({"unavailable", "backoff"})
_OVER: Final = frozenset({"ready", "degraded", "disabled", "stopped"})
_WAITS_FOR_A_PERSON: Final = frozenset(
    {
        *("ambiguous_timeout", "ambiguous_error", "ambiguous_empty", "ambiguous_malformed"),
        *("was_modern", "allowance_expired", "allowance_mismatch"),
        *("auth_required", "forbidden", "config_invalid"),
    }
)


class _Fold:
    """What is known of one server on one host so far."""

    def __init__(self, host: str, peer: str) -> None:
        self.found: list[Episode] = []
        self._host, self._peer = host, peer
        self._era: Decided | None = None
        self._proven = False
        self._legacy_seen = False
        self._life_modern = False
        self._generation = 0
        self._allowed_by = ""
        self._up = False
        self._restart: Restarted | None = None
        self._legacy: Episode | None = None
        self._down: Episode | None = None

    def take(self, moment: Moment) -> None:
        match moment:
            case Decided():
                self._decided(moment)
            case Moved():
                self._moved(moment)
            case Restarted():
                self._restarted(moment)
            case Dropped():
                self._life_modern = False
            case Acted():
                self._acted(moment)
            case _:
                pass

    def _decided(self, one: Decided) -> None:
        if one.trigger == Trigger.LOOK:
            return  # nobody was served by it, so nothing began or ended
        if one.generation != self._generation or one.trigger == "boot":
            self._generation, self._life_modern = one.generation, False
        self._proven = self._proven or one.previous == "modern" or one.reason == "was_modern"
        if self._legacy is not None and one.selected != "modern":
            self._legacy.decisions.append(one)
        if self._down is not None and one.selected == "unknown":
            self._down.decisions.append(one)
        match one.selected:
            case "modern":
                self._modern(one)
            case "legacy":
                self._spoke_legacy(one)
            case _:
                self._refused(one)
        if one.selected != "unknown":
            self._era, self._up = one, True
        self._life_modern = self._life_modern or any(map(is_modern, one.evidence))

    def _modern(self, one: Decided) -> None:
        if self._legacy is not None:
            self._legacy.end_ns, self._legacy.closed_by = one.at_ns, one
            self._legacy.ended_as = "modern"
            self._legacy = None
        if self._down is not None:
            self._down.closed_by = one
        self._proven, self._allowed_by = True, ""

    def _spoke_legacy(self, one: Decided) -> None:
        first = one.direction == "first" and not self._legacy_seen
        if self._legacy is None and (first or one.direction == "downgrade" or not one.expected):
            self._legacy = self._begin(IncidentKind.DOWNGRADE, one.at_ns)
            self._legacy.decisions.append(one)
            self._legacy.first_legacy = not self._legacy_seen
        if self._down is not None:
            self._down.closed_by = one
        self._legacy_seen = True

    def _refused(self, one: Decided) -> None:
        if self._down is not None:
            return
        person = one.reason in _WAITS_FOR_A_PERSON
        self._down = self._begin(IncidentKind.REFUSAL if person else IncidentKind.OUTAGE, one.at_ns)
        self._down.settled = False
        self._down.decisions.append(one)

    def _moved(self, one: Moved) -> None:
        if one.state in _FALLEN and one.cause is not None:
            kind = IncidentKind.OUTAGE if one.cause in OUTAGES else IncidentKind.REFUSAL
            self._fallen(one, kind)
        elif one.state in _OVER:
            if self._down is not None:
                self._down.end_ns, self._down.ended_as = one.at_ns, one.state
                self._down = None
            self._up = one.state in ("ready", "degraded")

    def _fallen(self, one: Moved, kind: IncidentKind) -> None:
        down = self._down
        if down is not None and down.settled and down.kind is not kind:
            self._down = self._turned(down, one, kind)
        elif down is None:
            self._down = self._begin(kind, one.at_ns)
        else:
            down.kind, down.settled = kind, True
        if self._down is not None:
            self._down.moves.append(one)
        self._up = False

    def _turned(self, down: Episode, one: Moved, kind: IncidentKind) -> Episode:
        """What it waits for is another thing now: the decision that says so is the new one's.

        A fall that soon proves to be a refusal was one from the beginning.
        """
        own = bool(down.decisions) and down.decisions[-1].reason == one.reason
        if kind is IncidentKind.REFUSAL and one.at_ns - down.start_ns < QUIET_NS:
            down.kind = kind
            down.decisions = down.decisions[-1:] if own else down.decisions
            return down
        down.end_ns, down.ended_as = one.at_ns, one.state
        turned = self._begin(kind, one.at_ns)
        if own:
            turned.decisions.append(down.decisions.pop())
        return turned

    def _restarted(self, one: Restarted) -> None:
        self._life_modern, self._restart = False, one
        for lasting in (self._legacy, self._down):
            if lasting is not None:
                lasting.restarts.append(one)

    def _acted(self, one: Acted) -> None:
        if one.verb == "allow":
            self._allowed_by = one.principal or "somebody"
        for lasting in (self._legacy, self._down):
            if lasting is not None:
                lasting.acts.append(one)

    def _begin(self, kind: IncidentKind, at_ns: int) -> Episode:
        last = self._restart
        recent = last is not None and at_ns - last.at_ns <= QUIET_NS
        begun = Episode(
            kind=kind,
            host=self._host,
            peer=self._peer,
            start_ns=at_ns,
            restarts=[last] if last is not None and recent else [],
            before=self._era,
            proven=self._proven,
            modern_in_life=self._life_modern,
            allowed_by=self._allowed_by,
            was_up=self._up,
        )
        self.found.append(begun)
        return begun


def _joined(found: list[Episode]) -> list[Episode]:
    """Episodes of one server on one host; what comes again soon is the same one."""
    kept: list[Episode] = []
    last: dict[IncidentKind, Episode] = {}
    for one in found:
        before = last.get(one.kind)
        if before is not None and _again(before, one):
            before.end_ns, before.closed_by = one.end_ns, one.closed_by
            before.ended_as = one.ended_as
            before.decisions += one.decisions
            before.moves += one.moves
            before.restarts += [each for each in one.restarts if each not in before.restarts]
            before.acts += one.acts
            before.times += one.times
        else:
            kept.append(one)
            last[one.kind] = one
    return kept


def _again(before: Episode, one: Episode) -> bool:
    """Also over the host's own rest, where what it was stopped with is what it starts with."""
    if before.end_ns is None:
        return False
    rested = before.ended_as == "stopped" and not one.was_up and _reason(before) == _reason(one)
    return rested or one.start_ns - before.end_ns < QUIET_NS


def _reason(one: Episode) -> str:
    return one.began.reason if one.began is not None else ""
