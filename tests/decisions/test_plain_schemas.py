"""What is plain by its shape is what a close look finds usable, and never anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from observant_host import schema_check
from observant_host.decisions.plain_schemas import MAX_BRACKETS, MAX_BYTES, is_plain

OBJECT = {"type": "object"}
ONE = {"type": "object", "properties": {"a": {"type": "string"}}}


def said(schema: Any) -> bytes:
    return json.dumps(schema).encode()


@pytest.mark.parametrize(
    "schema",
    [
        OBJECT,
        {**OBJECT, "title": "T", "description": 'a "text"\nof two lines, é', "default": {"a": 1}},
        {**OBJECT, "properties": {"a": {"type": ["string", "null"], "enum": ["x", None]}}},
        {**OBJECT, "required": ["a", "b"], "additionalProperties": False},
        {**OBJECT, "properties": {"a": {"type": "array", "items": ONE, "minItems": 1}}},
        {**OBJECT, "properties": {"a": {**ONE, "required": ["a"]}}, "required": ["a"]},
        {**OBJECT, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {**OBJECT, "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 1e9}}},
    ],
)
def test_what_tools_have_is_plain(schema: Any) -> None:
    assert is_plain(said(schema))
    assert schema_check.looked_at_closely(said(schema)) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"properties": {}},
        [],
        {**OBJECT, "$schema": "https://json-schema.org/draft/2020-12/schema"},
        {**OBJECT, "properties": {"a": {"$ref": "#"}}},
        {**OBJECT, "properties": {"a": {"pattern": "x"}}},
        {**OBJECT, "required": ["a", "a"]},
        {**OBJECT, "properties": {"a": {**ONE, "required": ["a", "a"]}}},
        {**OBJECT, "anyOf": [{**ONE, "required": ["a", "a"]}], "required": ["a"]},
        {**OBJECT, "anyOf": []},
        {**OBJECT, "minLength": -1},
        {**OBJECT, "x-mine": 1},
        {**OBJECT, "description": "\ud800"},
        {**OBJECT, "properties": {str(n): {} for n in range(MAX_BRACKETS)}},
        {**OBJECT, "description": "x" * MAX_BYTES},
    ],
)
def test_anything_else_is_looked_at_closely(schema: Any) -> None:
    assert not is_plain(said(schema))


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"type":"object","description":"\xff"}', b"[" * 100, b"nul"]
)
def test_what_is_no_json_is_not_plain(data: bytes) -> None:
    assert not is_plain(data)


def test_a_plain_schema_is_not_looked_at_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    def close_look(_: bytes) -> None:
        raise AssertionError

    monkeypatch.setattr(schema_check, "looked_at_closely", close_look)
    assert schema_check.input_schema_problem(Raw(said(ONE))) is None


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "string", "object", "null", "é", "\ud800", "\U0001f600", "$ref"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "type", "$ref", "$id"]), inner),
    ),
    max_leaves=4,
)
TYPES = st.sampled_from(["string", "integer", "null", "object", "any", ["string", "null"], ["x"]])
NAMES = st.sampled_from(["a", "b", "$ref", "$id", "pattern", "type"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Some valid, some nearly so."""
    several = st.lists(inner, max_size=2)
    texts = st.one_of(st.sampled_from(["x", "date-time"]), SCALARS)
    numbers = st.one_of(st.integers(-2, 2**64), st.floats(), SCALARS)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "title": texts,
            "description": texts,
            "format": texts,
            "default": VALUES,
            "const": VALUES,
            "enum": st.lists(VALUES, max_size=3),
            "examples": st.lists(VALUES, max_size=2),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=3),
            "additionalProperties": inner,
            "items": inner,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "minimum": numbers,
            "exclusiveMaximum": numbers,
            "minLength": numbers,
            "maxItems": numbers,
            "uniqueItems": SCALARS,
            "other": SCALARS,
        },
    )


@given(inner=st.recursive(st.one_of(st.booleans(), schemas(SCALARS)), schemas, max_leaves=4))
def test_nothing_is_plain_that_a_close_look_refuses(inner: Any) -> None:
    root = {**inner, "type": "object"} if isinstance(inner, dict) else {**OBJECT, "items": inner}
    data = json.dumps(root).encode()
    if is_plain(data):
        assert schema_check.looked_at_closely(data) is None, data
