"""Calls of one caller, put through to the servers that own what is called.

What a caller may see is all that it may call. Its progress token and log level stay here: the
server gets its own, and what it tells comes back under the caller's.

Source: MCP 2026-07-28 server/tools, server/prompts, server/resources, server/utilities/completion,
basic/patterns/progress.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from observant_host.decisions.northbound import Refusal
from observant_host.decisions.northbound_errors import refusal_of
from observant_host.errors import CallError, InvalidCall
from observant_host.peers.input_handlers import NO_HANDLERS
from observant_host.service.mcp.aiming import Aiming
from observant_host.service.mcp.inputs import NOTHING, is_plain
from observant_host.service.mcp.logs import Logs, Reader
from observant_host.service.mcp.outlet import Response, error_of, notification
from observant_host.service.mcp.results import complete, contents, failed
from observant_host.wire.revisions import INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from observant_host.decisions.northbound import Question
    from observant_host.peers.relay import Relay
    from observant_host.routing.asked import CallOptions
    from observant_host.routing.call_result import CallResult
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.inputs import Call, Inputs
    from observant_host.service.mcp.lists import Lists
    from observant_host.service.mcp.outlet import Outlet
    from observant_host.service.served import Served
    from observant_host.telemetry.facade import Operation

    Serve = Callable[[Question, Caller, Outlet, Operation, Relay | None], Awaitable[Response]]

NO_ARGUMENTS: Final = Raw(b"{}")


class Calls:
    """`by_method` is the table of what is served here."""

    def __init__(self, host: Served, lists: Lists, inputs: Inputs) -> None:
        self._host = host
        self._inputs = inputs
        self._logs = Logs(host)
        self._aiming = Aiming(host, lists)
        self.by_method: Mapping[str, Serve] = {
            "tools/call": self.call_tool,
            "prompts/get": self.get_prompt,
            "resources/read": self.read_resource,
            "completion/complete": self.complete,
        }

    async def call_tool(
        self,
        question: Question,
        caller: Caller,
        out: Outlet,
        op: Operation,
        relay: Relay | None = None,
    ) -> Response:
        name = question.target
        if name is None:
            return _lacks(question, "name", "a string")
        options = _options(question, caller, out, op)
        arguments = question.params.get("arguments", NO_ARGUMENTS)
        result: CallResult | Response
        try:
            plain = is_plain(question, relay)
            whole = plain and caller.slice.is_whole  # then the call itself finds the owner
            owner = None if whole else self._aiming.tool(name, caller.slice)
            if plain:
                # nearly every call: what comes between is for those that may be asked first
                options["handlers"], options["inputs"] = NOTHING, "hand_up"
                result = await self._host.call_tool(name, arguments, **options)
                if result.input_required is not None:
                    result = self._inputs.asked(question, caller, op, result)
            else:

                async def call(options: CallOptions) -> CallResult:
                    return await self._host.call_tool(name, arguments, **options)

                result = await self._through(question, caller, op, relay, owner, options, call, out)
        except CallError as error:
            refusal = refusal_of(error, method="tools/call")
            op.end_as(error.outcome, error.error_type)
            return failed(question.id, error) if refusal is None else error_of(question.id, refusal)
        if isinstance(result, Response):
            return result
        if result.is_error:
            op.end_as("tool_error", "tool_error")
        return complete(question.id, result)

    async def get_prompt(
        self,
        question: Question,
        caller: Caller,
        out: Outlet,
        op: Operation,
        relay: Relay | None = None,
    ) -> Response:
        name = question.target
        if name is None:
            return _lacks(question, "name", "a string")
        options = _options(question, caller, out, op)
        arguments = question.params.get("arguments", NO_ARGUMENTS)

        async def call(options: CallOptions) -> CallResult:
            return await self._host.get_prompt(name, arguments, **options)

        async def get() -> CallResult | Response:
            owner = self._aiming.prompt(name, caller.slice)
            return await self._through(question, caller, op, relay, owner, options, call, out)

        return await _answered(question, get, complete)

    async def read_resource(
        self,
        question: Question,
        caller: Caller,
        out: Outlet,
        op: Operation,
        relay: Relay | None = None,
    ) -> Response:
        uri = question.target
        if uri is None:
            return _lacks(question, "uri", "a string")
        options = _options(question, caller, out, op)

        async def read() -> CallResult | Response:
            owner = self._aiming.resource(uri, caller.slice)
            server = None if caller.slice.is_whole else owner

            async def call(options: CallOptions) -> CallResult:
                return await self._host.read_resource(uri, server=server, **options)

            return await self._through(question, caller, op, relay, owner, options, call, out)

        def shape(request_id: int | str, result: CallResult) -> Response:
            return contents(request_id, result, private=not caller.slice.is_whole)

        return await _answered(question, read, shape, data={"uri": uri})

    async def complete(
        self,
        question: Question,
        caller: Caller,
        out: Outlet,
        op: Operation,
        relay: Relay | None = None,
    ) -> Response:
        ref, argument = question.value("ref"), question.value("argument")
        if not isinstance(ref, dict) or not isinstance(argument, dict):
            return _lacks(question, "ref` and `argument", "objects")
        context = question.value("context")
        options = _options(question, caller, out, op)

        async def call() -> CallResult:
            server = None
            if ref.get("type") == "ref/prompt":
                self._aiming.prompt(str(ref.get("name")), caller.slice)
            elif isinstance(ref.get("uri"), str):
                owner = self._aiming.reference(ref["uri"], caller.slice)
                server = None if caller.slice.is_whole else owner
            return await self._host.complete(
                ref,
                argument,
                context=context if isinstance(context, dict) else None,
                server=server,
                **options,
            )

        return await _answered(question, call, complete)

    async def _through(
        self,
        question: Question,
        caller: Caller,
        op: Operation,
        relay: Relay | None,
        owner: str | None,
        options: CallOptions,
        call: Call,
        out: Outlet,
    ) -> CallResult | Response:
        """With what the server wants of the caller first. What has no owner fails in the call."""
        if owner is None:
            return await call(options)
        level = question.meta.log_level if question.era == "modern" else None
        reader = None if level is None else Reader(owner, caller.principal, level, out)
        with nullcontext() if reader is None else self._logs.read_along(reader):
            return await self._inputs.through(
                question, caller, op, server=owner, options=options, call=call, relay=relay
            )


def _options(question: Question, caller: Caller, out: Outlet, op: Operation) -> CallOptions:
    """What goes with the call. Without handlers nothing is declared for it southbound."""
    meta = question.meta
    options: CallOptions = {
        "principal": caller.principal,
        "parent": op.context,
        "handlers": NO_HANDLERS,
    }
    if meta.progress_token is not None:
        options["on_progress"] = _progress_to(out, meta.progress_token)
    if meta.log_level is not None:
        options["log_level"] = meta.log_level
    if meta.others:
        options["meta"] = meta.others
    return options


async def _answered(
    question: Question,
    call: Callable[[], Awaitable[CallResult | Response]],
    shape: Callable[[int | str, CallResult], Response],
    *,
    data: Any = None,
) -> Response:
    """The response to what has no `isError`. `data` says what was not found."""
    try:
        result = await call()
    except CallError as error:
        refusal = refusal_of(error, method=question.method)
        assert refusal is not None  # noqa: S101 - only tools have failures that are results
        if isinstance(error, InvalidCall) and error.unknown and data is not None:
            refusal = Refusal(refusal.code, refusal.message, data)
        return error_of(question.id, refusal)
    return result if isinstance(result, Response) else shape(question.id, result)


def _progress_to(
    out: Outlet, token: int | str
) -> Callable[[float, float | None, str | None], None]:
    def told(progress: float, total: float | None, message: str | None) -> None:
        params: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        out.notify(notification("notifications/progress", params))

    return told


def _lacks(question: Question, what: str, kind: str) -> Response:
    return error_of(question.id, Refusal(INVALID_PARAMS, f"`{what}` must be {kind}"))
