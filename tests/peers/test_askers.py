"""Whose call a legacy server asks for, and what that costs the call of its time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from observant_host.peers.askers import Askers
from observant_host.peers.errand import Errand
from observant_host.peers.input_handlers import NO_HANDLERS, InputHandlers, InputRequest
from observant_host.peers.open_call import OpenCall
from observant_host.peers.pending import Pending
from observant_host.peers.relay import InOldWords, Refused, offered, relayed, unanswered
from observant_host.telemetry.facade import TraceContext
from observant_host.timing.deadline import Sweep
from tests.peers.desk import Desk
from tests.support.clock import ManualClock

OWN = InputHandlers()
NONE = Raw(b'{"roots":[]}')


class Person:
    """A Relay whose answers a test says."""

    def __init__(self, audience: object, answer: Raw | Refused = NONE) -> None:
        self.audience = audience
        self.answer = answer
        self.asked: list[tuple[str, bytes]] = []

    async def ask(self, method: str, params: Raw) -> Raw | Refused:
        self.asked.append((method, bytes(params)))
        return self.answer


def of(audience: object) -> InputHandlers:
    return relayed({"roots": {}}, Person(audience))


class Open:
    """Open calls of one life."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.pending: Pending[Any] = Pending()
        self.sweep = Sweep(self.clock, lambda _now: None)
        self.askers = Askers(self.pending, OWN, sweep=self.sweep, clock=self.clock)

    def call(self, handlers: InputHandlers | None, method: str = "tools/call") -> int:
        errand = Errand(method, expires=1060.0, latest=1600.0, handlers=handlers)
        number = self.pending.next_id()
        future = asyncio.get_running_loop().create_future()
        call = OpenCall(errand, future, number, 1000.0, TraceContext(1, 1))
        self.pending.add(call)
        return number


async def test_with_no_call_open_or_none_of_its_own_the_host_answers() -> None:
    there = Open()
    assert there.askers.of(None).handlers is OWN
    there.call(of("ann"), "tools/list")
    assert there.askers.of(None).handlers is OWN
    there.call(None)
    there.call(None, "prompts/get")
    assert there.askers.of(None).handlers is OWN


async def test_the_only_open_call_is_the_one_that_asks() -> None:
    there, ann = Open(), of("ann")
    there.call(ann)
    assert there.askers.of(None).handlers is ann


async def test_of_several_calls_the_response_it_came_on_tells() -> None:
    there, ann, bob = Open(), of("ann"), of("bob")
    first, second = there.call(ann), there.call(bob)
    assert there.askers.of(first).handlers is ann
    assert there.askers.of(second).handlers is bob
    assert there.askers.of(99).handlers is OWN


@pytest.mark.parametrize(
    ("several", "known"),
    [
        ([of("ann"), of("ann")], True),
        ([of("ann"), of("bob")], False),
        ([of("ann"), None], False),
        ([NO_HANDLERS, NO_HANDLERS], True),
        ([of("ann"), NO_HANDLERS], False),
    ],
)
async def test_calls_of_several_people_are_never_mixed_up(
    several: list[InputHandlers | None], known: bool
) -> None:
    there = Open()
    for one in several:
        there.call(one)
    assert (there.askers.of(None).handlers is not None) is known


async def test_while_somebody_thinks_the_calls_own_time_stands_still() -> None:
    there = Open()
    number = there.call(of("ann"))
    await there.clock.advance(50)
    asker = there.askers.of(None)
    left = there.askers.pause(asker)
    entry = there.pending.get(number)
    assert entry is not None
    assert entry.expires == 1600.0
    await there.clock.advance(500)
    there.askers.resume(asker, left)
    assert entry.expires == 1560.0
    await there.clock.advance(5)
    left = there.askers.pause(asker)
    await there.clock.advance(40)
    there.askers.resume(asker, left)
    assert entry.expires == 1600.0  # never past its latest
    there.sweep.close()


def test_a_server_is_told_what_the_caller_can_but_for_tasks() -> None:
    assert offered({"elicitation": {}, "tasks": {}, "roots": None, "sampling": 1}) == {
        "elicitation": {}
    }
    assert offered({"extensions": {"io.modelcontextprotocol/tasks": {}}}) == {}
    assert offered({"extensions": {"a/b": {"c": 1}}}) == {"extensions": {"a/b": {"c": 1}}}


