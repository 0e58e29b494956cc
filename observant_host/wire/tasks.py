"""The flat shape of a task: what a long tool call becomes where both sides have the extension.

Source: MCP extension io.modelcontextprotocol/tasks (SEP-2663) › Task, CreateTaskResult,
GetTaskResult. Its `tasks/get` answers say resultType "complete" by the text and "task" by the
examples: both are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Raw

from observant_host.wire.messages import EmbeddedRequest, parse_input_required

EXTENSION: Final = "io.modelcontextprotocol/tasks"

MAX_TASK_ID_CHARS: Final = 1024
"""An id travels in a header of each poll; longer ones are payload."""

MAX_MESSAGE_CHARS: Final = 500
"""Of a task's `statusMessage`, as it is shown."""

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A task at one moment. `poll_ms` is the server's wish, None where it has none.

    `result` is the tool's result of a completed task, `error` the error object of a failed one.
    """

    task_id: str
    status: Status
    poll_ms: float | None = None
    message: str | None = None
    requests: Mapping[str, EmbeddedRequest] = {}
    result: Raw | None = None
    error: Mapping[str, Any] | None = None


class _Fields(msgspec.Struct, rename="camel"):
    task_id: Any = None
    status: Any = None
    poll_interval_ms: Any = None
    status_message: Any = None
    input_requests: Raw = Raw(b"null")
    result: Raw = Raw(b"null")
    error: Any = None


_fields: Final = msgspec.json.Decoder(_Fields).decode


def parse_task(raw: Raw) -> Task | str:
    """What a `resultType: "task"` or a `tasks/get` result says, or what is wrong with it."""
    try:
        fields = _fields(raw)
    except (msgspec.MsgspecError, RecursionError):
        return "the task is no readable object"
    task_id = fields.task_id
    if not isinstance(task_id, str) or not 0 < len(task_id) <= MAX_TASK_ID_CHARS:
        return f"`taskId` is no string of 1 to {MAX_TASK_ID_CHARS} characters"
    if fields.status not in STATUSES:
        return f"`status` is none of {', '.join(STATUSES)}"
    requests = _requests(fields)
    if isinstance(requests, str):
        return requests
    is_over = fields.status == "completed"
    if is_over and not _is_object(fields.result):
        return "it is completed without a `result` object"
    return Task(
        task_id=task_id,
        status=fields.status,
        poll_ms=_milliseconds(fields.poll_interval_ms),
        message=_text(fields.status_message),
        requests=requests,
        result=fields.result if is_over else None,
        error=fields.error if isinstance(fields.error, dict) else None,
    )


def _requests(fields: _Fields) -> Mapping[str, EmbeddedRequest] | str:
    """What the task asks for, where it waits for input; it may wait for an update under way."""
    if fields.status != "input_required" or bytes(fields.input_requests) == b"null":
        return {}
    embedded = Raw(b'{"requestState":"","inputRequests":%b}' % bytes(fields.input_requests))
    wanted = parse_input_required(embedded)
    return wanted if isinstance(wanted, str) else wanted.requests


def _is_object(raw: Raw) -> bool:
    """It is a part of valid JSON, so its first byte tells."""
    return bytes(raw).lstrip()[:1] == b"{"


def _milliseconds(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and value >= 0 else None


def _text(value: Any) -> str | None:
    return value[:MAX_MESSAGE_CHARS] if isinstance(value, str) else None
