"""Every number that JSON can write, as Python can hold it without changing it."""

from __future__ import annotations

import json
from decimal import Decimal

import msgspec
import pytest

from observant_host.wire.values import decode_value


def test_integers_come_digit_for_digit() -> None:
    text = (
        b'{"id":9007199254740993,"max":18446744073709551615,"more":123456789012345678901234567890}'
    )
    assert msgspec.json.encode(decode_value(text)) == text


@pytest.mark.parametrize("text", ["1e400", "-1e400", "1.5E+999"])
def test_a_number_beyond_floats_never_becomes_an_infinity(text: str) -> None:
    value = decode_value(f'{{"huge":{text},"half":0.5,"n":1}}'.encode())
    assert value == {"huge": Decimal(text), "half": 0.5, "n": 1}
    assert b"nfinity" not in msgspec.json.encode(value)


def test_of_duplicate_keys_the_last_wins_on_both_paths() -> None:
    assert decode_value(b'{"a":1,"a":2}') == {"a": 2}
    assert decode_value(b'{"a":1e400,"a":2}') == {"a": 2}


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b"[Infinity]", b"'x'", b"[1e400"])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_value(text)


def test_what_json_can_hold_comes_as_the_standard_library_reads_it() -> None:
    text = '{"a":[1,2.5,null,true,"\\u00e9"],"b":{"c":-0.0}}'
    assert decode_value(text.encode()) == json.loads(text)
