"""A legacy HTTP session that its server has forgotten, on a clock that stands still."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from observant_host.decisions.terms import Reason
from observant_host.errors import CallTimeout, Unavailable
from observant_host.peers.sessions import MAX_SENDS, MAX_USELESS
from observant_host.telemetry.vocabulary import Request, RetryScheduled
from tests.peers.web_desk import WebDesk, error_body, initialized

if TYPE_CHECKING:
    from msgspec import Raw

    from observant_host.transports.base import Outbound


def call(desk: WebDesk, seconds: float = 60.0) -> asyncio.Task[Raw]:
    return asyncio.ensure_future(
        desk.life.request("tools/call", {"name": "t"}, expires=desk.soon(seconds))
    )


async def lost(desk: WebDesk, calls: int = 1, seconds: float = 60.0) -> list[asyncio.Task[Raw]]:
    """So many calls, each refused for its session; `initialize` is now under way."""
    waiting = [call(desk, seconds) for _ in range(calls)]
    await desk.clock.settle()
    for out in tuple(desk.transport.sent):
        desk.lose(out, "session_lost", status=404)
    await desk.clock.settle()
    return waiting


def only(desk: WebDesk, method: str) -> list[Outbound]:
    return [out for out in desk.transport.sent if out.method == method]


async def test_all_refused_calls_share_one_initialize_and_are_then_sent_once_more() -> None:
    desk = await WebDesk().legacy()
    waiting = await lost(desk, calls=3)
    (asked,) = only(desk, "initialize")
    assert (asked.version, desk.transport.forgets) == (None, 1)
    late = call(desk)
    await desk.clock.settle()
    assert len(only(desk, "tools/call")) == 3  # it waits for the new session too
    desk.result(asked, initialized())
    await desk.clock.settle()
    assert desk.methods()[4] == "notifications/initialized"
    again = only(desk, "tools/call")[3:]
    assert len(again) == 4
    for out in again:
        desk.result(out, {})
    await asyncio.gather(*waiting, late)
    assert (desk.life.session, desk.listener.renewals, desk.transport.listens) == (2, 1, 1)
    assert len({out.request_id for out in only(desk, "tools/call")}) == 7
    retries = [one.fact for one in desk.told if type(one.fact) is RetryScheduled]
    assert [one.reason for one in retries] == ["session_lost"] * 3
    purposes = [one.fact.purpose for one in desk.told if type(one.fact) is Request]
    assert purposes.count("session") == 1


async def test_a_refusal_that_comes_after_the_renewal_needs_no_second_one() -> None:
    desk = await WebDesk().legacy()
    slow, quick = call(desk), call(desk)
    await desk.clock.settle()
    first, second = only(desk, "tools/call")
    desk.lose(second, "session_lost", status=404)
    await desk.clock.settle()
    desk.result(only(desk, "initialize")[0], initialized())
    await desk.clock.settle()
    desk.lose(first, "session_lost", status=404)
    await desk.clock.settle()
    assert len(only(desk, "initialize")) == 1
    for out in only(desk, "tools/call")[2:]:
        desk.result(out, {})
    await asyncio.gather(slow, quick)


async def test_a_call_that_is_refused_again_is_not_sent_a_third_time() -> None:
    desk = await WebDesk().legacy()
    (waiting,) = await lost(desk)
    desk.result(only(desk, "initialize")[0], initialized())
    await desk.clock.settle()
    desk.lose(only(desk, "tools/call")[-1], "session_lost", status=404)
    with pytest.raises(Unavailable, match="no longer knows this session") as failed:
        await waiting
    assert failed.value.delivery == "not_sent"
    assert len(only(desk, "tools/call")) == 2
    assert desk.listener.breaks == []


async def test_a_server_that_refuses_its_own_new_sessions_is_not_asked_for_more_and_more() -> None:
    desk = await WebDesk().legacy()
    while not desk.listener.breaks:
        waiting = call(desk)
        await desk.clock.settle()
        while not waiting.done():
            desk.lose(only(desk, "tools/call")[-1], "session_lost", status=404)
            await desk.clock.settle()
            if not waiting.done():
                desk.result(only(desk, "initialize")[-1], initialized())
                await desk.clock.settle()
        with pytest.raises(Unavailable, match="no longer knows this session"):
            await waiting
    assert {reason for reason, _ in desk.listener.breaks} == {Reason.HTTP_UNAVAILABLE}
    assert len(only(desk, "initialize")) <= MAX_USELESS


async def test_calls_that_outnumber_what_a_session_serves_go_on_in_the_next_ones() -> None:
    desk = await WebDesk().legacy()
    waiting = await lost(desk, calls=4)
    for served in range(1, 5):
        desk.result(only(desk, "initialize")[-1], initialized())
        await desk.clock.settle()
        first, *others = only(desk, "tools/call")[-(5 - served) :]
        desk.result(first, {})
        await desk.clock.settle()
        for out in others:
            desk.lose(out, "session_lost", status=404)
        await desk.clock.settle()
    await asyncio.gather(*waiting)
    assert len(only(desk, "initialize")) == 4


async def test_a_refusal_that_overtakes_an_answer_of_its_session_ends_no_call() -> None:
    desk = await WebDesk().legacy()
    waiting = await lost(desk, calls=2)
    desk.result(only(desk, "initialize")[-1], initialized())
    await desk.clock.settle()
    refused, answered = only(desk, "tools/call")[-2:]
    desk.lose(refused, "session_lost", status=404)
    await desk.clock.settle()
    desk.result(answered, {})
    desk.result(only(desk, "initialize")[-1], initialized())
    await desk.clock.settle()
    desk.result(only(desk, "tools/call")[-1], {})
    await asyncio.gather(*waiting)
    assert len(only(desk, "initialize")) == 2


async def test_a_call_that_every_session_refuses_ends_however_well_others_fare() -> None:
    desk = await WebDesk().legacy()
    (waiting,) = await lost(desk)
    while not waiting.done():
        desk.result(only(desk, "initialize")[-1], initialized())
        await desk.clock.settle()
        other = call(desk)
        await desk.clock.settle()
        refused, answered = only(desk, "tools/call")[-2:]
        desk.result(answered, {})
        await other
        desk.lose(refused, "session_lost", status=404)
        await desk.clock.settle()
    with pytest.raises(Unavailable, match="no longer knows this session"):
        await waiting
    assert len(only(desk, "initialize")) == MAX_SENDS - 1
    assert desk.listener.breaks == []


async def test_without_an_allowance_nothing_is_renewed_and_the_life_is_over() -> None:
    desk = await WebDesk().legacy()
    desk.listener.refused = Reason.ALLOWANCE_EXPIRED
    (waiting,) = await lost(desk)
    with pytest.raises(Unavailable, match="nothing was executed"):
        await waiting
    assert only(desk, "initialize") == []
    assert [reason for reason, _ in desk.listener.breaks] == [Reason.ALLOWANCE_EXPIRED]
    with pytest.raises(Unavailable, match="nothing was executed"):
        await call(desk)


@pytest.mark.parametrize(
    "answer",
    [initialized("2025-06-18"), {"protocolVersion": "2025-11-25"}, {}],
    ids=["another revision", "no valid result", "empty"],
)
async def test_an_answer_that_gives_no_session_of_this_era_ends_the_life(answer: object) -> None:
    desk = await WebDesk().legacy()
    (waiting,) = await lost(desk)
    desk.result(only(desk, "initialize")[0], answer)
    with pytest.raises(Unavailable, match="got no new one"):
        await waiting
    assert [reason for reason, _ in desk.listener.breaks] == [Reason.HTTP_UNAVAILABLE]
    assert only(desk, "notifications/initialized") == []


async def test_a_refused_or_silent_initialize_ends_the_life() -> None:
    for silent in (False, True):
        desk = await WebDesk().legacy()
        (waiting,) = await lost(desk)
        if silent:
            await desk.clock.advance(6.0)
        else:
            desk.lose(only(desk, "initialize")[0], "status", status=500)
        with pytest.raises(Unavailable, match="got no new one"):
            await waiting
        assert len(desk.listener.breaks) == 1


async def test_modern_evidence_in_its_answer_is_late_modern_evidence() -> None:
    desk = await WebDesk().legacy()
    (waiting,) = await lost(desk)
    asked = only(desk, "initialize")[0]
    body = error_body(-32022, asked.request_id)
    desk.lose(asked, "status", status=400, body=body)
    with pytest.raises(Unavailable):
        await waiting
    assert desk.listener.late_modern == 1
    assert desk.listener.breaks == []


async def test_no_call_waits_for_a_session_longer_than_its_own_time() -> None:
    desk = await WebDesk().legacy()
    (waiting,) = await lost(desk, seconds=2.0)
    await desk.clock.advance(2.5)
    with pytest.raises(CallTimeout, match="new session") as failed:
        await waiting
    assert failed.value.delivery == "not_sent"


async def test_closing_ends_those_who_wait_for_a_session() -> None:
    desk = await WebDesk().legacy()
    waiting = await lost(desk, calls=2)
    await desk.life.close()
    for one in waiting:
        with pytest.raises(Unavailable):
            await one
