"""What stands before aiohttp on a connection: the same answers, in the same order, whichever of the
two gives them.

aiohttp's own behaviour that is relied on is looked at here too: what it does with a head, with what
comes early, and when it closes.
"""

from __future__ import annotations

import asyncio
import gzip
import random

import pytest

from tests.service.front_desk import (
    TRACE,
    Desk,
    request,
    the_front,
    until,
)


async def test_a_head_that_was_answered_once_goes_straight_whatever_its_length_and_trace(
    desk: Desk,
) -> None:
    trace = TRACE
    line = await desk.line()
    assert await line.ask(request(b"a longer body")) == b"a longer body"
    other = await desk.line(known=False)
    assert await other.ask(request(b"")) == b""
    assert (desk.straight, desk.ordinary) == ([b"a longer body", b""], [])
    assert await line.ask(request(traceparent=trace)) == b"one"
    assert await line.ask(request(traceparent=trace.replace("-01", "-00"))) == b"one"
    assert (len(desk.ordinary), len(desk.straight)) == (1, 3)
    assert desk.traces[-2:] == [trace, trace.replace("-01", "-00")]


async def test_both_ways_answer_the_same_to_the_byte(desk: Desk) -> None:
    line = await desk.line(known=False)
    line.send(request())
    ordinary = await line.head(), await line._reader.readexactly(3)
    line.send(request())
    assert (await line.head(), await line._reader.readexactly(3)) == ordinary
    assert (desk.ordinary, desk.straight) == ([b"one"], [b"one"])


UNLIKE: dict[str, bytes] = {
    "chunked": request(b"3\r\none\r\n0\r\n\r\n", Transfer_Encoding="chunked", Content_Length=""),
    "compressed": request(gzip.compress(b"one", mtime=0), Content_Encoding="gzip"),
    "expecting": request(Expect="100-continue"),
    "of a page": request(Origin="http://localhost"),
    "HTTP/1.0": request(first="POST /mcp HTTP/1.0", Connection="keep-alive"),
    "upgrading": request(Upgrade="h2c", Connection="upgrade, keep-alive"),
    "length with zeros": request(Content_Length="03"),
    "odd trace": request(traceparent="00-1-2-3"),
}


@pytest.mark.parametrize("data", UNLIKE.values(), ids=UNLIKE)
async def test_a_request_that_is_not_plain_never_goes_straight(desk: Desk, data: bytes) -> None:
    for _ in range(2):
        line = await desk.line(known=False)
        for _ in range(2):
            line.send(data)
            if b"100-continue" in data:
                assert await line.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert await line.answer() == b"one"
    assert (desk.straight, desk.ordinary) == ([], [b"one"] * 4)


async def test_a_connection_that_is_to_be_closed_is_closed_each_time(desk: Desk) -> None:
    for _ in range(2):
        line = await desk.line(known=False)
        assert await line.ask(request(Connection="close")) == b"one"
        assert await line.rest() == b""
    assert desk.straight == []


@pytest.mark.parametrize("first", ["GET /mcp HTTP/1.1", "HEAD /mcp HTTP/1.1"])
async def test_what_has_no_body_leaves_the_connection_to_aiohttp(desk: Desk, first: str) -> None:
    line = await desk.line()
    line.send(request(b"", first=first, Content_Length=""))
    assert (await line.head()).startswith(b"HTTP/1.1 200")
    assert await line.ask(request()) == b"one"
    assert desk.straight == []


async def test_whoever_is_not_known_now_goes_the_ordinary_way(desk: Desk) -> None:
    line = await desk.line()
    desk.knows = False
    assert await line.ask(request()) == b"one"
    desk.knows = True
    assert await line.ask(request()) == b"one"
    assert (desk.ordinary, desk.straight) == ([b"one"], [b"one"])


async def test_requests_in_one_piece_are_answered_in_their_order(desk: Desk) -> None:
    line = await desk.line()
    line.send(request(b"a"), request(b"b"), request(b"c"))
    assert [await line.answer() for _ in range(3)] == [b"a", b"b", b"c"]
    assert await line.ask(request(b"d")) == b"d"


@pytest.mark.parametrize("cut", [1, 40, -3, -1])
async def test_the_rest_of_a_request_is_never_taken_for_the_next(desk: Desk, cut: int) -> None:
    """A body may be written like a head, and be cut wherever it likes."""
    inner = request(b"inner")
    outer = request(inner)
    line = await desk.line()
    at = len(outer) - len(inner)
    line.send(request(b"first"), outer[:cut] if cut < 0 else outer[: at + cut])
    assert await line.answer() == b"first"
    line.send(outer[cut:] if cut < 0 else outer[at + cut :])
    assert await line.answer() == inner
    assert await line.ask(request(b"last")) == b"last"
    assert b"inner" not in desk.straight


@pytest.mark.parametrize("seed", range(12))
async def test_every_request_is_answered_once_and_in_its_order_however_it_is_cut(
    desk: Desk, seed: int
) -> None:
    dice = random.Random(seed)
    nested = request(b"inner")
    kinds = [
        lambda body: request(body),
        lambda body: request(body, X="y"),
        lambda body: request(body, traceparent=TRACE),
        lambda body: request(body, Origin="http://localhost"),
        lambda body: request(
            b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
            Transfer_Encoding="chunked",
            Content_Length="",
        ),
    ]
    line = await desk.line()
    bodies = [dice.choice([b"one", nested, nested * 3, b"x" * 3000]) for _ in range(30)]
    whole = b"".join(dice.choices(kinds, (9, 4, 4, 1, 1))[0](body) for body in bodies)
    reading = asyncio.ensure_future(line.answers(len(bodies)))
    at = 0
    while at < len(whole):
        size = dice.choice([1, 7, 150, len(request()), len(nested), 4000])
        line.send(whole[at : at + size])
        at += size
        for _ in range(dice.choice([0, 0, 3, 20])):
            await asyncio.sleep(0)
    assert await reading == bodies
    assert sorted(desk.straight + desk.ordinary) == sorted(bodies)


async def test_a_head_in_two_pieces_is_aiohttps(desk: Desk) -> None:
    line = await desk.line()
    front = the_front(desk)
    whole = request()
    line.send(whole[:30])
    await until(lambda: front._passed == 30)
    line.send(whole[30:])
    assert await line.answer() == b"one"
    assert await line.ask(request(b"two")) == b"two"
    assert desk.ordinary == [b"one", b"two"]


async def test_a_body_that_is_sent_apart_from_its_head_goes_straight(desk: Desk) -> None:
    line = await desk.line()
    front = the_front(desk)
    for _ in range(2):
        line.send(request()[:-3])
        await until(lambda: front._held != b"")
        assert await line.ask(b"two") == b"two"
    assert (desk.straight, desk.ordinary) == ([b"two"] * 2, [])
