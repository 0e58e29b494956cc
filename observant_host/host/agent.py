"""A small agent loop: a model and all tools of a host, until the model has nothing more to call.

The model is a function of yours, so that any client of any API fits: it gets the messages and the
tools in its API's format and returns the model's message. What a tool, a server or the model itself
does wrong is told to the model, which decides; only your function's own errors end the loop.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import msgspec

from observant_host.decisions.model_formats import (
    FORMATS,
    Answer,
    Format,
    Message,
    ToolCall,
    answers_for,
    as_message,
    calls_in,
    plain,
    text_of,
    tools_for,
)
from observant_host.decisions.routes import entry_of
from observant_host.decisions.tool_content import MAX_SHOWN, Text, parts_of
from observant_host.errors import CallError, Delivery, Outcome
from observant_host.timing.deadline import DeadlinePassed, deadline

if TYPE_CHECKING:
    from observant_host.host.door import Host

Model = Callable[[list[Message], list[dict[str, Any]]], Awaitable[Any]]
"""Given (messages, tools); returns the model's message."""
Stop = Literal["answered", "max_turns", "deadline"]
EventKind = Literal["asking", "said", "calling", "called", "over"]

MAX_TURNS: Final = 20
PARALLEL: Final = 8
"""Calls of one turn that are open at once; further ones wait."""
LEAST_S: Final = 0.001
"""What a call is given that begins as the time runs out: it ends as a timeout, in words."""


class AgentCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that the model asked for. `server` is "" where it reached none."""

    turn: int
    id: str
    name: str
    outcome: Outcome
    server: str = ""
    delivery: Delivery = "not_sent"
    duration_ms: float = 0.0
    trace_id: str | None = None


class AgentEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What happens now: the model is `asking` (being asked), has `said` something, a call is made
    (`calling`) and over (`called`, with `done`), the loop is `over` (with `stop`)."""

    kind: EventKind
    turn: int
    text: str = ""
    call: ToolCall | None = None
    done: AgentCall | None = None
    stop: Stop | None = None


class AgentRun(msgspec.Struct, frozen=True, kw_only=True):
    """`messages` are those given and all since, fit to go on with. `text` is what the model said
    last. `stop` is why it ended, after so many `turns` of the model."""

    messages: list[Message]
    text: str
    stop: Stop
    turns: int
    calls: tuple[AgentCall, ...]


async def run_agent(
    host: Host,
    model: Model,
    messages: Sequence[Any],
    *,
    format: Format = "anthropic",  # noqa: A002 - the word of the field
    max_turns: int = MAX_TURNS,
    deadline_s: float | None = None,
    call_deadline_s: float | None = None,
    principal: str | None = None,
    on_event: Callable[[AgentEvent], object] | None = None,
    max_result_chars: int = MAX_SHOWN,
) -> AgentRun:
    """Ask the model, make its calls side by side, give it the results, until it answers.

    `deadline_s` bounds everything, `call_deadline_s` each call (None: its server's own). `on_event`
    is called on the loop; it must neither block nor raise. Cancelling it cancels its open calls.
    Raises ValueError for an unknown format and for what is no message, and what `model` raises.
    """
    if format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    loop = _Loop(host, model, format, on_event)
    loop.messages = [plain(one) for one in messages]
    loop.until_s = math.inf if deadline_s is None else loop.now_s() + deadline_s
    loop.call_deadline_s = call_deadline_s
    loop.principal = principal
    loop.max_result_chars = max_result_chars
    return await loop.run(max_turns)


