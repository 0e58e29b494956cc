"""Every act meets every place: what happens, or why not, and what would be right instead."""

from __future__ import annotations

import itertools

import pytest

from observant_host.decisions.acts import (
    LAST_S,
    LIFTING,
    RULINGS,
    STEPS,
    Act,
    Place,
    Ruling,
    RulingAct,
    Step,
    decide,
    is_off,
    is_over,
    place,
    refusal,
    sentence,
    time_problem,
)
from observant_host.decisions.terms import PeerState

EVERY = list(itertools.product(Place, Act))
HOLD = Ruling(act="hold", principal="ann")
DISABLE = Ruling(act="disable", principal="ann")


def test_every_act_is_decided_in_every_place() -> None:
    assert set(STEPS) == set(Place)
    assert all(set(row) == set(Act) for row in STEPS.values())


@pytest.mark.parametrize(("where", "act"), EVERY)
def test_what_is_refused_names_the_server_and_says_why(where: Place, act: Act) -> None:
    if decide(where, act) is not Step.REFUSE:
        return
    said = refusal(where, act, server="archive", detail="disabled by ann")
    assert "archive" in said
    assert "{" not in said


@pytest.mark.parametrize("where", [Place.STARTING, Place.READY, Place.DEGRADED, Place.WAITING])
def test_a_server_that_is_supervised_takes_every_act(where: Place) -> None:
    for act in Act:
        step = decide(where, act)
        assert (step is Step.RULE) == (act in RULINGS)
        assert step not in (Step.REFUSE, Step.NOTHING, Step.BEGIN)
    assert decide(where, Act.ENABLE) is Step.LIFT


@pytest.mark.parametrize("where", list(Place))
def test_an_act_twice_is_the_act_once(where: Place) -> None:
    """What an act leads to accepts the same act again."""
    leads = {Step.RULE: {Act.HOLD: where, Act.DISABLE: Place.SWITCHED_OFF}, Step.BEGIN: {}}
    for act in Act:
        step = decide(where, act)
        then = leads.get(step, {}).get(act, Place.STARTING if step is Step.BEGIN else where)
        if step is not Step.REFUSE:
            assert decide(then, act) is not Step.REFUSE


def test_nothing_but_enable_starts_what_was_switched_off() -> None:
    starting = {act for act in Act if decide(Place.SWITCHED_OFF, act) is Step.BEGIN}
    assert starting == {Act.ENABLE}
    assert "enable archive" in refusal(
        Place.SWITCHED_OFF, Act.RETRY, server="archive", detail="disabled by ann"
    )


@pytest.mark.parametrize("where", [Place.DISABLED, Place.STOPPED])
def test_no_act_overrules_the_configuration_or_the_end(where: Place) -> None:
    assert {decide(where, act) for act in Act} <= {Step.REFUSE, Step.NOTHING}


@pytest.mark.parametrize("act", list(Act))
def test_only_a_round_or_a_new_life_comes_of_what_lifts_no_ruling(act: Act) -> None:
    lifts = {Step.LIFT, Step.BEGIN, Step.TRY}
    if act in LIFTING:
        assert {decide(where, act) for where in Place} <= lifts | {Step.REFUSE}


@pytest.mark.parametrize("state", list(PeerState))
@pytest.mark.parametrize("ruling", [None, HOLD, DISABLE])
def test_the_place_of_every_state(state: PeerState, ruling: Ruling | None) -> None:
    found = place(state, enabled=True, configured=True, ruling=ruling)
    if state is PeerState.STOPPED:
        assert found is Place.STOPPED
    elif ruling is DISABLE or state is PeerState.DISABLED:
        assert found is Place.SWITCHED_OFF
    elif state in (PeerState.BACKOFF, PeerState.UNAVAILABLE):
        assert found is Place.WAITING
    else:
        assert found == state.value


def test_the_configuration_has_the_first_word() -> None:
    state = PeerState.DISABLED
    assert place(state, enabled=False, configured=True, ruling=None) is Place.DISABLED
    state = PeerState.UNAVAILABLE
    assert place(state, enabled=True, configured=False, ruling=HOLD) is Place.MISCONFIGURED
    assert place(state, enabled=True, configured=False, ruling=DISABLE) is Place.SWITCHED_OFF


@pytest.mark.parametrize(
    ("act", "said"),
    [
        ("hold", "held by ann until 2030-03-17T17:46:40Z: looking into it"),
        ("disable", "disabled by ann until 2030-03-17T17:46:40Z: looking into it"),
        ("drain", "drained by ann until 2030-03-17T17:46:40Z: looking into it"),
    ],
)
def test_a_ruling_is_said_with_who_how_long_and_why(act: RulingAct, said: str) -> None:
    ruling = Ruling(act=act, until=1_900_000_000, principal="ann", reason="looking into it")
    assert sentence(ruling) == said
    assert is_off(ruling) == (act != "hold")


def test_a_ruling_without_a_time_or_a_name_stands_until_it_is_lifted() -> None:
    assert sentence(Ruling(act="hold")) == "held by somebody"
    assert not is_over(Ruling(act="hold"), 1e18)
    assert not is_off(None)
    assert "9999-12-31" in sentence(Ruling(act="hold", until=LAST_S * 1e6))


def test_a_ruling_is_over_at_its_time() -> None:
    ruling = Ruling(act="disable", until=10.0)
    assert (is_over(ruling, 9.9), is_over(ruling, 10.0)) == (False, True)


@pytest.mark.parametrize("act", list(Act))
def test_only_what_stands_takes_a_time_and_only_one_that_comes(act: Act) -> None:
    assert time_problem(act, None, now_s=5.0) is None
    assert (time_problem(act, 6.0, now_s=5.0) is None) == (act in RULINGS)
    for over in (5.0, 4.0, float("nan")):
        assert time_problem(act, over, now_s=5.0) is not None
