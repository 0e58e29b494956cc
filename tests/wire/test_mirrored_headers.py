from __future__ import annotations

import re
from base64 import b64decode
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host.errors import InvalidCall
from observant_host.wire.mirrored_headers import (
    MAX_ANNOTATIONS,
    MAX_SAFE_INTEGER,
    Mirrored,
    annotations_of,
    encode_value,
    mcp_name,
    mirror,
)


def tool(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


STRING = {"type": "string", "x-mcp-header": "H"}


# Values


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


# Annotations


def test_annotations_are_found_along_properties_with_their_whole_path() -> None:
    schema = tool(
        region={"type": "string", "x-mcp-header": "Region"},
        query={"type": "string"},
        place=tool(count={"type": "integer", "x-mcp-header": "Count"}),
        method={"type": "boolean", "x-mcp-header": "Method"},
    )
    found = (
        Mirrored("Mcp-Param-Region", ("region",), "string"),
        Mirrored("Mcp-Param-Count", ("place", "count"), "integer"),
        Mirrored("Mcp-Param-Method", ("method",), "boolean"),
    )
    assert annotations_of(schema) == found
    assert annotations_of(raw(schema)) == found


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        True,
        [],
        "x-mcp-header",
        tool(),
        tool(a={"type": "string"}, b=True),
        {"properties": ["x-mcp-header"]},
        {"$defs": None, "allOf": {"x-mcp-header": "H"}, "items": 5},
    ],
)
def test_without_annotations_there_is_nothing_to_mirror(schema: Any) -> None:
    assert annotations_of(None if schema is None else raw(schema)) == ()


@pytest.mark.parametrize(
    "schema",
    [
        tool(**{"x-mcp-header": {"type": "string"}}),
        {"type": "object", "const": {"x-mcp-header": "H"}},
        {"type": "object", "default": {"x-mcp-header": 5}},
        {"type": "object", "enum": [{"x-mcp-header": ""}]},
        {"type": "object", "examples": [{"x-mcp-header": ""}]},
        {"type": "object", "x-other": {"x-mcp-header": "H"}, "required": ["x-mcp-header"]},
        {"type": "object", "description": '"x-mcp-header": "H"'},
    ],
)
def test_the_word_in_data_or_as_the_name_of_a_property_is_no_annotation(
    schema: dict[str, Any],
) -> None:
    assert annotations_of(raw(schema)) == ()


def test_a_property_may_bear_the_name_of_the_annotation_and_have_one() -> None:
    schema = tool(
        **{"x-mcp-header": STRING, "properties": tool(items=STRING | {"x-mcp-header": "I"})}
    )
    assert annotations_of(raw(schema)) == (
        Mirrored("Mcp-Param-H", ("x-mcp-header",), "string"),
        Mirrored("Mcp-Param-I", ("properties", "items"), "string"),
    )


def test_an_annotation_written_with_escapes_is_found() -> None:
    schema = Raw(b'{"properties":{"a":{"type":"string","x\\u002dmcp-header":"H"}}}')
    assert annotations_of(schema) == (Mirrored("Mcp-Param-H", ("a",), "string"),)


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        ("", "is empty"),
        (None, "is not a string"),
        (5, "is not a string"),
        (["H"], "is not a string"),
        ("My Region", "(My Region) is no name of a header"),
        ("Region:", "(Region:) is no name of a header"),
        ("A\r\nX-Evil: 1", "(A??X-Evil: 1) is no name of a header"),
        ("A\n", "(A?) is no name of a header"),
        ("A\x00", "(A?) is no name of a header"),
        ("Größe", "(Größe) is no name of a header"),
        ("a/b", "(a/b) is no name of a header"),
    ],
)
def test_a_name_that_no_header_can_have_is_a_violation(annotation: Any, problem: str) -> None:
    schema = tool(region={"type": "string", "x-mcp-header": annotation})
    assert annotations_of(raw(schema)) == f"its `x-mcp-header` at `region` {problem}"


@pytest.mark.parametrize("name", ["Region", "x", "a-b", "!#$%&'*+-.^_`|~09Az"])
def test_every_token_is_a_name(name: str) -> None:
    found = annotations_of(tool(a={"type": "string", "x-mcp-header": name}))
    assert found == (Mirrored(f"Mcp-Param-{name}", ("a",), "string"),)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("number", "number"),
        ("object", "object"),
        ("array", "array"),
        ("null", "null"),
        (None, "None"),
        (["string", "null"], "['string', 'null']"),
        ({"\x1b": 1}, "{'\\x1b': 1}"),
    ],
)
def test_only_strings_integers_and_booleans_can_be_mirrored(kind: Any, shown: str) -> None:
    schema = tool(n={"type": kind, "x-mcp-header": "N"})
    problem = annotations_of(raw(schema))
    assert problem == (
        "its `x-mcp-header` at `n` is on a property of type "
        f"{shown}, not string, integer or boolean"
    )


