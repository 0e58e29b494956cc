"""Which arguments of a tool its schema wants mirrored, and which of its marks make it unusable."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from observant_host.wire.mirrored_headers import (
    MAX_ANNOTATIONS,
    Mirrored,
    annotations_of,
)
from tests.wire.frames import raw


def tool(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


STRING = {"type": "string", "x-mcp-header": "H"}


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
