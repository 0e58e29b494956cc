"""Requests that only look. Each is `async (host, request, caller) -> response`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from observant_host.decisions.catalogue_json import prompts_json, resources_json, tools_json
from observant_host.decisions.slices import sliced
from observant_host.errors import InvalidCall
from observant_host.service import views
from observant_host.service.api.exchange import answered
from observant_host.service.whole import calls_of, needs_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from observant_host.decisions.catalogue import Catalogue
    from observant_host.decisions.slices import Slice
    from observant_host.service.callers import Caller
    from observant_host.service.served import Served


async def servers(host: Served, _: web.Request, caller: Caller) -> web.Response:
    views_ = [view for view in host.servers.values() if caller.slice.has_server(view.name)]
    return answered(views.servers_json(views_))


async def server(host: Served, request: web.Request, caller: Caller) -> web.Response:
    name = known(host, request.match_info["name"], caller)
    return answered(msgspec.json.encode(host.servers[name]))


async def tools(host: Served, _: web.Request, caller: Caller) -> web.Response:
    return await _listed(host, caller, tools_json)


async def prompts(host: Served, _: web.Request, caller: Caller) -> web.Response:
    return await _listed(host, caller, prompts_json)


async def resources(host: Served, _: web.Request, caller: Caller) -> web.Response:
    return await _listed(host, caller, resources_json)


async def _listed(
    host: Served, caller: Caller, shape: Callable[[Catalogue], dict[str, Any]]
) -> web.Response:
    catalogue = sliced(await host.fresh_catalogue(), caller.slice)
    return answered(msgspec.json.encode(shape(catalogue)))


async def calls(host: Served, _: web.Request, caller: Caller) -> web.Response:
    document = {
        "in_flight": calls_of(host, caller, host.calls_in_flight()),
        "recent": calls_of(host, caller, host.recent_calls()),
    }
    return answered(msgspec.json.encode(document))


async def decisions(host: Served, request: web.Request, caller: Caller) -> web.Response:
    """About one `server` from the record; without it the last of all, from memory."""
    name = request.query.get("server")
    if name is None:
        recent = [one for one in host.recent_decisions() if _concerns(one, caller.slice)]
        return answered(msgspec.json.encode({"recent": recent}))
    if not caller.slice.has_server(name):
        raise InvalidCall(f"no server {name[:128]!r} is configured", unknown=True)
    found = await host.explain(name, since_ns=_moment_ns(request, "since"))
    return answered(views.decisions_json(name, found))


def _concerns(decision: dict[str, Any], part: Slice) -> bool:
    """One without a server is about the host, and may name any server."""
    server = decision["server"]
    return part.is_whole if server is None else part.has_server(server)


async def incidents(host: Served, request: web.Request, caller: Caller) -> web.Response:
    """Of the last day, unless asked otherwise; `since` and `until` in epoch seconds."""
    found = await host.incidents(
        server=request.query.get("server"),
        since_ns=_moment_ns(request, "since"),
        until_ns=_moment_ns(request, "until"),
    )
    mine = [one for one in found["incidents"] if caller.slice.has_server(one["server"])]
    return answered(msgspec.json.encode({**found, "incidents": mine}))


async def log(host: Served, _: web.Request, caller: Caller) -> web.Response:
    """The last lines that went to stderr."""
    needs_whole(caller, "the log")
    return answered(msgspec.json.encode({"lines": list(host.log_tail())}))


def known(host: Served, name: str, caller: Caller) -> str:
    """The name, of a server that exists for this caller. Raises InvalidCall."""
    mine = [one for one in host.servers if caller.slice.has_server(one)]
    if name not in mine:
        there = ", ".join(mine) or "none"
        raise InvalidCall(
            f"no server {name[:128]!r} is configured; there are: {there}", unknown=True
        )
    return name


def _moment_ns(request: web.Request, name: str) -> int | None:
    given = request.query.get(name)
    try:
        return int(float(given) * 1e9) if given is not None else None
    except (ValueError, OverflowError):
        raise InvalidCall(f"{name}={given!r} is no number of epoch seconds") from None
