"""Small POSTs go straight over the library's connections: what a server and a caller see of them is
what they would see of one by its session, and each costs few steps."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import HttpFailure
from observant_host.transports.web.direct import MAX_BODY
from tests.support.http_peer import JSON, Exchange, HttpPeer, answer
from tests.transports.http_subjects import Fixed, Making, modern, settled
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from types import FrameType

STEPS = 40
"""Calls of Python functions in this package and in aiohttp for one POST and its JSON body, of
which it were 175 by way of a session, and 110 with a task."""


async def ok(exchange: Exchange) -> None:
    await exchange.result()


async def test_a_small_request_looks_like_a_large_one_that_goes_through_the_session(
    making: Making,
) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(
            url=peer.url + "?tenant=a%20b", credentials=Fixed(Authorization="Bearer t", X_A="ö")
        )
        recorder = await opened(transport)
        for number, size in ((1, 10), (2, MAX_BODY), (3, 2 << 20)):
            transport.send(modern(number, name="search", params={"t": "x" * size}), expires=FAR)
            await recorder.answer_to(number)
    small, *larger = peer.seen
    for seen in larger:
        assert (seen.verb, seen.path) == (small.verb, small.path)
        lengths = {"content-length": ""}
        assert seen.headers | lengths == small.headers | lengths
    assert [int(seen.headers["content-length"]) for seen in peer.seen] == [
        len(seen.body) for seen in peer.seen
    ]
    assert peer.seen[0].headers["host"] == f"127.0.0.1:{peer.port}"


async def test_what_a_request_says_itself_is_not_said_twice(making: Making) -> None:
    async with HttpPeer(ok) as peer:
        credentials = Fixed(accept="text/html", USER_AGENT="mine", host="elsewhere.test")
        transport = making.http(url=peer.url, credentials=credentials)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await recorder.answer_to(1)
        del credentials.values["accept"]
        transport.send(modern(2), expires=FAR)
        await recorder.answer_to(2)
    for seen in peer.seen:
        assert seen.headers["accept"] == "application/json, text/event-stream"
        assert seen.headers["user-agent"] == "mine"
        assert seen.headers["host"] == "elsewhere.test"


@pytest.mark.parametrize("value", ["a\r\nX-B: c", "a\nb", "a\rb", "a\0b", "a\x0bb", "\x7f"])
async def test_a_value_that_would_be_two_fields_is_never_sent(making: Making, value: str) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1, name=value), expires=FAR)
        failure = await recorder.loss_of(1)
        assert peer.seen == []
    assert isinstance(failure, HttpFailure)
    assert "mistake in this host (ValueError)" in str(failure)
    assert failure.sent is False


async def test_what_comes_before_the_response_is_passed_over(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.raw(b"HTTP/1.1 100 Continue\r\n\r\n")
        await exchange.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        await exchange.result("behind them")

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in (1, 2):
            transport.send(modern(number), expires=FAR)
            assert (await recorder.answer_to(number))["result"] == "behind them"
        assert {seen.connection for seen in peer.seen} == {1}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "status",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "content"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "content"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "no_response"),
    ],
    ids=["switched", "garbled", "another protocol", "nothing"],
)
async def test_an_odd_answer_costs_one_request(making: Making, said: bytes, kind: str) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.id == 1:
            await exchange.raw(said)
            if kind != "no_response":
                await exchange.gone()  # no second request comes on it
        else:
            await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await recorder.loss_of(1)
        transport.send(modern(2), expires=FAR)
        await recorder.answer_to(2)
    assert isinstance(failure, HttpFailure)
    assert failure.kind == kind


@pytest.mark.parametrize("size", [1, 2 * MAX_BODY], ids=["direct", "by the session"])
async def test_what_a_server_says_unasked_is_no_answer_to_the_next_request(
    making: Making, size: int
) -> None:
    idle, said = asyncio.Event(), asyncio.Event()

    async def behave(exchange: Exchange) -> None:
        await exchange.result("asked for")
        if exchange.id == 1:
            await idle.wait()
            await exchange.json(answer(2, "unasked"))
            said.set()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in (1, 2):
            transport.send(modern(number, params={"t": "x" * size}), expires=FAR)
            assert (await recorder.answer_to(number))["result"] == "asked for"
            idle.set()
            await said.wait()
            await settled()  # it is read, not only there to be read
        assert [seen.connection for seen in peer.seen] == [1, 2]


async def test_an_answer_that_promised_more_than_came_is_a_broken_one(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.head(200, JSON, Content_Length=100)
        await exchange.raw(b'{"jsonrpc":"2.0",')
        exchange.cut()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await recorder.loss_of(1)
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.sent) == ("reset", True)


@pytest.mark.parametrize(
    ("before", "size"),
    [(0, 1), (1, 1), (1, 2 * MAX_BODY)],
    ids=["with a task", "at once", "by the session"],
)
async def test_a_body_that_cannot_be_read_is_a_broken_one(
    making: Making, before: int, size: int
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.id == 0:
            await exchange.result()
            return
        await exchange.stream(JSON)
        await settled()
        await exchange.raw(b"no chunk\r\n")
        await exchange.gone()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(before):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
        transport.send(modern(2, params={"t": "x" * size}), expires=FAR)
        failure = await recorder.loss_of(2)
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.sent) == ("reset", True)


async def test_a_request_over_a_used_connection_takes_few_steps(making: Making) -> None:
    async def measured(number: int) -> int:
        steps = 0

        def count(frame: FrameType, event: str, _: Any) -> None:
            nonlocal steps
            where = frame.f_code.co_filename
            steps += event == "call" and ("/observant_host/" in where or "/aiohttp/" in where)

        sys.setprofile(count)
        try:
            transport.send(modern(number, name="search"), expires=FAR)
            await recorder.answer_to(number)
        finally:
            sys.setprofile(None)
        return steps

    async def behave(exchange: Exchange) -> None:
        await exchange.json(answer(exchange.id, "ok"))

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        await measured(1)
        steps = [await measured(number) for number in range(2, 8)]
        assert {seen.connection for seen in peer.seen} == {1}
    assert min(steps) <= STEPS, steps
