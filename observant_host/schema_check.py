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
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Raw

from observant_host.decisions.plain_schemas import is_plain
from observant_host.decisions.schema_steps import steps_within

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
MAX_JUDGED_BYTES: Final = 4 * 1024 * 1024
"""Of one structured content: larger ones are data, which no model reads as a whole."""
FEW_STEPS: Final = 5_000
"""Pairs of a subschema and a value that are looked at while others wait: some 5 ms."""
MAX_STEPS: Final = 200_000
"""The most for one check, aside from the event loop: a fifth of a second."""
MAX_SENTENCE: Final = 300

_DEFAULT_DIALECT: Final = "json-schema.org/draft/2020-12/schema"
_DIALECTS: Final[Mapping[str, str]] = {
    _DEFAULT_DIALECT: "Draft202012Validator",
    "json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "json-schema.org/draft-07/schema": "Draft7Validator",
    "json-schema.org/draft-06/schema": "Draft6Validator",
    "json-schema.org/draft-04/schema": "Draft4Validator",
}
_UNDECLARED: Final = ("Draft202012Validator", "Draft7Validator", "Draft4Validator")
MAX_REGEX_BYTES: Final = 1024 * 1024


@cache
def _library() -> Any:
    """On first use: most schemas are plain by their shape, and it takes five megabytes."""
    import jsonschema_rs

    return jsonschema_rs


def _compile(draft: str, root: Any) -> Any:
    """A validator with linear regular expressions, which fetches nothing."""
    linear = _library().RegexOptions(size_limit=MAX_REGEX_BYTES)
    return getattr(_library(), draft)(root, pattern_options=linear, offline=True)


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
    return None if is_plain(data) else looked_at_closely(data)


def looked_at_closely(data: bytes) -> str | None:
    """As `input_schema_problem`, of any schema within the bound of bytes."""
    key = hashlib.sha256(data).digest()
    if key not in _verdicts:
        if len(_verdicts) >= MAX_VERDICTS:
            _verdicts.clear()
        _verdicts[key] = _guarded(_input_problem, data)
    return _verdicts[key]


def forget_verdicts() -> None:
    """As if no schema had been seen yet: for whoever measures what the first sight costs."""
    _verdicts.clear()


ProblemKind = Literal["mismatch", "missing", "unusable_schema", "not_judged"]


class OutputProblem(msgspec.Struct, frozen=True):
    """Why structured content is not known to fit: it does not ("mismatch"), it is absent
    ("missing"), nobody could fit it ("unusable_schema"), or judging it could take too long
    ("not_judged"). `detail` is a sentence and may quote the content."""

    kind: ProblemKind
    detail: str


def check_output(schema: Raw, value: Raw | None, *, steps: int = MAX_STEPS) -> OutputProblem | None:
    """What is wrong with `structuredContent` (None: absent) beside its tool's `outputSchema`.

    `steps` bounds the work. Never raises, never fetches.
    """
    data = bytes(schema)
    if len(data) > MAX_VALIDATOR_BYTES:
        return OutputProblem("not_judged", f"its schema has more than {MAX_VALIDATOR_BYTES} bytes")
    compiled = _validator(data)
    if compiled.problem is not None:
        return OutputProblem("unusable_schema", f"`outputSchema`: {compiled.problem}")
    if value is None:
        return OutputProblem("missing", "`structuredContent` is missing beside an `outputSchema`")
    if len(bytes(value)) > MAX_JUDGED_BYTES:
        return OutputProblem("not_judged", f"it has more than {MAX_JUDGED_BYTES} bytes")
    return _judged(compiled, bytes(value), steps)


def check_structured(schema: Raw, value: Raw) -> str | None:
    """A sentence why `value` breaks the `schema`; None if it fits or cannot be judged."""
    problem = check_output(schema, value)
    return problem.detail if problem is not None and problem.kind == "mismatch" else None


def _judged(compiled: _Compiled, data: bytes, steps: int) -> OutputProblem | None:
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        return OutputProblem("not_judged", f"it cannot be decoded here ({error})")
    if isinstance(value, dict | list) and (size := _size_problem(value)) is not None:
        return OutputProblem("not_judged", size)
    if not steps_within(compiled.root, value, budget=steps):
        return OutputProblem("not_judged", f"its schema asks for more than {steps} steps")
    said = _guarded(_first_error, compiled.validator, value)
    return None if said is None else OutputProblem("mismatch", said)


def _guarded(judge: Callable[..., str | None], *data: bytes) -> str | None:
    """The library is native code: its panics are no `Exception`, and must not end the host."""
    try:
        return judge(*data)
    except RecursionError:
        return f"it is nested deeper than {MAX_DEPTH} levels"
    except (ValueError, TypeError, OverflowError, _library().ReferencingError) as error:
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
    if b'"$' not in data and b'"pattern' not in data and _library().meta.is_valid(root):
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


def _first_problem(root: dict[str, Any], drafts: tuple[str, ...]) -> str | None:
    """None if one of the drafts takes it, else what the first one said."""
    problems = [problem for draft in drafts if (problem := _compile_problem(root, draft))]
    return problems[0] if len(problems) == len(drafts) else None


def _compile_problem(root: dict[str, Any], draft: str) -> str | None:
    try:
        _compile(draft, root)
    except ValueError as error:
        if 'is not a "regex"' not in str(error):
            return _sentence(error)
        return _compile_problem_without_patterns(root, draft)
    return None


def _compile_problem_without_patterns(root: dict[str, Any], draft: str) -> str | None:
    try:
        _compile(draft, _without_patterns(root))
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


def _first_error(validator: Any, value: Any) -> str | None:
    for error in validator.iter_errors(value):
        return _sentence(error)
    return None


class _Compiled(msgspec.Struct, frozen=True):
    root: Any
    validator: Any = None
    problem: str | None = None


@lru_cache(maxsize=128)
def _validator(schema: bytes) -> _Compiled:
    """Compiled once per schema, or why it cannot be."""
    try:
        root = msgspec.json.decode(schema)
        if isinstance(root, dict | list) and (problem := _size_problem(root)) is not None:
            return _Compiled(root, problem=problem)
        draft, problem = _draft_of(root)
        if draft is None:
            return _Compiled(root, problem=problem)
        return _Compiled(root, _compile(draft, root))
    except (ValueError, TypeError, RecursionError, _library().ReferencingError) as error:
        return _Compiled(None, problem=_sentence(error))
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return _Compiled(None, problem="it cannot be read by the schema library")


def _draft_of(root: Any) -> tuple[str | None, str]:
    """The validator of the declared dialect (2020-12 where none is), or None and a problem."""
    declared = root.get("$schema", _DEFAULT_DIALECT) if isinstance(root, dict) else _DEFAULT_DIALECT
    if not isinstance(declared, str):
        return None, "`$schema` is not a string"
    dialect = declared.removesuffix("#").removeprefix("https://").removeprefix("http://")
    return _DIALECTS.get(dialect), f"dialect not supported: {declared[:MAX_SENTENCE]}"


def _sentence(error: BaseException) -> str:
    """The first line of the library's message, bounded: the rest repeats the schema."""
    return str(error).split("\n", 1)[0][:MAX_SENTENCE]
