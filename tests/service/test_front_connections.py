"""What becomes of a connection on which requests go straight: clients that are slow, early, gone or
read nothing, timers, streams, and the end of the service."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from observant_host.service.access.front import HELD_S
from observant_host.service.access.whole_answer import WholeAnswer
from tests.service.front_desk import (
    IDLE_S,
    Desk,
    echo,
    gate,
    request,
    the_front,
    until,
)
from tests.support.clock import START_WALL_NS

if TYPE_CHECKING:
    from observant_host.service.access.asked import Asked


async def test_a_body_that_does_not_come_is_aiohttps_to_wait_for(desk: Desk) -> None:
    line = await desk.line()
    front = the_front(desk)
    line.send(request()[:-3])
    await until(lambda: front._held != b"")
    await desk.clock.advance(HELD_S)
    await until(lambda: desk.fronts.server.requests_count == 2)
    assert await line.ask(b"two") == b"two"
    assert desk.ordinary == [b"two"]
    assert await line.ask(request()) == b"one"
    assert desk.straight == [b"one"]


async def test_a_body_in_many_pieces_is_aiohttps(desk: Desk) -> None:
    line = await desk.line()
    front = the_front(desk)
    line.send(request()[:-3])
    await until(lambda: front._held != b"")
    line.send(b"t")
    await until(lambda: desk.fronts.server.requests_count == 2)
    assert await line.ask(b"wo") == b"two"
    assert desk.ordinary == [b"two"]


async def test_what_is_sent_too_early_waits_for_its_turn(desk: Desk) -> None:
    line = await desk.line()
    desk.script, go = gate()
    line.send(request(b"a"))
    await until(lambda: desk.straight == [b"a"])
    line.send(request(b"b"))
    front = the_front(desk)
    await until(lambda: front._early != b"")
    go.set()
    assert [await line.answer(), await line.answer()] == [b"a", b"b"]
    assert desk.straight == [b"a", b"b"]


async def test_only_so_much_is_read_too_early(desk: Desk) -> None:
    line = await desk.line()
    front = the_front(desk)
    desk.script, go = gate()
    line.send(request(b"a"))
    await until(lambda: desk.straight == [b"a"])
    assert front.transport is not None
    body = b"x" * 60_000
    for _ in range(100):
        line.send(request(body))
    transport: Any = front.transport
    await until(lambda: not transport.is_reading())
    assert len(front._early) < 1_000_000
    go.set()
    assert await line.answer() == b"a"
    for _ in range(100):
        assert await line.answer() == body


async def test_a_client_that_reads_no_answers_gets_only_so_many(desk: Desk) -> None:
    body = b"x" * 60_000
    line = await desk.line()
    for _ in range(500):
        line.send(request(body))
    front = the_front(desk)
    transport: Any = front.transport
    await until(lambda: front._full or transport.get_write_buffer_size() > 0)
    for _ in range(50):
        await asyncio.sleep(0)
    assert transport.get_write_buffer_size() < 2_000_000
    for _ in range(500):
        assert await line.answer() == body


async def test_a_client_that_goes_away_cancels_what_it_asked(desk: Desk) -> None:
    line = await desk.line()
    desk.script, _ = gate()
    line.send(request())
    await until(lambda: desk.straight == [b"one"])
    line.close()
    await until(lambda: desk.cancelled == 1)
    assert not desk.fronts.busy


async def test_a_connection_is_kept_while_it_is_used_and_not_much_longer(desk: Desk) -> None:
    line = await desk.line()
    for _ in range(3):
        assert await line.ask(request()) == b"one"
        await desk.clock.advance(IDLE_S - 1)
    desk.script, go = gate()
    line.send(request(b"long"))
    await until(lambda: b"long" in desk.straight)
    await desk.clock.advance(3 * IDLE_S)
    go.set()
    assert await line.answer() == b"long"
    line.send(b"POST /mcp HTT")  # and slowly further
    await desk.clock.advance(IDLE_S)
    assert await line.rest() == b""


async def test_aiohttps_own_timer_ends_no_connection_that_is_used_here(desk: Desk) -> None:
    line = await desk.line()
    front = the_front(desk)
    assert front.inner._keepalive_handle is not None
    assert await line.ask(request()) == b"one"
    assert front.inner._keepalive_handle is None
    assert await line.ask(request(X="y")) == b"one"
    assert front.inner._keepalive_handle is not None
    assert await line.ask(request()) == b"one"
    assert front.inner._keepalive_handle is None


async def test_an_answer_that_is_a_stream_is_one_by_either_way(desk: Desk) -> None:
    async def stream(asked: Asked) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(asked.request)
        for _ in range(2):
            await response.write(b"data: x\n\n")
        await response.write_eof()
        return response

    line = await desk.line()
    seen = []
    for known in (False, True):
        other = line if known else await desk.line(known=False)
        desk.script = stream
        other.send(request() if known else request(X="y"))
        head = [one for one in (await other.head()).split(b"\r\n") if not one.startswith(b"Date")]
        seen.append((head, await other._reader.readuntil(b"0\r\n\r\n")))
        desk.script = echo
        assert await other.ask(request()) == b"one"
    assert seen[0] == seen[1]
    assert b"Transfer-Encoding: chunked" in seen[0][0]
    assert (len(desk.ordinary), len(desk.straight)) == (1, 3)


async def test_an_answer_after_which_the_connection_ends_ends_it(desk: Desk) -> None:
    async def last(_: Asked) -> web.StreamResponse:
        response = web.Response(status=500, body=b"sorry")
        response.force_close()
        return response

    line = await desk.line()
    desk.script = last
    assert await line.ask(request()) == b"sorry"
    assert await line.rest() == b""
    assert desk.straight == [b"one"]


@pytest.mark.parametrize("error", [ConnectionResetError, KeyError])
async def test_a_connection_whose_answer_fails_is_closed(
    desk: Desk, error: type[Exception]
) -> None:
    async def failing(_: Asked) -> web.StreamResponse:
        raise error

    line = await desk.line()
    desk.script = failing
    heard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: heard.append(what))
    line.send(request())
    assert await line.rest() == b""
    assert not desk.fronts.busy


async def test_a_response_that_is_written_in_pieces_leaves_the_connection_to_aiohttp(
    desk: Desk, tmp_path: Any
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"f" * 10)

    async def page(_: Asked) -> web.StreamResponse:
        return web.FileResponse(file)

    line = await desk.line()
    desk.script = page
    assert await line.ask(request(X="y")) == b"f" * 10
    desk.script = echo
    assert await line.ask(request()) == b"one"
    assert desk.straight == []


async def test_what_was_begun_is_waited_for_and_nothing_more_is_begun(desk: Desk) -> None:
    line, other = await desk.line(), await desk.line()
    desk.script, go = gate()
    line.send(request(b"begun"))
    await until(lambda: desk.straight == [b"begun"])
    settling = asyncio.ensure_future(desk.fronts.settle(1.0))
    await asyncio.sleep(0)
    desk.script = echo
    assert await other.ask(request(b"later")) == b"later"
    assert desk.straight == [b"begun"]
    assert not settling.done()
    go.set()
    assert await line.answer() == b"begun"
    await settling
    await desk.fronts.settle(1.0)


async def test_what_does_not_end_is_waited_for_so_long(desk: Desk) -> None:
    line = await desk.line()
    desk.script, _ = gate()
    line.send(request(b"begun"))
    await until(lambda: desk.straight == [b"begun"])
    settling = asyncio.ensure_future(desk.fronts.settle(1.0))
    await asyncio.sleep(0)
    await desk.clock.advance(1.0)
    with contextlib.suppress(TimeoutError):
        await settling
    await until(lambda: desk.cancelled == 1)


async def test_what_is_left_at_the_end_is_cancelled_though_its_client_reads_nothing(
    desk: Desk,
) -> None:
    line = await desk.line()
    front = the_front(desk)

    async def endless(asked: Asked) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(asked.request)
        while True:
            await response.write(b"x" * 500_000)

    desk.script = endless
    line.send(request())
    await until(lambda: front._full)
    settling = asyncio.ensure_future(desk.fronts.settle(1.0))
    await asyncio.sleep(0)
    await desk.clock.advance(1.0)
    with contextlib.suppress(TimeoutError):
        await settling
    await until(lambda: desk.cancelled == 1)
    assert front.transport is not None


async def test_an_answer_that_is_never_read_leaves_nothing_behind(desk: Desk) -> None:
    line = await desk.line()
    front = the_front(desk)

    async def large(_: Asked) -> web.StreamResponse:
        return WholeAnswer(b"x" * 16_000_000, now_ns=START_WALL_NS)

    desk.script = large
    line.send(request())
    await until(lambda: front._full and front._task is None)
    line.close()
    await until(lambda: front.transport is None)
    assert not desk.fronts.busy


async def test_nothing_is_begun_behind_an_answer_that_ends_the_connection(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = await desk.line()
    front = the_front(desk)
    go = asyncio.Event()

    async def last(_: Asked) -> web.StreamResponse:
        await go.wait()
        response = web.Response(status=500, body=b"sorry")
        response.force_close()
        return response

    desk.script = last
    line.send(request(b"a"))
    await until(lambda: desk.straight == [b"a"])
    line.send(request(b"b"))
    await until(lambda: front._early != b"")
    begun: list[bytes] = []
    monkeypatch.setattr(front, "_answer", lambda asked, _: begun.append(asked.body))
    go.set()
    assert await line.answer() == b"sorry"
    assert await line.rest() == b""
    assert begun == []


async def test_a_connection_does_not_end_between_a_head_and_its_body(desk: Desk) -> None:
    line = await desk.line()
    front = the_front(desk)
    line.send(request()[:-3])  # aiohttp's timer is on
    await until(lambda: front._held != b"")
    assert front.inner._keepalive_handle is None
    assert await line.ask(b"two") == b"two"
    await desk.clock.advance(IDLE_S - HELD_S / 2)
    line.send(request()[:-3])
    await until(lambda: front._held != b"")
    await desk.clock.advance(HELD_S / 2)
    assert await line.ask(b"two") == b"two"
    await desk.clock.advance(IDLE_S)
    assert await line.rest() == b""
