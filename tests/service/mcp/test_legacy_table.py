"""Sessions are bounded, private to their principal, and gone when nobody uses them."""

from __future__ import annotations

from typing import Any

import pytest

from observant_host.decisions.slices import ALL
from observant_host.service.callers import Caller
from observant_host.service.mcp.legacy_streams import (
    MAX_KEPT,
    MAX_WAITING,
    MAX_WAITING_BYTES,
    Stream,
    place_of,
)
from observant_host.service.mcp.legacy_table import IDLE_S, MAX_STREAMS, Table
from tests.support.clock import ManualClock


class FakeSession:
    """Only what the table looks at."""

    def __init__(self, principal: str = "ann") -> None:
        self.caller = Caller(principal=principal, scopes=frozenset(), slice=ALL)
        self.busy = False
        self.ended = False

    def end(self) -> None:
        self.ended = True


def table(**keys: Any) -> tuple[Table, ManualClock]:
    clock = ManualClock()
    return Table(clock=clock, **keys), clock


def add(one: Table, principal: str = "ann") -> Any:
    return one.add(FakeSession(principal))  # type: ignore[arg-type]  # all that it looks at


async def test_a_session_is_its_principals_alone() -> None:
    sessions, _ = table()
    seat = add(sessions)
    assert sessions.find(seat.key, "ann") is seat
    assert sessions.find(seat.key, "bob") is None
    assert sessions.find("guess", "ann") is None


async def test_ids_are_long_and_differ() -> None:
    sessions, _ = table()
    keys = {add(sessions).key for _ in range(100)}
    assert len(keys) == 100
    assert min(map(len, keys)) >= 32


async def test_of_one_principal_the_least_used_ends_for_a_new_one() -> None:
    sessions, _ = table(of_one=2)
    first, second, other = add(sessions), add(sessions), add(sessions, "bob")
    assert sessions.find(first.key, "ann") is first
    add(sessions)
    assert second.session.ended
    assert not first.session.ended
    assert not other.session.ended


async def test_one_that_is_in_use_outlives_one_that_is_not() -> None:
    sessions, _ = table(most=2)
    first, second = add(sessions), add(sessions, "bob")
    first.session.busy = True
    add(sessions, "eve")
    assert second.session.ended
    assert len(sessions) == 2


async def test_all_in_use_the_oldest_ends() -> None:
    sessions, _ = table(most=1)
    first = add(sessions)
    first.connections = 1
    add(sessions, "bob")
    assert first.session.ended
    assert first.general.ended


async def test_idle_sessions_expire_and_those_in_use_do_not() -> None:
    sessions, clock = table()
    idle, used, open_one = add(sessions), add(sessions), add(sessions)
    open_one.connections = 1
    await clock.advance(IDLE_S / 2)
    assert sessions.find(used.key, "ann") is used
    await clock.advance(IDLE_S / 2 + 1)
    assert idle.session.ended
    assert sessions.find(idle.key, "ann") is None
    assert not used.session.ended
    assert not open_one.session.ended
    open_one.connections = 0
    await clock.advance(IDLE_S + 1)
    await clock.advance(IDLE_S + 1)
    assert len(sessions) == 0


async def test_closing_ends_all_of_them_twice() -> None:
    sessions, _ = table()
    seat = add(sessions)
    stream = seat.new_stream()
    sessions.close()
    sessions.close()
    sessions.end(seat)
    assert seat.session.ended
    assert stream.ended


async def test_streams_of_answers_that_are_over_are_forgotten_first() -> None:
    sessions, _ = table()
    seat = add(sessions)
    open_ones = [seat.new_stream() for _ in range(MAX_STREAMS)]
    open_ones[3].end()
    seat.new_stream()
    assert seat.find_stream(open_ones[3].number) is None
    seat.new_stream()
    assert all(seat.find_stream(one.number) is one for one in open_ones if not one.ended)


def test_a_stream_drops_its_oldest_notifications_and_nothing_vital() -> None:
    stream = Stream(1)
    stream.put(b"question", vital=True)
    for _ in range(MAX_WAITING + 10):
        stream.put(b"note")
    event = stream.after(0)
    assert event is not None
    assert event.parts == (b"question",)
    assert stream.lost == 11
    assert not stream.has_lost_since(0)  # what is vital is still there
    stream.sent(event.number)
    stream.put(b"x" * (MAX_WAITING_BYTES + 1))
    assert stream.after(event.number) is not None


def test_a_stream_keeps_a_little_of_what_was_sent() -> None:
    stream = Stream(1)
    for _ in range(MAX_KEPT + 5):
        stream.put(b"note", vital=True)
    stream.sent(MAX_KEPT + 5)
    assert stream.unsent_after == MAX_KEPT + 5
    first = stream.after(0)
    assert first is not None
    assert first.number == 6
    assert stream.has_lost_since(0)
    assert not stream.has_lost_since(5)


@pytest.mark.parametrize(
    ("event_id", "place"),
    [
        ("3-17", (3, 17)),
        ("0-0", (0, 0)),
        (None, None),
        ("", None),
        ("3", None),
        ("3-", None),
        ("-3", None),
        ("a-b", None),
        ("\u0663-1", None),
        ("9" * 40 + "-1", None),
    ],
)
def test_only_ids_of_ours_name_a_place(event_id: str | None, place: object) -> None:
    assert place_of(event_id) == place
