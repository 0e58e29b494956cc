"""The JSON API. Served on the private socket: whoever can open it is the host's own user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from aiohttp import web
from msgspec import Raw

from observant_host.decisions.acts import Act
from observant_host.decisions.catalogue_json import prompts_json, resources_json, tools_json
from observant_host.errors import CallError, HostError, InvalidCall
from observant_host.service import views
from observant_host.service.admin import JSON
from observant_host.telemetry.propagation import parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from observant_host.decisions.catalogue import Catalogue
    from observant_host.routing.call_result import CallResult
    from observant_host.service.served import Served
    from observant_host.telemetry.propagation import TraceContext

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

T = TypeVar("T")

PRINCIPAL_HEADER: Final = "X-Observant-Host-Principal"
PRINCIPAL_CHARS: Final = 128
"""Of who says to be asking: a name, for the record."""


class CallBody(msgspec.Struct, frozen=True):
    """Body of `POST /api/v1/tools/call` and `/prompts/get`; `arguments` pass through as they
    came."""

    name: str
    arguments: Raw = Raw(b"{}")
    deadline_s: float | None = None


class ReadBody(msgspec.Struct, frozen=True):
    """Body of `POST /api/v1/resources/read`."""

    uri: str
    server: str | None = None
    deadline_s: float | None = None


class ActBody(msgspec.Struct, frozen=True):
    """Body of an operator's act. `until`: epoch seconds; `for_s`: seconds from now."""

    reason: str = ""
    until: float | None = None
    for_s: float | None = None


class ReloadBody(msgspec.Struct, frozen=True):
    """Body of `POST /api/v1/reload`."""

    dry_run: bool = False
    reason: str = ""


class PurgeBody(msgspec.Struct, frozen=True):
    """Body of `POST /api/v1/record/purge`. `before`: epoch seconds."""

    before: float | None = None
    server: str | None = None
    dry_run: bool = False
    reason: str = ""


def add_api(app: web.Application, host: Served) -> None:
    """All routes below `/api/v1`."""
    api = _Api(host)
    app.middlewares.append(_problems)
    app.add_routes(
        [
            web.get("/api/v1/servers", api.servers),
            web.get("/api/v1/servers/{name}", api.server),
            web.post("/api/v1/servers/{name}/{verb}", api.act),
            web.get("/api/v1/tools", api.catalogue(tools_json)),
            web.get("/api/v1/prompts", api.catalogue(prompts_json)),
            web.get("/api/v1/resources", api.catalogue(resources_json)),
            web.post("/api/v1/tools/call", api.call),
            web.post("/api/v1/prompts/get", api.prompt),
            web.post("/api/v1/resources/read", api.resource),
            web.get("/api/v1/decisions", api.decisions),
            web.get("/api/v1/log", api.log),
            web.get("/api/v1/incidents", api.incidents),
            web.post("/api/v1/record/purge", api.purge),
            web.post("/api/v1/reload", api.reload),
        ]
    )


@web.middleware
async def _problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except HostError as error:
        return _json(views.problem_json(error), status=views.status_of(error))