@pytest.mark.parametrize(
    ("said", "modes"),
    [
        ({}, ("form",)),
        ({"form": {}}, ("form",)),
        ({"url": {}}, ("url",)),
        ({"url": {}, "form": {}}, ("form", "url")),
    ],
)
def test_an_empty_elicitation_means_forms(said: dict[str, Any], modes: tuple[str, ...]) -> None:
    assert relayed({"elicitation": said}, Person("a")).elicitation_modes == modes


def test_only_elicitation_has_a_word_for_nobody() -> None:
    assert unanswered("elicitation/create") == Raw(b'{"action":"cancel"}')
    assert isinstance(unanswered("roots/list"), Refused)


@pytest.mark.parametrize(
    ("params", "gets_id"),
    [
        (b'{"mode":"url","url":"https://a.example"}', True),
        (b'{"mode":"url","elicitationId":"theirs"}', False),
        (b'{"title":"url"}', False),
        (b'{"mode":"form"}', False),
    ],
)
async def test_an_older_client_gets_an_id_with_an_address(params: bytes, gets_id: bool) -> None:
    person = Person("ann")
    await InOldWords(person).ask("elicitation/create", Raw(params))
    ((_, heard),) = person.asked
    assert (heard != params) is gets_id
    assert (b'"elicitationId":"' in heard) is (gets_id or b"theirs" in params)
    assert InOldWords(person).audience == "ann"


def ask(number: int, method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def test_a_relaying_host_says_at_the_start_what_callers_may_have() -> None:
    desk = Desk(handlers=InputHandlers(relays=True))
    await desk.life.open()
    desk.life.send_initialize("2025-11-25")
    await desk.settle()
    declared = desk.sent[0]["params"]["capabilities"]
    assert declared == {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Raw(b'{"roots":[{"uri":"file:///x","odd":1.50}]}'), {"roots": [{"uri": "file:///x"}]}),
        (Refused(-32000, "not now"), -32000),
        (Raw(b"[]"), -32603),
    ],
)
async def test_the_callers_own_answer_or_refusal_is_the_servers(
    answer: Raw | Refused, expected: Any
) -> None:
    person = Person("ann", answer)
    desk = await Desk(handlers=InputHandlers(relays=True)).legacy()
    errand = Errand("tools/call", expires=1e9, handlers=relayed({"roots": {}}, person))
    asking = asyncio.ensure_future(desk.life.run(errand, {"name": "t"}))
    await desk.settle()
    desk.say(ask(7, "roots/list", {"a": 1}))
    desk.say(ask(8, "sampling/createMessage", {}))
    await desk.settle()
    answers = {one["id"]: one for one in desk.sent if "method" not in one}
    assert answers[8]["error"]["code"] == -32601  # this caller has not declared it
    assert person.asked == [("roots/list", b'{"a": 1}')]
    if isinstance(expected, int):
        assert answers[7]["error"]["code"] == expected
    else:
        assert answers[7]["result"]["roots"][0]["uri"] == "file:///x"
        assert answers[7]["result"]["roots"][0]["odd"] == 1.5
    asking.cancel()


async def test_between_two_callers_a_server_is_told_that_it_cannot_be_known() -> None:
    desk = await Desk(handlers=InputHandlers(relays=True)).legacy()
    people = [Person("ann"), Person("bob")]
    calls = [
        asyncio.ensure_future(
            desk.life.run(
                Errand("tools/call", expires=1e9, handlers=relayed({"roots": {}}, one)), {}
            )
        )
        for one in people
    ]
    await desk.settle()
    desk.say(ask(7, "roots/list", {}))
    await desk.settle()
    (answer,) = [one for one in desk.sent if one["id"] == 7]
    assert answer["error"]["code"] == -32603
    assert not any(one.asked for one in people)
    for call in calls:
        call.cancel()


async def test_a_request_is_shown_as_the_servers() -> None:
    person = Person("a", Refused(-1, "no"))
    handler = relayed({"roots": {}}, person).roots
    assert handler is not None
    asked = InputRequest(server="s", kind="roots", method="roots/list", params=Raw(b"{}"))
    with pytest.raises(Exception, match="no"):
        await handler(asked)
