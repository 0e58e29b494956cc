"""The console on a listener: its routes, and how what was refused becomes a page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from aiohttp import web

from observant_host.errors import HostError
from observant_host.service import views
from observant_host.service.access import Refused
from observant_host.service.api.live import events
from observant_host.service.console.acting import Acting, Signing
from observant_host.service.console.calling import Calling
from observant_host.service.console.guard import Arrived, Guard
from observant_host.service.console.pages import Reading
from observant_host.service.console.render import Pages
from observant_host.service.console.responses import HEADERS, Desk
from observant_host.service.console.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from observant_host.service.console.guard import Keeper
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

FOR_EVER: Final = "public, max-age=31536000, immutable"
"""An asset's address changes with its bytes."""


async def add_console(app: web.Application, host: Served, *, keeper: Keeper, clock: Clock) -> None:
    """`/` and everything below `/console`. The application has the events of the API."""
    pages = await asyncio.to_thread(Pages, host.masked)
    sessions = Sessions(lambda: clock.wall_ns() / 1e9)
    desk = Desk(host, pages, Guard(keeper, sessions), clock=clock)
    reading, calling, acting = Reading(desk), Calling(desk), Acting(desk)
    signing, told = Signing(desk), _Told(desk).as_page

    async def stream(request: web.Request) -> web.StreamResponse:
        visit = await desk.guard.visit(request)
        return await events(host, request, visit.caller)

    async def asset(request: web.Request) -> web.Response:
        found = pages.assets.get(request.match_info["name"])
        if found is None:
            raise web.HTTPNotFound
        headers = {**HEADERS, "Cache-Control": FOR_EVER}
        return web.Response(body=found.body, content_type=found.content_type, headers=headers)

    app.add_routes(
        [
            web.get("/", told(reading.needs)),
            web.get("/console", told(reading.needs)),
            web.get("/console/servers", told(reading.servers)),
            web.get("/console/servers/{name}", told(reading.server)),
            web.post("/console/servers/{name}/act", told(acting.act)),
            web.get("/console/catalogue", told(reading.catalogue)),
            web.get("/console/calls", told(reading.calls)),
            web.post("/console/calls/{id}/cancel", told(acting.cancel)),
            web.post("/console/log-level", told(acting.log_level)),
            web.get("/console/timeline", told(reading.timeline)),
            web.get("/console/call", told(calling.form)),
            web.post("/console/call", told(calling.call)),
            web.get("/console/login", told(signing.form)),
            web.post("/console/login", told(signing.sign_in)),
            web.post("/console/logout", told(signing.sign_out)),
            web.get("/console/events", told(stream)),
            web.get("/console/static/{name}", asset),
        ]
    )


class _Told:
    """What a handler raises, as a page for a person."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def as_page(self, handler: Handler) -> Handler:
        async def handled(request: web.Request) -> web.StreamResponse:
            try:
                return await handler(request)
            except Arrived as arrived:
                return self._desk.arrived(arrived.back)
            except Refused as refused:
                response = self._desk.problem("Not allowed", str(refused), status=refused.status)
                response.headers.update(refused.headers)
                return response
            except web.HTTPForbidden as refused:
                return self._desk.problem("Not accepted", refused.text or "", status=403)
            except HostError as error:
                return self._desk.problem("Not now", str(error), status=views.status_of(error))

        return handled
