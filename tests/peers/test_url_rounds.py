"""One old revision refuses a call until a person has opened an address."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from observant_host.config import Timing
from observant_host.errors import CallTimeout, InputRefused, RpcError
from observant_host.peers.input_handlers import InputHandlers, InputRequest
from observant_host.peers.input_rounds import MAX_ROUNDS
from observant_host.peers.peer import Peer
from tests.peers.desk import Desk, server

URL = "https://example.com/connect"


def wanted(*known: str, url: str = URL, **more: Any) -> dict[str, Any]:
    return {
        "elicitations": [
            {"mode": "url", "elicitationId": one, "url": url, "message": "?", **more}
            for one in known
        ]
    }


class Person:
    def __init__(self, action: str = "accept") -> None:
        self.asked: list[dict[str, Any]] = []
        self.action = action

    async def __call__(self, request: InputRequest) -> dict[str, Any]:
        self.asked.append(request.decoded())
        return {"action": self.action, "content": {"a": 1}}

    def handlers(self, *modes: Any) -> InputHandlers:
        return InputHandlers(elicitation=self, elicitation_modes=modes or ("form", "url"))


async def refusing(
    person: Person, *errors: Any, version: str = "2025-11-25", modes: Any = ()
) -> tuple[Desk, Peer]:
    """A server that refuses once for each of these, then answers."""
    handlers = person.handlers(*modes)
    timing = Timing(call_timeout_s=10, call_max_s=500)
    desk = await Desk(server(timing=timing), handlers=handlers).legacy(version)
    left = list(errors)

    def answer(message: dict[str, Any]) -> None:
        if left:
            desk.error(message, -32042, left.pop(0))
        else:
            desk.result(message, {"content": []})

    desk.answer = answer
    peer = Peer(desk.life.server, telemetry=desk.telemetry, clock=desk.clock, handlers=handlers)
    peer.attach(desk.life)
    return desk, peer


async def test_each_address_is_shown_and_the_call_is_sent_again_unchanged() -> None:
    person = Person()
    desk, peer = await refusing(person, wanted("a", "b"))
    reply = await peer.call("tools/call", {"name": "t", "arguments": {"n": 1}})
    assert [one["elicitationId"] for one in person.asked] == ["a", "b"]
    assert person.asked[0]["url"] == URL
    assert reply.attempts == 2
    first, second = desk.sent
    assert first["id"] != second["id"]
    assert first["params"]["arguments"] == second["params"]["arguments"] == {"n": 1}
    assert not {"inputResponses", "requestState"} & second["params"].keys()


async def test_the_same_address_is_not_shown_twice_but_asked_after_with_pauses() -> None:
    person = Person()
    desk, peer = await refusing(person, wanted("a"), wanted("a"), wanted("a", "b"))
    task = asyncio.create_task(peer.call("tools/call", {"name": "t"}))
    await desk.settle()
    assert len(desk.sent) == 2
    await desk.clock.advance(1.1)
    await task
    assert [one["elicitationId"] for one in person.asked] == ["a", "b"]
    assert len(desk.sent) == 4


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_refused_address_ends_the_call(action: str) -> None:
    desk, peer = await refusing(Person(action), wanted("a"))
    with pytest.raises(InputRefused) as caught:
        await peer.call("tools/call", {"name": "t"})
    assert caught.value.fault == "caller"
    assert len(desk.sent) == 1


async def test_a_server_that_refuses_for_ever_is_given_up() -> None:
    desk, peer = await refusing(Person(), *[wanted("a")] * 50)
    task = asyncio.create_task(peer.call("tools/call", {"name": "t"}))
    await desk.clock.advance(400)
    with pytest.raises(RpcError) as caught:
        await task
    assert caught.value.code == -32042
    assert len(desk.sent) == MAX_ROUNDS + 1


async def test_a_person_who_thinks_is_bounded_by_the_call() -> None:
    class Thinking(Person):
        async def __call__(self, request: InputRequest) -> dict[str, Any]:
            await asyncio.Event().wait()
            return {}

    desk, peer = await refusing(Thinking(), wanted("a"))
    task = asyncio.create_task(peer.call("tools/call", {"name": "t"}, expires=desk.soon(100)))
    await desk.clock.advance(101)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert caught.value.scope == "call"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_in_other_revisions_the_code_means_nothing(version: str) -> None:
    person = Person()
    _, peer = await refusing(person, wanted("a"), version=version)
    with pytest.raises(RpcError):
        await peer.call("tools/call", {"name": "t"})
    assert person.asked == []


async def test_in_the_modern_era_the_code_means_nothing() -> None:
    person = Person()
    desk = await Desk(handlers=person.handlers()).modern()
    desk.answer = lambda message: desk.error(message, -32042, wanted("a"))
    peer = Peer(
        desk.life.server, telemetry=desk.telemetry, clock=desk.clock, handlers=person.handlers()
    )
    peer.attach(desk.life)
    with pytest.raises(RpcError):
        await peer.call("tools/call", {"name": "t"})
    assert (person.asked, len(desk.sent)) == ([], 1)


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"elicitations": []},
        {"elicitations": "a"},
        {"elicitations": [{"mode": "form", "elicitationId": "a"}]},
        {"elicitations": [{"mode": "url", "url": URL}]},
    ],
)
async def test_a_refusal_without_an_address_is_an_ordinary_error(data: Any) -> None:
    person = Person()
    _, peer = await refusing(person, data)
    with pytest.raises(RpcError):
        await peer.call("tools/call", {"name": "t"})
    assert person.asked == []


async def test_a_host_that_shows_no_addresses_passes_the_error_on() -> None:
    person = Person()
    _, peer = await refusing(person, wanted("a"), modes=("form",))
    with pytest.raises(RpcError):
        await peer.call("tools/call", {"name": "t"})
    assert person.asked == []


async def test_an_address_that_is_no_web_address_is_never_shown() -> None:
    person = Person()
    _, peer = await refusing(person, wanted("a", url="javascript:alert(1)"))
    with pytest.raises(InputRefused):
        await peer.call("tools/call", {"name": "t"})
    assert person.asked == []