class _Api:
    def __init__(self, host: Served) -> None:
        self._host = host

    async def servers(self, _: web.Request) -> web.Response:
        return _json(views.servers_json(self._host.servers.values()))

    async def server(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        found = self._host.servers.get(name)
        if found is None:
            known = ", ".join(self._host.servers) or "none"
            raise InvalidCall(f"no server {name!r} is configured; there are: {known}", unknown=True)
        return _json(msgspec.json.encode(found))

    async def act(self, request: web.Request) -> web.Response:
        """A person's act; answers with the server's object after it."""
        name, verb = request.match_info["name"], request.match_info["verb"]
        body = await _body(request, ActBody, default=b"{}")
        who = _principal(request)
        until: dict[str, Any] = {"until": body.until, "for_s": body.for_s}
        result: object
        match verb:
            case "allow":
                result = await self._host.allow(name, principal=who, reason=body.reason, **until)
            case "examine":
                result = await self._host.examine(name, principal=who, reason=body.reason)
            case _ if verb in tuple(Act):
                result = await self._host.act(
                    name, verb, principal=who, reason=body.reason, **until
                )
            case _:
                raise InvalidCall(
                    f"there is no act {verb!r}; there are: {', '.join(Act)}, allow, examine",
                    unknown=True,
                )
        return _json(msgspec.json.encode(result))

    async def reload(self, request: web.Request) -> web.Response:
        """Read the configuration again and apply it, or only plan that."""
        body = await _body(request, ReloadBody, default=b"{}")
        done = await self._host.reload(
            dry_run=body.dry_run, principal=_principal(request), reason=body.reason
        )
        return _json(msgspec.json.encode(done.to_dict()))

    def catalogue(self, shape: Callable[[Catalogue], dict[str, Any]]) -> Handler:
        async def listed(_: web.Request) -> web.Response:
            return _json(msgspec.json.encode(shape(await self._host.fresh_catalogue())))

        return listed

    async def call(self, request: web.Request) -> web.Response:
        """One routed call; cancelled where the client goes away."""
        body = await _body(request, CallBody)
        who = _principal(request)
        return await _called(
            body.name,
            self._host.call_tool(
                body.name,
                body.arguments,
                deadline_s=body.deadline_s,
                principal=who,
                parent=_trace(request),
            ),
        )

    async def prompt(self, request: web.Request) -> web.Response:
        """As `call`, of a prompt."""
        body = await _body(request, CallBody)
        who = _principal(request)
        return await _called(
            body.name,
            self._host.get_prompt(
                body.name,
                body.arguments,
                deadline_s=body.deadline_s,
                principal=who,
                parent=_trace(request),
            ),
        )

    async def resource(self, request: web.Request) -> web.Response:
        """As `call`, of a resource."""
        body = await _body(request, ReadBody)
        who = _principal(request)
        return await _called(
            body.uri,
            self._host.read_resource(
                body.uri,
                server=body.server,
                deadline_s=body.deadline_s,
                principal=who,
                parent=_trace(request),
            ),
        )

    async def decisions(self, request: web.Request) -> web.Response:
        """About one `server` from the record; without it the last of all, from memory."""
        name = request.query.get("server")
        if name is None:
            return _json(msgspec.json.encode({"recent": self._host.recent_decisions()}))
        found = await self._host.explain(name, since_ns=_moment_ns(request, "since"))
        return _json(views.decisions_json(name, found))

    async def log(self, _: web.Request) -> web.Response:
        """The last lines that went to stderr."""
        return _json(msgspec.json.encode({"lines": list(self._host.log_tail())}))

    async def incidents(self, request: web.Request) -> web.Response:
        """Of the last day, unless asked otherwise; `since` and `until` in epoch seconds."""
        found = await self._host.incidents(
            server=request.query.get("server"),
            since_ns=_moment_ns(request, "since"),
            until_ns=_moment_ns(request, "until"),
        )
        return _json(msgspec.json.encode(found))

    async def purge(self, request: web.Request) -> web.Response:
        """A person's act; answers with what went."""
        body = await _body(request, PurgeBody)
        before_ns = int(body.before * 1e9) if body.before is not None else None
        found = await self._host.purge_record(
            before_ns=before_ns,
            server=body.server,
            dry_run=body.dry_run,
            principal=_principal(request),
            reason=body.reason,
        )
        return _json(msgspec.json.encode(found))


def _moment_ns(request: web.Request, name: str) -> int | None:
    given = request.query.get(name)
    try:
        return int(float(given) * 1e9) if given is not None else None
    except (ValueError, OverflowError):
        raise InvalidCall(f"{name}={given!r} is no number of epoch seconds") from None


async def _called(name: str, call: Awaitable[CallResult]) -> web.Response:
    try:
        result = await call
    except CallError as error:
        return _json(views.failed_call_json(error, name=name), status=views.status_of(error))
    return _json(views.call_json(result))


async def _body(request: web.Request, kind: type[T], *, default: bytes = b"") -> T:
    """The request's body as `kind`. Raises InvalidCall that says what is wrong with it."""
    data = await request.read() or default
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidCall(f"the request's body cannot be used: {error}") from None


def _principal(request: web.Request) -> str:
    said = request.headers.get(PRINCIPAL_HEADER, "socket")
    return "".join(c for c in said if c.isprintable())[:PRINCIPAL_CHARS] or "socket"


def _trace(request: web.Request) -> TraceContext | None:
    """The caller's trace, where it names one. Source: W3C Trace Context level 1, 3.2 and 3.3."""
    return parse(request.headers.get("traceparent"), request.headers.get("tracestate"))


def _json(body: bytes, *, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type=JSON)
