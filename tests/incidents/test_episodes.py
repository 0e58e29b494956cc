"""When one server on one host was down, refused, or spoken to in legacy: beginnings and ends."""

from __future__ import annotations

from typing import Any

from observant_host.decisions.incident_terms import IncidentKind
from observant_host.incidents.episodes import QUIET_NS, SECOND, Episode, episodes
from observant_host.incidents.moments import (
    Acted,
    Decided,
    Dropped,
    Lived,
    Moment,
    Moved,
    Restarted,
)

DOWNGRADE, OUTAGE, REFUSAL = IncidentKind.DOWNGRADE, IncidentKind.OUTAGE, IncidentKind.REFUSAL
MODERN_PROOF = {"step": "discover", "outcome": "ok"}


class Story:
    """Moments of one server on one host, a second apart unless `wait` says otherwise."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self.now = 0
        self.era = "unknown"
        self.generation = 1

    def wait(self, nanoseconds: int) -> Story:
        self.now += nanoseconds
        return self

    def decide(self, selected: str, reason: str = "", **more: Any) -> Story:
        reason = reason or {"modern": "discover_ok", "legacy": "initialize_ok"}[selected]
        changed = self.era not in ("unknown", selected) and selected != "unknown"
        direction = "downgrade" if changed and selected == "legacy" else "none"
        fields: dict[str, Any] = {
            "start_ns": self.now,
            "generation": self.generation,
            "trigger": "restart",
            "previous": self.era,
            "selected": selected,
            "direction": "first" if self.era == "unknown" and selected != "unknown" else direction,
            "reason": reason,
            "expected": True,
            "version": None,
            "candidates": (),
            "server_version": None,
            "detail": "",
            "evidence": (MODERN_PROOF,) if selected == "modern" else (),
        }
        self._add(Decided, **{**fields, **more})
        if selected != "unknown":
            self.era = selected
        return self

    def state(self, state: str, cause: str | None = None, reason: str = "") -> Story:
        return self._add(Moved, previous="", state=state, cause=cause, reason=reason, detail="")

    def restart(self, reason: str = "exit") -> Story:
        self.generation += 1
        return self._add(Restarted, reason=reason, exit_code=1, gave_up=False, stderr="")

    def act(self, verb: str) -> Story:
        return self._add(Acted, verb=verb, principal="ada", reason="")

    def up(self) -> Story:
        return self.decide("modern").state("ready")

    def refused(self, reason: str = "was_modern", cause: str = "policy") -> Story:
        return self.decide("unknown", reason).state("unavailable", cause, reason)

    def drop(self) -> Story:
        return self._add(Dropped, era=self.era, why="exit")

    def _add(self, kind: type[Moment], **fields: Any) -> Story:
        self.now += SECOND
        common = {"at_ns": self.now, "host": "h", "peer": "s", "trace_id": "t", "build": ""}
        self.moments.append(kind(**common, **fields))
        return self

    @property
    def told(self) -> list[Episode]:
        return episodes(reversed(self.moments))

    @property
    def kinds(self) -> list[tuple[IncidentKind, bool, int]]:
        """(kind, whether it is over, how often)"""
        return [(one.kind, one.end_ns is not None, one.times) for one in self.told]


def test_a_server_that_works_has_no_episode() -> None:
    story = Story().up().state("degraded").state("ready").drop().restart("operator")
    assert story.state("starting").up().state("stopped").kinds == []


def test_a_crash_is_an_outage_until_the_lists_are_read() -> None:
    story = Story().up().drop().restart().state("backoff", "process")
    (one,) = story.told
    assert (one.kind, one.end_ns, one.was_up) == (OUTAGE, None, True)
    assert [restart.reason for restart in one.restarts] == ["exit"]
    (one,) = story.state("starting", "process").decide("modern").state("ready").told
    assert one.end_ns == story.now
    assert one.closed_by is not None
    assert one.ended_as == "ready"


def test_what_comes_again_within_minutes_is_one_episode_and_later_another() -> None:
    story = Story().up()
    for _ in range(3):
        story.restart().state("backoff", "process").up()
    assert story.kinds == [(OUTAGE, True, 3)]
    story.wait(QUIET_NS).restart().state("backoff", "process").up()
    assert story.kinds == [(OUTAGE, True, 3), (OUTAGE, True, 1)]


def test_a_fall_that_soon_proves_to_be_a_refusal_was_one_from_the_beginning() -> None:
    story = Story().up().restart().state("backoff", "process").refused()
    (one,) = story.told
    assert (one.kind, [d.reason for d in one.decisions]) == (REFUSAL, ["was_modern"])


def test_an_outage_that_becomes_a_refusal_much_later_ends_there() -> None:
    story = Story().up().restart().state("backoff", "process").wait(2 * QUIET_NS).refused()
    outage, refusal = story.told
    assert (outage.kind, outage.end_ns, outage.decisions) == (OUTAGE, refusal.start_ns, [])
    assert [decision.reason for decision in refusal.decisions] == ["was_modern"]


def test_a_refusal_that_becomes_an_outage_is_both() -> None:
    story = Story().up().refused().refused("spawn_failed", "process")
    assert story.kinds == [(REFUSAL, True, 1), (OUTAGE, False, 1)]


def test_a_state_without_its_decision_is_an_episode_too() -> None:
    story = Story().up().state("unavailable", "auth", "auth_required").state("ready")
    assert story.kinds == [(REFUSAL, True, 1)]
    assert Story().state("unavailable", None).kinds == []


def test_a_decision_without_its_state_begins_one_by_its_reason() -> None:
    assert Story().decide("unknown", "forbidden").kinds == [(REFUSAL, False, 1)]
    assert Story().decide("unknown", "spawn_failed").kinds == [(OUTAGE, False, 1)]


def test_the_hosts_own_rest_does_not_make_two_of_one_refusal() -> None:
    story = Story().refused("ambiguous_error").state("stopped").wait(10 * QUIET_NS)
    story.refused("ambiguous_error")
    assert story.kinds == [(REFUSAL, False, 2)]
    story.state("stopped").wait(10 * QUIET_NS).refused("auth_required", "auth")
    assert story.kinds == [(REFUSAL, True, 2), (REFUSAL, False, 1)]


def test_a_downgrade_lasts_until_it_is_modern_again_over_all_restarts() -> None:
    story = Story().up().act("allow").decide("legacy").state("ready")
    story.restart().state("backoff", "process").decide("legacy").state("ready")
    downgrade, outage = story.told
    assert (downgrade.kind, downgrade.end_ns, len(downgrade.decisions)) == (DOWNGRADE, None, 2)
    assert (downgrade.allowed_by, downgrade.proven, downgrade.first_legacy) == ("ada", True, True)
    assert outage.kind is OUTAGE
    story.act("hold").up()
    downgrade, _ = story.told
    assert (downgrade.end_ns, downgrade.ended_as) == (story.now - SECOND, "modern")
    assert [act.verb for act in downgrade.acts] == ["hold"]


def test_a_server_that_was_always_old_is_told_once() -> None:
    story = Story().decide("legacy").state("ready").restart().decide("legacy")
    (one,) = story.told
    assert (one.kind, one.first_legacy, one.proven) == (DOWNGRADE, True, False)
    again = Story()
    again.era = "legacy"
    assert again.decide("legacy").kinds == [], "the record begins in the middle of its life"


def test_legacy_against_what_is_remembered_is_a_downgrade_at_any_time() -> None:
    story = Story().decide("legacy", previous="modern", expected=False, direction="none")
    (one,) = story.told
    assert (one.kind, one.proven) == (DOWNGRADE, True)


def test_modern_evidence_counts_in_its_own_life_only() -> None:
    same = Story().up().decide("legacy")
    assert same.told[0].modern_in_life
    fresh = Story().up().restart().decide("legacy")
    assert not fresh.told[0].modern_in_life
    dropped = Story().up().drop().decide("legacy")
    assert not dropped.told[0].modern_in_life
    booted = Story().up().decide("legacy", trigger="boot")
    assert not booted.told[0].modern_in_life


def test_moments_of_the_host_itself_belong_to_no_server() -> None:
    host = {"at_ns": 1, "host": "h", "peer": "", "trace_id": "", "build": ""}
    assert episodes([Lived(**host, what="stopped")]) == []
    named = {**host, "peer": "s"}
    assert episodes([Lived(**named, what="stopped")]) == []
