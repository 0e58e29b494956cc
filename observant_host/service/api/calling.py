"""Calls of tools, prompts and resources; a client that goes away cancels its call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.decisions.routes import NotListed, Unknown, find_prompt, find_tool
from observant_host.decisions.slices import sliced
from observant_host.errors import CallError, InvalidCall
from observant_host.routing.refusals import no_route
from observant_host.service import views
from observant_host.service.api.bodies import CallBody, ReadBody
from observant_host.service.api.exchange import body_of, taken
from observant_host.telemetry.propagation import parse

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from aiohttp import web

    from observant_host.routing.asked import CallOptions
    from observant_host.routing.call_result import CallResult
    from observant_host.service.callers import Caller
    from observant_host.service.served import Served
    from observant_host.telemetry.propagation import TraceContext


async def call_tool(host: Served, request: web.Request, caller: Caller) -> web.Response:
    body = await body_of(request, CallBody)

    async def call() -> CallResult:
        _check_tool(host, body.name, caller)
        options = _options(request, caller, body.deadline_s)
        return await host.call_tool(body.name, body.arguments, **options)

    return await _ended(body.name, call())


async def get_prompt(host: Served, request: web.Request, caller: Caller) -> web.Response:
    body = await body_of(request, CallBody)

    async def call() -> CallResult:
        _check_prompt(host, body.name, caller)
        options = _options(request, caller, body.deadline_s)
        return await host.get_prompt(body.name, body.arguments, **options)

    return await _ended(body.name, call())


async def read_resource(host: Served, request: web.Request, caller: Caller) -> web.Response:
    body = await body_of(request, ReadBody)

    async def call() -> CallResult:
        server = _owner(host, body, caller)
        options = _options(request, caller, body.deadline_s)
        return await host.read_resource(body.uri, server=server, **options)

    return await _ended(body.uri, call())


async def _ended(name: str, call: Awaitable[CallResult]) -> web.Response:
    try:
        result = await call
    except CallError as error:
        return taken(views.failed_call_json(error, name=name), status=views.status_of(error))
    return taken(views.call_json(result))


def _options(request: web.Request, caller: Caller, deadline_s: float | None) -> CallOptions:
    return {
        "deadline_s": deadline_s,
        "principal": caller.principal,
        "parent": _trace(request),
    }


def _trace(request: web.Request) -> TraceContext | None:
    """The caller's trace, where it names one. Source: W3C Trace Context level 1, 3.2 and 3.3."""
    return parse(request.headers.get("traceparent"), request.headers.get("tracestate"))


def _check_tool(host: Served, name: str, caller: Caller) -> None:
    """Raises InvalidCall where this caller's part of the catalogue has no such tool."""
    part = caller.slice
    if part.is_whole:
        return
    catalogue = sliced(host.catalogue, part)
    found = find_tool(catalogue, name)
    if isinstance(found, Unknown):
        raise no_route(found, "tool", catalogue)
    if isinstance(found, NotListed) and not part.has_server(found.server):
        raise InvalidCall(f"no tool is called {name[:128]!r}", unknown=True)


def _check_prompt(host: Served, name: str, caller: Caller) -> None:
    part = caller.slice
    if part.is_whole:
        return
    catalogue = sliced(host.catalogue, part)
    found = find_prompt(catalogue, name)
    if isinstance(found, Unknown):
        raise no_route(found, "prompt", catalogue)
    if isinstance(found, NotListed) and not part.has_server(found.server):
        raise InvalidCall(f"no prompt is called {name[:128]!r}", unknown=True)


def _owner(host: Served, body: ReadBody, caller: Caller) -> str | None:
    """Whom to ask for it: as asked, or in a part of the catalogue who owns it there."""
    from observant_host.decisions.routes import find_resource

    part = caller.slice
    if part.is_whole:
        return body.server
    if body.server is not None:
        if not part.has_server(body.server):
            raise InvalidCall(f"no server {body.server[:128]!r} is configured", unknown=True)
        return body.server
    catalogue = sliced(host.catalogue, part)
    found = find_resource(catalogue, body.uri)
    if isinstance(found, Unknown):
        raise no_route(found, "resource", catalogue)
    return found.server
