"""Arguments as headers: read at their exact path, and encoded so that a header can carry them."""

from __future__ import annotations

import re
from base64 import b64decode
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.errors import InvalidCall
from observant_host.wire.mirrored_headers import (
    MAX_SAFE_INTEGER,
    Mirrored,
    encode_value,
    mcp_name,
    mirror,
)
from tests.wire.frames import raw


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("us-west1", "us-west1"),
        ("us west 1", "us west 1"),
        ("", ""),
        ("x", "x"),
        ("file:///a%20b", "file:///a%20b"),
        ("=?base64?", "=?base64?"),
        ("x=?base64?eA==?=", "x=?base64?eA==?="),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
        (" us-west1", "=?base64?IHVzLXdlc3Qx?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("us-west1 ", "=?base64?dXMtd2VzdDEg?="),
        (" ", "=?base64?IA==?="),
        ("\tindented", "=?base64?CWluZGVudGVk?="),
        ("a\tb", "=?base64?YQli?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("line1\r\nX-Evil: 1", "=?base64?bGluZTENClgtRXZpbDogMQ==?="),
        ("ends\n", "=?base64?ZW5kcwo=?="),
        ("a\x00b", "=?base64?YQBi?="),
        ("a\x7fb", "=?base64?YX9i?="),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        ("größe", "=?base64?Z3LDtsOfZQ==?="),
        ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        (42, "42"),
        (-7, "-7"),
        (0, "0"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_a_value_is_plain_where_it_can_be_and_base64_where_it_must(
    value: str | int, header: str
) -> None:
    assert encode_value(value) == header


@given(st.text())
def test_every_text_can_be_sent_safely_and_be_read_back(text: str) -> None:
    header = encode_value(text)
    assert re.fullmatch(r"([!-~]([ -~]*[!-~])?)?", header)
    inside = re.fullmatch(r"=\?base64\?(.*)\?=", header)
    back = b64decode(inside[1], validate=True).decode() if inside else header
    assert back == text


def test_half_a_surrogate_pair_is_no_reason_to_fail() -> None:
    assert encode_value("\ud800") == "=?base64?Pw==?="


# Arguments


ANNOTATED = (
    Mirrored("Mcp-Param-Region", ("region",), "string"),
    Mirrored("Mcp-Param-Count", ("place", "count"), "integer"),
    Mirrored("Mcp-Param-Flag", ("flag",), "boolean"),
)


@pytest.mark.parametrize("as_raw", [True, False])
def test_values_are_read_at_their_exact_path_and_encoded(as_raw: bool) -> None:
    arguments = {
        "region": "世界",
        "place": {"count": 42, "region": "no"},
        "flag": False,
        "count": 1,
        "query": "not mirrored",
    }
    assert mirror(ANNOTATED, raw(arguments) if as_raw else arguments) == (
        ("Mcp-Param-Region", "=?base64?5LiW55WM?="),
        ("Mcp-Param-Count", "42"),
        ("Mcp-Param-Flag", "false"),
    )


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        {},
        {"region": None, "place": None, "flag": None},
        {"place": {"count": None}},
        {"place": {}},
        {"place": 5},
        {"place": [{"count": 1}]},
        {"region": {"a": 1}, "flag": ["x"], "place": {"count": 1.5}},
    ],
)
def test_what_is_absent_null_or_nothing_a_header_can_carry_has_no_header(arguments: Any) -> None:
    assert mirror(ANNOTATED, arguments) == ()
    assert mirror(ANNOTATED, None if arguments is None else raw(arguments)) == ()


def test_without_annotations_arguments_are_not_even_decoded() -> None:
    assert mirror((), Raw(b"no JSON at all")) == ()


@pytest.mark.parametrize("arguments", [b"no JSON", b"[]", b"5", b"[" * 100_000, b'{"region":'])
def test_arguments_that_are_no_object_have_no_headers(arguments: bytes) -> None:
    assert mirror(ANNOTATED, Raw(arguments)) == ()


def test_a_value_of_another_type_goes_out_as_what_the_body_says() -> None:
    assert mirror(ANNOTATED, {"region": 5, "place": {"count": "7"}, "flag": "yes"}) == (
        ("Mcp-Param-Region", "5"),
        ("Mcp-Param-Count", "7"),
        ("Mcp-Param-Flag", "yes"),
    )


@pytest.mark.parametrize(
    ("number", "header"),
    [
        (b"42.0", "42"),
        (b"-7.0", "-7"),
        (b"-0.0", "0"),
        (b"4.2e1", "42"),
        (b"9007199254740991", "9007199254740991"),
        (b"-9007199254740991", "-9007199254740991"),
    ],
)
def test_a_whole_number_is_decimal_however_it_was_written(number: bytes, header: str) -> None:
    arguments = Raw(b'{"place":{"count":' + number + b"}}")
    assert mirror(ANNOTATED, arguments) == (("Mcp-Param-Count", header),)


@pytest.mark.parametrize(
    "number",
    [
        MAX_SAFE_INTEGER + 1,
        -MAX_SAFE_INTEGER - 1,
        10**400,
        1e300,
        float("inf"),
        Decimal("1e999999999"),
    ],
)
def test_an_integer_that_not_every_reader_reads_exactly_is_the_callers_mistake(
    number: float | Decimal,
) -> None:
    with pytest.raises(InvalidCall, match=r"`place.count` is beyond ±\(2\^53 - 1\)"):
        mirror(ANNOTATED, {"place": {"count": number}})


def test_a_number_beyond_every_float_elsewhere_does_not_keep_others_from_being_mirrored() -> None:
    arguments = Raw(b'{"huge":1e400,"region":"x"}')
    assert mirror(ANNOTATED, arguments) == (("Mcp-Param-Region", "x"),)
    with pytest.raises(InvalidCall):
        mirror(ANNOTATED, Raw(b'{"place":{"count":1e400}}'))


@given(
    st.dictionaries(
        st.sampled_from(["region", "place", "flag"]),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**53) + 1, 2**53 - 1)
            | st.floats(-9e15, 9e15)
            | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("count"), inner),
            max_leaves=4,
        ),
    )
)
def test_whatever_is_mirrored_is_fit_for_a_header(arguments: dict[str, Any]) -> None:
    for header, value in mirror(ANNOTATED, arguments):
        assert header.startswith("Mcp-Param-")
        assert re.fullmatch(r"([!-~]([ -~]*[!-~])?)?", value)


# Names


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "größe", "arguments": {"name": "other"}}, "größe"),
        ("prompts/get", {"name": "greet", "uri": "other"}, "greet"),
        ("resources/read", {"uri": "file:///a%20b", "name": "other"}, "file:///a%20b"),
        ("tasks/get", {"taskId": "t1"}, "t1"),
        ("tasks/update", {"taskId": "t1"}, "t1"),
        ("tasks/cancel", {"taskId": "t1"}, "t1"),
        ("tools/list", {"name": "x"}, None),
        ("server/discover", {}, None),
        ("tools/call", {"name": 5}, None),
        ("tools/call", {}, None),
        ("tools/call", None, None),
    ],
)
def test_the_methods_about_one_thing_name_it(method: str, params: Any, name: str | None) -> None:
    assert mcp_name(method, params) == name
    assert mcp_name(method, None if params is None else raw(params)) == name


@pytest.mark.parametrize("params", [b"[]", b"{", b'{"name":"a"', b"[" * 100_000])
def test_params_that_are_no_object_name_nothing(params: bytes) -> None:
    assert mcp_name("tools/call", Raw(params)) is None
