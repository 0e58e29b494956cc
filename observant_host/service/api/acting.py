"""A person's acts, each a recorded decision: `async (host, request, caller) -> response`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from observant_host.errors import InvalidCall
from observant_host.service.api.bodies import (
    ActBody,
    CaptureBody,
    LogLevelBody,
    PurgeBody,
    ReloadBody,
    RulingBody,
    SwitchBody,
)
from observant_host.service.api.exchange import body_of, taken
from observant_host.service.api.looking import known
from observant_host.service.whole import calls_of, needs_whole

if TYPE_CHECKING:
    from aiohttp import web

    from observant_host.service.api.exchange import Handler
    from observant_host.service.callers import Caller
    from observant_host.service.served import Served


def once(verb: str) -> Handler:
    """Of an act that happens and is over; answers with the server's object after it."""

    async def act(host: Served, request: web.Request, caller: Caller) -> web.Response:
        name = known(host, request.match_info["name"], caller)
        body = await body_of(request, ActBody)
        view = await host.act(name, verb, principal=caller.principal, reason=body.reason)
        return taken(msgspec.json.encode(view))

    return act


def standing(verb: str) -> Handler:
    """Of an act that stands until a time, or until another one."""

    async def act(host: Served, request: web.Request, caller: Caller) -> web.Response:
        name = known(host, request.match_info["name"], caller)
        body = await body_of(request, RulingBody)
        view = await host.act(
            name,
            verb,
            until=body.until,
            for_s=body.for_s,
            principal=caller.principal,
            reason=body.reason,
        )
        return taken(msgspec.json.encode(view))

    return act


def switching(verb: str) -> Handler:
    """Of `disable` and `enable`: the whole server, or one `tool` of it."""

    async def act(host: Served, request: web.Request, caller: Caller) -> web.Response:
        name = known(host, request.match_info["name"], caller)
        body = await body_of(request, SwitchBody)
        if body.tool is not None and not caller.slice.admits(name, body.tool):
            raise InvalidCall(f"{name} has no tool {body.tool[:128]!r}", unknown=True)
        view = await (
            host.act(
                name,
                verb,
                until=body.until,
                for_s=body.for_s,
                principal=caller.principal,
                reason=body.reason,
            )
            if body.tool is None
            else host.switch_tool(
                name,
                body.tool,
                on=verb == "enable",
                until=body.until,
                for_s=body.for_s,
                principal=caller.principal,
                reason=body.reason,
            )
        )
        return taken(msgspec.json.encode(view))

    return act


async def allow(host: Served, request: web.Request, caller: Caller) -> web.Response:
    name = known(host, request.match_info["name"], caller)
    body = await body_of(request, RulingBody)
    view = await host.allow(
        name,
        until=body.until,
        for_s=body.for_s,
        principal=caller.principal,
        reason=body.reason,
    )
    return taken(msgspec.json.encode(view))


async def examine(host: Served, request: web.Request, caller: Caller) -> web.Response:
    name = known(host, request.match_info["name"], caller)
    body = await body_of(request, ActBody)
    found = await host.examine(name, principal=caller.principal, reason=body.reason)
    return taken(msgspec.json.encode(found))


async def capture(host: Served, request: web.Request, caller: Caller) -> web.Response:
    name = known(host, request.match_info["name"], caller)
    body = await body_of(request, CaptureBody)
    begun = await host.capture(
        name,
        for_s=body.for_s,
        arguments=body.arguments,
        principal=caller.principal,
        reason=body.reason,
    )
    return taken(msgspec.json.encode(begun))


async def cancel(host: Served, request: web.Request, caller: Caller) -> web.Response:
    """Answers with what the call was."""
    call_id = request.match_info["id"]
    mine = {one.id for one in calls_of(host, caller, host.calls_in_flight())}
    if call_id not in mine:
        raise InvalidCall(
            f"no call {call_id[:32]!r} is open; `observant-host calls` lists those that are",
            unknown=True,
        )
    reason = request.query.get("reason", "")
    call = await host.cancel_call(call_id, principal=caller.principal, reason=reason)
    return taken(msgspec.json.encode(call))


async def reload(host: Served, request: web.Request, caller: Caller) -> web.Response:
    """Read the configuration again and apply it, or only plan that."""
    needs_whole(caller, "a reload")
    body = await body_of(request, ReloadBody)
    done = await host.reload(dry_run=body.dry_run, principal=caller.principal, reason=body.reason)
    return taken(msgspec.json.encode(done.to_dict()))


async def log_level(host: Served, request: web.Request, caller: Caller) -> web.Response:
    needs_whole(caller, "the log")
    body = await body_of(request, LogLevelBody)
    set_ = host.set_log_level(
        body.level, for_s=body.for_s, principal=caller.principal, reason=body.reason
    )
    return taken(msgspec.json.encode(set_))


async def purge(host: Served, request: web.Request, caller: Caller) -> web.Response:
    """Answers with what went."""
    body = await body_of(request, PurgeBody)
    if body.server is None:
        needs_whole(caller, "a purge without `server`")
    elif not caller.slice.has_server(body.server):
        raise InvalidCall(f"nothing is on record of {body.server[:128]!r}", unknown=True)
    found = await host.purge_record(
        before_ns=int(body.before * 1e9) if body.before is not None else None,
        server=body.server,
        dry_run=body.dry_run,
        principal=caller.principal,
        reason=body.reason,
    )
    return taken(msgspec.json.encode(found))
