"""Whoever follows a resource hears of it, and of it not being told; no callback hurts another."""

from __future__ import annotations

import asyncio

import pytest

from observant_host.errors import InvalidCall
from observant_host.peers.wishes import MAX_WISHES, Wishes
from observant_host.telemetry.setup import capturing
from observant_host.telemetry.vocabulary import FrameDropped, WishUnmet


class Bench:
    def __init__(self) -> None:
        telemetry, self.told = capturing()
        self.wishes = Wishes("s", telemetry)

    def facts(self, kind: type) -> list[object]:
        return [one.fact for one in self.told if isinstance(one.fact, kind)]


def ignore(_uri: str) -> None:
    pass


def test_a_wish_that_is_not_fulfilled_is_told_once_for_each_reason() -> None:
    bench, said = Bench(), []
    bench.wishes.add("a:", ignore, lambda *told: said.append(told))
    for why in ("no", "no", "never"):
        bench.wishes.refused(["a:", "unknown:"], why)
    assert said == [("a:", "no"), ("a:", "never")]
    assert len(bench.facts(WishUnmet)) == 2
    assert bench.wishes.turned.is_set()


def test_who_joins_later_is_told_what_is_known() -> None:
    bench, said = Bench(), []
    bench.wishes.add("a:", ignore)
    bench.wishes.refused(["a:"], "no")
    bench.wishes.add("a:", ignore, lambda *told: said.append(told))
    assert said == [("a:", "no")]


def test_what_is_fulfilled_in_the_end_is_no_longer_complained_of() -> None:
    bench = Bench()
    for uri in ("a:", "b:"):
        bench.wishes.add(uri, ignore)
    bench.wishes.refused(["a:", "b:"], "no")
    note = bench.wishes.note() or ""
    assert "a: and 1 more" in note
    assert not bench.wishes.met(["a:"])
    assert "b:" in (bench.wishes.note() or "")
    bench.wishes.remove("b:")
    assert bench.wishes.note() is None


def test_a_resource_that_was_followed_before_is_known_as_such() -> None:
    bench = Bench()
    bench.wishes.add("a:", ignore)
    assert [bench.wishes.met(["a:"]) for _ in range(2)] == [False, True]
    bench.wishes.remove("a:")
    bench.wishes.add("a:", ignore)
    assert not bench.wishes.met(["a:"])


def test_callbacks_of_one_resource_come_and_go_one_by_one() -> None:
    bench, first, second = Bench(), [], []
    bench.wishes.add("a:", first.append)
    bench.wishes.add("a:", second.append)
    bench.wishes.remove("a:", first.append)
    bench.wishes.updated("a:")
    assert (first, second) == ([], ["a:"])
    bench.wishes.remove("nobody:")


async def test_what_a_callback_fails_with_is_counted_and_stops_nothing() -> None:
    bench, told = Bench(), []

    async def fails_later(_uri: str) -> None:
        raise RuntimeError

    def fails(_uri: str) -> None:
        raise RuntimeError

    for callback in (fails, fails_later, told.append):
        bench.wishes.add("a:", callback)
    bench.wishes.updated("a:")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert told == ["a:"]
    assert [one.kind for one in bench.facts(FrameDropped)] == ["updated_callback_failed"] * 2  # type: ignore[attr-defined]


def test_there_is_a_bound() -> None:
    bench = Bench()
    for number in range(MAX_WISHES):
        bench.wishes.add(f"a:{number}", ignore)
    with pytest.raises(InvalidCall):
        bench.wishes.add("one:more", ignore)
