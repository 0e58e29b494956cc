"""The shape of a task: what must be there must be right, everything else is optional."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.wire.tasks import MAX_MESSAGE_CHARS, STATUSES, Task, parse_task


def raw(**fields: Any) -> Raw:
    return Raw(json.dumps({"taskId": "t", "status": "working", **fields}).encode())


def task(**fields: Any) -> Task:
    parsed = parse_task(raw(**fields))
    assert isinstance(parsed, Task)
    return parsed


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("kind", ["task", "complete", None])
def test_every_status_is_read_whatever_the_result_is_called(status: str, kind: Any) -> None:
    parsed = task(status=status, resultType=kind, result={}, unknown=[1])
    assert (parsed.task_id, parsed.status) == ("t", status)


@pytest.mark.parametrize(
    ("wish", "read"),
    [(100, 100.0), (0, 0.0), (1.5, 1.5), (-1, None), (True, None), ("1", None), (None, None)],
)
def test_a_pace_is_a_number_of_milliseconds_or_none(wish: Any, read: float | None) -> None:
    assert task(pollIntervalMs=wish).poll_ms == read


def test_a_message_is_bounded() -> None:
    assert task(statusMessage="x" * 10_000).message == "x" * MAX_MESSAGE_CHARS
    assert task(statusMessage=5).message is None


def test_input_is_read_only_while_it_is_waited_for() -> None:
    wanted = {"a": {"method": "roots/list"}}
    assert task(inputRequests=wanted).requests == {}
    assert task(status="input_required").requests == {}
    assert task(status="input_required", inputRequests=None).requests == {}
    found = task(status="input_required", inputRequests=wanted).requests
    assert [(key, one.method) for key, one in found.items()] == [("a", "roots/list")]
    assert isinstance(parse_task(raw(status="input_required", inputRequests=[1])), str)
    assert isinstance(parse_task(raw(status="input_required", inputRequests={"a": {}})), str)


@pytest.mark.parametrize("result", [b"[]", b"null", b"5", b"[" * 5000 + b"]" * 5000])
def test_a_completed_task_has_a_result_object(result: bytes) -> None:
    data = Raw(b'{"taskId":"t","status":"completed","result":%b}' % result)
    assert isinstance(parse_task(data), str)


@given(st.binary(max_size=60))
def test_anything_at_all_is_a_task_or_a_sentence(data: bytes) -> None:
    assert isinstance(parse_task(Raw(data)), Task | str)
