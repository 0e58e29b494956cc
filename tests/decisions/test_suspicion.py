"""A server is suspected for silence alone, asked before it is judged, and given up very slowly."""

from __future__ import annotations

import itertools

import pytest

from observant_host.decisions.suspicion import (
    NEXT,
    NONE,
    QUESTIONS,
    TIMEOUTS,
    Health,
    Sign,
    Suspicion,
    after,
    hopeless,
    probe_in_s,
)

PATIENCE_S = 120.0


def walk(*signs: Sign, heard: int = 7) -> Suspicion:
    """These signs, a second apart from 1 on, with no message between them."""
    state = NONE
    for at_s, sign in enumerate(signs, start=1):
        state = after(state, sign, at_s=float(at_s), heard=heard)
    return state


def ended(state: Suspicion, at_s: float = 1e6, *, awaited: bool = False) -> bool:
    return hopeless(state, at_s=at_s, patience_s=PATIENCE_S, awaited=awaited)


def test_every_state_knows_every_sign() -> None:
    assert set(NEXT) == set(itertools.product(Health, Sign))


def test_one_timeout_makes_a_suspect_where_nothing_at_all_was_heard() -> None:
    assert walk(Sign.QUIET_TIMEOUT).health is Health.SUSPECTED


def test_otherwise_only_timeouts_in_a_row_do() -> None:
    for number in range(1, TIMEOUTS):
        assert walk(*[Sign.TIMEOUT] * number).health is Health.HEALTHY
    assert walk(*[Sign.TIMEOUT] * TIMEOUTS).health is Health.SUSPECTED


def test_a_message_between_timeouts_begins_the_row_anew() -> None:
    state = NONE
    for heard in range(1, 100):
        state = after(state, Sign.TIMEOUT, at_s=0.0, heard=heard)
        assert (state.health, state.timeouts) == (Health.HEALTHY, 1)


@pytest.mark.parametrize("before", [NONE, walk(Sign.QUIET_TIMEOUT), walk(*[Sign.UNANSWERED] * 9)])
def test_whatever_is_heard_clears_it_of_everything(before: Suspicion) -> None:
    assert after(before, Sign.HEARD, at_s=9.0, heard=8) == NONE


@pytest.mark.parametrize("sign", list(Sign))
@pytest.mark.parametrize("before", [walk(Sign.QUIET_TIMEOUT), walk(*[Sign.UNANSWERED] * 2)])
def test_a_message_that_nobody_has_told_of_clears_it_as_well(before: Suspicion, sign: Sign) -> None:
    assert before.health is not Health.HEALTHY
    assert after(before, sign, at_s=9.0, heard=8) == NONE


def test_only_a_suspect_that_does_not_answer_is_wedged() -> None:
    assert walk(Sign.UNANSWERED).health is Health.SUSPECTED
    assert walk(Sign.QUIET_TIMEOUT, Sign.UNANSWERED).health is Health.WEDGED
    assert walk(Sign.QUIET_TIMEOUT, Sign.QUIET_TIMEOUT, Sign.TIMEOUT).health is Health.SUSPECTED


def test_every_path_to_the_end_has_two_questions_unanswered_and_no_message() -> None:
    for signs in itertools.product(Sign, repeat=5):
        state = walk(*signs)
        since = max((n for n, sign in enumerate(signs) if sign is Sign.HEARD), default=-1)
        asked = signs[since + 1 :].count(Sign.UNANSWERED)
        if ended(state):
            assert asked >= QUESTIONS
        if state.health is Health.WEDGED:
            assert asked >= 1


def test_calls_that_were_open_before_the_probe_are_no_further_questions() -> None:
    state = walk(Sign.QUIET_TIMEOUT, Sign.UNANSWERED, *[Sign.QUIET_TIMEOUT] * 50)
    assert (state.health, state.unanswered, ended(state)) == (Health.WEDGED, 1, False)


def test_a_life_is_ended_after_two_questions_and_a_long_silence_that_nobody_waits_out() -> None:
    wedged = walk(Sign.QUIET_TIMEOUT, Sign.UNANSWERED, Sign.UNANSWERED)
    assert wedged.since_s == 1.0
    assert not ended(wedged, 1.0 + PATIENCE_S - 0.1)
    assert ended(wedged, 1.0 + PATIENCE_S)
    assert not ended(wedged, 1.0 + PATIENCE_S, awaited=True)
    assert not ended(walk(Sign.QUIET_TIMEOUT))
    assert not ended(NONE)


def test_a_suspect_is_probed_at_once_and_a_wedged_one_again_after_a_while() -> None:
    def wait(state: Suspicion, at_s: float) -> float | None:
        return probe_in_s(state, at_s=at_s, every_s=30.0)

    assert wait(NONE, 1.0) is None
    assert wait(walk(Sign.QUIET_TIMEOUT), 1.0) == 0.0
    wedged = walk(Sign.QUIET_TIMEOUT, Sign.UNANSWERED)
    assert [wait(wedged, at) for at in (2.0, 12.0, 32.0, 99.0)] == [30.0, 20.0, 0.0, 0.0]
