"""Schemas that are valid by their shape, as most tools have them: known in one pass over the bytes.

What is described here is a part of JSON Schema 2020-12 in which nothing is to resolve, to compile
or to look up: `$ref`, `pattern` and their like are no words of it, only names and data. A schema
that does not fit is not refused but looked at closely (schema_check), which takes ten times as
long; that nothing fits here which it would refuse is a test's promise.

Source: JSON Schema 2020-12, Core and Validation.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

MAX_BYTES: Final = 64 * 1024
MAX_BRACKETS: Final = 128
"""Opening ones: bounds the depth as well as the number of parts."""

_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Number = Annotated[int, Meta(ge=-(2**53), le=2**53)] | Annotated[float, Meta(ge=-1e300, le=1e300)]
_Scalar = str | bool | _Number | None
_Value = _Scalar | list[_Scalar] | dict[str, _Scalar]
_Type = Literal["string", "integer", "number", "boolean", "array", "object"]


class _Plain(
    msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    type: _Type | Literal["null"] | tuple[_Type, Literal["null"]] | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: _Value | UnsetType = UNSET
    examples: list[_Value] | UnsetType = UNSET
    const: _Scalar | UnsetType = UNSET
    enum: list[_Scalar] | UnsetType = UNSET
    format: str | UnsetType = UNSET
    properties: dict[str, _Plain | bool] | UnsetType = UNSET
    required: list[str] | UnsetType = UNSET
    additional_properties: _Plain | bool | UnsetType = UNSET
    items: _Plain | bool | UnsetType = UNSET
    any_of: Annotated[list[_Plain | bool], Meta(min_length=1)] | UnsetType = UNSET
    one_of: Annotated[list[_Plain | bool], Meta(min_length=1)] | UnsetType = UNSET
    all_of: Annotated[list[_Plain | bool], Meta(min_length=1)] | UnsetType = UNSET
    minimum: _Number | UnsetType = UNSET
    maximum: _Number | UnsetType = UNSET
    exclusive_minimum: _Number | UnsetType = UNSET
    exclusive_maximum: _Number | UnsetType = UNSET
    min_length: _Count | UnsetType = UNSET
    max_length: _Count | UnsetType = UNSET
    min_items: _Count | UnsetType = UNSET
    max_items: _Count | UnsetType = UNSET
    unique_items: bool | UnsetType = UNSET


class _Root(_Plain, rename="camel", forbid_unknown_fields=True, gc=False, kw_only=True):
    type: Literal["object"]


_decode: Final = msgspec.json.Decoder(_Root).decode


def is_plain(data: bytes) -> bool:
    """Whether this JSON is such a schema, and its root an object of type "object"."""
    if len(data) > MAX_BYTES or _brackets(data) > MAX_BRACKETS:
        return False
    try:
        root = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    lists = data.count(b'"required"')
    if lists == 1 and root.required is not UNSET:
        return len(set(root.required)) == len(root.required)
    return not lists or _names_each_once(root)


def _brackets(data: bytes) -> int:
    """Opening ones. Where few objects are, lists cannot be nested deep in each other either."""
    objects = data.count(b"{")
    return objects if 2 * objects < MAX_BRACKETS else objects + data.count(b"[")


def _names_each_once(schema: Any) -> bool:
    """No name twice in any `required`."""
    required = [] if schema.required is UNSET else schema.required
    return len(set(required)) == len(required) and all(map(_names_each_once, _children(schema)))


def _children(schema: Any) -> list[Any]:
    found = [schema.additional_properties, schema.items]
    found += [] if schema.properties is UNSET else schema.properties.values()
    for several in (schema.any_of, schema.one_of, schema.all_of):
        found += [] if several is UNSET else several
    return [child for child in found if isinstance(child, _Plain)]
