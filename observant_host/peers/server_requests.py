"""A legacy server's own requests, answered without ever blocking its reader.

Handlers run in tasks of this life, bounded in number; a person may think for minutes in one while
everything else goes on. A modern server must not send requests: those never come here.

Source: MCP 2025-11-25 basic/utilities/ping, client/roots, client/sampling, client/elicitation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from observant_host.peers.input_answers import ask
from observant_host.peers.input_handlers import (
    KINDS,
    NO_HANDLERS,
    InputDeclined,
    InputHandlers,
    InputKind,
    InputRequest,
    forbidden,
)
from observant_host.telemetry.vocabulary import ServerMessage
from observant_host.timing.tasks import spawn
from observant_host.wire import jsonrpc
from observant_host.wire.envelope import encode
from observant_host.wire.revisions import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from observant_host.peers.askers import Asker, Askers
    from observant_host.telemetry.facade import Telemetry

MAX_RUNNING: Final = 16
"""Handlers of one life at once: more prompts than a person can answer; the rest is told "busy"."""


class ServerRequests:
    """Answers for one legacy life; `write` queues one frame and never blocks or raises."""

    def __init__(
        self,
        server: str,
        *,
        handlers: InputHandlers,
        askers: Askers,
        telemetry: Telemetry,
        drop: Callable[[str], None],
        write: Callable[[bytes], None],
    ) -> None:
        self._server = server
        self._declared = handlers.initial()
        self._askers = askers
        self._telemetry = telemetry
        self._drop = drop
        self._write = write
        self._running: dict[tuple[type, int | str], asyncio.Task[Any]] = {}

    @property
    def running(self) -> int:
        """How many handlers are at work."""
        return len(self._running)

    def received(self, request: jsonrpc.Request, answers: int | None = None) -> None:
        """Answer at once, or start the handler that will. `answers`: see `Askers.of`."""
        if request.method == "ping":
            self._answer_now(request, jsonrpc.encode_result(request.id, b"{}"))
            return
        kind = KINDS.get(request.method)
        if kind is None or kind not in self._declared:
            self._refuse(request, METHOD_NOT_FOUND, "this client does not offer that method")
            return
        asker = self._askers.of(answers)
        if asker.handlers is None:
            self._refuse(request, INTERNAL_ERROR, "several calls are open; whose this is, is open")
        elif asker.handlers.of(kind) is None:
            self._refuse(request, METHOD_NOT_FOUND, "this call's client does not offer that method")
        elif len(self._running) >= MAX_RUNNING:
            self._refuse(request, INTERNAL_ERROR, "too many requests are waiting for an answer")
        elif _key(request.id) in self._running:
            self._drop("server_request_id_reused")
        else:
            self._start(request, kind, asker)

    def cancelled(self, params: Raw | None) -> None:
        """The server gave a request up: stop its handler, answer nothing."""
        wanted = _cancelled_id(params)
        task = self._running.pop(_key(wanted), None) if wanted is not None else None
        if task is None:
            self._drop("cancelled_unknown_request")
        else:
            task.cancel()

    def close(self) -> None:
        """The life is over: stop every handler."""
        running, self._running = self._running, {}
        for task in running.values():
            task.cancel()

    def _start(self, request: jsonrpc.Request, kind: InputKind, asker: Asker) -> None:
        key = _key(request.id)

        async def run() -> None:
            left = self._askers.pause(asker)
            try:
                frame = await self._ask(request, kind, asker)
            finally:
                self._askers.resume(asker, left)
                if self._running.get(key) is task:
                    del self._running[key]
            self._write(frame)

        task = spawn(f"{self._server} {request.method}", run(), on_error=self._handler_failed)
        self._running[key] = task

    async def _ask(self, request: jsonrpc.Request, kind: InputKind, asker: Asker) -> bytes:
        handlers = asker.handlers or NO_HANDLERS
        handler = handlers.of(kind)
        assert handler is not None  # noqa: S101 - looked at before it was started
        asked = InputRequest(
            server=self._server,
            kind=kind,
            method=request.method,
            params=request.params if request.params is not None else Raw(b"{}"),
        )
        fact = self._fact(request.method)
        with self._telemetry.operation(fact) as op:
            problem = forbidden(asked, handlers)
            if problem is not None:
                op.end_as("invalid", "invalid_params")
                return jsonrpc.encode_error(request.id, INVALID_PARAMS, problem)
            try:
                passed_on = handlers.offered is not None
                answer = encode(await ask(asked, handler, as_it_came=passed_on))
            except InputDeclined as declined:
                op.end_as("rpc_error", "declined")
                return jsonrpc.encode_error(request.id, declined.code, str(declined))
            except Exception as error:  # noqa: BLE001 - a handler of the embedding program
                op.end_as("error", type(error).__name__)
                return jsonrpc.encode_error(
                    request.id, INTERNAL_ERROR, "the client could not answer"
                )
            return jsonrpc.encode_result(request.id, answer)

    def _answer_now(self, request: jsonrpc.Request, frame: bytes) -> None:
        with self._telemetry.operation(self._fact(request.method)):
            self._write(frame)

    def _refuse(self, request: jsonrpc.Request, code: int, message: str) -> None:
        with self._telemetry.operation(self._fact(request.method)) as op:
            op.end_as("rpc_error", "refused")
            self._write(jsonrpc.encode_error(request.id, code, message))

    def _fact(self, method: str) -> ServerMessage:
        known = method if method in KINDS or method == "ping" else "_other"
        return ServerMessage(
            peer=self._server, method=known, era="legacy", request=True, answered=True
        )

    def _handler_failed(self, _name: str, _error: BaseException) -> None:
        self._drop("answer_failed")


def _key(request_id: int | str) -> tuple[type, int | str]:
    return type(request_id), request_id


def _cancelled_id(params: Raw | None) -> int | str | None:
    try:
        told = msgspec.json.decode(params) if params is not None else None
    except (msgspec.DecodeError, RecursionError):
        return None
    wanted = told.get("requestId") if isinstance(told, Mapping) else None
    is_id = isinstance(wanted, int | str) and not isinstance(wanted, bool)
    return wanted if is_id else None
