"""Every state meets everything that can happen, and `unavailable` is sticky."""

from __future__ import annotations

import itertools

import pytest

from observant_host.decisions.peer_states import TRANSITIONS, Happened, PeerStatus, after
from observant_host.decisions.terms import Cause, PeerState


def status(state: PeerState, cause: Cause | None = None) -> PeerStatus:
    return PeerStatus(state=state, since_ns=1, cause=cause, reason="r", detail="d")


def test_every_state_knows_everything_that_can_happen() -> None:
    assert set(TRANSITIONS) == set(itertools.product(PeerState, Happened))


@pytest.mark.parametrize(
    "what", [Happened.LIFE_BEGAN, Happened.NO_ERA, Happened.LIFE_ENDED, Happened.ERA_ENDED]
)
def test_neither_a_probe_nor_a_death_nor_a_new_life_leaves_unavailable(what: Happened) -> None:
    before = status(PeerState.UNAVAILABLE, Cause.POLICY)
    now = after(before, what, now_ns=99)
    assert (now.state, now.since_ns, now.cause) == (PeerState.UNAVAILABLE, 1, Cause.POLICY)


@pytest.mark.parametrize("state", [PeerState.STARTING, PeerState.READY, PeerState.DEGRADED])
def test_a_life_with_an_era_that_ends_leads_to_backoff(state: PeerState) -> None:
    now = after(status(state), Happened.ERA_ENDED, now_ns=9, cause=Cause.PROCESS)
    assert (now.state, now.since_ns, now.cause) == (PeerState.BACKOFF, 9, Cause.PROCESS)


def test_the_cause_is_kept_in_backoff_and_in_the_start_after_it_and_gone_when_ready() -> None:
    now = after(status(PeerState.BACKOFF, Cause.PROTOCOL), Happened.LIFE_BEGAN, now_ns=9)
    assert (now.state, now.cause) == (PeerState.STARTING, Cause.PROTOCOL)
    now = after(now, Happened.LISTED, now_ns=10, reason="discover_ok", detail="fine")
    assert (now.state, now.cause, now.reason, now.detail) == (
        PeerState.READY,
        None,
        "discover_ok",
        "fine",
    )


def test_a_new_reason_within_a_state_does_not_move_since() -> None:
    before = status(PeerState.UNAVAILABLE, Cause.POLICY)
    now = after(before, Happened.NO_ERA, now_ns=9, cause=Cause.PROCESS, reason="x")
    assert (now.since_ns, now.cause, now.reason) == (1, Cause.PROCESS, "x")


@pytest.mark.parametrize("what", list(Happened))
def test_a_stopped_peer_stays_stopped(what: Happened) -> None:
    assert after(status(PeerState.STOPPED), what, now_ns=9).state is PeerState.STOPPED


def test_a_disabled_peer_is_left_only_by_enabling_or_stopping() -> None:
    leaves = {
        what: after(status(PeerState.DISABLED), what, now_ns=9).state
        for what in Happened
        if after(status(PeerState.DISABLED), what, now_ns=9).state is not PeerState.DISABLED
    }
    assert leaves == {
        Happened.ENABLED: PeerState.STARTING,
        Happened.STOPPED: PeerState.STOPPED,
    }


@pytest.mark.parametrize("state", list(PeerState))
def test_a_cause_is_set_only_where_the_peer_does_not_work(state: PeerState) -> None:
    for what in Happened:
        now = after(status(state, Cause.PROCESS), what, now_ns=9, cause=Cause.NETWORK)
        carries = {PeerState.UNAVAILABLE, PeerState.BACKOFF, PeerState.STARTING}
        assert (now.cause is not None) == (now.state in carries)


@pytest.mark.parametrize("state", [PeerState.DISABLED, PeerState.STOPPED])
def test_what_comes_too_late_says_nothing_of_a_peer_that_was_ended(state: PeerState) -> None:
    before = status(state)
    for what in (Happened.LISTED, Happened.NO_ERA, Happened.ERA_ENDED, Happened.GAVE_UP):
        assert after(before, what, now_ns=9, reason="late", detail="late") == before
    again = after(before, Happened(state.value), now_ns=9, detail="by another")
    assert (again.detail, again.since_ns) == ("by another", 1)
