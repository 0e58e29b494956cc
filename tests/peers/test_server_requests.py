"""A legacy server's own requests: answered by id, in bounded tasks, never in the reader."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from observant_host.peers.input_handlers import (
    InputDeclined,
    InputHandlers,
    InputRequest,
    forbidden,
)
from observant_host.peers.server_requests import MAX_RUNNING
from tests.peers.desk import Desk


def ask(request_id: Any, method: str, params: Any = None) -> dict[str, Any]:
    body = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **body}


async def accept(_request: InputRequest) -> dict[str, Any]:
    return {"action": "accept", "content": {}}


async def decline(_request: InputRequest) -> dict[str, Any]:
    raise InputDeclined


async def fail(_request: InputRequest) -> dict[str, Any]:
    raise ValueError("the program's bug")


@pytest.mark.parametrize("depth", [1, 5000])
def test_a_wish_is_judged_whatever_numbers_and_depth_it_has(depth: int) -> None:
    params = Raw(b'{"n":1e400,"deep":%b}' % (b"[" * depth + b"]" * depth))
    wish = InputRequest(server="s", kind="elicitation", method="elicitation/create", params=params)
    problem = forbidden(wish, InputHandlers())
    assert problem is None if depth == 1 else "nested" in (problem or "")


async def test_ping_is_answered_also_while_initialize_is_pending_but_not_before() -> None:
    desk = Desk()
    await desk.life.open()
    desk.say(ask(7, "ping"))
    await desk.settle()
    assert desk.sent == []
    desk.life.send_initialize("2025-11-25")
    desk.say(ask(8, "ping"))
    await desk.settle()
    assert desk.sent[1:] == [{"jsonrpc": "2.0", "id": 8, "result": {}}]
    assert desk.drops() == ["request_from_unknown_server"]


async def test_what_is_not_declared_is_refused_at_once() -> None:
    desk = await Desk().legacy()
    for number, method in enumerate(("roots/list", "elicitation/create", "no/such"), start=1):
        desk.say(ask(f"s{number}", method))
    await desk.settle()
    assert [(one["id"], one["error"]["code"]) for one in desk.sent] == [
        ("s1", -32601),
        ("s2", -32601),
        ("s3", -32601),
    ]


@pytest.mark.parametrize(
    ("handlers", "method", "params", "expected"),
    [
        (
            InputHandlers(elicitation=accept),
            "elicitation/create",
            {"message": "?"},
            {"action": "accept", "content": {}},
        ),
        (InputHandlers(elicitation=accept), "elicitation/create", {"mode": "mind"}, -32602),
        (
            InputHandlers(elicitation=accept),
            "elicitation/create",
            {"mode": "url", "url": "javascript:alert(1)"},
            -32602,
        ),
        (InputHandlers(sampling=accept), "sampling/createMessage", {"tools": []}, -32602),
        (InputHandlers(sampling=decline), "sampling/createMessage", {}, -1),
        (InputHandlers(roots=fail), "roots/list", None, -32603),
    ],
)
async def test_a_handler_answers_or_its_refusal_gets_the_documented_code(
    handlers: InputHandlers, method: str, params: Any, expected: Any
) -> None:
    desk = await Desk(handlers=handlers).legacy()
    desk.say(ask(1, method, params))
    await desk.settle()
    (answer,) = desk.sent
    assert answer["id"] == 1
    assert answer.get("result", answer.get("error", {}).get("code")) == expected


async def test_a_thinking_person_blocks_nothing_and_may_be_called_off() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def think(_request: InputRequest) -> dict[str, Any]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return {}

    desk = await Desk(handlers=InputHandlers(elicitation=think)).legacy()
    desk.say(ask(1, "elicitation/create", {}))
    await started.wait()
    desk.say(ask(2, "ping"))
    await desk.settle()
    assert desk.sent == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    desk.say({**note, "params": {"requestId": "1"}})
    await desk.settle()
    assert not cancelled.is_set()
    desk.say({**note, "params": {"requestId": 1}})
    await cancelled.wait()
    await desk.settle()
    assert len(desk.sent) == 1
    assert desk.drops() == ["cancelled_unknown_request"]


async def test_handlers_are_bounded_and_end_with_the_life() -> None:
    running = 0

    async def think(_request: InputRequest) -> dict[str, Any]:
        nonlocal running
        running += 1
        try:
            await asyncio.Event().wait()
        finally:
            running -= 1
        return {}

    desk = await Desk(handlers=InputHandlers(elicitation=think)).legacy()
    for number in range(MAX_RUNNING + 1):
        desk.say(ask(number, "elicitation/create", {}))
    desk.say(ask(0, "elicitation/create", {}))
    await desk.settle()
    assert running == MAX_RUNNING
    assert [one["error"]["code"] for one in desk.sent] == [-32603, -32603]
    await desk.life.close()
    await desk.settle()
    assert running == 0


async def test_a_reused_id_does_not_start_a_second_handler() -> None:
    async def think(_request: InputRequest) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    desk = await Desk(handlers=InputHandlers(elicitation=think)).legacy()
    desk.say(ask(1, "elicitation/create", {}))
    desk.say(ask(1, "elicitation/create", {}))
    await desk.settle()
    assert desk.drops() == ["server_request_id_reused"]
    await desk.life.close()


async def test_only_handlers_are_declared() -> None:
    handlers = InputHandlers(elicitation=accept, roots=accept)
    desk = Desk(handlers=handlers)
    await desk.life.open()
    desk.life.send_initialize("2025-11-25")
    await desk.settle()
    assert desk.sent[0]["params"]["capabilities"] == {
        "elicitation": {"form": {}},
        "roots": {},
    }


async def test_an_answer_that_does_not_fit_the_form_never_reaches_the_server() -> None:
    async def wrong(_request: InputRequest) -> dict[str, Any]:
        return {"action": "accept", "content": {"age": "old"}}

    schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    desk = await Desk(handlers=InputHandlers(elicitation=wrong)).legacy()
    desk.say(ask(1, "elicitation/create", {"message": "?", "requestedSchema": schema}))
    await desk.settle()
    assert [one["error"]["code"] for one in desk.sent] == [-32603]
