"""The counter for legacy clients: their own methods, and all others in their words.

Source: MCP 2025-11-25 basic/lifecycle, basic/utilities/ping, server/utilities/logging,
server/resources › Subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.asking import LOG_LEVELS
from observant_host.decisions.legacy_northbound import (
    AT_ONCE,
    agreed,
    capabilities_in,
    identity_in,
    legacy_code,
)
from observant_host.decisions.northbound import Refusal, read_request
from observant_host.decisions.northbound_errors import refusal_of
from observant_host.decisions.routes import Unknown, find_resource
from observant_host.errors import CallError, HostError
from observant_host.service.mcp.announced import OURSELVES
from observant_host.service.mcp.desk import fact_of, note
from observant_host.service.mcp.legacy_session import MAX_URIS, Agreed, Session
from observant_host.service.mcp.outlet import Response, encode, error_of, result_of
from observant_host.service.mcp.results import ADDED
from observant_host.timing.tasks import wait_any
from observant_host.wire.legacy_shapes import has_newer_words, shaped
from observant_host.wire.revisions import INTERNAL_ERROR, INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from msgspec import Raw

    from observant_host.decisions.northbound import Question
    from observant_host.peers.relay import Refused
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.desk import Desk
    from observant_host.service.mcp.outlet import Outlet
    from observant_host.service.served import Served
    from observant_host.telemetry.propagation import TraceContext
    from observant_host.timing.clock import Clock
    from observant_host.wire.jsonrpc import Request

    Own = Callable[[Question, Session, Caller], Awaitable[Response]]

EMPTY: Final = b"{}"


class LegacyDesk:
    """One for a running host, over its `desk`."""

    def __init__(self, desk: Desk, host: Served, *, clock: Clock) -> None:
        self.desk = desk
        self._host = host
        self._clock = clock
        self._own: Mapping[str, Own] = {
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
        }

    async def begin(
        self,
        message: Request,
        caller: Caller,
        *,
        opened: Callable[[Session], object],
        around: TraceContext | None = None,
    ) -> Response:
        """The answer to `initialize`; a new session is given to `opened` where it succeeds."""
        question = read_request(message, era="legacy", version="")
        if isinstance(question, Refusal):
            return in_shape(error_of(message.id, question), "initialize", "")
        revision = agreed(question.value("protocolVersion"))
        capabilities, client = question.value("capabilities"), question.value("clientInfo")
        settled = Agreed(revision, _object(capabilities), _object(client))
        asked = _in_session(question, settled.revision, settled.client)
        fact = fact_of(asked, caller)
        with self._host.telemetry.operation(fact, parent=around):
            opened(Session(caller, settled, host=self._host, desk=self.desk, clock=self._clock))
            return result_of(message.id, encode(self._welcome(caller, revision)))

    async def answer(
        self,
        message: Request,
        session: Session,
        caller: Caller,
        *,
        out: Outlet,
        asks: bool = True,
        around: TraceContext | None = None,
    ) -> None:
        """One request of a session. What it is told is in its revision's shapes. `asks`: its client
        can be asked something meanwhile, for it reads what comes before the answer."""
        out = Shaping(out, message.method, session)
        relay = out if asks else None
        question = read_request(
            message,
            era="legacy",
            version=session.revision,
            capabilities=session.capabilities,
        )
        if isinstance(question, Refusal):
            await self.desk.refuse(message.id, message.method, question, out=out, era="legacy")
            return
        asked = _in_session(question, session.revision, session.client, session.log_level)
        if message.method not in AT_ONCE and not self._host.published:
            await wait_any(self._clock, None, self._host.ready, self._host.over)
        own = self._own.get(message.method)
        if own is None:
            await self.desk.serve(asked, caller, out=out, around=around, relay=relay)
            return
        with self._host.telemetry.operation(fact_of(asked, caller), parent=around) as op:
            response = await own(asked, session, caller)
            note(op, response)
            await out.respond(response)

    def _welcome(self, caller: Caller, revision: str) -> dict[str, Any]:
        capabilities = self.desk.capabilities(caller, era="legacy")
        result: dict[str, Any] = {
            "protocolVersion": revision,
            "capabilities": capabilities_in(capabilities, revision),
            "serverInfo": identity_in(OURSELVES, revision),
        }
        told = self.desk.instructions(caller) if self._host.published else None
        return result if told is None else {**result, "instructions": told}

    async def _ping(self, question: Question, _: Session, __: Caller) -> Response:
        return result_of(question.id, EMPTY)

    async def _set_level(self, question: Question, session: Session, _: Caller) -> Response:
        level = question.text("level")
        if level not in LOG_LEVELS:
            why = f"`level` must be one of {', '.join(LOG_LEVELS)}"
            return error_of(question.id, Refusal(INVALID_PARAMS, why))
        session.log_level = level
        return result_of(question.id, EMPTY)

    async def _subscribe(self, question: Question, session: Session, caller: Caller) -> Response:
        uri = question.text("uri")
        if uri is None:
            return error_of(question.id, Refusal(INVALID_PARAMS, "`uri` must be a string"))
        hidden = not caller.slice.is_whole and isinstance(
            find_resource(self.desk.lists.seen_by(caller.slice), uri), Unknown
        )
        if hidden:
            why = f"no server has the resource {uri[:128]!r}"
            return error_of(question.id, Refusal(INVALID_PARAMS, why, {"uri": uri}))
        try:
            if await session.subscribe(uri):
                return result_of(question.id, EMPTY)
        except CallError as error:
            refusal = refusal_of(error, method="resources/subscribe")
            return error_of(question.id, refusal or Refusal(INTERNAL_ERROR, str(error)))
        except HostError as error:
            return error_of(question.id, Refusal(INTERNAL_ERROR, str(error)))
        why = f"a session follows at most {MAX_URIS} resources; unsubscribe from one"
        return error_of(question.id, Refusal(INTERNAL_ERROR, why))

    async def _unsubscribe(self, question: Question, session: Session, _: Caller) -> Response:
        uri = question.text("uri")
        if uri is None:
            return error_of(question.id, Refusal(INVALID_PARAMS, "`uri` must be a string"))
        await session.unsubscribe(uri)
        return result_of(question.id, EMPTY)


class Shaping:
    """An outlet whose response is put in a session's shapes; it asks that session's client."""

    def __init__(self, out: Outlet, method: str, session: Session) -> None:
        self._out = out
        self._method = method
        self._session = session

    @property
    def closed(self) -> bool:
        return self._out.closed

    @property
    def cut(self) -> str | None:
        return self._out.cut

    @property
    def audience(self) -> object:
        return self._session

    async def ask(self, method: str, params: Raw) -> Raw | Refused:
        """The client's answer to a server's request."""
        return await self._session.ask(self._out.notify, method, params)

    def notify(self, message: bytes) -> None:
        self._out.notify(message)

    async def respond(self, response: Response) -> None:
        await self._out.respond(in_shape(response, self._method, self._session.revision))


def in_shape(response: Response, method: str, revision: str) -> Response:
    """In a revision's words, with status 200: to a legacy client 404 means that its session is
    lost."""
    if response.code is not None:
        code = legacy_code(method, response.code)
        if code == response.code:
            return Response(response.parts, code=code)
        whole = msgspec.json.decode(response.whole())
        whole["error"]["code"] = code
        return Response((encode(whole),), code=code)
    head, *inner, tail = response.parts
    if isinstance(inner[0], bytes) and inner[0] in ADDED:
        inner[0] = b"{"
    if not any(has_newer_words(method, part, revision) for part in inner):
        return Response((head, *inner, tail))
    return Response((head, memoryview(shaped(method, b"".join(inner), revision)), tail))


def _in_session(
    question: Question, revision: str, client: Mapping[str, Any], level: str | None = None
) -> Question:
    """With what the session knows and a modern request would say itself."""
    name, version = client.get("name"), client.get("version")
    meta = msgspec.structs.replace(
        question.meta,
        version=revision,
        client_name=name[:128] if isinstance(name, str) else None,
        client_version=version[:128] if isinstance(version, str) else None,
        log_level=level,
    )
    return msgspec.structs.replace(question, meta=meta)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
