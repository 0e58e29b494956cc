"""`/mcp` for clients that begin with `initialize`: sessions, streams that can be resumed, an end.

Source: MCP 2025-11-25 basic/transports › Streamable HTTP; the same page of 2025-06-18 and
2025-03-26.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from observant_host.decisions.legacy_northbound import BATCHES, PRIMED, known_header
from observant_host.decisions.northbound import Refusal, at_the_door
from observant_host.decisions.northbound_http import SESSION, VERSION, Accepted, accepted
from observant_host.service.mcp.http_outlet import HttpOutlet
from observant_host.service.mcp.legacy_desk import LegacyDesk
from observant_host.service.mcp.legacy_exchange import Exchange, ExchangeOutlet
from observant_host.service.mcp.legacy_streams import place_of
from observant_host.service.mcp.legacy_table import Table
from observant_host.service.mcp.legacy_writer import Writer
from observant_host.service.mcp.outlet import error_of
from observant_host.service.mcp.silences import Silences
from observant_host.telemetry.propagation import parse
from observant_host.timing.tasks import wait_any
from observant_host.wire.jsonrpc import Error, Notification, Request, Result, decode
from observant_host.wire.revisions import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    LEGACY,
    PARSE_ERROR,
)
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from msgspec import Raw
    from multidict import CIMultiDictProxy

    from observant_host.service.access.asked import Asked
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.desk import Desk
    from observant_host.service.mcp.legacy_session import Session
    from observant_host.service.mcp.legacy_streams import Stream
    from observant_host.service.mcp.legacy_table import Seat
    from observant_host.service.mcp.outlet import Response
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock
    from observant_host.wire.jsonrpc import Id, Inbound

SESSION_HEADER: Final = "Mcp-Session-Id"
LOST: Final = Refusal(
    INVALID_REQUEST,
    "this session does not exist (any more); send initialize without Mcp-Session-Id",
    status=404,
)
MISSING: Final = Refusal(
    INVALID_REQUEST, "the header Mcp-Session-Id is missing; initialize gives one", status=400
)
UNKNOWN_VERSION: Final = Refusal(
    INVALID_REQUEST,
    f"MCP-Protocol-Version must be one of {', '.join(LEGACY)} in a session",
    status=400,
)


class LegacyDoor:
    """All legacy clients over HTTP. `close` ends their sessions."""

    def __init__(self, desk: Desk, host: Served, *, clock: Clock) -> None:
        self._desk = LegacyDesk(desk, host, clock=clock)
        self._clock = clock
        self._silences = Silences(clock)
        self.table = Table(clock=clock)

    def close(self) -> None:
        """Idempotent."""
        self.table.close()

    async def post(self, asked: Asked, caller: Caller) -> web.StreamResponse:
        """One message of a client, or an array of them where its revision has such."""
        first = decode(asked.body)[0]
        if isinstance(first, Request) and first.method == "initialize":
            return await self._initialize(asked, first, caller)
        seat = self._seat(asked.headers, caller)
        if isinstance(seat, Refusal):
            return refused(first.id if isinstance(first, Request) else None, seat)
        messages = decode(asked.body, batches=seat.session.revision == BATCHES)
        return await self._taken(asked, messages, seat, caller)

    async def get(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        """The stream for what belongs to no request, or one that was broken off."""
        seat = self._seat(request.headers, caller)
        if isinstance(seat, Refusal):
            return refused(None, seat)
        if not accepted(request.headers.get("Accept")).sse:
            why = "the client must accept text/event-stream"
            return refused(None, Refusal(INVALID_REQUEST, why, status=406))
        stream, after = self._place(request, seat)
        return await self._carried(request, seat, stream, after=after)

    async def delete(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        """The client's end of its session."""
        seat = self._seat(request.headers, caller)
        if isinstance(seat, Refusal):
            return refused(None, seat)
        self.table.end(seat)
        return web.Response(status=204)

    def _seat(self, headers: CIMultiDictProxy[str], caller: Caller) -> Seat | Refusal:
        key = headers.get(SESSION)
        if not known_header(headers.get(VERSION)):
            return UNKNOWN_VERSION
        if key is None:
            return MISSING
        return self.table.find(key, caller.principal) or LOST

    async def _initialize(
        self, asked: Asked, message: Request, caller: Caller
    ) -> web.StreamResponse:
        seats: list[Seat] = []

        def opened(session: Session) -> None:
            seats.append(self.table.add(session))
            session.say_log = seats[0].log

        response = await self._desk.begin(message, caller, opened=opened, around=_trace(asked))
        if not seats:
            return _json(response, {})
        seat = seats[0]
        headers = {SESSION_HEADER: seat.key}
        if accepted(asked.headers.get("Accept")).json:
            return _json(response, headers)
        stream = seat.new_stream()
        stream.put(*response.one_line(), vital=True)
        stream.end()
        return await self._carried(asked.request, seat, stream, headers=headers)

    async def _taken(
        self,
        asked: Asked,
        messages: Sequence[Inbound],
        seat: Seat,
        caller: Caller,
    ) -> web.StreamResponse:
        requests = [one for one in messages if isinstance(one, Request)]
        heard = [_heard(one, seat.session) for one in messages]
        if not requests:
            return web.Response(status=202) if any(heard) else refused(None, unusable(asked.body))
        reads = accepted(asked.headers.get("Accept"))
        if not (reads.json or reads.sse):
            why = "the client must accept application/json and text/event-stream"
            return refused(requests[0].id, Refusal(INVALID_REQUEST, why, status=406))
        if seat.session.full:
            why = "too many requests of this session run already"
            return refused(requests[0].id, Refusal(INTERNAL_ERROR, why, status=429))
        exchange = Exchange(seat, len(requests), json=reads.json, streams=reads.sse)
        seat.exchanges.append(exchange)
        for one in requests:
            self._begin(one, exchange, seat, caller, asked)
        return await self._exchanged(asked, exchange, seat, batch=asked.body.lstrip()[:1] == b"[")

    def _begin(
        self,
        message: Request,
        exchange: Exchange,
        seat: Seat,
        caller: Caller,
        asked: Asked,
    ) -> None:
        around = _trace(asked)

        async def work() -> None:
            out = ExchangeOutlet(exchange)
            if message.method == "initialize":
                why = "initialize comes alone, and without a session"
                await out.respond(error_of(message.id, Refusal(INVALID_REQUEST, why)))
                return
            await self._desk.answer(
                message, seat.session, caller, out=out, asks=exchange.streams, around=around
            )

        task = seat.session.run(message.id, work())
        task.add_done_callback(lambda _: _settled(task, message.id, exchange))

    async def _exchanged(
        self, asked: Asked, exchange: Exchange, seat: Seat, *, batch: bool
    ) -> web.StreamResponse:
        try:
            await wait_any(self._clock, None, exchange.moved)
            if exchange.stream is not None:
                return await self._carried(asked.request, seat, exchange.stream)
            if not exchange.responses:
                return web.Response(status=202)  # all of them were cancelled by the client
            if not batch:
                return await self._body(asked, exchange.responses[0])
            whole = b"[" + b",".join(one.whole() for one in exchange.responses) + b"]"
            return web.Response(body=whole, content_type="application/json")
        finally:
            exchange.abandon()
            seat.exchanges.remove(exchange)

    async def _body(self, asked: Asked, response: Response) -> web.StreamResponse:
        reads = Accepted(json=True, sse=False)
        out = HttpOutlet(asked, accepted=reads, clock=self._clock, silences=self._silences)
        await out.respond(response)
        return web.Response(status=500) if out.response is None else out.response

    async def _carried(
        self,
        request: web.Request,
        seat: Seat,
        stream: Stream,
        *,
        after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> web.StreamResponse:
        """Until the stream is over, or another connection carries it. `after`: the event that the
        client saw last, where it resumes."""
        session = seat.session
        seat.connections += 1
        try:
            begin = stream.unsent_after if after is None else after
            writer = Writer(request, stream, clock=self._clock, headers=headers or {})
            await writer.begin(begin, primed=session.revision >= PRIMED and after is None)
            news = session if stream is seat.general else None
            await writer.carry(begin, news=news)
            return writer.response
        finally:
            seat.connections -= 1

    def _place(self, request: web.Request, seat: Seat) -> tuple[Stream, int | None]:
        """Where to begin. A client that may have missed news on the general stream is told to read
        all lists again."""
        place = place_of(request.headers.get("Last-Event-ID"))
        stream = None if place is None else seat.find_stream(place[0])
        if place is None or stream is None:
            return seat.general, None
        if stream is seat.general and stream.has_lost_since(place[1]):
            seat.session.missed()
        return stream, place[1]


def _heard(message: Inbound, session: Session) -> bool:
    """What needs no answer; False where it is no message."""
    match message:
        case Notification(method="notifications/cancelled", params=params):
            session.cancel(named_request(params))
            return True
        case Result() | Error():
            session.answered(message)
            return True
        case _:
            return isinstance(message, Notification)


def named_request(params: Raw | None) -> Id:
    """The request that a `notifications/cancelled` is about; None where it cannot be read."""
    try:
        value = decode_value(params) if params is not None else None
    except (ValueError, RecursionError):
        return None
    return value.get("requestId") if isinstance(value, dict) else None


def _settled(task: Any, request_id: Id, exchange: Exchange) -> None:
    """A request that was cancelled has no answer; one that failed in us has one."""
    if task.cancelled():
        exchange.over()
    elif task.exception() is not None:
        why = "a defect of the host: its log tells more"
        exchange.answer(error_of(request_id, Refusal(INTERNAL_ERROR, why)))


def _trace(asked: Asked) -> Any:
    return parse(asked.traceparent, asked.headers.get("tracestate"))


def unusable(body: bytes) -> Refusal:
    """What is no message."""
    try:
        decode_value(body)
    except (ValueError, RecursionError):
        return at_the_door(PARSE_ERROR, "the body is no JSON")
    return at_the_door(INVALID_REQUEST, "the body is no JSON-RPC message of this revision")


def refused(request_id: Id, refusal: Refusal) -> web.Response:
    """A refusal at the door, with its own HTTP status."""
    response = error_of(request_id, refusal)
    return web.Response(
        body=response.whole(), status=response.status, content_type="application/json"
    )


def _json(response: Response, headers: Mapping[str, str]) -> web.Response:
    return web.Response(body=response.whole(), content_type="application/json", headers=headers)
