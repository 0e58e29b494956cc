"""A captured message shows what the protocol says, and nothing of what people and tools say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from observant_host.decisions.redaction import ERROR, PARAMS, RESULT, masked, redacted, shape

CALL = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "tools/call",
    "params": {
        "name": "search",
        "arguments": {"query": "private"},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "traceparent": "00-1",
            "com.example/user": "private",
        },
    },
}


def test_a_call_shows_its_tool_and_not_its_arguments() -> None:
    assert redacted(CALL)["params"] == {
        "name": "search",
        "arguments": "(redacted: object of 1)",
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "traceparent": "00-1",
            "com.example/user": "(redacted: string of 7)",
        },
    }


def test_a_result_shows_its_kind_and_not_its_content() -> None:
    result = {"isError": False, "content": [1, 2], "structuredContent": None, "nextCursor": "c"}
    shown = redacted({"jsonrpc": "2.0", "id": 7, "result": result})
    assert shown["result"] == {
        "isError": False,
        "content": "(redacted: list of 2)",
        "structuredContent": "(redacted: null)",
        "nextCursor": "c",
    }


def test_an_error_shows_its_code_and_message_and_not_its_data() -> None:
    error = {"code": -32602, "message": "no such thing", "data": {"x": 1}}
    shown = redacted({"jsonrpc": "2.0", "id": 7, "error": error})["error"]
    assert shown == {**error, "data": "(redacted: object of 1)"}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": 1}, "object of 1"),
        ([1], "list of 1"),
        ("abc", "string of 3"),
        (None, "null"),
        (True, "boolean"),
        (4.5, "number"),
    ],
)
def test_whatever_is_left_out_is_told_by_its_form(value: Any, told: str) -> None:
    assert shape(value) == f"(redacted: {told})"


def test_odd_messages_are_redacted_whole() -> None:
    assert redacted("private") == "(redacted: string of 7)"
    assert redacted([CALL, 1]) == [redacted(CALL), "(redacted: number)"]
    odd = {"jsonrpc": "2.0", "params": ["private"], "more": "private"}
    assert redacted(odd) == {
        "jsonrpc": "2.0",
        "params": "(redacted: list of 1)",
        "more": "(redacted: string of 7)",
    }
    assert redacted({"params": {"_meta": 1}}) == {"params": {"_meta": "(redacted: number)"}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("PRIVATE"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["params", "result", "error", "other"]), JSON))
def test_no_content_is_ever_shown(message: dict[str, Any]) -> None:
    known = PARAMS | RESULT | ERROR | {"_meta"}
    for part in message.values():
        if isinstance(part, dict):
            for key in known & set(part):
                del part[key]
    assert b"PRIVATE" not in msgspec.json.encode(redacted(message))


def test_secrets_are_masked_wherever_they_stand() -> None:
    def mask(text: str) -> str:
        return text.replace("12345", "***")

    value = {"a12345": ["12345", 12345, 1234.5, True, None, {"x": "-12345-"}]}
    assert masked(value, mask) == {"a***": ["***", "***", 1234.5, True, None, {"x": "-***-"}]}
