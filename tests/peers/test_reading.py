"""Reads of resources: from what was kept while it is fresh, never across what must be apart."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from observant_host.config import HttpServer, ServerConfig, StdioServer
from observant_host.decisions.subscription import Filter
from observant_host.errors import RpcError
from observant_host.peers.input_handlers import InputHandlers, InputRequest
from observant_host.peers.peer import Peer
from observant_host.peers.resource_cache import ResourceCache
from observant_host.telemetry.vocabulary import CacheLookup
from tests.peers.desk import Desk
from tests.support.clock import ManualClock

URI = "file:///a"


class Reader:
    """A peer with a cache, and a server that counts what it is asked."""

    def __init__(self, cache: ResourceCache, clock: ManualClock, config: ServerConfig) -> None:
        self.desk = Desk(config, clock=clock)
        self.peer = Peer(config, telemetry=self.desk.telemetry, clock=clock, cache=cache)
        self.hint: dict[str, Any] = {"ttlMs": 5000, "cacheScope": "private"}
        self.desk.answer = self.answer

    def answer(self, message: dict[str, Any]) -> None:
        uri = message["params"]["uri"]
        self.desk.result(message, {"contents": [{"uri": uri, "text": "x"}], **self.hint})

    async def read(self, uri: str = URI, **options: Any) -> int:
        """The number of requests that this read took."""
        reply = await self.peer.call("resources/read", {"uri": uri}, **options)
        assert msgspec.json.decode(reply.raw)["contents"][0]["uri"] == uri
        return reply.attempts

    def found(self) -> list[str]:
        return [fact.found for fact in self.desk.facts(CacheLookup)]


def http(name: str, token: str, url: str = "https://example.com/mcp") -> ServerConfig:
    return ServerConfig(
        name=name,
        launch=HttpServer(url, headers={"Authorization": token}),
        fingerprint="sha256:0",
    )


def stdio(name: str = "tested") -> ServerConfig:
    return ServerConfig(name=name, launch=StdioServer(["true"]), fingerprint="sha256:0")


async def readers(*configs: ServerConfig, scope: str = "private") -> list[Reader]:
    clock = ManualClock()
    cache = ResourceCache(clock)
    made = [Reader(cache, clock, config) for config in configs]
    for one in made:
        one.hint = {"ttlMs": 5000, "cacheScope": scope}
        one.peer.attach((await one.desk.modern(resources={})).life)
    return made


async def test_a_fresh_answer_is_given_again_without_asking() -> None:
    (one,) = await readers(stdio())
    assert [await one.read(), await one.read(), await one.read("file:///b")] == [1, 0, 1]
    await one.desk.clock.advance(5)
    assert await one.read() == 1
    assert len(one.desk.sent) == 3
    assert one.found() == ["miss", "hit", "miss", "stale"]


@pytest.mark.parametrize("hint", [{}, {"ttlMs": 0}, {"ttlMs": -5}, {"ttlMs": "5000"}])
async def test_an_answer_without_a_usable_hint_is_not_kept(hint: dict[str, Any]) -> None:
    (one,) = await readers(stdio())
    one.hint = hint
    assert [await one.read(), await one.read()] == [1, 1]


@pytest.mark.parametrize(("scope", "fetches"), [("private", 2), ("public", 1), ("odd", 2)])
async def test_two_authorizations_share_only_what_is_public(scope: str, fetches: int) -> None:
    a, b = await readers(http("a", "one"), http("b", "two"), scope=scope)
    await a.read()
    await b.read()
    assert len(a.desk.sent) + len(b.desk.sent) == fetches


async def test_another_address_shares_nothing_also_by_its_query() -> None:
    url = "https://example.com/mcp?tenant="
    a, b = await readers(http("a", "t", url + "1"), http("b", "t", url + "2"), scope="public")
    assert [await a.read(), await b.read()] == [1, 1]
    c, d = await readers(stdio("c"), stdio("d"), scope="public")
    assert [await c.read(), await d.read()] == [1, 1]


async def test_a_rotated_token_is_another_context() -> None:
    (one,) = await readers(http("a", "one"))
    one.desk.transport.authorization = "first"  # type: ignore[attr-defined]  # as HTTP's has it
    assert [await one.read(), await one.read()] == [1, 0]
    one.desk.transport.authorization = "second"  # type: ignore[attr-defined]  # as above
    assert await one.read() == 1


async def test_a_notification_makes_it_stale_at_once_also_one_that_overtakes_the_answer() -> None:
    (one,) = await readers(stdio())
    stream = (await one.desk.following(Filter((), (URI,)))).id
    await one.read()
    one.desk.in_stream(stream, "resources/updated", uri=URI)
    await one.desk.settle()
    assert await one.read() == 1
    one.desk.answer = None
    one.desk.in_stream(stream, "resources/updated", uri=URI)
    await one.desk.settle()
    running = asyncio.create_task(one.read())
    await one.desk.settle()
    one.desk.in_stream(stream, "resources/updated", uri=URI)
    one.answer(one.desk.sent[-1])
    await running
    one.desk.answer = one.answer
    assert await one.read() == 1


async def test_the_end_of_a_life_forgets_what_it_answered() -> None:
    (one,) = await readers(stdio())
    await one.read()
    one.peer.detach("it ended")
    one.peer.attach(one.desk.life)
    assert await one.read() == 1


async def test_answers_that_took_input_or_own_handlers_or_meta_are_not_kept() -> None:
    async def answer(_request: InputRequest) -> dict[str, Any]:
        return {"roots": []}

    (one,) = await readers(stdio())
    wish = {"resultType": "input_required", "requestState": "s"}

    def twice(message: dict[str, Any]) -> None:
        if "requestState" in message["params"]:
            one.answer(message)
        else:
            one.desk.result(message, wish)

    one.desk.answer = twice
    running = asyncio.create_task(one.read())
    await one.desk.clock.advance(1)
    assert await running == 2
    one.desk.answer = one.answer
    assert await one.read() == 1
    assert await one.read() == 0
    assert await one.read(handlers=InputHandlers(roots=answer)) == 1
    reply = await one.peer.call("resources/read", {"uri": URI, "_meta": {"k": 1}})
    assert reply.attempts == 1


async def test_errors_and_legacy_answers_are_not_kept() -> None:
    (one,) = await readers(stdio())
    one.desk.answer = lambda message: one.desk.error(message, -32602)
    for _ in range(2):
        with pytest.raises(RpcError):
            await one.read()
    assert len(one.desk.sent) == 2
    clock = ManualClock()
    old = Reader(ResourceCache(clock), clock, stdio())
    old.peer.attach((await old.desk.legacy(resources={})).life)
    assert [await old.read(), await old.read()] == [1, 1]
    assert old.found() == []
