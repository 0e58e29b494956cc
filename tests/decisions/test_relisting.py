"""Lists are read at once for the first change, and ever rarer for a server that goes on."""

from __future__ import annotations

import math

import pytest

from observant_host.decisions.catalogue import Listing
from observant_host.decisions.relisting import (
    FIRST_SPACING_S,
    MAX_SPACING_S,
    QUIET_S,
    Relisting,
    is_due,
    runs_out_s,
)


def test_the_first_change_waits_for_nothing() -> None:
    assert Relisting(-math.inf).wait_s(0.0) == 0.0


def test_each_further_change_waits_longer_up_to_a_bound() -> None:
    state = Relisting(0.0)
    now, waits = 0.0, []
    for _ in range(12):
        waits.append(state.wait_s(now))
        now += waits[-1]
        state = state.read(now)
    assert waits == sorted(waits)
    assert waits[0] == FIRST_SPACING_S
    assert waits[-1] == MAX_SPACING_S


def test_after_a_quiet_time_the_next_change_is_read_at_once_again() -> None:
    chatty = Relisting(0.0, MAX_SPACING_S)
    assert chatty.read(QUIET_S).spacing_s == FIRST_SPACING_S
    assert chatty.read(QUIET_S - 1).spacing_s == MAX_SPACING_S


def test_only_a_server_that_goes_on_and_on_is_chatty() -> None:
    state, now = Relisting(-math.inf), 0.0
    seen = []
    for _ in range(8):
        seen.append(state.chatty)
        now += state.wait_s(now)
        state = state.read(now)
    assert seen == sorted(seen)
    assert seen.index(True) == 6
    assert not state.read(now + QUIET_S).chatty


# lists that somebody looks at


def listed(read_s: float, until_s: float, *, complete: bool = True) -> Listing:
    return Listing("s", complete=complete, read_s=read_s, fresh_until_s=until_s)


@pytest.mark.parametrize(
    ("listing", "now_s", "due"),
    [
        (listed(100.0, 160.0), 159.9, False),
        (listed(100.0, 160.0), 160.0, True),
        (listed(100.0, 100.0), 100.5, False),
        (listed(100.0, 100.0), 101.0, True),
        (listed(100.0, 100.2), 100.5, False),
        (listed(100.0, 160.0, complete=False), 500.0, False),
        (listed(100.0, math.inf), 1e9, False),
        (Listing("s"), 1e9, False),
    ],
)
def test_lists_are_due_when_their_time_is_over_but_not_twice_in_a_moment(
    listing: Listing, now_s: float, due: bool
) -> None:
    assert is_due(listing, now_s) is due


@pytest.mark.parametrize(
    ("listing", "runs_out"),
    [
        (listed(100.0, 160.0), 160.0),
        (listed(100.0, 100.0), math.inf),
        (listed(100.0, 160.0, complete=False), math.inf),
        (listed(100.0, math.inf), math.inf),
    ],
)
def test_a_mere_look_minds_only_a_time_that_was_given(listing: Listing, runs_out: float) -> None:
    assert runs_out_s(listing) == runs_out
