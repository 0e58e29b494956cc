"""A form from a schema, and arguments from what was filled in."""

from __future__ import annotations

from typing import Any

import pytest

from observant_host.errors import InvalidCall
from observant_host.service.console.call_form import (
    MAX_FIELDS,
    Field,
    arguments_of,
    fields_of,
    filled,
)


def one(**said: Any) -> Field:
    (field,) = fields_of({"properties": {"x": said}})
    return field


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "maxLength": 20}, "line"),
        ({"type": "string", "format": "date"}, "line"),
        ({"type": ["string", "null"]}, "text"),
        ({"type": "integer"}, "integer"),
        ({"type": "number"}, "number"),
        ({"type": "boolean"}, "choice"),
        ({"enum": ["a", 1, None]}, "choice"),
        ({"const": 3}, "choice"),
        ({"enum": []}, "json"),
        ({"enum": list(range(1000))}, "json"),
        ({"type": ["string", "integer"]}, "json"),
        ({"type": "array"}, "json"),
        ({"type": 7}, "json"),
        ({}, "json"),
    ],
)
def test_a_property_gets_the_field_of_its_type(said: dict[str, Any], kind: str) -> None:
    assert one(**said).kind == kind


@pytest.mark.parametrize(
    "schema", [None, [], "x", {}, {"properties": []}, {"required": 3}, {"type": "object"}]
)
def test_a_schema_without_properties_has_no_fields(schema: object) -> None:
    assert fields_of(schema) == ()


def test_required_fields_come_first_and_their_number_is_bounded() -> None:
    properties: dict[str, Any] = {f"p{n}": {} for n in range(500)}
    properties["p3"] = "no object"
    fields = fields_of({"properties": properties, "required": ["p2", 7]})
    assert len(fields) == MAX_FIELDS
    assert (fields[0].name, fields[0].required) == ("p2", True)


def test_a_default_is_what_the_form_begins_with_unless_something_hides_in_it() -> None:
    assert one(type="string", default="a").given == "a"
    assert one(type="integer", default=5).given == "5"
    assert one(type="boolean", default=True).given == "true"
    assert one(type="string", default="a\u202eb").given == ""


def test_choices_are_read_without_quotes_unless_two_would_be_the_same() -> None:
    assert [text for _, text in one(enum=["a", 1]).options] == ["a", "1"]
    assert [text for _, text in one(enum=["1", 1]).options] == ['"1"', "1"]


FIELDS = fields_of(
    {
        "properties": {
            "text": {"type": "string"},
            "whole": {"type": "integer"},
            "number": {"type": "number"},
            "flag": {"type": "boolean"},
            "list": {"type": "array"},
        },
        "required": ["text"],
    }
)


def test_what_is_empty_and_not_required_is_left_out() -> None:
    assert arguments_of(FIELDS, {}) == {"text": ""}


def test_what_is_filled_in_has_its_type() -> None:
    given = {
        "text": "a\r\nb",
        "whole": " 12345678901234567890 ",
        "number": "1.5",
        "flag": "false",
        "list": "[1]",
    }
    assert arguments_of(FIELDS, given, more='{"extra": null}') == {
        "text": "a\nb",
        "whole": 12345678901234567890,
        "number": 1.5,
        "flag": False,
        "list": [1],
        "extra": None,
    }


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"whole": "1.5"}, "not a whole number"),
        ({"whole": "true"}, "not a whole number"),
        ({"number": '"1"'}, "not a number"),
        ({"number": "one"}, "no JSON"),
        ({"flag": "maybe"}, "none of its values"),
        ({"list": "[" * 100_000}, "no JSON"),
    ],
)
def test_what_does_not_fit_is_told_with_the_name_of_its_field(
    given: dict[str, str], says: str
) -> None:
    with pytest.raises(InvalidCall, match=says) as error:
        arguments_of(FIELDS, given)
    assert str(error.value).startswith(next(iter(given)))


def test_a_required_number_must_be_given() -> None:
    fields = fields_of({"properties": {"n": {"type": "integer"}}, "required": ["n"]})
    with pytest.raises(InvalidCall, match="n is required"):
        arguments_of(fields, {})


def test_a_choice_is_sent_by_its_number() -> None:
    fields = fields_of({"properties": {"c": {"enum": ["a", "b"]}, "t": {"type": "string"}}})
    assert filled(fields, {"arg-0": "1", "arg-1": "1"}) == {"c": '"b"', "t": "1"}
    assert filled(fields, {"arg-0": "9"}) == {"c": "9", "t": ""}
