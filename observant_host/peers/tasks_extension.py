"""A tool call that its server answers with a task: asked after until it is over.

The task outlives requests, so it is withdrawn by a request of its own: whoever waits here and
gives up, by time or by will, tells the server once. Only servers whose entry names the extension
are told that we have it, and only in tool calls and in what follows from them.

Source: MCP extension io.modelcontextprotocol/tasks (SEP-2663) › Polling, Input Requests,
Cancellation.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, Protocol

from observant_host.errors import CallError, CallTimeout, InvalidResult, RpcError, Unavailable
from observant_host.wire.messages import peek
from observant_host.wire.revisions import INVALID_PARAMS
from observant_host.wire.tasks import Task, parse_task

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from msgspec import Raw

    from observant_host.peers.asking import Asking
    from observant_host.telemetry.masking import Masker

POLL_DEFAULT_S: Final = 1.0
POLL_LEAST_S: Final = 0.05
"""A server that says 0 is asked twenty times a second, not without end."""
POLL_MOST_S: Final = 60.0
"""A task that is over is noticed within a minute, whatever its server wished."""

CANCEL_S: Final = 5.0
"""For the request that withdraws a task nobody waits for any more."""

MAX_LOST: Final = 5
"""Polls in a row that may get no answer: the task goes on without them, but not for ever."""


class Side(Protocol):
    """Sends requests that follow from a call, each within its own time and the call's."""

    async def __call__(
        self, method: str, params: Mapping[str, Any], *, most_s: float | None = None
    ) -> Raw: ...


class Withdrawing(Protocol):
    """Runs what tells a server that nobody waits for its task any more."""

    def withdraw(self, cancel: Coroutine[Any, Any, None]) -> None: ...


class Following:
    """One task of one call. `side` sends what follows; `answered` keys are never asked twice."""

    def __init__(
        self, asking: Asking, *, side: Side, withdrawn: Withdrawing, masker: Masker
    ) -> None:
        self._asking = asking
        self._side = side
        self._withdrawn = withdrawn
        self._masker = masker
        self._answered: set[str] = set()
        self._lost = 0

    async def until_over(self, raw: Raw) -> Raw:
        """The tool's own result. Raises RpcError where the task failed, Unavailable where the
        server gave it up, InvalidResult, InputRefused, CallTimeout."""
        task = self._parsed(raw, None)
        try:
            while task.status in ("working", "input_required"):
                await self._answer(task)
                await self._asking.pause(pause_s(task))
                task = await self._poll(task)
        except BaseException as error:
            if not (isinstance(error, RpcError) and error.code == INVALID_PARAMS):
                self._withdrawn.withdraw(self._cancel(task.task_id))
            raise  # -32602: the server does not know the task (any more), nothing is left
        return self._outcome(task)

    async def _poll(self, task: Task) -> Task:
        """The task as it is now, or as it was where this one poll got no answer."""
        try:
            raw = await self._side("tasks/get", {"taskId": task.task_id})
        except (CallTimeout, Unavailable):
            self._lost += 1
            if self._lost > MAX_LOST or self._asking.clock.monotonic() >= self._asking.latest:
                raise
            return task
        self._lost = 0
        return self._parsed(raw, task.task_id)

    async def _answer(self, task: Task) -> None:
        """What the task asks for and was not told yet."""
        new = {key: one for key, one in task.requests.items() if key not in self._answered}
        if not new:
            return
        answers = await self._asking.answers(new)
        self._answered |= new.keys()
        await self._side("tasks/update", {"taskId": task.task_id, "inputResponses": answers})

    def _parsed(self, raw: Raw, task_id: str | None) -> Task:
        task = parse_task(raw)
        if isinstance(task, str):
            raise InvalidResult(f"{self._asking.server} answered with a task, but {task}")
        if task_id is not None and task.task_id != task_id:
            raise InvalidResult(f"{self._asking.server} answered about another task than asked")
        return task

    def _outcome(self, task: Task) -> Raw:
        server = self._asking.server
        if task.status == "completed" and task.result is not None:
            kind = peek(task.result).result_type
            if kind not in (None, "complete"):
                raise InvalidResult(f"the task of {server} ended with resultType {kind!r}")
            return task.result
        said = f": {self._masker.text(task.message)}" if task.message else ""
        if task.status == "cancelled":
            raise Unavailable(f"{server} cancelled the task{said}", delivery="replied")
        raise self._failure(task, f"the task failed{said}")

    def _failure(self, task: Task, otherwise: str) -> RpcError:
        error = task.error or {}
        code, message = error.get("code"), error.get("message")
        return RpcError(
            code if type(code) is int else 0,
            self._masker.text(message) if isinstance(message, str) else otherwise,
        )

    async def _cancel(self, task_id: str) -> None:
        """That it was sent is all we need; the server ends the task by its ttl at the latest."""
        with contextlib.suppress(CallError):
            await self._side("tasks/cancel", {"taskId": task_id}, most_s=CANCEL_S)


def pause_s(task: Task) -> float:
    """Seconds to the next poll, by the server's wish of this moment within our bounds."""
    wished = POLL_DEFAULT_S if task.poll_ms is None else task.poll_ms / 1000
    return min(max(wished, POLL_LEAST_S), POLL_MOST_S)