class _Loop:
    principal: str | None
    call_deadline_s: float | None
    max_result_chars: int
    messages: list[Message]
    until_s: float

    def __init__(
        self,
        host: Host,
        model: Model,
        shape: Format,
        on_event: Callable[[AgentEvent], object] | None,
    ) -> None:
        self._host = host
        self._model = model
        self._shape: Format = shape
        self._on_event = on_event
        self._clock = host.core.plan.clock
        self._calls: list[AgentCall] = []
        self._tools: list[dict[str, Any]] = []
        self._version = -1

    def now_s(self) -> float:
        return self._clock.monotonic()

    async def run(self, max_turns: int) -> AgentRun:
        text, turn = "", 0
        while turn < max_turns:
            turn += 1
            try:
                message = await self._said(turn)
            except DeadlinePassed:
                return self._over("deadline", turn, text)
            self.messages.append(message)
            text = text_of(message, self._shape)
            self._tell(AgentEvent(kind="said", turn=turn, text=text))
            wanted = calls_in(message, self._shape)
            if not wanted:
                return self._over("answered", turn, text)
            answers = await self._answers(wanted, turn)
            self.messages += answers_for(answers, self._shape)
            if self.now_s() >= self.until_s:
                return self._over("deadline", turn, text)
        return self._over("max_turns", turn, text)

    async def _said(self, turn: int) -> Message:
        self._tell(AgentEvent(kind="asking", turn=turn))
        tools = await self._present_tools()
        left = None if self.until_s == math.inf else max(self.until_s - self.now_s(), 0)
        bound = deadline(
            left,
            scope="call",
            peer="",
            telemetry=self._host.telemetry,
            method="agent",
            clock=self._clock,
        )
        async with bound:
            said = await self._model(list(self.messages), tools)
        return as_message(said, self._shape)

    async def _present_tools(self) -> list[dict[str, Any]]:
        """As they are now: servers come and go while a model thinks."""
        catalogue = await self._host.fresh_catalogue()
        if catalogue.version != self._version:
            self._tools = tools_for(catalogue, self._shape)
            self._version = catalogue.version
        return list(self._tools)

    async def _answers(self, wanted: list[ToolCall], turn: int) -> list[Answer]:
        """In the order in which they were asked for."""
        answers: list[Answer | None] = [None] * len(wanted)
        room = anyio.CapacityLimiter(PARALLEL)

        async def answer(at: int, call: ToolCall) -> None:
            async with room:
                answers[at] = await self._answer(call, turn)

        async with anyio.create_task_group() as group:
            for at, call in enumerate(wanted):
                group.start_soon(answer, at, call, name=f"agent call {call.name[:64]}")
        return [one for one in answers if one is not None]

    async def _answer(self, call: ToolCall, turn: int) -> Answer:
        self._tell(AgentEvent(kind="calling", turn=turn, call=call))
        done = AgentCall(turn=turn, id=call.id, name=call.name, outcome="invalid")
        if call.flaw is not None:
            answer = Answer(call, (Text(call.flaw),), is_error=True)
        else:
            answer, done = await self._called(call, done)
        self._calls.append(done)
        self._tell(AgentEvent(kind="called", turn=turn, call=call, done=done))
        return answer

    async def _called(self, call: ToolCall, done: AgentCall) -> tuple[Answer, AgentCall]:
        try:
            result = await self._host.call_tool(
                call.name,
                call.arguments,
                deadline_s=self._time_of_a_call(call.name),
                principal=self.principal,
            )
            parts = parts_of(result.data, at_most=self.max_result_chars)
        except CallError as error:
            return Answer(call, (Text(str(error)),), is_error=True), _with(done, error)
        return Answer(call, parts, is_error=result.is_error), _with(done, result)

    def _time_of_a_call(self, name: str) -> float | None:
        """None leaves a call to its server's own times, where all of them fit into what is left."""
        left = max(self.until_s - self.now_s(), LEAST_S)
        if self.call_deadline_s is not None:
            return min(left, self.call_deadline_s)
        entry = entry_of(self._host.catalogue, name)
        peer = None if entry is None else self._host.core.fleet.get(entry.server)
        if peer is None or left >= peer.server.timing.call_max_s:
            return None
        return min(left, peer.server.timing.call_timeout_s)

    def _tell(self, event: AgentEvent) -> None:
        if self._on_event is not None:
            self._on_event(event)

    def _over(self, stop: Stop, turn: int, text: str) -> AgentRun:
        self._tell(AgentEvent(kind="over", turn=turn, text=text, stop=stop))
        return AgentRun(
            messages=self.messages, text=text, stop=stop, turns=turn, calls=tuple(self._calls)
        )


def _with(done: AgentCall, ended: Any) -> AgentCall:
    """With what is known of the call; `ended` is a CallResult or a CallError."""
    known = ended.call
    made = msgspec.structs.replace(done, outcome=ended.outcome, delivery=ended.delivery)
    if known is None:
        return made
    return msgspec.structs.replace(
        made, server=known.server, duration_ms=known.duration_ms, trace_id=known.trace_id
    )
