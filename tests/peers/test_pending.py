from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.peers.pending import (
    MAX_FORGOTTEN,
    NOTICE_WINDOW_S,
    Entry,
    FailOne,
    Matched,
    Orphan,
    Pending,
)
from observant_host.wire.jsonrpc import Broken, Error, Id, Result

RAW = Raw(b"{}")


def opened(pending: Pending[str], *waiters: str, expires: float = 10.0) -> list[Entry[str]]:
    return [
        pending.open(pending.next_id(), "tools/call", expires=expires, waiter=waiter)
        for waiter in waiters
    ]


def error(request_id: Id = None) -> Error:
    return Error(request_id, -32603, "no")


def test_ids_count_upwards_and_are_never_given_twice() -> None:
    pending: Pending[str] = Pending()
    seen = []
    for _ in range(3):
        (entry,) = opened(pending, "w")
        seen.append(entry.id)
        pending.match(Result(entry.id, RAW), now=0)
    assert seen == [1, 2, 3]


def test_replies_in_any_order_find_their_own_request() -> None:
    pending: Pending[str] = Pending()
    first, second = opened(pending, "first", "second")
    assert pending.match(Result(second.id, RAW), now=0) == Matched(second, Result(2, RAW))
    assert pending.match(error(first.id), now=0) == Matched(first, error(1))
    assert len(pending) == 0


def test_a_request_is_found_by_its_number_while_it_is_open() -> None:
    pending: Pending[str] = Pending()
    (entry,) = opened(pending, "w")
    assert pending.get(entry.id) is entry
    assert pending.entries() == (entry,)
    pending.match(Result(entry.id, RAW), now=0)
    assert pending.get(entry.id) is None


def test_a_broken_reply_fails_its_request_with_the_problem() -> None:
    pending: Pending[str] = Pending()
    first, second = opened(pending, "first", "second")
    broken = Broken(first.id, "not UTF-8")
    assert pending.match(broken, now=0) == FailOne(first, broken, "not UTF-8")
    assert pending.entries() == (second,)


@pytest.mark.parametrize("lookalike", ["2", 2.0, "02"])
def test_an_id_that_only_resembles_one_is_never_paired_but_fails_that_request_at_once(
    lookalike: Id,
) -> None:
    pending: Pending[str] = Pending()
    first, second = opened(pending, "first", "second")
    verdict = pending.match(Result(lookalike, RAW), now=0)
    assert isinstance(verdict, FailOne)
    assert verdict.entry is second
    assert repr(lookalike) in verdict.problem
    assert pending.entries() == (first,)


def test_true_resembles_one() -> None:
    pending: Pending[str] = Pending()
    (entry,) = opened(pending, "w")
    verdict = pending.match(Result(True, RAW), now=0)
    assert isinstance(verdict, FailOne)
    assert verdict.entry is entry


@pytest.mark.parametrize("foreign", ["ghost", 999_999, -1, 0, 1.5, "7", 10**30])
def test_a_foreign_id_is_nobodys(foreign: Id) -> None:
    pending: Pending[str] = Pending()
    (entry,) = opened(pending, "w")
    assert pending.match(Result(foreign, RAW), now=0) == Orphan("foreign")
    assert pending.match(error(foreign), now=0) == Orphan("foreign")
    assert pending.entries() == (entry,)


def test_a_second_answer_is_a_duplicate() -> None:
    pending: Pending[str] = Pending()
    (entry,) = opened(pending, "w")
    pending.match(Result(entry.id, RAW), now=0)
    assert pending.match(Result(entry.id, RAW), now=0) == Orphan("duplicate")


def test_a_late_answer_is_dropped_by_id_and_named_once() -> None:
    pending: Pending[str] = Pending()
    slow, other = opened(pending, "slow", "other")
    assert pending.forget(slow.id) is slow
    assert pending.forget(slow.id) is None
    assert pending.match(Result(slow.id, RAW), now=0) == Orphan("late")
    assert pending.match(Result(slow.id, RAW), now=0) == Orphan("duplicate")
    assert isinstance(pending.match(Result(other.id, RAW), now=0), Matched)


def test_the_memory_of_forgotten_requests_is_bounded() -> None:
    pending: Pending[str] = Pending()
    entries = opened(pending, *["w"] * (MAX_FORGOTTEN + 1))
    for entry in entries:
        pending.forget(entry.id)
    assert pending.match(Result(entries[0].id, RAW), now=0) == Orphan("duplicate")
    assert pending.match(Result(entries[1].id, RAW), now=0) == Orphan("late")


def test_an_error_without_an_id_fails_the_only_open_request() -> None:
    pending: Pending[str] = Pending()
    (entry,) = opened(pending, "w")
    verdict = pending.match(error(), now=0)
    assert isinstance(verdict, FailOne)
    assert verdict.entry is entry
    assert verdict.message == error()
    assert len(pending) == 0


@pytest.mark.parametrize("count", [0, 2])
def test_with_none_or_several_open_an_error_without_an_id_is_nobodys(count: int) -> None:
    pending: Pending[str] = Pending()
    opened(pending, *["w"] * count)
    assert pending.match(error(), now=0) == Orphan("no_id")
    assert len(pending) == count


def test_without_an_id_only_errors_fail_anything() -> None:
    pending: Pending[str] = Pending()
    (entry,) = opened(pending, "w")
    assert pending.match(Broken(None, "a result that names no request"), now=0) == Orphan("no_id")
    recognised = Broken(None, "both", -32022)
    assert pending.match(recognised, now=0) == FailOne(
        entry, recognised, "the server answered with an error that names no request"
    )


