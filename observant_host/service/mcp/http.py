"""`/mcp`: one message a POST, its answer as JSON or as an event stream.

Each request is looked at alone: the modern stamp in its `_meta` makes it modern, `initialize` or a
session makes it legacy. A client that goes away cancels what it asked for.

Source: MCP 2026-07-28 basic/transports/streamable-http, basic/versioning › Backward Compatibility.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web

from observant_host.decisions.northbound import (
    Refusal,
    at_the_door,
    era_of,
    read_request,
    says_version,
)
from observant_host.decisions.northbound_http import (
    SESSION,
    VERSION,
    accepted,
    is_json,
    mismatch,
    repeats,
)
from observant_host.errors import Unavailable
from observant_host.service.access.asked import ReadRequest
from observant_host.service.mcp.http_outlet import HttpOutlet
from observant_host.service.mcp.outlet import error_of
from observant_host.service.mcp.silences import Silences
from observant_host.telemetry.propagation import parse
from observant_host.wire.jsonrpc import Notification, Request, decode
from observant_host.wire.revisions import INTERNAL_ERROR, INVALID_REQUEST, MODERN, PARSE_ERROR
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from multidict import CIMultiDictProxy

    from observant_host.decisions.northbound import Question
    from observant_host.service.access.asked import Asked
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.desk import Desk
    from observant_host.timing.clock import Clock
    from observant_host.wire.jsonrpc import Id
    from observant_host.wire.mirrored_headers import Mirrored

    Headers = CIMultiDictProxy[str]
    Identify = Callable[[web.Request], Awaitable[Caller]]

PATH: Final = "/mcp"


class LegacyDoor(Protocol):
    """Clients that begin with `initialize`: their sessions, streams and shapes."""

    async def post(self, asked: Asked, caller: Caller) -> web.StreamResponse: ...

    async def get(self, request: web.Request, caller: Caller) -> web.StreamResponse: ...

    async def delete(self, request: web.Request, caller: Caller) -> web.StreamResponse: ...


class Door:
    """The endpoint. `identify` says who asks, and raises an HTTP error for whoever may not."""

    def __init__(self, desk: Desk, *, clock: Clock, identify: Identify, legacy: LegacyDoor) -> None:
        self._desk = desk
        self._clock = clock
        self._identify = identify
        self._legacy = legacy
        self._silences = Silences(clock)

    def add_to(self, app: web.Application) -> None:
        app.router.add_route("*", PATH, self.handle)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        caller = await self._identify(request)
        if request.method == "POST":
            return await self._whole(request, caller)
        if SESSION in request.headers:
            if request.method == "GET":
                return await self._legacy.get(request, caller)
            if request.method == "DELETE":
                return await self._legacy.delete(request, caller)
        why = (
            f"only POST is served at {PATH} without a session: this is Streamable HTTP; the older "
            "HTTP+SSE transport is not served"
        )
        return _refused(None, Refusal(INVALID_REQUEST, why, status=405), Allow="POST")

    async def _whole(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        if not is_json(request.headers.get("Content-Type")):
            why = "the Content-Type must be application/json"
            return _refused(None, Refusal(INVALID_REQUEST, why, status=415))
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge as error:
            why = f"the body is larger than max_message_bytes allows: {error.text or ''}"
            return _refused(None, Refusal(INVALID_REQUEST, why.strip(), status=413))
        return await self.post(ReadRequest(request, body), caller)

    async def post(self, asked: Asked, caller: Caller) -> web.StreamResponse:
        """One message of somebody who was let in."""
        # One function from the message to the answer: every call goes through here, and a coroutine
        # more for each step would be entered twice, on the way in and on the way out.
        headers = asked.headers
        messages = decode(asked.body)
        message = messages[0] if len(messages) == 1 else None
        modern = headers.get(VERSION) in MODERN  # as `era_of` says without a look into `_meta`
        if not isinstance(message, Request) or not modern or message.method == "initialize":
            if _is_legacy(headers, message):
                return await self._legacy.post(asked, caller)
            if isinstance(message, Notification):
                return web.Response(status=202)
            if not isinstance(message, Request):
                return _refused(None, _unusable(asked.body))
        reads = accepted(headers.get("Accept"))
        if not (reads.json or reads.sse):
            why = "the client must accept application/json and text/event-stream"
            return _refused(message.id, Refusal(INVALID_REQUEST, why, status=406))
        out = HttpOutlet(asked, accepted=reads, clock=self._clock, silences=self._silences)
        try:
            read = read_request(message, era="modern")
            refusal = read if isinstance(read, Refusal) else self._mismatch(headers, read, caller)
            if refusal is not None:
                await self._desk.refuse(message.id, message.method, refusal, out=out, era="modern")
            elif not isinstance(read, Refusal):
                trace = asked.traceparent
                around = None if trace is None else parse(trace, headers.get("tracestate"))
                await self._desk.serve(read, caller, out=out, around=around)
        except Unavailable as error:
            return _refused(message.id, Refusal(INTERNAL_ERROR, str(error), status=503))
        finally:
            if not out.closed:
                out.abandon()
        return web.Response(status=500) if out.response is None else out.response

    def _mismatch(self, headers: Headers, read: Question, caller: Caller) -> Refusal | None:
        """What is wrong with the headers that repeat the body."""
        mirrored: tuple[Mirrored, ...] = ()
        if read.target is not None and read.method == "tools/call":
            mirrored = self._desk.lists.mirrored(read.target, caller)
        if not mirrored and repeats(read, headers.getall):
            return None
        return mismatch(read, _by_name(headers), mirrored)


def _is_legacy(headers: Headers, message: object) -> bool:
    """A reply, a batch or something unreadable is modern, unless it names a session."""
    method, params = "", None
    if isinstance(message, Request | Notification):
        method, params = message.method, message.params
    era = era_of(
        method,
        says_version=says_version(params),
        header=headers.get(VERSION),
        has_session=SESSION in headers,
    )
    return era == "legacy"


def _by_name(headers: Headers) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in headers.items():
        found.setdefault(name.lower(), []).append(value)
    return found


def _unusable(body: bytes) -> Refusal:
    """What is no request and no notification: broken JSON, or JSON that is something else."""
    try:
        value = decode_value(body)
    except (ValueError, RecursionError):
        return at_the_door(PARSE_ERROR, "the body is no JSON")
    what = "an array: there are no batches" if isinstance(value, list) else "no request"
    return at_the_door(INVALID_REQUEST, f"the body must be one JSON-RPC request; it is {what}")


def _refused(request_id: Id, refusal: Refusal, **headers: str) -> web.Response:
    response = error_of(request_id, refusal)
    return web.Response(
        body=response.whole(),
        status=response.status,
        content_type="application/json",
        headers=headers,
    )
