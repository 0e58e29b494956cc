"""Is a tool's JSON Schema usable? Bounded, never fetching, never raising.

The rule for an `inputSchema`: its root is an object of type "object", it is within the bounds, and
it is valid in the dialect that it declares. Without `$schema` it may be valid in 2020-12 (the
default), draft-07 or draft-04: many generators write those and forget to say so, and every model
API takes them. A regular expression that the linear engine here does not know (a look-ahead) is no
reason to lose a tool either: arguments are validated by the server, never here.
Not usable: no root type "object" (model APIs refuse such a tool too), a `$ref` that leads nowhere
or to a network address (nothing is ever fetched), a `$schema` of another dialect.

Source: MCP 2026-07-28 basic/index › JSON Schema Usage; server/tools › Tool.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import jsonschema_rs
import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_BYTES: Final = 1024 * 1024
"""No model can be given a larger one; real ones are under 100 KB."""
MAX_DEPTH: Final = 128
"""Nested values: twice the deepest real schema, and below the library's own limit of 255."""
MAX_NODES: Final = 20_000
"""Objects and arrays in one schema: bounds the time of compiling it."""
MAX_VALIDATOR_BYTES: Final = 256 * 1024
"""Schemas that are kept compiled; with the 128 of them, bounds what the cache can hold."""
MAX_VERDICTS: Final = 20_000
"""Two full catalogues of remembered verdicts, so that listing again compiles nothing."""
MAX_SENTENCE: Final = 300

_DEFAULT_DIALECT: Final = "json-schema.org/draft/2020-12/schema"
_DIALECTS: Final[Mapping[str, Callable[..., Any]]] = {
    _DEFAULT_DIALECT: jsonschema_rs.Draft202012Validator,
    "json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
}
_UNDECLARED: Final = (
    jsonschema_rs.Draft202012Validator,
    jsonschema_rs.Draft7Validator,
    jsonschema_rs.Draft4Validator,
)
_LINEAR: Final = jsonschema_rs.RegexOptions(size_limit=1024 * 1024)
_REFERENCES: Final = (b'"$ref"', b'"$dynamicRef"', b'"$recursiveRef"')

_verdicts: dict[bytes, str | None] = {}


def input_schema_problem(schema: Raw | None) -> str | None:
    """A sentence why a tool with this `inputSchema` cannot be offered; None if it can.

    `schema` is the member as it came, None where it was absent.
    """
    if schema is None:
        return "`inputSchema` is missing"
    data = bytes(schema)
    if len(data) > MAX_BYTES:
        return f"`inputSchema` is larger than {MAX_BYTES} bytes"
    key = hashlib.sha256(data).digest()
    if key not in _verdicts:
        if len(_verdicts) >= MAX_VERDICTS:
            _verdicts.clear()
        _verdicts[key] = _guarded(_input_problem, data)
    return _verdicts[key]


def check_structured(schema: Raw, value: Raw) -> str | None:
    """A sentence why `value` breaks the (output) `schema`; None if it fits or cannot be judged.

    Not judged: a schema that is itself unusable, and one with references, whose evaluation can
    take exponential time however small it is. Without them the work is bounded by the sizes.
    """
    data = bytes(schema)
    if len(data) > MAX_VALIDATOR_BYTES or any(word in data for word in _REFERENCES):
        return None
    return _guarded(_structured_problem, data, bytes(value))


def _guarded(judge: Callable[..., str | None], *data: bytes) -> str | None:
    """The library is native code: its panics are no `Exception`, and must not end the host."""
    try:
        return judge(*data)
    except RecursionError:
        return f"it is nested deeper than {MAX_DEPTH} levels"
    except (ValueError, TypeError, OverflowError, jsonschema_rs.ReferencingError) as error:
        return _sentence(error)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return "it cannot be read by the schema library"


