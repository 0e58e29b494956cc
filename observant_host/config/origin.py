"""Where a value came from, so that a person can find and change it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

KeyPath = tuple[str, ...]
OriginKind = Literal["default", "defaults", "import", "file", "variable", "flag"]


class Origin(msgspec.Struct, frozen=True):
    """`where` is "FILE:LINE", "FILE", a variable's or a flag's name; "" for a built-in default.

    `folder` is what relative paths in the value are relative to; `places` are the names that a
    foreign file may refer to (`workspaceFolder`).
    """

    kind: OriginKind
    where: str = ""
    folder: str = ""
    places: Mapping[str, str] = {}

    def __str__(self) -> str:
        return f"{self.kind} {self.where}" if self.where else self.kind


DEFAULT: Final = Origin("default")


class Leaf(msgspec.Struct, frozen=True):
    """One raw value, before expansion, with its origin."""

    raw: Any
    origin: Origin


def dotted(path: KeyPath) -> str:
    """`servers.github.env.TOKEN`, for messages."""
    return ".".join(path)


_HEADER: Final = re.compile(r"^\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?$")
_ENTRY: Final = re.compile(r"^\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'|\s*\.\s*)+?)\s*=")


def line_numbers(text: str) -> dict[KeyPath, int]:
    """The line of each table header and key, as far as a reader of single lines can tell.

    Keys of inline tables have the line of their table. Only for messages: TOML itself is read by
    a real parser.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = next(_paths(f"[{header[1]}]"), ())
            lines.setdefault(table, number)
        elif entry := _ENTRY.match(line):
            for path in _paths(f"{entry[1]} = 0"):
                lines.setdefault(table + path, number)
    return lines


def _paths(toml: str) -> Iterator[KeyPath]:
    """The one key path that a line of TOML makes; none where the line alone is no TOML."""
    try:
        tree: Any = tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        return
    path: KeyPath = ()
    while isinstance(tree, dict) and tree:
        key, tree = next(iter(tree.items()))
        path = (*path, key)
    yield path


def line_of(path: KeyPath, lines: Mapping[KeyPath, int]) -> int | None:
    """The line of the key, or of the nearest table around it."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None
