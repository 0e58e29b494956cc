"""A line in which everybody has a turn, and nobody has all the places."""

from __future__ import annotations

import pytest

from observant_host.peers.lanes import Lanes


def line(*entries: str) -> Lanes[str, str]:
    """`a1` is the first item of lane a."""
    made: Lanes[str, str] = Lanes()
    for entry in entries:
        made.add(entry[0], entry)
    return made


def test_lanes_take_turns_and_within_a_lane_the_first_comes_first() -> None:
    assert line("a1", "a2", "a3", "b1", "c1", "b2").clear() == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_a_lane_that_comes_later_has_its_turn_after_one_of_each_other() -> None:
    waiting = line("a1", "a2", "a3")
    assert waiting.pop() == "a1"
    waiting.add("b", "b1")
    assert [waiting.pop() for _ in range(3)] == ["a2", "b1", "a3"]
    assert waiting.length == 0


def test_an_empty_line_has_nobody() -> None:
    with pytest.raises(IndexError):
        line().pop()


def test_whoever_leaves_costs_nobody_a_turn() -> None:
    waiting = line("a1", "a2", "b1")
    waiting.remove("a", "a1")
    waiting.remove("a", "a1")
    waiting.remove("c", "c1")
    waiting.remove("b", "b1")
    assert waiting.length == 1
    assert waiting.clear() == ["a2"]


@pytest.mark.parametrize(
    ("standing", "comes", "gives_way"),
    [
        (("a1", "a2", "a3"), "b", "a3"),
        (("a1", "a2", "a3", "b1"), "b", "a3"),
        (("a1", "a2", "b1"), "b", None),
        (("a1", "a2"), "b", "a2"),
        (("a1",), "b", None),
        (("a1", "a2", "a3"), "a", None),
        (("a1", "b1", "b2", "b3"), "c", "b3"),
    ],
)
def test_the_longest_lane_gives_way_to_one_that_stays_shorter(
    standing: tuple[str, ...], comes: str, gives_way: str | None
) -> None:
    waiting = line(*standing)
    assert waiting.make_way(comes) == gives_way
    assert waiting.length == len(standing) - (gives_way is not None)
