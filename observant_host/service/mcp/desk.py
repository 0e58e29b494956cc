"""The counter where agents are served: one request of one caller in, its answers out.

It knows no transport and no session: HTTP of both eras and stdio put their requests here. A request
is cancelled by cancelling the task that awaits `answer`; the southbound call ends with it.

Source: MCP 2026-07-28 basic/index, server/*; OpenTelemetry semantic conventions for MCP, Server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions.northbound import (
    Question,
    Refusal,
    at_the_door,
    method_of,
    read_request,
    unsupported,
)
from observant_host.service.mcp.announced import CAPABILITIES, discovered
from observant_host.service.mcp.calls import Calls
from observant_host.service.mcp.clients import Clients
from observant_host.service.mcp.feed import Feed
from observant_host.service.mcp.inputs import Inputs
from observant_host.service.mcp.listening import Listening
from observant_host.service.mcp.lists import LISTS, Lists
from observant_host.service.mcp.outlet import Response, error_of
from observant_host.service.mcp.search_front import Search, Wanted, Wrong, read_front, refused
from observant_host.telemetry.propagation import Link, parse
from observant_host.telemetry.vocabulary import NorthboundRequest
from observant_host.timing.tasks import wait_any
from observant_host.wire.revisions import METHOD_NOT_FOUND, MODERN

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from observant_host.decisions.northbound import Era
    from observant_host.peers.relay import Relay
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.listening import Subscription
    from observant_host.service.mcp.outlet import Outlet
    from observant_host.service.served import Served
    from observant_host.telemetry.facade import Operation, Telemetry
    from observant_host.telemetry.propagation import TraceContext
    from observant_host.timing.clock import Clock
    from observant_host.wire.jsonrpc import Id, Request

MAX_NAME_TOLD: Final = 256
"""Characters of a called name, or of a request's id, in telemetry: both can be anything."""


