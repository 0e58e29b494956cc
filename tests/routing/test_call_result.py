"""The server's bytes, untouched; a view of them on first use; one JSON shape for every end."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from observant_host.errors import (
    CallFacts,
    CallTimeout,
    InvalidCall,
    InvalidResult,
    RpcError,
    Unavailable,
)
from observant_host.routing.call_result import CallResult, cancelled_json, error_json

CALL = CallFacts("b/get", "b", "get", 2, "modern", 12.3456, "0" * 31 + "1")


def result(data: bytes, *, is_error: bool = False) -> CallResult:
    return CallResult(Raw(data), CALL, is_error=is_error)


def test_the_bytes_are_kept_and_what_is_known_of_the_call_is_beside_them() -> None:
    data = b'{ "content":[], "n": 1.10, "n": 2 }'
    answered = result(data)
    assert answered.raw == data
    assert bytes(answered.raw_view) == data
    assert (answered.name, answered.server, answered.local_name) == ("b/get", "b", "get")
    assert (answered.attempts, answered.era, answered.duration_ms) == (2, "modern", 12.3456)
    assert answered.trace_id == CALL.trace_id
    assert (answered.outcome, answered.delivery, answered.fault) == ("ok", "replied", "none")
    assert result(data, is_error=True).outcome == "tool_error"
    assert "b/get" in repr(answered)


def test_content_is_decoded_once_and_odd_blocks_survive() -> None:
    answered = result(
        b'{"content":[{"type":"text","text":"a"},{"type":"new"},null,"x",'
        b'{"type":"text"},{"type":"text","text":"b"}]}'
    )
    assert answered.data is answered.data
    assert len(answered.content) == 6
    assert answered.text == "a\nb"


@pytest.mark.parametrize("data", [b"{}", b'{"content":null}', b'{"content":"x"}'])
def test_a_missing_content_is_an_empty_list(data: bytes) -> None:
    assert result(data).content == []
    assert result(data).text == ""


@pytest.mark.parametrize(
    ("data", "has", "value"),
    [
        (b"{}", False, None),
        (b'{"structuredContent":null}', True, None),
        (b'{"structuredContent":[1]}', True, [1]),
    ],
)
def test_structured_content_null_is_not_absent(data: bytes, value: Any, *, has: bool) -> None:
    assert result(data).has_structured_content is has
    assert result(data).structured_content == value


def test_a_number_beyond_floats_costs_no_text_and_never_becomes_an_infinity() -> None:
    data = b'{"content":[{"type":"text","text":"ids"}],"structuredContent":{"n":1e400,"id":%d}}'
    answered = result(data % (2**64 - 1))
    assert answered.text == "ids"
    assert answered.structured_content == {"n": Decimal("1e400"), "id": 2**64 - 1}
    assert b'"n":1e400' in msgspec.json.encode(answered.to_json())


@pytest.mark.parametrize("data", [b'{"content":%b}' % (b"[" * 5000 + b"]" * 5000), b"[]"])
def test_what_no_view_can_show_is_an_error_of_ours_and_still_there_as_bytes(data: bytes) -> None:
    answered = result(data)
    with pytest.raises(InvalidResult, match="b/get"):
        _ = answered.text
    assert answered.raw == data


def test_the_json_of_an_answered_call_holds_the_result_untouched() -> None:
    data = msgspec.json.encode(result(b'{ "n": 1.10 }').to_json())
    assert b'"result":{ "n": 1.10 }' in data
    assert json.loads(data) == {
        "name": "b/get",
        "server": "b",
        "local_name": "get",
        "outcome": "ok",
        "delivery": "replied",
        "fault": "none",
        "attempts": 2,
        "era": "modern",
        "duration_ms": 12.346,
        "trace_id": CALL.trace_id,
        "result": {"n": 1.1},
        "schema_problem": None,
        "error": None,
    }


def test_the_json_of_a_failed_call_has_the_same_members() -> None:
    error = RpcError(-32602, "bad", {"why": 1})
    error.call = CALL
    said = error_json(error, name="ignored")
    assert set(said) == set(result(b"{}").to_json())
    assert said["error"] == {"code": -32602, "message": "bad", "data": {"why": 1}}
    assert (said["outcome"], said["fault"], said["server"]) == ("rpc_error", "caller", "b")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (InvalidCall("no such tool", unknown=True), "invalid"),
        (Unavailable("down"), "unavailable"),
        (CallTimeout("too slow", scope="call"), "timeout"),
    ],
)
def test_an_error_of_the_host_has_no_code(error: Any, outcome: str) -> None:
    said = error_json(error, name="x")
    assert (said["name"], said["outcome"], said["result"]) == ("x", outcome, None)
    assert said["error"]["code"] is None
    assert said["error"]["data"] == {"error_type": error.error_type}


def test_a_cancelled_call_has_its_json_too() -> None:
    said = cancelled_json(name="x")
    assert (said["outcome"], said["fault"], said["delivery"]) == (
        "cancelled",
        "caller",
        "sent_no_reply",
    )
