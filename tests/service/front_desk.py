"""What stands before aiohttp on connections, a script behind it, and clients by raw sockets."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from aiohttp import web

from observant_host.service.access.asked import ReadRequest
from observant_host.service.access.front import Front, front_of
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
        return await self._answered(ReadRequest(request, body), self.ordinary)

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


@contextlib.asynccontextmanager
async def at_work() -> AsyncIterator[Desk]:
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


def the_front(desk: Desk) -> Front:
    (connection,) = desk.fronts.server.connections
    assert connection.transport is not None
    protocol = connection.transport.get_protocol()
    assert isinstance(protocol, Front)
    return protocol
