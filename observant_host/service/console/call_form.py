"""A form from a tool's `inputSchema`, and its arguments from what a person filled in.

Flat properties get a field of their type; whatever else the schema says is written as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from observant_host.errors import InvalidCall
from observant_host.service.console.text import visible

MAX_FIELDS: Final = 64
"""More properties than a person fills in: those beyond go into the JSON field."""
MAX_CHOICES: Final = 200

FieldKind = Literal["line", "text", "integer", "number", "choice", "json"]

_LINE_CHARS: Final = 80
_BY_TYPE: Final[Mapping[str, FieldKind]] = {
    "string": "text",
    "integer": "integer",
    "number": "number",
}


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One argument. `choices` are JSON texts; `given` is what the form begins with."""

    name: str
    kind: FieldKind
    required: bool = False
    label: str = ""
    description: str = ""
    choices: tuple[str, ...] = ()
    given: str = ""

    @property
    def options(self) -> list[tuple[str, str]]:
        """(choice, how it is read): texts without their quotes, unless that makes two the same."""
        values = [msgspec.json.decode(choice) for choice in self.choices]
        texts = [
            str(v) if isinstance(v, str) else c for v, c in zip(values, self.choices, strict=True)
        ]
        plain = len(set(texts)) == len(texts)
        return list(zip(self.choices, texts if plain else self.choices, strict=True))


def fields_of(schema: object) -> tuple[Field, ...]:
    """In the schema's order, those that must be given first. Nothing in it is believed."""
    if not isinstance(schema, Mapping):
        return ()
    properties = schema.get("properties")
    required = schema.get("required")
    needed = set(filter(_is_text, required)) if isinstance(required, list) else set()
    if not isinstance(properties, Mapping):
        return ()
    found = [
        _field(name, said, required=name in needed)
        for name, said in list(properties.items())[:MAX_FIELDS]
    ]
    return tuple(sorted(found, key=lambda field: not field.required))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _field(name: str, said: object, *, required: bool) -> Field:
    said = said if isinstance(said, Mapping) else {}
    choices = _choices(said)
    kind: FieldKind = "choice" if choices else _kind(said)
    default = said.get("default")
    begin = "" if default is None else _written(default, kind)
    return Field(
        name=name,
        kind=kind,
        required=required,
        label=_text(said.get("title")) or name,
        description=_text(said.get("description")),
        choices=choices,
        given=begin if visible(begin) == begin else "",
    )


def _kind(said: Mapping[str, Any]) -> FieldKind:
    kind = _BY_TYPE.get(_type(said), "json")
    longest = said.get("maxLength")
    short = isinstance(longest, int) and longest <= _LINE_CHARS
    return "line" if kind == "text" and (short or "format" in said or "pattern" in said) else kind


def _type(said: Mapping[str, Any]) -> str:
    """The one type besides null; "" where there are more, or none."""
    types = said.get("type")
    names = types if isinstance(types, list) else [types]
    real = [name for name in names if isinstance(name, str) and name != "null"]
    return real[0] if len(real) == 1 else ""


def _choices(said: Mapping[str, Any]) -> tuple[str, ...]:
    if "const" in said:
        return (_json(said["const"]),)
    values = said.get("enum")
    if isinstance(values, list) and 0 < len(values) <= MAX_CHOICES:
        return tuple(_json(value) for value in values)
    return ("true", "false") if _type(said) == "boolean" else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _written(value: object, kind: FieldKind) -> str:
    return value if isinstance(value, str) and kind in ("line", "text") else _json(value)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def filled(fields: tuple[Field, ...], sent: Mapping[str, str]) -> dict[str, str]:
    """What was filled in, by name, from a form whose fields are counted: a server's own names and
    values need not be able to stand in a page."""
    texts = {}
    for number, field in enumerate(fields):
        text = sent.get(f"arg-{number}", "")
        if field.kind == "choice" and text.isascii() and text.isdigit() and len(text) < 6:
            text = dict(enumerate(field.choices)).get(int(text), text)
        texts[field.name] = text
    return texts


def arguments_of(
    fields: tuple[Field, ...], given: Mapping[str, str], *, more: str = ""
) -> dict[str, Any]:
    """The call's arguments. `given` holds what was filled in, by name; what is empty and not
    required is left out. `more` is a JSON object of further ones. Raises InvalidCall, which names
    the field."""
    arguments: dict[str, Any] = {}
    for field in fields:
        text = given.get(field.name, "")
        if text or (field.required and field.kind in ("line", "text")):
            arguments[field.name] = _value(field, text)
        elif field.required:
            raise InvalidCall(f"{field.name} is required; give it a value")
    return {**arguments, **_more(more)}


def _value(field: Field, text: str) -> Any:
    match field.kind:
        case "line" | "text":
            return text.replace("\r\n", "\n")
        case "choice" if text not in field.choices:
            raise InvalidCall(f"{field.name}: {text[:80]!r} is none of its values")
        case "integer" | "number":
            return _number(field, text)
        case _:
            return _decoded(field.name, text)


def _number(field: Field, text: str) -> int | float:
    value = _decoded(field.name, text.strip())
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole or (isinstance(value, float) and field.kind == "number"):
        number: int | float = value
        return number
    wanted = "a whole number" if field.kind == "integer" else "a number"
    raise InvalidCall(f"{field.name}: {text[:80]!r} is not {wanted}")


def _more(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    value = _decoded("Further arguments", text)
    if not isinstance(value, dict):
        raise InvalidCall('Further arguments: write a JSON object, e.g. {"limit": 5}')
    return value


def _decoded(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise InvalidCall(f"{name}: {text[:80]!r} is no JSON ({error})") from None
