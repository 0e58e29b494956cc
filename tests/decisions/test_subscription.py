"""Which stream of changes is asked for, what of it was granted, and what follows its end."""

from __future__ import annotations

import itertools

import pytest

from observant_host.decisions.subscription import (
    INITIAL_S,
    KINDS,
    MAX_S,
    Do,
    Filter,
    Loss,
    accepted,
    after,
    wanted,
)
from tests.support.many import for_each

ALL = {kind: {"listChanged": True, "subscribe": True} for kind in KINDS}


def test_what_is_announced_is_asked_for_and_nothing_else() -> None:
    for chosen in itertools.product((True, False, None, "yes"), repeat=3):
        told = {kind: {"listChanged": value} for kind, value in zip(KINDS, chosen, strict=True)}
        expected = [kind for kind, value in zip(KINDS, chosen, strict=True) if value is True]
        assert wanted(told, ()) == Filter(tuple(expected))


@pytest.mark.parametrize("capabilities", [{}, {"tools": None}, {"tools": True}, {"tools": []}])
def test_capabilities_that_are_no_objects_announce_nothing(capabilities: dict[str, object]) -> None:
    assert not wanted(capabilities, ["a:b"])


def test_resources_are_followed_only_where_that_is_announced() -> None:
    assert wanted(ALL, ["b:", "a:", "a:"]) == Filter(KINDS, ("a:", "b:"))
    assert wanted({"resources": {}}, ["a:"]) == Filter()


def test_the_filter_is_written_as_the_protocol_has_it() -> None:
    assert Filter(("tools", "resources"), ("a:",)).to_params() == {
        "toolsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["a:"],
    }
    assert Filter().to_params() == {}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (None, Filter()),
        ([], Filter()),
        ({}, Filter()),
        ({"toolsListChanged": True}, Filter(("tools",))),
        ({"toolsListChanged": 1, "resourceSubscriptions": "a:"}, Filter()),
        ({"promptsListChanged": True, "toolsListChanged": True}, Filter(("tools",))),
        ({"resourceSubscriptions": ["a:", "z:", 3]}, Filter((), ("a:",))),
    ],
)
def test_never_more_is_granted_than_was_asked_for(told: object, expected: Filter) -> None:
    asked = Filter(("tools", "resources"), ("a:", "b:"))
    granted = accepted(asked, told)
    assert granted == expected
    assert not granted.without(asked)
    left = asked.without(granted)
    assert set(left.lists) | set(granted.lists) == set(asked.lists)
    assert set(left.uris) | set(granted.uris) == set(asked.uris)


CIRCUMSTANCES = itertools.product(Loss, [0, 1, 5, 10**6], [0.0, 59.9, 60.0, 1e9], [0.0, 0.5, 0.999])


@for_each({str(one): one for one in CIRCUMSTANCES})
def test_every_end_is_followed_by_another_stream_unless_the_method_is_unknown(
    loss: Loss, attempts: int, uptime_s: float, drawn: float
) -> None:
    step = after(loss, attempts=attempts, uptime_s=uptime_s, healthy_after_s=60.0, random_0_1=drawn)
    if loss is Loss.UNKNOWN_METHOD:
        assert step.do is Do.STOP
        return
    assert step.do is Do.REOPEN
    assert step.attempts == (1 if uptime_s >= 60 else attempts + 1)
    assert INITIAL_S / 2 <= step.delay_s <= MAX_S


def test_only_a_stream_that_stood_long_enough_makes_the_next_wait_short_again() -> None:
    attempts, delays = 0, []
    for _ in range(12):
        step = after(
            Loss.TRANSPORT, attempts=attempts, uptime_s=1, healthy_after_s=60, random_0_1=0
        )
        attempts = step.attempts
        delays.append(step.delay_s)
    assert delays == sorted(delays)
    assert delays[-1] == MAX_S / 2
    healed = after(Loss.TRANSPORT, attempts=attempts, uptime_s=60, healthy_after_s=60, random_0_1=0)
    assert healed.delay_s == INITIAL_S / 2


def test_a_filter_says_in_words_what_it_covers() -> None:
    assert Filter(("tools",), ("a:", "b:")).words() == ("tools", "2 resources")
