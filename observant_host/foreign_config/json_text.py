"""JSON as other people write it: strict first, then with comments and trailing commas, then JSON5.

The slow JSON5 reader is only asked for small files that the fast ones refuse.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import json5

from observant_host.errors import ConfigError

JSON5_MAX_CHARS: Final = 256 * 1024
"""JSON5 is read at about 30 kB/s; a larger file that is neither JSON nor JSONC is no client's."""

_STRING_OR_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


def read_json(data: bytes, name: str) -> tuple[Any, tuple[str, ...]]:
    """The tree, and the keys that one object of it holds twice. Raises ConfigError."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError([f"{name}: is not UTF-8 text (byte {error.start})"]) from None
    if not text.strip():
        raise ConfigError([f"{name}: is empty; expected JSON with servers in it"])
    doubled: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) < len(items):
            names = [key for key, _ in items]
            doubled.extend(key for key in made if names.count(key) > 1)
        return made

    try:
        return _parse(text, pairs), tuple(dict.fromkeys(doubled))
    except RecursionError:
        raise ConfigError([f"{name}: is nested too deeply"]) from None
    except ValueError as error:
        raise ConfigError([f"{name}: is not JSON: {_sentence(error)}"]) from None


def _parse(text: str, pairs: Any) -> Any:
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        first = error
    try:
        return json.loads(_without_comments(text), object_pairs_hook=pairs)
    except json.JSONDecodeError:
        if len(text) > JSON5_MAX_CHARS:
            raise first from None
    return json5.loads(text, object_pairs_hook=pairs)


def _without_comments(text: str) -> str:
    """Comments become blanks (lines stay where they are), trailing commas go."""
    bare = _STRING_OR_COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)
    return _STRING_OR_COMMA.sub(lambda m: m[1] or " ", bare)


def _sentence(error: ValueError) -> str:
    """Where it broke, without the text around it (which may hold a secret)."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    place = re.search(r":(\d+) ", str(error))
    return f"it breaks at line {place[1]}" if place else "it cannot be read"
