"""Noise, damage and frames that are too long: nothing raises, and none pairs with another's id."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from observant_host.wire.jsonrpc import (
    Broken,
    Id,
    Inbound,
    NotAMessage,
    Result,
    decode,
    recover,
    same_id,
)
from tests.wire.frames import DEEP, one, reply


@pytest.mark.parametrize(
    "frame",
    [
        "",
        " ",
        "Listening on port 3000",
        "\x1b[32mready\x1b[0m",
        "null",
        "5",
        '"text"',
        "[]",
        "[1, 2",
        "{}",
        '{"level":"info","msg":"started"}',
        '{"error":"disk full"}',
        '{"result":"ok"}',
        '{"id":5,"level":"info"}',
        '{"level":"error","error":NaN}',
        '{"jsonrpc":"2.0","method":"x","params":NaN}',
        '{"jsonrpc":"2.0","id":1,"method":"x","params":NaN}',
        '  "tools": [',
        "Content-Length: 77",
        "{",
        '{"',
        "{{{{",
        '{"id":1',
    ],
)
def test_noise_is_no_message(frame: str) -> None:
    assert isinstance(one(frame), NotAMessage)


LONG = b"1" * 5000


@pytest.mark.parametrize(
    "inside",
    [
        b'{"a":"\xff"}',
        b'{"a":"cut \xe2\x82"}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":' + LONG + b"}",
        b'{"a":-' + LONG + b"}",
        b'{"a":' + LONG + b',"b":NaN}',
        DEEP,
        b'{"a":' + b'{"a":[' * 20_000 + b"1" + b"]}" * 20_000 + b"}",
        b'{"a":"\x01"}',
        b'{"a":"\\ud800"}',
        b'{"a":"\\x"}',
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":01}',
        b'{"text":"say \\"id\\":99, \\\\"}, ',
    ],
)
def test_what_is_broken_inside_fails_its_own_request_wherever_the_id_stands(inside: bytes) -> None:
    first = one(b'{"jsonrpc":"2.0","id":7,"result":' + inside + b"}")
    last = one(b'{"result":' + inside + b',"jsonrpc":"2.0","id":7}')
    assert isinstance(first, Broken)
    assert isinstance(last, Broken)
    assert (first.id, last.id) == (7, 7)


def test_a_recognised_code_survives_broken_data() -> None:
    for data in (b'"\xff"', b"NaN", DEEP, LONG):
        frame = b'{"jsonrpc":"2.0","error":{"message":"x","code":-32022,"data":%b},"id":7}' % data
        broken = one(frame)
        assert isinstance(broken, Broken)
        assert (broken.id, broken.code) == (7, -32022)


def test_digits_inside_a_string_are_text() -> None:
    inside = b'{"a":"' + b"7" * 9000 + b'","b":-12,"c":1.5}'
    assert isinstance(one(reply(inside)), Result)


def test_looking_for_long_integers_is_linear() -> None:
    frame = reply(b'{"a":"' + (b"1" * 4299 + b" ") * 1000 + b'"}')
    start = time.process_time()
    assert isinstance(one(frame), Result)
    assert time.process_time() - start < 2


def test_a_broken_reply_of_many_tokens_is_given_up_in_time_but_its_last_id_is_found() -> None:
    inside = b"[" + b'{"id":1},' * 500_000 + b"NaN]"
    start = time.process_time()
    lost = one(b'{"result":' + inside + b',"jsonrpc":"2.0","id":7}')
    assert time.process_time() - start < 2
    assert isinstance(lost, Broken)
    assert lost.id == 7
    unknown = one(b'{"result":' + inside + b',"id":7,"jsonrpc":"2.0","more":1}')
    assert isinstance(unknown, NotAMessage)


@given(st.binary(max_size=200))
def test_nothing_makes_decode_raise(frame: bytes) -> None:
    for batches in (False, True):
        assert all(isinstance(message, Inbound) for message in decode(frame, batches=batches))


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "code"]),
        json_values | st.just("2.0") | st.fixed_dictionaries({"code": json_values}),
    )
)
def test_any_object_is_told_apart_without_raising(value: dict[str, Any]) -> None:
    for message in decode(json.dumps(value).encode()):
        if isinstance(message, Result):
            assert value.get("error") is None
            assert "method" not in value
            assert same_id(message.id, value["id"])


@given(st.binary(max_size=64), st.integers(0, 60))
def test_damage_never_pairs_a_reply_with_another_request(noise: bytes, at: int) -> None:
    assume(not re.search(rb'"id"\s*:\s*["0-9tf-]', noise))
    frame = reply(b'{"content":[{"type":"text","text":"hello"}]}', b"4711")
    damaged = frame[: 40 + at] + noise + frame[40 + at :]
    for message in decode(damaged):
        if isinstance(message, Result | Broken):
            assert message.id == 4711


@pytest.mark.parametrize("unreadable", [b"\x00", b"nothing", b"NaN", b"7" * 300])
def test_an_id_that_cannot_be_read_does_not_hide_the_one_that_can(unreadable: bytes) -> None:
    frame = reply(b"{}", b"4711")
    at = frame.index(b'"result"')
    (message,) = decode(frame[:at] + b'"id":%b,\x01' % unreadable + frame[at:])
    assert isinstance(message, Broken)
    assert message.id == 4711


@pytest.mark.parametrize(
    ("excerpt", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"aaa .. aaa"}]}}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"aaa .. aaa', 7),
        (b'{"result":{"content":[{"text":"aaa .. aaa"}]},"jsonrpc":"2.0","id":7}', 7),
        (b'{"result":{"content":[{"text":"aaa .. a"}]},"id":"x","jsonrpc":"2.0"}', "x"),
    ],
)
def test_the_id_of_an_oversized_reply_is_recovered(excerpt: bytes, expected: Id) -> None:
    lost = recover(excerpt)
    assert isinstance(lost, Broken)
    assert lost.id == expected
    assert "max_message_bytes" in lost.problem


@pytest.mark.parametrize(
    "excerpt",
    [
        b"x" * 512,
        b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"a":"aa .. a',
        b'{"log":"aaaaaa .. aaa","id":7}',
    ],
)
def test_an_oversized_line_that_is_no_reply_is_no_message(excerpt: bytes) -> None:
    assert isinstance(recover(excerpt), NotAMessage)
