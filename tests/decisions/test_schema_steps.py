"""The work of a validation is counted before it is done, and never counted too low."""

from __future__ import annotations

import time
from typing import Any

import pytest

from observant_host.decisions.schema_steps import steps_within

FEW_STEPS = 5_000

BOMB: dict[str, Any] = {
    "$ref": "#/$defs/a0",
    "$defs": {
        **{
            f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}, {"$ref": f"#/$defs/a{i + 1}"}]}
            for i in range(30)
        },
        "a30": {},
    },
}
LOOP = {"$ref": "#"}
DEEPER = {"properties": {"next": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}


def chain(length: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(length):
        value = {"next": value}
    return value


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (BOMB, {}),
        (LOOP, {}),
        (DEEPER, chain(60)),
        ({"items": {"anyOf": [{}] * 1000}}, [1] * 1000),
        ({"uniqueItems": True}, list(range(10_000))),
        ({"enum": list(range(2_000_000))}, 1),
        ({"patternProperties": {str(i): {} for i in range(500)}}, {str(i): 1 for i in range(500)}),
    ],
)
def test_too_much_is_told_soon(schema: dict[str, Any], value: Any) -> None:
    began = time.process_time()
    assert not steps_within(schema, value, budget=FEW_STEPS)
    assert time.process_time() - began < 20.0  # unbounded, the first alone would take hours


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (True, {}),
        ({"type": "object"}, {}),
        (
            {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}},
            {"a": 1},
        ),
        (DEEPER, chain(5)),
        ({"$ref": "#/allOf/0", "allOf": [{}]}, 1),
        ({"$defs": {"a/b~c": {}}, "$ref": "#/$defs/a~1b~0c"}, 1),
        ({"$id": "https://example.com/here", "type": "string"}, "x"),
        ({"items": [{}, {}], "additionalItems": {}}, [1, 2, 3]),
        ({"dependentSchemas": {"a": {}}, "dependencies": {"a": ["b"]}}, {"a": 1}),
        ({"not": {}, "if": {}, "then": {}, "else": {}, "uniqueItems": True}, [1, 2]),
        ({"additionalProperties": {}, "propertyNames": {}, "properties": 5}, {"a": 1}),
    ],
)
def test_ordinary_schemas_are_well_within(schema: Any, value: Any) -> None:
    assert steps_within(schema, value, budget=1000)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1/x"},
        {"$ref": "other.json"},
        {"$ref": "#name", "$defs": {}},
        {"$ref": "#/$defs/none"},
        {"$ref": "#/allOf/7", "allOf": []},
        {"$ref": 5},
        {"$dynamicRef": "#x"},
        {"$recursiveRef": "#"},
        {"allOf": [{"$anchor": "x"}]},
        {"allOf": [{"$id": "https://example.com/other", "$ref": "#"}]},
    ],
)
def test_references_that_are_not_followed_are_never_within(schema: dict[str, Any]) -> None:
    assert not steps_within(schema, {"a": [1]}, budget=1000)
