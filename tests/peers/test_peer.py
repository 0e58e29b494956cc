"""A call through one peer: result types, deadlines, the gate, and rounds of input."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec import Raw

from observant_host.config import Timing
from observant_host.errors import (
    CallTimeout,
    InputRefused,
    InvalidResult,
    Unavailable,
)
from observant_host.peers.input_handlers import InputDeclined, InputHandlers, InputRequest
from observant_host.peers.input_rounds import MAX_ROUNDS
from observant_host.peers.peer import CallReply, Peer
from observant_host.telemetry.vocabulary import RetryScheduled
from tests.peers.desk import META, Desk, server

FORM = {"method": "elicitation/create", "params": {"message": "Your name?"}}


def peer_of(desk: Desk, handlers: InputHandlers | None = None) -> Peer:
    peer = Peer(
        desk.life.server,
        telemetry=desk.telemetry,
        clock=desk.clock,
        handlers=handlers or InputHandlers(),
    )
    peer.attach(desk.life)
    return peer


def call(peer: Peer, params: Any = None, **options: Any) -> asyncio.Task[CallReply]:
    method = options.pop("method", "tools/call")
    return asyncio.create_task(peer.call(method, params or {"name": "t"}, **options))


async def replied(result: Any, *, era: str = "modern", method: str = "tools/call") -> CallReply:
    desk = Desk()
    await (desk.modern(completions={}) if era == "modern" else desk.legacy())
    desk.answer = lambda message: desk.result(message, result)
    return await peer_of(desk).call(method, {"name": "t"})


@pytest.mark.parametrize("kind", [{}, {"resultType": "complete"}, {"resultType": None}])
async def test_complete_and_absent_result_types_are_complete(kind: dict[str, Any]) -> None:
    reply = await replied({"content": [], **kind})
    assert (reply.is_error, reply.era, reply.attempts) == (False, "modern", 1)
    assert json.loads(bytes(reply.raw)) == {"content": [], **kind}


async def test_a_tools_own_error_is_a_result() -> None:
    assert (await replied({"content": [], "isError": True})).is_error
    assert not (await replied({"isError": True}, method="prompts/get")).is_error


@pytest.mark.parametrize(
    ("result", "era", "method"),
    [
        ({"resultType": "task", "taskId": "1"}, "modern", "tools/call"),
        ({"resultType": "partial"}, "modern", "tools/call"),
        ({"resultType": 5}, "modern", "tools/call"),
        ("text", "modern", "tools/call"),
        ({"resultType": "input_required", "requestState": "s"}, "legacy", "tools/call"),
        ({"resultType": "input_required", "requestState": "s"}, "modern", "completion/complete"),
        ({"resultType": "input_required"}, "modern", "tools/call"),
    ],
)
async def test_any_other_result_type_is_invalid(result: Any, era: str, method: str) -> None:
    with pytest.raises(InvalidResult):
        await replied(result, era=era, method=method)


async def test_a_detached_peer_refuses_unsent_and_says_why() -> None:
    desk = await Desk(server(max_in_flight=1)).modern()
    peer = peer_of(desk)
    running = call(peer)
    await desk.settle()
    waiting = call(peer)
    await desk.settle()
    peer.detach("it is being refused", fault="policy")
    with pytest.raises(Unavailable, match="being refused"):
        await waiting
    with pytest.raises(Unavailable) as caught:
        await call(peer)
    assert (caught.value.delivery, caught.value.fault) == ("not_sent", "policy")
    running.cancel()


async def test_parallel_calls_do_not_wait_for_each_other_up_to_the_limit() -> None:
    desk = await Desk(server(max_in_flight=2)).modern()
    peer = peer_of(desk)
    tasks = [call(peer) for _ in range(3)]
    await desk.settle()
    assert len(desk.sent) == 2
    desk.result(desk.sent[1], {})
    await tasks[1]
    await desk.settle()
    assert len(desk.sent) == 3
    for message in (desk.sent[0], desk.sent[2]):
        desk.result(message, {})
    await asyncio.gather(*tasks)
    assert peer.gate.in_flight == 0


async def test_the_servers_own_timeout_is_renewed_by_progress_up_to_the_maximum() -> None:
    timing = Timing(call_timeout_s=10, call_max_s=25)
    desk = await Desk(server(timing=timing)).modern()
    task = call(peer_of(desk))
    await desk.settle()
    for step in (1, 2, 3):
        await desk.clock.advance(8)
        assert not task.done()
        params = {"progressToken": 1, "progress": step}
        desk.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await desk.settle()
    await desk.clock.advance(1.5)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert caught.value.scope == "call"


async def test_a_callers_deadline_is_longer_or_shorter_than_the_servers_and_final() -> None:
    desk = await Desk(server(timing=Timing(call_timeout_s=10))).modern()
    task = call(peer_of(desk), expires=desk.soon(20))
    await desk.clock.advance(19)
    assert not task.done()
    assert "progressToken" not in desk.sent[0]["params"]["_meta"]
    await desk.clock.advance(1.1)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert caught.value.scope == "call"


# input rounds


def wants(state: str | None = None, **requests: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        found["inputRequests"] = requests
    if state is not None:
        found["requestState"] = state
    return found


async def test_input_is_answered_and_the_call_sent_again_with_the_exact_state() -> None:
    asked: list[InputRequest] = []

    async def answer(request: InputRequest) -> dict[str, Any]:
        asked.append(request)
        return {"action": "accept", "content": {"name": "Ada"}}

    handlers = InputHandlers(elicitation=answer)
    desk = await Desk(handlers=handlers).modern()
    state = '{"a": 1, "u": "\u2028\\u0000é"}'

    def server_side(message: dict[str, Any]) -> None:
        if "inputResponses" in message["params"]:
            desk.result(message, {"content": [], "again": True})
        else:
            desk.result(message, wants(state, who=FORM))

    desk.answer = server_side
    params = Raw(b'{"name":"t","arguments":{"n":12345678901234567890}}')
    reply = await peer_of(desk, handlers).call("tools/call", params)
    assert reply.attempts == 2
    first, second = desk.sent
    assert (first["id"], second["id"]) == (1, 2)
    assert "requestState" not in first["params"]
    assert second["params"]["requestState"] == state
    assert second["params"]["arguments"] == {"n": 12345678901234567890}
    assert second["params"]["inputResponses"] == {
        "who": {"action": "accept", "content": {"name": "Ada"}}
    }
    meta = second["params"]["_meta"]
    assert meta[META + "clientCapabilities"] == {"elicitation": {"form": {}}}
    assert meta["progressToken"] == 2
    assert asked[0].server == "tested"
    assert asked[0].decoded() == {"message": "Your name?"}
    assert [fact.reason for fact in desk.facts(RetryScheduled)] == ["input_round"]


async def test_a_new_rounds_state_replaces_the_old_and_an_absent_one_is_omitted() -> None:
    desk = await Desk().modern()
    rounds = iter([wants("first"), wants(""), {"content": []}])
    desk.answer = lambda message: desk.result(message, next(rounds))
    task = call(peer_of(desk))
    await desk.clock.advance(5)
    await task
    assert [one["params"].get("requestState") for one in desk.sent] == [None, "first", ""]
    assert all("inputResponses" not in one["params"] for one in desk.sent)


async def test_state_only_rounds_back_off_and_end() -> None:
    desk = await Desk().modern()
    desk.answer = lambda message: desk.result(message, wants("later"))
    task = call(peer_of(desk))
    await desk.clock.advance(0.2)
    assert len(desk.sent) == 1
    await desk.clock.advance(120)
    with pytest.raises(InvalidResult, match="rounds"):
        await task
    assert len(desk.sent) == MAX_ROUNDS + 1


@pytest.mark.parametrize(
    "wanted",
    [
        FORM,
        {"method": "sampling/createMessage", "params": {}},
        {"method": "no/such"},
    ],
)
async def test_what_nobody_answers_fails_the_call_and_names_it(wanted: dict[str, Any]) -> None:
    desk = await Desk().modern()
    desk.answer = lambda message: desk.result(message, wants(x=wanted))
    with pytest.raises(InputRefused, match=wanted["method"]) as caught:
        await peer_of(desk).call("tools/call", {"name": "t"})
    assert caught.value.delivery == "replied"
    assert len(desk.sent) == 1


async def test_nobody_is_asked_where_one_wish_of_several_is_forbidden() -> None:
    asked: list[InputRequest] = []

    async def answer(request: InputRequest) -> dict[str, Any]:
        asked.append(request)
        return {"action": "accept"}

    handlers = InputHandlers(elicitation=answer, elicitation_modes=("form", "url"))
    desk = await Desk(handlers=handlers).modern()
    evil = {
        "method": "elicitation/create",
        "params": {"mode": "url", "url": "javascript:alert(1)"},
    }
    desk.answer = lambda message: desk.result(message, wants(a=FORM, b=evil))
    with pytest.raises(InputRefused, match="http"):
        await peer_of(desk, handlers).call("tools/call", {"name": "t"})
    assert asked == []


@pytest.mark.parametrize(("error", "fault"), [(InputDeclined, "caller"), (KeyError, "host")])
async def test_a_handler_that_declines_or_fails_ends_the_call(
    error: type[Exception], fault: str
) -> None:
    async def answer(_request: InputRequest) -> dict[str, Any]:
        raise error

    handlers = InputHandlers(elicitation=answer)
    desk = await Desk(handlers=handlers).modern()
    desk.answer = lambda message: desk.result(message, wants(who=FORM))
    with pytest.raises(InputRefused) as caught:
        await peer_of(desk, handlers).call("tools/call", {"name": "t"})
    assert caught.value.fault == fault


async def test_a_thinking_person_holds_no_place_and_may_be_cancelled_without_a_word() -> None:
    async def think(_request: InputRequest) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    handlers = InputHandlers(elicitation=think)
    desk = await Desk(server(max_in_flight=1), handlers=handlers).modern()
    desk.answer = lambda message: desk.result(message, wants(who=FORM))
    peer = peer_of(desk, handlers)
    task = call(peer)
    await desk.settle()
    assert peer.gate.in_flight == 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await desk.settle()
    assert desk.methods() == ["tools/call"]


async def test_a_thinking_person_is_bounded_by_the_call_not_by_the_attempt() -> None:
    async def think(_request: InputRequest) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    handlers = InputHandlers(elicitation=think)
    timing = Timing(call_timeout_s=5, call_max_s=50)
    desk = await Desk(server(timing=timing), handlers=handlers).modern()
    desk.answer = lambda message: desk.result(message, wants(who=FORM))
    task = call(peer_of(desk, handlers))
    await desk.clock.advance(49)
    assert not task.done()
    await desk.clock.advance(2)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert caught.value.scope == "call"


async def test_a_calls_own_handlers_decide_what_it_declares() -> None:
    async def answer(_request: InputRequest) -> dict[str, Any]:
        return {"roots": []}

    desk = await Desk().modern()
    rounds = iter([wants(r={"method": "roots/list"}), {}])
    desk.answer = lambda message: desk.result(message, next(rounds))
    await peer_of(desk).call("tools/call", {"name": "t"}, handlers=InputHandlers(roots=answer))
    for message in desk.sent:
        assert message["params"]["_meta"][META + "clientCapabilities"] == {"roots": {}}


async def test_an_answer_that_does_not_fit_the_form_ends_the_call_unsent() -> None:
    async def wrong(_request: InputRequest) -> dict[str, Any]:
        return {"action": "accept", "content": {"age": "old"}}

    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    form = {**FORM, "params": {"message": "?", "requestedSchema": schema}}
    handlers = InputHandlers(elicitation=wrong)
    desk = await Desk(handlers=handlers).modern()
    desk.answer = lambda message: desk.result(message, wants(who=form))
    with pytest.raises(InputRefused, match="age") as caught:
        await peer_of(desk, handlers).call("tools/call", {"name": "t"})
    assert caught.value.fault == "host"
    assert len(desk.sent) == 1
