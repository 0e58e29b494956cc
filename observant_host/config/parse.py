"""One TOML file, strictly: every key is known, every mistake of the file is reported at once."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from observant_host.config import keys, values
from observant_host.config.expand import has_reference
from observant_host.config.keys import Node, Open, Table
from observant_host.config.origin import KeyPath, Leaf, Origin, dotted, line_numbers, line_of
from observant_host.config.values import Kind, MismatchError, seen
from observant_host.errors import ConfigError


class TomlFile(msgspec.Struct, frozen=True):
    """One TOML file, checked for unknown keys; its values still as written.

    `imports` are the paths of `[host] import`, as written.
    """

    name: str
    folder: str
    leaves: Mapping[KeyPath, Leaf]
    servers: tuple[str, ...] = ()


class _Reader:
    """One walk over one file's tree: collects leaves and problems."""

    def __init__(self, name: str, folder: str, lines: Mapping[KeyPath, int]) -> None:
        self.name, self.folder, self.lines = name, folder, lines
        self.leaves: dict[KeyPath, Leaf] = {}
        self.problems: list[str] = []

    def where(self, path: KeyPath) -> str:
        line = line_of(path, self.lines)
        return self.name if line is None else f"{self.name}:{line}"

    def problem(self, path: KeyPath, sentence: str) -> None:
        self.problems.append(f"{self.where(path)}: {dotted(path)} {sentence}")

    def walk(self, node: Node, raw: Any, path: KeyPath) -> None:
        match node:
            case Kind():
                self._leaf(node, raw, path)
            case _ if not isinstance(raw, dict):
                self.problem(path, f"is {values.type_name(raw)}; expected a table")
            case Table():
                self._table(node, raw, path)
            case _:
                self._open(node, raw, path)

    def refuse_empty(self, tree: Mapping[str, Any], table: str, why: str) -> None:
        """An empty table leaves no value behind, and would not be heard of again."""
        tables = tree.get(table)
        for name, raw in tables.items() if isinstance(tables, dict) else ():
            if raw == {}:
                self.problem((table, name), f"is empty; {why}")

    def _leaf(self, kind: Kind, raw: Any, path: KeyPath) -> None:
        self.leaves[path] = Leaf(raw, Origin("file", self.where(path), self.folder))
        if not any(has_reference(text) for text in texts_of(raw)):
            try:
                kind.read(raw)
            except MismatchError:
                self.problem(path, f"expects {kind.expected}; seen: {seen(kind, raw)}")

    def _table(self, table: Table, raw: Mapping[str, Any], path: KeyPath) -> None:
        for key, value in raw.items():
            if key in table.keys:
                self.walk(table.keys[key], value, (*path, key))
            else:
                self.problem((*path, key), unknown(key, table, path))

    def _open(self, table: Open, raw: Mapping[str, Any], path: KeyPath) -> None:
        for key, value in raw.items():
            if table.named and not values.NAME.match(key):
                self.problem((*path, key), NAME_RULE)
            else:
                self.walk(table.each, value, (*path, key))


NAME_RULE: Final = (
    "is no name: a name begins with a letter or digit, and holds at most 64 letters, digits, "
    "`_`, `.` and `-`"
)
_OFTEN_MEANT: Final = {
    "mcpServers": "servers",
    "server": "servers",
    "mcp_servers": "servers",
    "disabled": "enabled",
    "type": "transport",
    "timeout": "call_timeout_s",
}
"""What people write out of the habit of another client's files."""


def unknown(key: str, table: Table, path: KeyPath) -> str:
    """Why `key` is refused in this table, and what may have been meant."""
    if path == ("defaults",) and key in keys.ERA:
        return (
            "is a permission for exactly one server, never a wildcard: "
            "write it under [servers.NAME], with its reason"
        )
    if path == ("defaults",) and key in keys.SERVER.keys:
        return "belongs to one server: write it under [servers.NAME]; here stand timing and limits"
    meant = _OFTEN_MEANT.get(key, "")
    close = [meant] if meant in table.keys else difflib.get_close_matches(key, table.keys, n=1)
    hint = f'; did you mean "{close[0]}"?' if close else "."
    return f"is no key{hint} Allowed here: {', '.join(sorted(table.keys))}"


def texts_of(raw: Any) -> Iterator[str]:
    """Every text inside a raw value."""
    match raw:
        case str():
            yield raw
        case list() | tuple():
            for item in raw:
                yield from texts_of(item)
        case _:
            return


def read_toml(data: bytes, *, name: str, folder: str) -> TomlFile:
    """Raises ConfigError with every problem of the file at once.

    `name` is how messages call the file; `folder` is what its relative paths are relative to.
    """
    text, tree = _tree(data, name)
    reader = _Reader(name, folder, line_numbers(text))
    reader.walk(keys.ROOT, tree, ())
    reader.refuse_empty(tree, "tokens", "it needs one of sha256, file, env")
    if reader.problems:
        raise ConfigError(reader.problems)
    return TomlFile(
        name=name,
        folder=folder,
        leaves=reader.leaves,
        servers=tuple(tree.get("servers", {})),
    )


def _tree(data: bytes, name: str) -> tuple[str, dict[str, Any]]:
    try:
        text = data.decode("utf-8-sig")
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigError([f"{name}: is not UTF-8 text (byte {error.start})"]) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"{name}: is not TOML: {error}"]) from None
    except RecursionError:
        raise ConfigError([f"{name}: is nested too deeply"]) from None
