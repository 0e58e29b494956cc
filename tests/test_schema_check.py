"""Which tool schemas are usable: by the library, within bounds, fetching nothing, raising never."""

from __future__ import annotations

import json
import socket
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from observant_host import schema_check
from observant_host.schema_check import check_output, check_structured, input_schema_problem

OBJECT = {"type": "object"}


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def with_property(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


USABLE = {
    "plain": OBJECT,
    "any_of_beside_type": {"type": "object", "anyOf": [{"required": ["a"]}]},
    "self_reference": with_property(**{"$ref": "#"}),
    "local_reference": {**with_property(**{"$ref": "#/$defs/x"}), "$defs": {"x": {}}},
    "draft_07_declared": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"x": {}},
        "properties": {"a": {"$ref": "#/definitions/x"}},
    },
    "2019_declared": {"$schema": "https://json-schema.org/draft/2019-09/schema", **OBJECT},
    "draft_07_tuple_undeclared": with_property(type="array", items=[{}, {}]),
    "draft_04_bounds_undeclared": with_property(minimum=0, exclusiveMinimum=True),
    "look_ahead": with_property(pattern="^(?!x)a"),
    "look_ahead_property": {"type": "object", "patternProperties": {"(?=a)": {}, "(?=b)": {}}},
    "property_named_pattern": {
        "type": "object",
        "properties": {"pattern": {"type": "string", "pattern": "(?=a)", "enum": ["x"]}},
    },
    "unknown_keywords": with_property(type="string", nullable=True, format="no-such"),
    "45_levels": nested(45),
    "with_id": {"$id": "https://example.com/x", **OBJECT},
}

UNUSABLE = {
    "null": (None, "null"),
    "array": ([], "an array"),
    "string": ("x", "a string"),
    "true": (True, "a boolean"),
    "number": (1, "a number"),
    "empty": ({}, "at its root"),
    "no_root_type": ({"anyOf": [OBJECT]}, "at its root"),
    "type_array": ({"type": "array"}, "at its root"),
    "type_list": ({"type": ["object"]}, "at its root"),
    "dangling": (with_property(**{"$ref": "#/$defs/none"}), "/$defs/none"),
    "file": (with_property(**{"$ref": "file:///etc/passwd"}), "file:///etc/passwd"),
    "unknown_dialect": ({"$schema": "http://example.com/mine", **OBJECT}, "dialect not supported"),
    "draft_03": (
        {"$schema": "http://json-schema.org/draft-03/schema#", **OBJECT},
        "dialect not supported",
    ),
    "schema_no_string": ({"$schema": 5, **OBJECT}, "not a string"),
    "unknown_type": (with_property(type="objekt"), "objekt"),
    "properties_list": ({"type": "object", "properties": []}, "[]"),
    "pattern_and_more": (with_property(pattern="(?=a)", type="objekt"), "objekt"),
    "bad_reference": (with_property(**{"$ref": "::::"}), "Invalid URI"),
    "too_deep": (nested(100), "deeper than"),
    "too_wide": ({"type": "object", "enum": [[]] * 20_001}, "parts"),
}


@pytest.mark.parametrize("schema", USABLE.values(), ids=USABLE)
def test_usable_schemas_are_kept(schema: Any) -> None:
    assert input_schema_problem(raw(schema)) is None


@pytest.mark.parametrize(("schema", "says"), UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_schemas_are_named_with_their_reason(schema: Any, says: str) -> None:
    problem = input_schema_problem(raw(schema))
    assert problem is not None
    assert says in problem
    assert "\n" not in problem


def test_a_missing_schema_is_a_problem() -> None:
    assert input_schema_problem(None) == "`inputSchema` is missing"


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff", b'{"type":"object","a":' + b"[" * 5000 + b"]" * 5000 + b"}"],
    ids=["empty", "torn", "not_utf8", "5000_deep"],
)
def test_bytes_that_cannot_be_read_are_a_problem(data: bytes) -> None:
    assert input_schema_problem(Raw(data))


def test_a_schema_over_the_size_bound_is_not_even_decoded() -> None:
    data = b'{"type":"object"}' + b" " * schema_check.MAX_BYTES
    problem = input_schema_problem(Raw(data))
    assert problem is not None
    assert "larger" in problem


def test_a_network_reference_is_never_fetched() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/schema.json"
        assert input_schema_problem(raw(with_property(**{"$ref": url})))
        assert input_schema_problem(raw({"$schema": url, **OBJECT}))
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_catastrophic_pattern_and_an_all_of_bomb_cost_nothing() -> None:
    steps: dict[str, Any] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)
    }
    bomb = {"type": "object", "$defs": {**steps, "d60": {}}, "$ref": "#/$defs/d0"}
    assert input_schema_problem(raw(bomb)) is None
    assert input_schema_problem(raw(with_property(pattern="(((a{99}){99}){99}){99}"))) is None
    assert check_structured(raw(bomb), raw({})) is None
    slow = with_property(pattern="^(a+)+$")
    assert check_structured(raw(slow), raw({"a": "a" * 50_000 + "!"}))


