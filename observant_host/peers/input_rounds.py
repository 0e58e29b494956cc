"""A call that needs input: ask whoever can answer, send the call again, and not for ever.

Everything a round needs is collected before the call is sent again, under a new id, with the
server's `requestState` as it came and the original parameters untouched.

Source: MCP 2026-07-28 basic/patterns/mrtr › Supported Requests, Client Requirements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from observant_host.errors import CallTimeout, InputRefused, InvalidResult
from observant_host.peers.input_answers import UnfitAnswer, ask
from observant_host.peers.input_handlers import (
    KINDS,
    InputDeclined,
    InputRequest,
    forbidden,
)
from observant_host.telemetry.vocabulary import RetryScheduled
from observant_host.timing.deadline import DeadlinePassed, deadline
from observant_host.wire.messages import InputRequired, parse_input_required, peek

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from observant_host.peers.input_handlers import InputHandler, InputHandlers
    from observant_host.telemetry.facade import Telemetry, TraceContext
    from observant_host.timing.clock import Clock
    from observant_host.wire.messages import EmbeddedRequest

    Params = Mapping[str, Any] | Raw | None
    SendAgain = Callable[[Params, int], Awaitable[Raw]]

METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The only requests that may be answered with a wish for input."""

MAX_ROUNDS: Final = 8
"""The protocol has no limit; a dialogue of more than eight forms for one call is a loop."""

MAX_INPUTS: Final = 16
"""Of one round: more prompts at once than anybody reads."""

FIRST_PAUSE_S: Final = 0.25
"""Before a round that asks for nothing (the server sheds load); doubles with each such round."""


class InputRounds:
    """The rounds of one call. `send` sends the call again: (params, round number) -> a result that
    is complete or wants input."""

    def __init__(
        self,
        *,
        server: str,
        method: str,
        params: Params,
        handlers: InputHandlers,
        latest: float,
        send: SendAgain,
        telemetry: Telemetry,
        clock: Clock,
        parent: TraceContext | None = None,
    ) -> None:
        self._server = server
        self._method = method
        self._params = params
        self._handlers = handlers
        self._latest = latest
        self._send = send
        self._telemetry = telemetry
        self._clock = clock
        self._parent = parent
        self._pause_s = FIRST_PAUSE_S
        self.rounds = 0

    async def until_complete(self, raw: Raw) -> Raw:
        """From an `input_required` result to the complete one.

        Raises InputRefused where nobody can answer, InvalidResult where the server breaks the
        protocol or never ends, CallTimeout when the call's time is over meanwhile.
        """
        while self.rounds < MAX_ROUNDS:
            wanted = parse_input_required(raw)
            if isinstance(wanted, str):
                raise InvalidResult(f"{self._server} asked for input, but {wanted}")
            answers = await self._within_time(wanted)
            self.rounds += 1
            raw = await self._send(_again(self._params, wanted, answers), self.rounds)
            if peek(raw).result_type != "input_required":
                return raw
        raise InvalidResult(f"{self._server} still asks for input after {MAX_ROUNDS} rounds")

    async def _within_time(self, wanted: InputRequired) -> dict[str, Any]:
        try:
            async with deadline(
                max(0.0, self._latest - self._clock.monotonic()),
                scope="call",
                peer=self._server,
                telemetry=self._telemetry,
                method=self._method,
                clock=self._clock,
            ):
                return await self._answers(wanted)
        except DeadlinePassed as passed:
            raise CallTimeout(
                f"the call's time was over while {self._server} waited for input",
                scope="call",
                delivery="replied",
                fault="caller",
            ) from passed

    async def _answers(self, wanted: InputRequired) -> dict[str, Any]:
        pause_s = 0.0
        if not wanted.requests:
            pause_s, self._pause_s = self._pause_s, self._pause_s * 2
        self._telemetry.count(
            RetryScheduled(
                peer=self._server,
                reason="input_round",
                attempt=self.rounds + 1,
                delay_ms=pause_s * 1000,
            ),
            parent=self._parent,
        )
        if pause_s:
            await self._clock.sleep(pause_s)
        if len(wanted.requests) > MAX_INPUTS:
            raise InvalidResult(f"{self._server} asked for {len(wanted.requests)} inputs at once")
        asked = {key: self._request(embedded) for key, embedded in wanted.requests.items()}
        return {key: await self._ask(request, by) for key, (request, by) in asked.items()}

    def _request(self, embedded: EmbeddedRequest) -> tuple[InputRequest, InputHandler]:
        """Check before anybody is asked: one undeclared wish and nobody is prompted at all."""
        kind = KINDS.get(embedded.method)
        handler = self._handlers.of(kind) if kind is not None else None
        if kind is None or handler is None:
            raise self._refused(
                f"it asked for {embedded.method}, which nobody here answers "
                f"(give the host a handler for it)",
            )
        request = InputRequest(
            server=self._server,
            kind=kind,
            method=embedded.method,
            params=embedded.params if embedded.params is not None else Raw(b"{}"),
        )
        problem = forbidden(request, self._handlers)
        if problem is not None:
            raise self._refused(problem)
        return request, handler

    async def _ask(self, request: InputRequest, handler: InputHandler) -> Mapping[str, Any]:
        try:
            return await ask(request, handler)
        except InputDeclined as declined:
            raise InputRefused(
                f"{self._server} asked for {request.method} and was refused",
                delivery="replied",
                fault="caller",
            ) from declined
        except UnfitAnswer as unfit:
            raise InputRefused(
                f"the handler's answer to {request.method} was not sent: {unfit}",
                delivery="replied",
                fault="host",
            ) from unfit
        except Exception as error:
            raise InputRefused(
                f"the handler for {request.method} failed: {type(error).__name__}",
                delivery="replied",
                fault="host",
            ) from error

    def _refused(self, why: str) -> InputRefused:
        return InputRefused(
            f"{self._server} needs input to answer this call: {why}",
            delivery="replied",
            fault="peer",
        )


def _again(params: Params, wanted: InputRequired, answers: Mapping[str, Any]) -> dict[str, Any]:
    """The original parameters with this round's answers and state, and nothing of older rounds."""
    again: dict[str, Any]
    match params:
        case None:
            again = {}
        case Raw():
            again = dict(msgspec.json.decode(params, type=dict[str, Raw]))
        case _:
            again = dict(params)
    if wanted.requests:
        again["inputResponses"] = answers
    if wanted.has_state:
        again["requestState"] = wanted.request_state
    return again
