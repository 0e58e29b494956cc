"""Tool arguments and names as HTTP headers, so that a proxy can route without reading bodies.

A tool's annotations are compiled once, when it is listed; a call then only walks a few paths.

Source: MCP 2026-07-28 basic/transports/streamable-http › Request Metadata, Value Encoding, Custom
Headers from Tool Parameters; server/tools › x-mcp-header.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Raw

from observant_host.errors import InvalidCall
from observant_host.wire.values import decode_value

MirroredType = Literal["string", "integer", "boolean"]

ANNOTATION: Final = "x-mcp-header"
PREFIX: Final = "Mcp-Param-"

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer that every JSON reader reads exactly."""

MAX_ANNOTATIONS: Final = 64
"""Of one tool: with more, common servers would refuse the header section (100 fields, 8 KiB)."""


class Mirrored(msgspec.Struct, frozen=True):
    """One annotated parameter: `header` is whole (`Mcp-Param-Region`), `path` leads to its value
    in the arguments."""

    header: str
    path: tuple[str, ...]
    type: MirroredType


def encode_value(value: str | int) -> str:
    """A header value: plain where it can be, else `=?base64?…?=` around its UTF-8 bytes.

    Integers are decimal, booleans `true` or `false`, the empty string stays empty.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and not (value.startswith(_BEGIN) and value.endswith(_END)):
        return value
    return f"{_BEGIN}{b64encode(value.encode(errors='replace')).decode()}{_END}"


def annotations_of(input_schema: Raw | Mapping[str, Any] | None) -> tuple[Mirrored, ...] | str:
    """A tool's `x-mcp-header` annotations in document order, or what is wrong with the first bad
    one, as a part of a sentence.

    Over HTTP a tool with a violation must not be offered; other transports may ignore them all.
    """
    if input_schema is None or (isinstance(input_schema, Raw) and not _may_annotate(input_schema)):
        return ()
    try:
        schema = decode_value(input_schema) if isinstance(input_schema, Raw) else input_schema
    except (ValueError, RecursionError):
        return "its inputSchema cannot be decoded"
    found: list[Mirrored] = []
    for path, reachable, annotated in _annotated(schema):
        mirrored = _compiled(path, reachable, annotated, found)
        if isinstance(mirrored, str):
            return f"its `{ANNOTATION}` at `{_shown('.'.join(path)) or 'the root'}` {mirrored}"
        found.append(mirrored)
    return tuple(found)


def mirror(
    annotated: tuple[Mirrored, ...], arguments: Raw | Mapping[str, Any] | None
) -> tuple[tuple[str, str], ...]:
    """The `Mcp-Param-*` headers of one call, encoded. Absent and null arguments have none.

    A value goes out as what it is, also where it is not of the annotated type: that the header
    equals the body is checked before the schema is, and the server's word on the schema is the
    useful one. Raises InvalidCall for an integer that not every reader reads exactly.
    """
    if not annotated or arguments is None:
        return ()
    if isinstance(arguments, Raw):
        arguments = _decoded(arguments)
    headers = []
    for each in annotated:
        value = _scalar(_at(each.path, arguments), each.path)
        if value is not None:
            headers.append((each.header, encode_value(value)))
    return tuple(headers)


def mcp_name(method: str, params: Raw | Mapping[str, Any] | None) -> str | None:
    """What `Mcp-Name` says of this request, not yet encoded; None where the method has none."""
    key = _NAMED_BY.get(method)
    if key is None or params is None:
        return None
    name = _member(params, key) if isinstance(params, Raw) else params.get(key)
    return name if isinstance(name, str) else None


_BEGIN: Final = "=?base64?"
_END: Final = "?="
_PLAIN: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")

_NAMED_BY: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}

_SCHEMAS: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS_OF_SCHEMAS: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_NAMED_SCHEMAS: Final = (
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
)
# What no keyword of JSON Schema says is a schema (const, default, enum, examples, unknown words) is
# data, and may hold anything.

_Place = tuple[tuple[str, ...], bool, Any]


def _may_annotate(schema: Raw) -> bool:
    """Nearly no schema has the word. A backslash may hide it in an escape."""
    text = bytes(schema)
    return b'"x-mcp-header"' in text or b"\\u" in text


def _annotated(root: Any) -> Iterator[tuple[tuple[str, ...], bool, Mapping[str, Any]]]:
    """Every schema with the annotation: where it is, and if `properties` alone lead there."""
    stack: list[_Place] = [((), True, root)]
    while stack:
        path, reachable, schema = stack.pop()
        if isinstance(schema, Mapping):
            if ANNOTATION in schema:
                yield path, reachable and bool(path), schema
            stack.extend(reversed(list(_inside(path, reachable, schema))))


def _inside(path: tuple[str, ...], reachable: bool, schema: Mapping[str, Any]) -> Iterator[_Place]:
    for keyword, inner in schema.items():
        if keyword == "properties" and isinstance(inner, Mapping):
            for name, each in inner.items():
                yield (*path, name), reachable, each
        elif keyword in _NAMED_SCHEMAS and isinstance(inner, Mapping):
            for name, each in inner.items():
                yield (*path, keyword, name), False, each
        elif keyword in _LISTS_OF_SCHEMAS and isinstance(inner, list):
            for each in inner:
                yield (*path, keyword), False, each
        elif keyword in _SCHEMAS:
            yield (*path, keyword), False, inner


def _compiled(
    path: tuple[str, ...], reachable: bool, schema: Mapping[str, Any], before: list[Mirrored]
) -> Mirrored | str:
    name, kind = schema[ANNOTATION], schema.get("type")
    if not isinstance(name, str):
        return "is not a string"
    if not name:
        return "is empty"
    if not _TOKEN.fullmatch(name):
        return f"({_shown(name)}) is no name of a header"
    if not reachable:
        return "is on no property that `properties` alone lead to"
    if kind not in ("string", "integer", "boolean"):
        return f"is on a property of type {_shown(kind)}, not string, integer or boolean"
    header = PREFIX + name
    if any(each.header.lower() == header.lower() for each in before):
        return f"repeats the header {_shown(header)}"
    if len(before) == MAX_ANNOTATIONS:
        return f"is one of more than {MAX_ANNOTATIONS}"
    return Mirrored(header, path, cast("MirroredType", kind))


def _shown(value: object) -> str:
    """Of a server's own words: short, and without what a terminal or a log would take amiss."""
    text = value if isinstance(value, str) else repr(value)[:_MAX_SHOWN]
    return "".join(each if each.isprintable() else "?" for each in text[:_MAX_SHOWN])


_MAX_SHOWN: Final = 80


def _decoded(arguments: Raw) -> Any:
    try:
        return decode_value(arguments)
    except (ValueError, RecursionError):
        return None  # whoever stamps the request refuses them


def _at(path: tuple[str, ...], value: Any) -> Any:
    for key in path:
        if type(value) is not dict and not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _scalar(value: Any, path: tuple[str, ...]) -> str | int | None:
    """What a header can carry: 42.0 is the integer 42, an object or a fraction is nothing."""
    if type(value) is str or isinstance(value, str | bool):
        return value
    if not isinstance(value, int | float | Decimal):
        return None
    if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        where = _shown(".".join(path))
        raise InvalidCall(f"the argument `{where}` is beyond ±(2^53 - 1): it goes into a header")
    return int(value) if value == int(value) else None


class _Names(msgspec.Struct):
    """All that is decoded of params: arguments are passed over."""

    name: Any = None
    uri: Any = None
    taskId: Any = None  # noqa: N815 - the wire's name


_decode_names: Final = msgspec.json.Decoder(_Names).decode


def _member(params: Raw, key: str) -> Any:
    try:
        return getattr(_decode_names(params), key)
    except (msgspec.MsgspecError, RecursionError):
        return None