def test_a_property_without_a_type_of_its_own_cannot_be_mirrored() -> None:
    for property_ in ({"$ref": "#/$defs/s"}, {"anyOf": [{"type": "string"}]}, {}):
        problem = annotations_of(tool(n={**property_, "x-mcp-header": "N"}))
        assert isinstance(problem, str)
        assert "type None" in problem


@pytest.mark.parametrize("names", [("Region", "Region"), ("Region", "REGION")])
@pytest.mark.parametrize("nested", [True, False])
def test_a_header_may_be_named_once_in_whatever_case(names: tuple[str, str], nested: bool) -> None:
    first, second = ({"type": "string", "x-mcp-header": name} for name in names)
    schema = tool(a=first, b=tool(c=second) if nested else second)
    where = "b.c" if nested else "b"
    assert annotations_of(raw(schema)) == (
        f"its `x-mcp-header` at `{where}` repeats the header Mcp-Param-{names[1]}"
    )


UNREACHABLE = "is on no property that `properties` alone lead to"


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        (STRING, "the root"),
        ({"items": tool(a=STRING)}, "items.a"),
        (tool(a={"type": "array", "items": STRING}), "a.items"),
        (tool(a={"type": "array", "items": [STRING]}), "a.items"),
        (tool(a={"type": "array", "prefixItems": [True, tool(b=STRING)]}), "a.prefixItems.b"),
        ({"oneOf": [tool(a=STRING)]}, "oneOf.a"),
        ({"anyOf": [tool(a=STRING)]}, "anyOf.a"),
        ({"allOf": [tool(), tool(a=STRING)]}, "allOf.a"),
        (tool(a={"anyOf": [STRING, {"type": "null"}]}), "a.anyOf"),
        ({"not": tool(a=STRING)}, "not.a"),
        ({"if": tool(a=STRING)}, "if.a"),
        ({"then": tool(a=STRING)}, "then.a"),
        ({"else": tool(a=STRING)}, "else.a"),
        ({"$defs": {"s": STRING}}, "$defs.s"),
        ({"definitions": {"s": tool(a=STRING)}}, "definitions.s.a"),
        ({"patternProperties": {"^a": STRING}}, "patternProperties.^a"),
        ({"additionalProperties": STRING}, "additionalProperties"),
        ({"additionalItems": STRING}, "additionalItems"),
        ({"unevaluatedProperties": STRING}, "unevaluatedProperties"),
        ({"unevaluatedItems": STRING}, "unevaluatedItems"),
        ({"dependentSchemas": {"a": tool(b=STRING)}}, "dependentSchemas.a.b"),
        ({"dependencies": {"a": tool(b=STRING), "c": ["a"]}}, "dependencies.a.b"),
        ({"propertyNames": STRING}, "propertyNames"),
        ({"contains": STRING}, "contains"),
        ({"contentSchema": STRING}, "contentSchema"),
    ],
)
def test_an_annotation_anywhere_but_on_a_plain_property_is_a_violation(
    schema: dict[str, Any], where: str
) -> None:
    assert annotations_of(raw(schema)) == f"its `x-mcp-header` at `{where}` {UNREACHABLE}"


def test_what_a_server_wrote_is_shown_short_and_printable() -> None:
    schema = tool(**{"\x1b[2J" + "y" * 500: {"type": "string", "x-mcp-header": "a b" * 500}})
    problem = annotations_of(raw(schema))
    assert isinstance(problem, str)
    assert problem.isprintable()
    assert len(problem) < 260


def test_annotations_are_bounded_in_number() -> None:
    def many(count: int) -> dict[str, Any]:
        return tool(**{f"p{n}": {"type": "string", "x-mcp-header": f"H{n}"} for n in range(count)})

    assert len(annotations_of(many(MAX_ANNOTATIONS))) == MAX_ANNOTATIONS
    problem = annotations_of(many(MAX_ANNOTATIONS + 1))
    assert problem == f"its `x-mcp-header` at `p{MAX_ANNOTATIONS}` is one of more than 64"


def test_a_schema_that_cannot_be_decoded_is_a_violation_and_a_deep_one_is_bearable() -> None:
    broken = Raw(b'{"x-mcp-header":')
    assert annotations_of(broken) == "its inputSchema cannot be decoded"
    deep = Raw(b'{"properties":{"a":' * 100_000 + b'{"x-mcp-header":1}' + b"}}" * 100_000)
    assert annotations_of(deep) == "its inputSchema cannot be decoded"
    nested: dict[str, Any] = STRING
    for _ in range(5_000):
        nested = tool(a=nested)
    found = annotations_of(nested)
    assert len(found[0].path if isinstance(found, tuple) else "") == 5_000


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
