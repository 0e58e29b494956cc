"""Silence is a loss only where a habit was broken; else it ends in a renewal, never later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.decisions.silence import (
    JITTER,
    KEPT_GAPS,
    LEARNT_AFTER,
    Judged,
    Patience,
    Pulse,
    Verdict,
    is_doubtful,
    judge,
)

PATIENCE = Patience(max_quiet_s=900, missed=4, least_silence_s=10, least_gap_s=1)


def kept_alive(*gaps: float) -> Pulse:
    pulse, now = Pulse(0.0).kept_alive(0.0, least_gap_s=1), 0.0
    for gap in gaps:
        now += gap
        pulse = pulse.kept_alive(now, least_gap_s=1)
    return pulse


def verdict(pulse: Pulse, silence_s: float, drawn: float = 0.0) -> Verdict:
    now = pulse.heard_s + silence_s
    return judge(pulse, PATIENCE, now_s=now, random_0_1=drawn).verdict


def test_a_stream_that_never_says_anything_is_no_loss_but_renewed_in_the_end() -> None:
    assert verdict(Pulse(5.0), 899) is Verdict.OK
    assert verdict(Pulse(5.0), 900) is Verdict.QUIET


def test_renewals_are_spread_and_none_comes_later_than_promised() -> None:
    assert verdict(Pulse(0.0), 900 * (1 - JITTER), 1.0) is Verdict.QUIET
    assert verdict(Pulse(0.0), 900 * (1 - JITTER) - 1, 1.0) is Verdict.OK


def test_keep_alives_that_stay_away_after_a_habit_are_a_loss() -> None:
    habit = kept_alive(15, 15, 16)
    assert habit.interval_s == 16
    assert verdict(habit, 63) is Verdict.OK
    assert verdict(habit, 64) is Verdict.SILENT


def test_too_few_keep_alives_make_no_habit() -> None:
    few = kept_alive(*[15.0] * (LEARNT_AFTER - 1))
    assert few.interval_s is None
    assert verdict(few, 800) is Verdict.OK


def test_the_longest_of_the_last_intervals_counts() -> None:
    assert kept_alive(5, 40, 5, 5).interval_s == 40
    assert kept_alive(40, *[5.0] * KEPT_GAPS).interval_s == 5


def test_a_burst_of_comments_is_one() -> None:
    assert kept_alive(0.1, 0.1, 0.1, 0.1).interval_s is None
    assert kept_alive(0.1, 14.9, 0.1, 14.9, 15).interval_s == 15


def test_messages_are_heard_and_teach_no_interval() -> None:
    pulse = Pulse(0.0)
    for now in (1.0, 2.0, 3.0, 4.0, 5.0):
        pulse = pulse.message(now)
    assert (pulse.heard_s, pulse.interval_s) == (5.0, None)


def test_a_quick_habit_still_leaves_the_least_silence() -> None:
    quick = kept_alive(1, 1, 1)
    assert verdict(quick, 9) is Verdict.OK
    assert verdict(quick, 10) is Verdict.SILENT


def test_an_interval_beyond_the_longest_quiet_time_changes_nothing() -> None:
    assert verdict(kept_alive(600, 600, 600), 900) is Verdict.QUIET


@given(
    st.lists(st.floats(0, 1000), max_size=12),
    st.floats(0, 2000),
    st.floats(0, 1, exclude_max=True),
)
def test_looking_again_after_the_time_left_always_finds_something(
    gaps: list[float], silence_s: float, drawn: float
) -> None:
    pulse = kept_alive(*gaps)
    now = pulse.heard_s + silence_s
    judged = judge(pulse, PATIENCE, now_s=now, random_0_1=drawn)
    if judged.verdict is not Verdict.OK:
        assert judged == Judged(judged.verdict)
        return
    assert 0 < judged.left_s <= PATIENCE.max_quiet_s
    later = judge(pulse, PATIENCE, now_s=now + judged.left_s + 1e-6, random_0_1=drawn)
    assert later.verdict is not Verdict.OK


@pytest.mark.parametrize(("heard_s", "doubtful"), [(9.0, True), (10.0, True), (10.1, False)])
def test_a_failed_request_casts_doubt_where_nothing_was_heard_meanwhile(
    heard_s: float, doubtful: bool
) -> None:
    assert is_doubtful(Pulse(heard_s), 10.0) is doubtful
