"""`GET /api/v1/events`: what changes, as it changes, for as long as the client stays.

Source: HTML Standard, 9.2 server-sent events (event stream, Last-Event-ID, comments).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiohttp import web

from observant_host.service.events import Events
from observant_host.timing.tasks import wait_any

if TYPE_CHECKING:
    from observant_host.service.callers import Caller
    from observant_host.service.events import Reader
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal

HEARTBEAT_S: Final = 15.0
"""Below the time after which proxies cut a silent connection."""
HEARTBEAT: Final = b": still here\n\n"
HEADERS: Final = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}

EVENTS: Final = web.AppKey("events", Events)


async def events(host: Served, request: web.Request, caller: Caller) -> web.StreamResponse:
    """A comment at once, so that the client knows it is heard; then events, until the host ends."""
    source = request.app[EVENTS]
    reader = source.join(request.headers.get("Last-Event-ID"), part=caller.slice)
    response = web.StreamResponse(headers=HEADERS)
    try:
        await response.prepare(request)
        await response.write(HEARTBEAT)
        await _write(response, reader, over=host.over, clock=source.clock)
    except ConnectionError:
        pass  # it went away
    finally:
        reader.leave()
    return response


async def _write(
    response: web.StreamResponse, reader: Reader, *, over: Signal, clock: Clock
) -> None:
    """What a slow reader has not taken waits in the connection's own buffer, then in the ring."""
    while not over.is_set():
        for event in reader.take():
            await response.write(event)
        if await wait_any(clock, HEARTBEAT_S, over, reader.news) is None:
            await response.write(HEARTBEAT)