def _input_problem(data: bytes) -> str | None:
    root = msgspec.json.decode(data)
    if not isinstance(root, dict):
        return f"`inputSchema` is {_kind(root)}, not an object"
    if root.get("type") != "object":
        return '`inputSchema` needs `"type": "object"` at its root'
    return _size_problem(root) or _usability_problem(root, data)


def _kind(value: object) -> str:
    names = {str: "a string", bool: "a boolean", list: "an array", type(None): "null"}
    return names.get(type(value), "a number")


def _size_problem(root: Any) -> str | None:
    """Depth and number of objects and arrays, without recursion."""
    level: list[Any] = [root]
    nodes = 0
    for _ in range(MAX_DEPTH):
        nodes += len(level)
        if nodes > MAX_NODES:
            return f"it has more than {MAX_NODES} parts"
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
        if not level:
            return None
    return f"it is nested deeper than {MAX_DEPTH} levels"


def _usability_problem(root: dict[str, Any], data: bytes) -> str | None:
    if b'"$' not in data and b'"pattern' not in data and jsonschema_rs.meta.is_valid(root):
        return None  # nothing in it to resolve or to compile: what the meta-schema says is enough
    declared = root.get("$schema")
    if declared is None:
        return _first_problem(root, _UNDECLARED)
    if not isinstance(declared, str):
        return "`$schema` is not a string"
    dialect = declared.removesuffix("#").removeprefix("https://").removeprefix("http://")
    if dialect not in _DIALECTS:
        return f"dialect not supported: {declared[:MAX_SENTENCE]}"
    return _first_problem(root, (_DIALECTS[dialect],))


def _first_problem(root: dict[str, Any], drafts: tuple[Callable[..., Any], ...]) -> str | None:
    """None if one of the drafts takes it, else what the first one said."""
    problems = [problem for draft in drafts if (problem := _compile_problem(root, draft))]
    return problems[0] if len(problems) == len(drafts) else None


def _compile_problem(root: dict[str, Any], draft: Callable[..., Any]) -> str | None:
    try:
        draft(root, pattern_options=_LINEAR, offline=True)
    except ValueError as error:
        if 'is not a "regex"' not in str(error):
            return _sentence(error)
        return _compile_problem_without_patterns(root, draft)
    return None


def _compile_problem_without_patterns(
    root: dict[str, Any], draft: Callable[..., Any]
) -> str | None:
    try:
        draft(_without_patterns(root), pattern_options=_LINEAR, offline=True)
    except ValueError as error:
        return _sentence(error)
    return None


def _without_patterns(value: Any) -> Any:
    """The schema with every regular expression replaced by one that anybody can compile.

    Recursion is bounded: the depth was checked before.
    """
    if isinstance(value, list):
        return [_without_patterns(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _without_patterns(item) for key, item in value.items()}
    if isinstance(plain.get("pattern"), str):
        plain["pattern"] = ""
    by_pattern = plain.get("patternProperties")
    if isinstance(by_pattern, dict):
        plain["patternProperties"] = {f"^{i}$": v for i, v in enumerate(by_pattern.values())}
    return plain


def _structured_problem(schema: bytes, value: bytes) -> str | None:
    validator = _validator(schema)
    if validator is None:
        return None
    instance = msgspec.json.decode(value)
    if isinstance(instance, dict | list) and _size_problem(instance) is not None:
        return None
    for error in validator.iter_errors(instance):
        return _sentence(error)
    return None


@lru_cache(maxsize=128)
def _validator(schema: bytes) -> Any:
    """Compiled once per schema; None where it cannot be."""
    try:
        root = msgspec.json.decode(schema)
        if isinstance(root, dict) and _size_problem(root) is not None:
            return None
        return jsonschema_rs.validator_for(root, pattern_options=_LINEAR, offline=True)
    except (ValueError, TypeError, RecursionError):
        return None


def _sentence(error: BaseException) -> str:
    """The first line of the library's message, bounded: the rest repeats the schema."""
    return str(error).split("\n", 1)[0][:MAX_SENTENCE]
