"""Values given in code, by the kinds of the configuration file: what it refuses is refused here.

None means that nothing was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from observant_host.config import values
from observant_host.config.keys import Node, Table
from observant_host.config.values import Kind, MismatchError


def read_given(path: str, node: Node | None, raw: Any, problems: list[str]) -> Any:
    """`raw` as the file would be read; what cannot be is named in `problems` and left as it is.
    `node` None: no key of the file, and nobody's business here."""
    match node:
        case Kind():
            return _value(path, node, raw, problems)
        case Table() if isinstance(raw, Mapping):
            return _table(path, node, raw, problems)
        case Table():
            problems.append(f"{path} is {values.type_name(raw)}; expected a table")
            return raw
        case _:
            return raw


def _value(path: str, kind: Kind, raw: Any, problems: list[str]) -> Any:
    try:
        return kind.read(raw)
    except MismatchError:
        problems.append(f"{path} expects {kind.expected}; seen: {values.seen(kind, raw)}")
        return raw


def _table(path: str, table: Table, raw: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    unknown = sorted(set(raw) - set(table.keys))
    allowed = ", ".join(sorted(table.keys))
    problems.extend(f"{path}.{key} is no key; allowed here: {allowed}" for key in unknown)
    return {
        key: read_given(f"{path}.{key}", table.keys.get(key), value, problems)
        for key, value in raw.items()
        if value is not None
    }
