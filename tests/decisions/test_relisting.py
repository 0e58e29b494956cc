"""Lists are read at once for the first change, and ever rarer for a server that goes on."""

from __future__ import annotations

import math

import pytest

from observant_host.decisions.budget import LAST_CHANGES
from observant_host.decisions.catalogue import Listing
from observant_host.decisions.relisting import (
    FIRST_SPACING_S,
    MAX_SPACING_S,
    QUIET_S,
    SILENT_S,
    Relisting,
    Relists,
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


def readings(changes: list[float]) -> list[float]:
    """When lists are read by an owner that looks whenever it is told to."""
    state, read = Relists(), []
    for number, changed in enumerate(changes):
        until = changes[number + 1] if number + 1 < len(changes) else math.inf
        due = changed + state.wait_s(changed, changed_s=changed)
        if due < until:
            state.began(due)
            read.append(due)
    return read


def test_the_first_change_of_a_life_is_read_at_once() -> None:
    assert Relists().wait_s(5.0, changed_s=5.0) == 0.0


def test_the_last_change_is_read_within_two_seconds_of_silence_whatever_was_before() -> None:
    flood = [number / 10 for number in range(3000)]
    read = readings(flood)
    assert len(read) < 25
    assert flood[-1] < read[-1] <= flood[-1] + SILENT_S
    assert SILENT_S < 2


def test_a_server_that_changes_just_as_often_as_it_falls_silent_has_a_budget() -> None:
    hour = [number * (SILENT_S + 0.01) for number in range(int(3600 / (SILENT_S + 0.01)))]
    read = readings(hour)
    allowed = LAST_CHANGES.burst + 3600 / LAST_CHANGES.every_s
    assert len(read) <= allowed + 3600 / MAX_SPACING_S + 10
    assert read[-1] - hour[-1] <= LAST_CHANGES.every_s


def test_a_flood_without_end_is_read_as_often_as_its_spacing_allows() -> None:
    state, read = Relists(), 0
    for tick in range(36_000):
        now = tick / 10
        if state.wait_s(now, changed_s=now) == 0:
            state.began(now)
            read += 1
    assert read <= 3600 / MAX_SPACING_S + 12
    assert state.chatty


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
