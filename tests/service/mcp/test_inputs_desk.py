"""Rounds of input at the counter itself: other callers, other times, and what a server overdoes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from msgspec import Raw

from observant_host.service.callers import Caller
from observant_host.service.mcp.desk import Desk
from observant_host.service.mcp.parking import PARK_S
from observant_host.service.mcp.sealing import LIFETIME_S, MAX_STATE
from observant_host.telemetry import vocabulary
from observant_host.timing.clock import SystemClock
from observant_host.wire.jsonrpc import Request
from tests.support.agent import KEY, STAMP
from tests.support.hosts import add, facts, quick_host, reach

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from observant_host.service.mcp.outlet import Response
    from observant_host.telemetry.finished import Finished

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANN = Caller(principal="ann", scopes=frozenset({"mcp"}))
BOB = Caller(principal="bob", scopes=frozenset({"mcp"}))
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
ASKED = {"state": "s"}
WAITING = {"method": "elicitation/create", "params": FORM}


class Later(SystemClock):
    """The real clock, `by` seconds further on the wall."""

    by = 0

    def wall_ns(self) -> int:
        return super().wall_ns() + self.by * 1_000_000_000


class Heard:
    """An outlet that keeps what is said."""

    closed = False
    cut: str | None = None

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        self.notes: list[dict[str, Any]] = []

    def notify(self, message: bytes) -> None:
        self.notes.append(json.loads(message))

    async def respond(self, response: Response) -> None:
        self.said = json.loads(response.whole())


class Counter:
    def __init__(self, desk: Desk, clock: Later, told: list[Finished]) -> None:
        self.desk, self.clock, self.told = desk, clock, told

    async def call(
        self, name: str, arguments: Any, *, caller: Caller = ANN, **more: Any
    ) -> dict[str, Any]:
        meta = {**STAMP, f"{KEY}clientCapabilities": {"elicitation": {}}}
        params = {"name": name, "arguments": arguments, "_meta": meta, **more}
        out = Heard()
        request = Request(1, "tools/call", Raw(json.dumps(params).encode()))
        await self.desk.answer(request, caller, era="modern", out=out)
        return out.said


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def counter() -> AsyncIterator[Counter]:
    host, told = quick_host(relay_input=True)
    add(host, "new", {"tools": "dialogue,ask"})
    add(host, "old", {"era": "legacy", "tools": "request"}, allow_legacy=True)
    async with host:
        for name in ("new", "old"):
            await reach(host, name, "ready")
        clock = Later()
        desk = Desk(host, clock=clock)
        yield Counter(desk, clock, told)
        desk.close()


async def state_of(counter: Counter, name: str, arguments: Any) -> str:
    state: str = (await counter.call(name, arguments))["result"]["requestState"]
    return state


async def test_each_round_is_told_with_its_number_and_with_the_trace_it_began_in(
    counter: Counter,
) -> None:
    counter.told.clear()
    state = await state_of(counter, "dialogue", ASKED)
    await counter.call("dialogue", ASKED, requestState=state)
    sent = [one for one in facts(counter.told, vocabulary.Request) if one.method == "tools/call"]
    assert [one.round for one in sent] == [0, 1]
    first, second = (
        one for one in counter.told if isinstance(one.fact, vocabulary.NorthboundRequest)
    )
    assert [(one.name, one.attributes["round"]) for one in first.events] == [("input_required", 1)]
    (event,) = second.events
    assert event.name == "input_round"
    assert event.attributes["began_in"] == first.context.traceparent()


@pytest.mark.parametrize(("name", "arguments"), [("dialogue", ASKED), ("request", WAITING)])
async def test_what_one_caller_was_given_is_nothing_in_anothers_hands(
    counter: Counter, name: str, arguments: Any
) -> None:
    state = await state_of(counter, name, arguments)
    said = await counter.call(name, arguments, caller=BOB, requestState=state)
    assert said["error"]["code"] == -32602
    assert "somebody else" in said["error"]["message"]


async def test_it_is_good_for_an_hour(counter: Counter) -> None:
    state = await state_of(counter, "dialogue", ASKED)
    counter.clock.by = LIFETIME_S + 1
    try:
        said = await counter.call("dialogue", ASKED, requestState=state)
    finally:
        counter.clock.by = 0
    assert said["error"]["code"] == -32602
    assert "expired" in said["error"]["message"]
    assert "result" in await counter.call("dialogue", ASKED, requestState=state)


async def test_a_caller_that_comes_back_too_late_is_told_what_became_of_its_call(
    counter: Counter,
) -> None:
    state = await state_of(counter, "request", WAITING)
    parking = counter.desk.inputs.parking
    assert len(parking) > 0
    for parked in parking.all():
        parked.expire()
    said = await counter.call("request", WAITING, requestState=state)
    assert said["result"]["isError"] is True
    text = said["result"]["content"][0]["text"]
    assert f"{PARK_S:.0f} s" in text
    assert "may have been executed" in text


async def test_a_server_that_gives_a_document_to_carry_is_refused(counter: Counter) -> None:
    said = await counter.call("dialogue", {"state": "x" * (MAX_STATE + 1)})
    assert said["result"]["isError"] is True
    assert "requestState" in said["result"]["content"][0]["text"]


async def test_an_unknown_tool_is_unknown_whatever_is_carried(counter: Counter) -> None:
    said = await counter.call("no_such", {}, requestState="oh1.x")
    assert said["error"]["code"] == -32602
    assert "no_such" in said["error"]["message"]


async def test_an_older_caller_without_a_way_to_be_asked_is_told_so_by_its_server(
    counter: Counter,
) -> None:
    out = Heard()
    params = Raw(json.dumps({"name": "request", "arguments": WAITING}).encode())
    await counter.desk.answer(
        Request(1, "tools/call", params),
        ANN,
        era="legacy",
        version="2025-06-18",
        capabilities={"elicitation": {}},
        out=out,
    )
    assert json.loads(out.said["result"]["content"][0]["text"])["error"]["code"] == -32601
