"""Most of what comes is a short result; what is taken for one is what `decode` takes for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.wire.jsonrpc import Result, decode, usual

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
ANYTHING = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "result", "error"]),
    VALUES | st.just("2.0") | st.integers(),
)
RESULTS = st.fixed_dictionaries({"jsonrpc": st.just("2.0"), "id": VALUES, "result": VALUES})


SPACE = st.text(" \t\r", max_size=2)


@given(ANYTHING | RESULTS, SPACE, SPACE)
def test_it_is_what_decode_takes_for_it(value: dict[str, Any], before: str, after: str) -> None:
    frame = (before + json.dumps(value) + after).encode()
    if (found := usual(frame)) is not None:
        assert decode(frame) == (Result(found.id, found.result),)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"[]",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 4000,
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}',
        b'{"jsonrpc":"2.0","id":1.0,"result":{}}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b'{"jsonrpc":"2.0","id":"1","result":{}}',
        b'{"jsonrpc":"1.0","id":1,"result":{}}',
        b'{"id":1,"result":{}}',
        '{"jsonrpc":"2.0","id":1,"result":{"text":"\u00e9"}}'.encode(),
        b'{"jsonrpc":"2.0","id":1,"result":"%b"}' % (b"x" * 100_000),
    ],
)
def test_everything_else_is_left_to_decode(frame: bytes) -> None:
    assert usual(frame) is None


def test_the_usual_result_is_told_at_once() -> None:
    found = usual(b'{"jsonrpc":"2.0","id":7,"result":{}}')
    assert found is not None
    assert (found.id, found.result) == (7, Raw(b"{}"))
