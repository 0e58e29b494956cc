"""A budget: so many at once, so many over time, and never more whatever is asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from observant_host.decisions.budget import Budget, Rate

RATE = Rate(burst=3, every_s=2.0)


def test_as_many_as_the_burst_may_be_taken_at_once() -> None:
    budget = Budget(RATE)
    assert [budget.take(10.0) for _ in range(4)] == [True, True, True, False]


def test_one_more_comes_after_each_interval() -> None:
    budget = Budget(RATE)
    for _ in range(3):
        budget.take(0.0)
    assert budget.wait_s(0.5) == 1.5
    assert not budget.take(1.9)
    assert budget.wait_s(2.0) == 0.0
    assert budget.take(2.0)
    assert not budget.take(2.0)


def test_what_is_not_spent_is_not_saved_beyond_the_burst() -> None:
    budget = Budget(RATE)
    budget.take(0.0)
    assert [budget.take(1000.0) for _ in range(4)] == [True, True, True, False]


@given(st.lists(st.floats(0, 5), max_size=200))
def test_never_more_than_the_burst_and_the_rate_together(gaps: list[float]) -> None:
    budget, now, taken = Budget(RATE), 0.0, 0
    for gap in gaps:
        now += gap
        taken += budget.take(now)
    assert taken <= RATE.burst + now / RATE.every_s + 1e-6


def test_a_reservation_says_how_long_it_must_wait_for_its_turn() -> None:
    budget = Budget(RATE)
    assert [budget.reserve(0.0) for _ in range(5)] == [0.0, 0.0, 0.0, 2.0, 4.0]
    assert not budget.take(4.0)
    assert budget.take(6.0)


def test_what_is_owed_has_a_bound() -> None:
    budget = Budget(RATE)
    for _ in range(100):
        budget.reserve(0.0)
    assert budget.reserve(0.0) == RATE.burst * RATE.every_s


def test_who_waits_as_long_as_told_never_waits_twice_for_a_rounding_error() -> None:
    budget, now = Budget(Rate(burst=1, every_s=6.0)), 1000.0
    for _ in range(1000):
        now += budget.wait_s(now)
        assert budget.take(now)
        now += 0.1