def test_verdicts_are_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_check, "_verdicts", {})
    monkeypatch.setattr(schema_check, "MAX_VERDICTS", 2)
    for title in ("a", "b", "c"):
        assert input_schema_problem(raw({"type": "object", "x-title": title})) is None
    assert len(schema_check._verdicts) == 1


def test_a_panic_of_the_library_costs_one_schema_but_other_ends_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class PanicException(BaseException):
        """As the native library raises it: no Exception."""

    raised: list[BaseException] = [PanicException(), KeyboardInterrupt()]

    def judge(_data: bytes) -> str | None:
        raise raised.pop(0)

    monkeypatch.setattr(schema_check, "_verdicts", {})
    monkeypatch.setattr(schema_check, "_input_problem", judge)
    odd = {"type": "object", "x-odd": 1}
    assert "schema library" in str(input_schema_problem(raw(odd)))
    with pytest.raises(KeyboardInterrupt):
        input_schema_problem(raw({**odd, "title": "x"}))


def test_the_library_never_fetches_even_where_asked_by_its_defaults() -> None:
    with pytest.raises(ValueError, match="Retrieval is disabled"):
        jsonschema_rs.Draft202012Validator({"$ref": "http://127.0.0.1:9/x"}, offline=True)


OUTPUT = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        (OUTPUT, {"n": 1}, True),
        (OUTPUT, {"n": "1"}, False),
        (OUTPUT, {}, False),
        ({"type": "null"}, None, True),
        ({"type": "array"}, [1], True),
        ({"type": "objekt"}, 5, True),
        (5, 5, True),
        (True, 5, True),
        ({"$ref": "#"}, 5, True),
        (nested(100), 5, True),
        ({"title": "x" * schema_check.MAX_VALIDATOR_BYTES, "type": "null"}, 5, True),
        ({"type": "null"}, [[]] * 20_001, True),
    ],
)
def test_structured_content_is_judged_where_that_is_safe(
    schema: Any, value: Any, *, fits: bool
) -> None:
    assert (check_structured(raw(schema), raw(value)) is None) is fits


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "$ref", "$id", "properties", "pattern", "allOf", "$schema", "enum", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["properties", "$ref", "$id", "allOf", "x"]), JSON))
def test_no_schema_whatever_raises(schema: dict[str, Any]) -> None:
    input_schema_problem(raw({"type": "object", **schema}))
    check_structured(raw(schema), raw(schema))


# beside an outputSchema

PYDANTIC = {
    "type": "object",
    "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}}},
    "properties": {"at": {"$ref": "#/$defs/Point"}},
    "required": ["at"],
}


def kind(schema: Any, value: Any, **options: Any) -> str | None:
    problem = check_output(raw(schema), None if value is ABSENT else raw(value), **options)
    return None if problem is None else problem.kind


ABSENT: Any = object()


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "null"}, None, None),
        ({"type": "null"}, ABSENT, "missing"),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2], None),
        ({"type": "array", "items": {"type": "integer"}}, [1, "2"], "mismatch"),
        (PYDANTIC, {"at": {"x": 1.5}}, None),
        (PYDANTIC, {"at": {"x": "1.5"}}, "mismatch"),
        (PYDANTIC, {}, "mismatch"),
        (True, {"a": 1}, None),
        (False, {"a": 1}, "mismatch"),
        ({"$schema": "http://example.com/mine"}, {}, "unusable_schema"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, {}, None),
        ({"$ref": "http://127.0.0.1:9/x"}, {}, "unusable_schema"),
        ({"$ref": "#/$defs/none"}, {}, "unusable_schema"),
        ({"type": "objekt"}, {}, "unusable_schema"),
        ("text", {}, "unusable_schema"),
    ],
)
def test_what_a_tool_promised_is_compared_with_what_it_sent(
    schema: Any, value: Any, expected: str | None
) -> None:
    assert kind(schema, value) == expected


def test_an_unsupported_dialect_is_called_that() -> None:
    problem = check_output(raw({"$schema": "http://example.com/mine"}), raw({}))
    assert problem is not None
    assert "dialect not supported: http://example.com/mine" in problem.detail


def test_what_could_take_too_long_is_not_judged() -> None:
    bomb = {
        "$ref": "#/$defs/a0",
        "$defs": {
            **{f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(40)},
            "a40": {},
        },
    }
    assert kind(bomb, {}) == "not_judged"
    assert kind({"items": {}}, [1] * 100, steps=50) == "not_judged"
    assert kind({"items": {}}, [1] * 100, steps=200) is None
    assert kind({}, "x" * schema_check.MAX_JUDGED_BYTES) == "not_judged"
    large = {"enum": ["x" * schema_check.MAX_VALIDATOR_BYTES]}
    assert kind(large, {}) == "not_judged"
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    assert kind({}, deep) == "not_judged"
    assert check_output(raw({}), Raw(b"[1e999]")) is not None
