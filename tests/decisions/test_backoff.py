"""Delays: doubled, capped, spread over the upper half of the interval."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observant_host.decisions.backoff import ceiling, delay


@pytest.mark.parametrize(
    ("attempt", "longest"), [(0, 0.5), (1, 0.5), (2, 1.0), (3, 2.0), (8, 60.0), (10**9, 60.0)]
)
def test_the_longest_delay_doubles_up_to_the_maximum(attempt: int, longest: float) -> None:
    assert ceiling(attempt, initial_s=0.5, maximum_s=60.0) == longest


def test_the_spread_reaches_from_half_the_ceiling_to_all_of_it() -> None:
    assert delay(3, initial_s=0.5, maximum_s=60, random_0_1=0.0) == 1.0
    assert delay(3, initial_s=0.5, maximum_s=60, random_0_1=0.5) == 1.5


@settings(deadline=None)
@given(
    attempt=st.integers(0, 10_000),
    initial=st.floats(0, 1000),
    maximum=st.floats(0, 1000),
    random=st.floats(0, 1, exclude_max=True),
)
def test_no_delay_is_under_half_its_ceiling_or_over_the_maximum(
    attempt: int, initial: float, maximum: float, random: float
) -> None:
    waited = delay(attempt, initial_s=initial, maximum_s=maximum, random_0_1=random)
    assert ceiling(attempt, initial_s=initial, maximum_s=maximum) / 2 <= waited <= maximum