def test_after_a_notification_errors_without_an_id_are_its_answers() -> None:
    pending: Pending[str] = Pending()
    (entry,) = opened(pending, "w")
    pending.notified(100.0)
    assert pending.match(error(), now=100.1) == Orphan("no_id")
    assert pending.match(error(), now=100.2) == Orphan("no_id")
    assert pending.entries() == (entry,)


def test_a_request_opened_after_the_notification_is_not_failed_by_its_answer() -> None:
    pending: Pending[str] = Pending()
    pending.notified(100.0)
    (entry,) = opened(pending, "w")
    assert pending.match(error(), now=100.1) == Orphan("no_id")
    assert isinstance(pending.match(Result(entry.id, RAW), now=100.2), Matched)


def test_the_notification_is_over_once_a_later_request_is_answered() -> None:
    pending: Pending[str] = Pending()
    (before,) = opened(pending, "before")
    pending.notified(100.0)
    pending.match(Result(before.id, RAW), now=100.1)
    later, last = opened(pending, "later", "last")
    pending.match(Result(later.id, RAW), now=100.2)
    verdict = pending.match(error(), now=100.3)
    assert isinstance(verdict, FailOne)
    assert verdict.entry is last


def test_an_answer_to_an_older_request_does_not_end_the_notification() -> None:
    pending: Pending[str] = Pending()
    before, _ = opened(pending, "before", "open")
    pending.notified(100.0)
    pending.match(Result(before.id, RAW), now=100.1)
    assert pending.match(error(), now=100.2) == Orphan("no_id")


def test_the_notification_is_over_after_its_window() -> None:
    pending: Pending[str] = Pending()
    (entry,) = opened(pending, "w")
    pending.notified(100.0)
    verdict = pending.match(error(), now=100.0 + NOTICE_WINDOW_S)
    assert isinstance(verdict, FailOne)
    assert verdict.entry is entry


def test_what_is_due_is_handed_out_once_and_its_answer_is_late() -> None:
    pending: Pending[str] = Pending()
    (early,) = opened(pending, "early", expires=5.0)
    (later,) = opened(pending, "later", expires=9.0)
    (never,) = opened(pending, "never", expires=math.inf)
    assert pending.earliest() == 5.0
    assert pending.due(4.9) == []
    assert pending.due(5.0) == [early]
    assert pending.due(5.0) == []
    assert pending.earliest() == 9.0
    later.expires = 20.0
    assert pending.due(10.0) == []
    assert pending.entries() == (later, never)
    assert pending.match(Result(early.id, RAW), now=6) == Orphan("late")


def test_nothing_open_expires_never() -> None:
    assert Pending[str]().earliest() is None


def test_the_end_of_a_life_hands_out_all_that_is_open() -> None:
    pending: Pending[str] = Pending()
    entries = opened(pending, "a", "b")
    assert pending.close() == entries
    assert pending.close() == []


ids = st.one_of(
    st.integers(-2, 12),
    st.integers(-2, 12).map(str),
    st.integers(-2, 12).map(float),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.floats(),
)


@given(st.lists(st.tuples(ids, st.sampled_from(["result", "error", "broken"])), max_size=30))
def test_a_request_is_only_ever_matched_by_its_exact_id(replies: list[tuple[Id, str]]) -> None:
    pending: Pending[int] = Pending()
    for number in range(1, 11):
        pending.open(pending.next_id(), "m", expires=1, waiter=number)
    settled: set[int] = set()
    for request_id, kind in replies:
        message = {
            "result": Result(request_id, RAW),
            "error": error(request_id),
            "broken": Broken(request_id, "x"),
        }[kind]
        verdict = pending.match(message, now=0)
        if isinstance(verdict, Orphan):
            continue
        assert verdict.entry.id not in settled
        settled.add(verdict.entry.id)
        if isinstance(verdict, Matched):
            assert type(request_id) is int
            assert verdict.entry.id == request_id == verdict.entry.waiter
    assert len(pending) == 10 - len(settled)


def test_a_reply_on_a_response_belongs_to_its_request_or_fails_it() -> None:
    pending: Pending[str] = Pending()
    for name in ("one", "two", "three", "four"):
        number = pending.next_id()
        pending.open(number, "tools/call", expires=math.inf, waiter=name)
    matched = pending.match(Result(1, Raw(b"{}")), now=0.0, answers=1)
    assert isinstance(matched, Matched)
    for message, answers, said in (
        (Error(None, -32600, "no"), 2, "names no request"),
        (Result(4, Raw(b"{}")), 3, "the reply's id is 4, which is not the number 3"),
        (Result("4", Raw(b"{}")), 4, "the reply's id is '4'"),
    ):
        failed = pending.match(message, now=0.0, answers=answers)
        assert isinstance(failed, FailOne)
        assert (failed.entry.id, said in failed.problem) == (answers, True)
    assert len(pending) == 0


def test_a_reply_to_another_request_on_the_response_to_a_closed_one_is_misdirected() -> None:
    pending: Pending[str] = Pending()
    pending.open(pending.next_id(), "tools/call", expires=math.inf, waiter="one")
    assert pending.match(Result(1, Raw(b"{}")), now=0.0, answers=7) == Orphan("misdirected")
    assert len(pending) == 1
