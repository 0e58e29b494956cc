"""MCP by lines, of both eras: one client, one message a line.

The first message says what the client is: `initialize` begins the one legacy session of the
connection, a stamped request is modern and stands alone.

Source: MCP 2026-07-28 basic/transports/stdio, basic/patterns/cancellation; MCP 2025-11-25
basic/transports › stdio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions.legacy_northbound import AT_ONCE, BATCHES
from observant_host.decisions.northbound import Refusal, at_the_door, read_request, says_version
from observant_host.service.mcp.legacy_desk import LegacyDesk
from observant_host.service.mcp.legacy_http import named_request, unusable
from observant_host.service.mcp.outlet import error_of
from observant_host.timing.tasks import OwnerTask, spawn, wait_any
from observant_host.wire.jsonrpc import Error, Notification, Request, Result, decode
from observant_host.wire.revisions import INTERNAL_ERROR, INVALID_REQUEST

if TYPE_CHECKING:
    import asyncio

    from observant_host.service.callers import Caller
    from observant_host.service.mcp.desk import Desk
    from observant_host.service.mcp.legacy_session import Session
    from observant_host.service.mcp.outgoing import Outgoing
    from observant_host.service.mcp.outlet import Response
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal
    from observant_host.wire.jsonrpc import Id, Inbound

MAX_RUNNING: Final = 256
"""Requests of one client at a time: an agent has a handful."""


class LineDoor:
    """One connection. `take` a line, `close` at its end; what goes back goes to `out`."""

    def __init__(
        self, desk: Desk, host: Served, *, caller: Caller, out: Outgoing, clock: Clock
    ) -> None:
        self._desk = desk
        self._host = host
        self._caller = caller
        self._out = out
        self._clock = clock
        self._legacy = LegacyDesk(desk, host, clock=clock)
        self._session: Session | None = None
        self._news: OwnerTask | None = None
        self._running: dict[tuple[type, Id], asyncio.Task[None]] = {}

    def take(self, line: bytes) -> None:
        """One line of the client. Never waits, never raises."""
        session = self._session
        batches = session is not None and session.revision == BATCHES
        messages = decode(line, batches=batches)
        requests = [one for one in messages if isinstance(one, Request)]
        array = batches and line.lstrip()[:1] == b"["
        out: LineOutlet = Gathering(self._out, len(requests)) if array else LineOutlet(self._out)
        for message in messages:
            self._one(message, line, out)

    def close(self) -> None:
        """Cancel everything. Idempotent."""
        for task in tuple(self._running.values()):
            task.cancel()
        if self._news is not None:
            self._news.stop()
        if self._session is not None:
            self._session.end()

    def _one(self, message: Inbound, line: bytes, out: LineOutlet) -> None:
        match message:
            case Request():
                self._begin(message, out)
            case Notification(method="notifications/cancelled", params=params):
                wanted = named_request(params)
                if (task := self._running.get((type(wanted), wanted))) is not None:
                    task.cancel()
            case Notification():
                return
            case Result() | Error() if self._session is not None:
                self._session.answered(message)
            case Result() | Error():
                return
            case _:
                self._out.put(*error_of(None, unusable(line)).parts)

    def _begin(self, message: Request, out: LineOutlet) -> None:
        if len(self._running) >= MAX_RUNNING:
            why = f"at most {MAX_RUNNING} requests run at a time"
            out.answer(error_of(message.id, Refusal(INTERNAL_ERROR, why)))
            return
        key = (type(message.id), message.id)
        task = spawn("request of a client", self._serve(message, out))
        self._running[key] = task

        def done(ended: asyncio.Task[None]) -> None:
            if self._running.get(key) is ended:
                del self._running[key]
            if ended.cancelled():
                out.over()
            elif ended.exception() is not None:
                why = "a defect of the host: its log tells more"
                out.answer(error_of(message.id, Refusal(INTERNAL_ERROR, why)))

        task.add_done_callback(done)

    async def _serve(self, message: Request, out: LineOutlet) -> None:
        modern = says_version(message.params)
        if message.method == "initialize" and not modern:
            await out.respond(await self._initialized(message))
        elif self._session is not None and not modern:
            await self._legacy.answer(message, self._session, self._caller, out=out)
        else:
            await self._modern(message, out)

    async def _modern(self, message: Request, out: LineOutlet) -> None:
        read = read_request(message, era="modern")
        if isinstance(read, Refusal):
            await self._desk.refuse(message.id, message.method, read, out=out, era="modern")
            return
        if message.method not in AT_ONCE and not self._host.published:
            await wait_any(self._clock, None, self._host.ready, self._host.over)
        await self._desk.serve(read, self._caller, out=out)

    async def _initialized(self, message: Request) -> Response:
        if self._session is not None:
            why = "this connection was initialized already"
            return error_of(message.id, at_the_door(INVALID_REQUEST, why))
        return await self._legacy.begin(message, self._caller, opened=self._opened)

    def _opened(self, session: Session) -> None:
        self._session = session
        session.say_log = self._out.note
        self._news = OwnerTask("news of a client", lambda stop: self._tell(session, stop))
        self._news.start()

    async def _tell(self, session: Session, stop: Signal) -> None:
        while not stop.is_set():
            for message in session.news():
                self._out.put(message)
            await wait_any(self._clock, None, stop, session.follower.changed)


class LineOutlet:
    """The way back for one request."""

    def __init__(self, out: Outgoing) -> None:
        self._out = out
        self.cut: str | None = None

    @property
    def closed(self) -> bool:
        return self._out.closed

    def notify(self, message: bytes) -> None:
        self._out.note(message)

    async def respond(self, response: Response) -> None:
        self.answer(response)

    def answer(self, response: Response) -> None:
        self._out.put(*response.one_line())

    def over(self) -> None:
        """A request was cancelled: it has no answer."""


class Gathering(LineOutlet):
    """The way back for an array of requests: their answers are an array too."""

    def __init__(self, out: Outgoing, count: int) -> None:
        super().__init__(out)
        self._left = count
        self._answers: list[Any] = []

    def answer(self, response: Response) -> None:
        self._answers.append(b"".join(response.one_line()))
        self.over()

    def over(self) -> None:
        self._left -= 1
        if self._left <= 0 and self._answers:
            self._out.put(b"[" + b",".join(self._answers) + b"]")
            self._answers.clear()
