"""What stands before aiohttp on a connection: the same answers, in the same order, whichever of the
two gives them.

aiohttp's own behaviour that is relied on is looked at here too: what it does with a head, with what
comes early, and when it closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from observant_host.service.access.asked import Ordinary
from observant_host.service.access.front import HELD_S, Front, front_of
from observant_host.service.access.fronts import Fronts
from observant_host.service.access.whole_answer import WholeAnswer
from observant_host.service.callers import LOCAL
from tests.support.clock import START_WALL_NS, ManualClock
from tests.support.hosts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from observant_host.service.access.asked import Asked

    Script = Callable[[Asked], Awaitable[web.StreamResponse]]

IDLE_S = 75.0
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FIELDS = {"Host": "h", "Content-Type": "application/json"}


def request(body: bytes = b"one", *, first: str = "POST /mcp HTTP/1.1", **fields: str) -> bytes:
    """`fields` with `_` for `-`; "" leaves one out."""
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    said = {**FIELDS, "Content-Length": str(len(body)), **named}
    lines = [first, *(f"{name}: {value}" for name, value in said.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def echo(asked: Asked) -> web.StreamResponse:
    """Plain requests get a plain answer, as an HttpOutlet gives it."""
    if asked.is_plain:
        return WholeAnswer(asked.body, now_ns=START_WALL_NS)
    return web.Response(body=asked.body)


class Line:
    """One connection of a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, *data: bytes) -> None:
        self._writer.write(b"".join(data))

    async def head(self) -> bytes:
        """Of the next answer; nothing where the connection is over."""
        try:
            return await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""

    async def answer(self) -> bytes:
        """The body of the next answer with a length."""
        head = (await self.head()).lower()
        if not head:
            return b"over"
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return await self._reader.readexactly(int(length))

    async def answers(self, count: int) -> list[bytes]:
        return [await self.answer() for _ in range(count)]

    async def ask(self, data: bytes) -> bytes:
        self.send(data)
        return await self.answer()

    async def rest(self) -> bytes:
        return await self._reader.read()

    def close(self) -> None:
        self._writer.close()


class Desk:
    """`script` answers; `straight` and `ordinary` are the bodies that came by each way."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.script: Script = echo
        self.straight: list[bytes] = []
        self.ordinary: list[bytes] = []
        self.traces: list[str | None] = []
        self.knows = True
        self.cancelled = 0
        self.lines: list[Line] = []

    async def open(self, runner: web.AppRunner) -> None:
        assert runner.server is not None
        self.fronts = Fronts(
            runner.server,
            key_of=lambda _: b"key",
            known=lambda key: LOCAL if self.knows and key == b"key" else None,
            answer=lambda asked, _: self._answered(asked, self.straight),
            clock=self.clock,
            idle_s=IDLE_S,
        )
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(self.fronts, "127.0.0.1", 0)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        return await self._answered(Ordinary(request, body), self.ordinary)

    async def _answered(self, asked: Asked, into: list[bytes]) -> web.StreamResponse:
        into.append(asked.body)
        self.traces.append(asked.traceparent)
        try:
            return await self.script(asked)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def line(self, *, known: bool = True) -> Line:
        """A connection; `known`: whose usual head is."""
        reader, writer = await asyncio.open_connection(*self.server.sockets[0].getsockname())
        self.lines.append(line := Line(reader, writer))
        if known:
            assert await line.ask(request(b"known")) == b"known"
            self.ordinary.clear()
            self.straight.clear()
        return line


@web.middleware
async def told(request: web.Request, handler: Any) -> web.StreamResponse:
    """As `Hall.guard` does."""
    front = front_of(request)
    if front is not None:
        front.begun()
    response: web.StreamResponse = await handler(request)
    if front is not None:
        front.answered(request, response)
    return response


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    one = Desk(ManualClock())
    app = web.Application(middlewares=[told])
    app.router.add_route("*", "/{any:.*}", one.handle)
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await one.open(runner)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield one
    finally:
        one.server.close()
        for line in one.lines:
            line.close()
        await runner.cleanup()


def gate() -> tuple[Script, asyncio.Event]:
    """A script that waits until it is told to go on."""
    go = asyncio.Event()

    async def script(asked: Asked) -> web.StreamResponse:
        await go.wait()
        return await echo(asked)

    return script, go


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


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


def the_front(desk: Desk) -> Front:
    (connection,) = desk.fronts.server.connections
    assert connection.transport is not None
    protocol = connection.transport.get_protocol()
    assert isinstance(protocol, Front)
    return protocol


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
