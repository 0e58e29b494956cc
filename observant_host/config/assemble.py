"""Flag over variable over file over import over defaults: one value for each key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.config import keys, values
from observant_host.config.keys import Open, Table, node_at
from observant_host.config.origin import KeyPath, Leaf, Origin, dotted
from observant_host.config.values import Kind
from observant_host.errors import ConfigError

if TYPE_CHECKING:
    from observant_host.config.parse import TomlFile


class ImportedServer(msgspec.Struct, frozen=True, kw_only=True):
    """One server of another client's file, already in our keys (paths below the server's table).

    `problem`: why it cannot run here (the other servers still do). `source` names the file.
    """

    name: str
    source: str
    leaves: Mapping[KeyPath, Leaf] = {}
    problem: str | None = None


class Layers(msgspec.Struct, frozen=True):
    """Every written value, the strongest only; `servers` in config order. `imported`: those that
    another client's file named; `problems`: why one of them cannot run here."""

    leaves: Mapping[KeyPath, Leaf]
    servers: tuple[str, ...]
    imported: frozenset[str] = frozenset()
    problems: Mapping[str, str] = {}


PREFIX: Final = "OBSERVANT_HOST_"
"""Variables `OBSERVANT_HOST_<TABLE>__<KEY>`; those without `__` are not keys (Kubernetes sets
`OBSERVANT_HOST_PORT` for a service of that name)."""


def lay(
    file: TomlFile | None,
    *,
    imported: Sequence[ImportedServer] = (),
    variables: Mapping[str, str] = {},
    flags: Mapping[str, object] = {},
) -> Layers:
    """Overlay everything. Raises ConfigError: two servers of one name, unknown variables or flags.

    A `[servers.NAME]` table overlays an imported server key by key; `env` and `headers` entry by
    entry; lists are replaced whole. Imported servers come first in config order.
    """
    problems = list(_twice(imported))
    leaves = {
        ("servers", server.name, *path): leaf
        for server in imported
        for path, leaf in server.leaves.items()
    }
    names = list(dict.fromkeys(server.name for server in imported))
    if file is not None:
        leaves |= file.leaves
        names += [name for name in file.servers if name not in names]
    for layer in (_from_variables(variables, names), _from_flags(flags)):
        for item in layer:
            if isinstance(item, str):
                problems.append(item)
            else:
                leaves[item[0]] = item[1]
    if problems:
        raise ConfigError(problems)
    return Layers(
        leaves=leaves,
        servers=tuple(names),
        imported=frozenset(server.name for server in imported),
        problems={server.name: server.problem for server in imported if server.problem},
    )


def _twice(imported: Sequence[ImportedServer]) -> Iterator[str]:
    first: dict[str, str] = {}
    for server in imported:
        if server.name in first:
            yield (
                f"{server.source}: the server {server.name} is also in {first[server.name]}; "
                "rename one of them, or import only one of the files"
            )
        first.setdefault(server.name, server.source)


Found = tuple[KeyPath, Leaf]


def _from_variables(variables: Mapping[str, str], names: Sequence[str]) -> Iterator[Found | str]:
    for variable, text in sorted(variables.items()):
        rest = variable.removeprefix(PREFIX)
        if variable.startswith(PREFIX) and "__" in rest:
            yield _found(_variable_path(rest, names), text, Origin("variable", variable))


def _variable_path(rest: str, names: Sequence[str]) -> KeyPath | str:
    """The key that a variable's name means, or the sentence why there is none."""
    table, _, key = rest.partition("__")
    if table != "SERVERS":
        return (table.lower(), *key.lower().split("__"))
    for name in sorted(names, key=len, reverse=True):
        spelled = re.sub(r"[^A-Z0-9]", "_", name.upper())
        if key.startswith(f"{spelled}__"):
            parts = key.removeprefix(f"{spelled}__").split("__")
            tail = ["env", *parts[1:]] if parts[0] == "ENV" else [p.lower() for p in parts]
            return ("servers", name, *tail)
    return f"no server of that name is configured (configured: {', '.join(names) or 'none'})"


def _from_flags(flags: Mapping[str, object]) -> Iterator[Found | str]:
    for flag, value in flags.items():
        yield _found(tuple(flag.split(".")), value, Origin("flag", flag))


def _found(path: KeyPath | str, value: object, origin: Origin) -> Found | str:
    """The leaf, or the sentence why `path` is no key."""
    if isinstance(path, str):
        return f"{origin.where}: {path}"
    kind = node_at(path)
    if not isinstance(kind, Kind):
        return f"{origin.where}: {_no_key(path)}"
    return path, Leaf(values.from_text(kind, value) if isinstance(value, str) else value, origin)


def _no_key(path: KeyPath) -> str:
    """Names the nearest table that exists and what is allowed there."""
    at = len(path)
    while not isinstance(table := node_at(path[:at]), Table | Open) and at > 0:
        at -= 1
    allowed = sorted(table.keys) if isinstance(table, Table) else []
    key = path[at] if at < len(path) else path[-1]
    close = difflib.get_close_matches(key, allowed, n=1)
    hint = f'; did you mean "{close[0]}"?' if close else "."
    return f"{dotted(path)} is no key{hint} Allowed there: {', '.join(allowed) or 'any name'}"


def fallback(leaves: Mapping[KeyPath, Leaf], path: KeyPath) -> Leaf | None:
    """The written value of a server's key: its own, else that of `[defaults]`."""
    own = leaves.get(path)
    if own is not None or path[0] != "servers" or path[-1] not in keys.DEFAULTS or len(path) != 3:
        return own
    given = leaves.get(("defaults", path[-1]))
    return given and Leaf(given.raw, msgspec.structs.replace(given.origin, kind="defaults"))