class Desk:
    """One for a running host. `lists` and `feed` are for those who serve other shapes of the same.

    `close` ends every open subscription with its result; later ones are refused.
    """

    def __init__(self, host: Served, *, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self.clients = Clients(clock)
        self.lists = Lists(host, clock=clock)
        self.feed = Feed(host)
        self.listening = Listening(host, self.feed, self.lists, clock=clock)
        self.inputs = Inputs(host, clock=clock)
        self._search = Search(self.lists)
        self._calls = Calls(host, self.lists, self.inputs)
        self._telemetry: Telemetry | None = None

    def capabilities(self, caller: Caller, *, era: Era = "modern") -> dict[str, Any]:
        """What is announced to this caller."""
        return CAPABILITIES

    def instructions(self, caller: Caller) -> str | None:
        """One bounded line for each server whose things are missing."""
        return self.lists.instructions(caller)

    async def answer(
        self,
        message: Request,
        caller: Caller,
        *,
        era: Era,
        version: str | None = None,
        capabilities: Mapping[str, Any] | None = None,
        out: Outlet,
        around: TraceContext | None = None,
        relay: Relay | None = None,
    ) -> None:
        """Read, serve, respond. `version` and `capabilities` are a legacy session's; a modern
        request says both itself. `around` is a trace that the transport told of, `relay` asks a
        legacy caller while its call is open; without one a caller is asked by an answer."""
        read = read_request(message, era=era, version=version, capabilities=capabilities)
        if isinstance(read, Refusal):
            await self.refuse(message.id, message.method, read, out=out, era=era)
        else:
            await self.serve(read, caller, out=out, around=around, relay=relay)

    async def serve(
        self,
        question: Question,
        caller: Caller,
        *,
        out: Outlet,
        around: TraceContext | None = None,
        relay: Relay | None = None,
    ) -> None:
        """As `answer`, of a request that was read already. Raises Unavailable where the host does
        not run (yet)."""
        meta = question.meta
        telemetry = self._telemetry or await self._started()
        if question.era == "modern":
            self.clients.heard(caller.principal, meta.client_name, meta.client_version)
        trace = meta.trace
        parent = parse(trace.get("traceparent"), trace.get("tracestate")) if trace else None
        links = (Link(around, "carried_by"),) if around is not None and parent is not None else ()
        front: Wanted | Wrong | None = None
        if caller.slice.mode == "search":
            asked = read_front(question)
            if isinstance(asked, Question):
                question = asked
            else:
                front = asked
        fact = fact_of(question, caller)
        operation = telemetry.operation(fact, parent=parent or around, links=links)
        with operation as op:
            try:
                serve = self._calls.by_method.get(question.method)  # always announced
                served = question.era != "modern" or meta.version in MODERN
                if serve is not None and front is None and served:
                    response: Response | Subscription = await serve(
                        question, caller, out, op, relay
                    )
                else:
                    serving = self._serving(question, caller, out, op, front)
                    response = serving if isinstance(serving, Response) else await serving
                if isinstance(response, Response):
                    if response.code is not None:
                        note(op, response)
                    await out.respond(response)
                    return
            finally:
                if out.cut is not None:
                    op.note(cut=out.cut)
        await out.respond(await response.until_over())  # no span lasts as long as a stream

    async def refuse(
        self, request_id: Id, method: str, refusal: Refusal, *, out: Outlet, era: Era
    ) -> None:
        """Respond to what cannot be served, and tell of it."""
        fact = NorthboundRequest(method=method[:MAX_NAME_TOLD], era=era)
        with self._host.telemetry.operation(fact) as op:
            response = error_of(request_id, refusal)
            note(op, response)
            await out.respond(response)

    def close(self) -> None:
        """End all subscriptions, and the calls that wait for their callers: the host goes away.
        Idempotent."""
        self.listening.close()
        self.inputs.close()

    async def _started(self) -> Telemetry:
        """Once start-up is over: who comes early gets the whole catalogue, a little later."""
        host = self._host
        if not host.published:
            await wait_any(self._clock, None, host.ready, host.over)
        self._telemetry = host.telemetry
        return self._telemetry

    def _serving(
        self,
        question: Question,
        caller: Caller,
        out: Outlet,
        op: Operation,
        front: Wanted | Wrong | None,
    ) -> Response | Awaitable[Response | Subscription]:
        """What is no call: the response, or what has to be waited for to have it."""
        modern = question.era == "modern"
        refusal = unsupported(question.meta.version) if modern else None
        known = refusal or method_of(question.method, self.capabilities(caller, era=question.era))
        if isinstance(known, Refusal):
            return error_of(question.id, known)
        if isinstance(front, Wanted):
            return self._search.find(question.id, front, caller.slice)
        if front is not None:
            op.end_as("tool_error", "tool_error")
            return refused(question.id, front)
        match question.method:
            case "server/discover" if question.era == "modern":
                return discovered(question.id, self.lists, caller)
            case "subscriptions/listen" if question.era == "modern":
                return self.listening.open(question, caller, out)
            case method if method in LISTS:
                return self.lists.page(question, caller)
            case _:
                refusal = at_the_door(METHOD_NOT_FOUND, f"there is no method {question.method!r}")
                return error_of(question.id, refusal)


def fact_of(question: Question, caller: Caller) -> NorthboundRequest:
    """What is told of a request. A resource's URI may hold a secret: it is in no fact."""
    target = question.target if question.method != "resources/read" else None
    return NorthboundRequest(
        method=question.method[:MAX_NAME_TOLD],
        era=question.era,
        version=question.meta.version,
        target=target[:MAX_NAME_TOLD] if target is not None else None,
        request_id=str(question.id)[:MAX_NAME_TOLD],
        principal=caller.principal,
        client_name=question.meta.client_name,
        client_version=question.meta.client_version,
    )


def note(op: Operation, response: Response) -> None:
    """Tell of an error that is the answer."""
    if response.code is not None:
        op.note(rpc_code=response.code, http_status=response.status)
        op.end_as("rpc_error", str(response.code))
