"""The application of the API: who asks, what for, and how errors are told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from observant_host.errors import HostError, InvalidCall
from observant_host.service import views
from observant_host.service.api import openapi
from observant_host.service.api.answers import Problem, ProblemAbout
from observant_host.service.api.exchange import answered, taken, unchanged
from observant_host.service.api.live import EVENTS
from observant_host.service.api.routes import PREFIX, ROUTES
from observant_host.service.callers import Caller
from observant_host.service.private_socket import PRINCIPAL_HEADER

if TYPE_CHECKING:
    from observant_host.service.api.exchange import Handler
    from observant_host.service.events import Events
    from observant_host.service.served import Served

    Plain = Callable[[web.Request], Awaitable[web.StreamResponse]]

Identify = Callable[[web.Request, str], Awaitable[Caller]]
"""Who asks, where they may do what needs the scope; raises what the listener answers with."""

PRINCIPAL_CHARS: Final = 128
"""Of who says to be asking: a name, for the record."""
EVERYTHING: Final = frozenset({"mcp", "read", "operate"})


async def socket_owner(request: web.Request, _scope: str) -> Caller:
    """On the private socket: the host's own user, by the name that the client says."""
    said = request.headers.get(PRINCIPAL_HEADER, "socket")
    name = "".join(c for c in said if c.isprintable())[:PRINCIPAL_CHARS]
    return Caller(principal=name or "socket", scopes=EVERYTHING)


def add_api(
    app: web.Application,
    host: Served,
    *,
    identify: Identify,
    events: Events,
    guarded: bool = False,
) -> None:
    """All routes below `/api/v1`. `guarded`: something stands before the application, and has
    `refusal` tell what the router refuses."""
    app[EVENTS] = events
    if not guarded:
        app.middlewares.append(_in_json)
    for route in ROUTES:
        handler = _served(route.handler, host, scope=route.scope, identify=identify)
        app.router.add_route(route.method, PREFIX + route.path, handler)
    described = _served(_document, host, scope="read", identify=identify)
    app.router.add_route("GET", openapi.PATH, described)


def _served(handler: Handler, host: Served, *, scope: str, identify: Identify) -> Plain:
    async def serve(request: web.Request) -> web.StreamResponse:
        try:
            caller = await identify(request, scope)
            return unchanged(request, await handler(host, request, caller))
        except HostError as error:
            return taken(views.problem_json(error), status=views.status_of(error))

    return serve


async def _document(_host: Served, _request: web.Request, _caller: Caller) -> web.Response:
    return answered(openapi.document())


@web.middleware
async def _in_json(request: web.Request, handler: Plain) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as refused:
        if (told := refusal(request, refused)) is None:
            raise
        return told


def refusal(request: web.Request, refused: web.HTTPException) -> web.StreamResponse | None:
    """What the router itself refuses below `/api/v1`, told as everything else is there."""
    if not request.path.startswith(PREFIX) or refused.status < 400:
        return None
    problem = ProblemAbout(
        type=InvalidCall.error_type if refused.status < 500 else HostError.error_type,
        message=_sentence(request, refused),
        unknown=isinstance(refused, web.HTTPNotFound),
    )
    response = taken(msgspec.json.encode(Problem(problem)), status=refused.status)
    for name in ("Allow", "WWW-Authenticate", "Retry-After"):
        if name in refused.headers:
            response.headers[name] = refused.headers[name]
    return response


def _sentence(request: web.Request, refused: web.HTTPException) -> str:
    if isinstance(refused, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(refused.allowed_methods))
        return f"{request.method} does not exist here; there is: {allowed}"
    if isinstance(refused, web.HTTPNotFound):
        return f"there is no {request.path[:128]}; GET {openapi.PATH} describes all there is"
    if isinstance(refused, web.HTTPRequestEntityTooLarge):
        return "the request's body is larger than max_message_bytes of the host"
    return refused.reason
