"""One exchange: bounded for slow readers, alive while nothing is said, whole at its end."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from observant_host.decisions.northbound_http import Accepted
from observant_host.service.access.asked import ReadRequest
from observant_host.service.mcp.http_outlet import STALLED_S, HttpOutlet
from observant_host.service.mcp.outlet import Response, notification, result_of
from observant_host.service.mcp.silences import KEEP_ALIVE_S, Silences
from observant_host.timing.clock import SystemClock
from tests.support.clock import ManualClock
from tests.support.hosts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from observant_host.timing.clock import Clock

BOTH = Accepted(json=True, sse=True)
NOTE = notification("notifications/progress", {"progressToken": 1, "progress": 1})
DONE = result_of(1, b'{"a":\n1}')


class Served:
    """A server whose every exchange runs `script`; `ended` says how the last one ended."""

    def __init__(self, script: Callable[[HttpOutlet], Awaitable[None]], clock: Clock) -> None:
        self._script, self._clock = script, clock
        self.outlet: asyncio.Future[HttpOutlet] = asyncio.Future()
        self.ended: asyncio.Future[str] = asyncio.Future()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        silences = Silences(self._clock)
        out = HttpOutlet(
            ReadRequest(request, b""), accepted=BOTH, clock=self._clock, silences=silences
        )
        self.outlet.set_result(out)
        try:
            await self._script(out)
        except asyncio.CancelledError:
            self.ended.set_result("cancelled")
            raise
        finally:
            out.abandon()
        self.ended.set_result("done")
        assert out.response is not None
        return out.response


@contextlib.asynccontextmanager
async def served(
    script: Callable[[HttpOutlet], Awaitable[None]], clock: Clock | None = None
) -> AsyncIterator[tuple[Served, str]]:
    one = Served(script, clock or SystemClock())
    app = web.Application()
    app.router.add_get("/", one.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield one, f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def test_a_response_alone_is_a_json_body_as_it_came() -> None:
    async with (
        served(lambda out: out.respond(DONE)) as (_, url),
        aiohttp.ClientSession() as session,
        session.get(url) as response,
    ):
        assert response.content_type == "application/json"
        assert await response.read() == b'{"jsonrpc":"2.0","id":1,"result":{"a":\n1}}'


async def test_an_event_has_no_line_breaks_and_the_response_ends_the_stream() -> None:
    async def script(out: HttpOutlet) -> None:
        out.notify(NOTE)
        await out.respond(DONE)

    async with (
        served(script) as (_, url),
        aiohttp.ClientSession() as session,
        session.get(url) as response,
    ):
        assert response.content_type == "text/event-stream"
        body = await response.read()
    assert body == (
        b"event: message\ndata: " + NOTE + b"\n\n"
        b'event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"a": 1}}\n\n'
    )


async def test_a_silent_stream_is_kept_alive_by_comments() -> None:
    clock = ManualClock()

    async def script(out: HttpOutlet) -> None:
        out.notify(NOTE)
        await asyncio.Event().wait()

    async with (
        served(script, clock) as (_, url),
        aiohttp.ClientSession() as session,
        session.get(url) as response,
    ):
        await response.content.readuntil(b"\n\n")
        for _ in range(2):
            await clock.advance(KEEP_ALIVE_S)
            assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"


async def test_an_answer_that_is_long_in_coming_becomes_a_stream() -> None:
    clock = ManualClock()
    go = asyncio.Event()

    async def script(out: HttpOutlet) -> None:
        await go.wait()
        await out.respond(DONE)

    async with served(script, clock) as (one, url), aiohttp.ClientSession() as session:
        asking = asyncio.ensure_future(session.get(url))
        await one.outlet
        await clock.advance(KEEP_ALIVE_S)
        response = await asking
        assert await response.content.readuntil(b"\n\n") == b": keep-alive\n\n"
        go.set()
        assert (await response.read()).startswith(b"event: message\ndata: ")


async def test_a_client_that_does_not_read_costs_one_bounded_buffer_and_then_its_connection() -> (
    None
):
    async def script(out: HttpOutlet) -> None:
        while True:
            out.notify(b'"' + b"x" * 65536 + b'"')
            await asyncio.sleep(0)

    async with served(script) as (one, url), aiohttp.ClientSession() as session:
        async with session.get(url):
            assert await one.ended == "cancelled"
        out = one.outlet.result()
        assert (out.closed, out.cut) == (True, "slow_reader")
        out.notify(NOTE)  # nobody hears it, and nothing happens


async def test_a_client_that_takes_no_more_of_a_body_is_cut_off() -> None:
    clock = ManualClock()
    body = Response((b"[", memoryview(b"1," * (32 << 20)), b"1]"))
    async with (
        served(lambda out: out.respond(body), clock) as (one, url),
        aiohttp.ClientSession() as session,
        session.get(url),
    ):
        out = await one.outlet
        while not one.ended.done():
            await clock.advance(STALLED_S)
            await asyncio.sleep(0)
        assert out.cut == "stalled_reader"
