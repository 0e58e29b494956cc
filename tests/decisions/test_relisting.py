"""Lists are read at once for the first change, and ever rarer for a server that goes on."""

from __future__ import annotations

import math

from observant_host.decisions.relisting import (
    FIRST_SPACING_S,
    MAX_SPACING_S,
    QUIET_S,
    Relisting,
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
