"""Reads another client's file by the map: its servers in our keys, and what has to be said of them.

Read: Claude Desktop, Claude Code, Cursor, Cline, Roo, Kiro, Windsurf, Gemini CLI, Copilot CLI
(`mcpServers`), VS Code (`servers`), Zed (`context_servers`), opencode (`mcp`), Continue (a list).
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

import msgspec

from observant_host.config import keys, values
from observant_host.config.assemble import ImportedServer
from observant_host.config.origin import KeyPath, Leaf, Origin
from observant_host.config.parse import texts_of
from observant_host.config.values import type_name
from observant_host.errors import ConfigError
from observant_host.foreign_config.json_text import read_json
from observant_host.foreign_config.key_map import (
    KEY_MAP,
    Here,
    NotAvailableError,
    Nowhere,
    Pointless,
    server_tables,
)


class ForeignFile(msgspec.Struct, frozen=True):
    """What one foreign file held. `env_files` maps a server to the env file it names, as written.

    `notices`: known keys without meaning here; `warnings`: unknown keys, values read differently.
    """

    servers: tuple[ImportedServer, ...] = ()
    env_files: Mapping[str, Leaf] = {}
    notices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def read_foreign(
    data: bytes, *, name: str, folder: str, places: Mapping[str, str] | None = None
) -> ForeignFile:
    """Raises ConfigError where nothing can be read at all; else one bad server costs itself.

    `name` is how messages call the file; `folder` is what its relative paths are relative to;
    `places` are the values of `${workspaceFolder}` and its kin.
    """
    tree, doubled = read_json(data, name)
    tables, notices = server_tables(tree, name)
    reader = _Reader(name, Origin("import", name, folder, places or {}))
    for table in tables:
        for server, entry in table.items():
            reader.server(server, entry)
    twice = [f"{name}: the server {server} is there twice" for server in reader.twice(doubled)]
    if twice:
        raise ConfigError(twice)
    return ForeignFile(
        servers=tuple(reader.servers.values()),
        env_files=reader.env_files,
        notices=(*notices, *reader.notices()),
        warnings=tuple(reader.warnings),
    )


class _Reader:
    """Turns one file's servers into ours and collects what has to be said about them."""

    def __init__(self, name: str, origin: Origin) -> None:
        self.name, self.origin = name, origin
        self.servers: dict[str, ImportedServer] = {}
        self.env_files: dict[str, Leaf] = {}
        self.warnings: list[str] = []
        self.renamed: list[str] = []
        self._pointless: defaultdict[str, list[str]] = defaultdict(list)
        self._twice: list[str] = []

    def server(self, foreign_name: str, entry: Any) -> None:
        name = fitting_name(foreign_name)
        if name in self.servers:
            self._twice.append(name)
        if name != foreign_name:
            self.renamed.append(f'"{foreign_name}" is called {name}')
        leaves: dict[KeyPath, Leaf] = {}
        problem: str | None = None
        if not isinstance(entry, dict):
            problem = f"{self.name}: the server {name} is {type_name(entry)}; expected an object"
            entry = {}
        for key, raw in sorted(entry.items(), key=lambda item: item[0] != "url"):
            try:
                for path, value in self._converted(name, key, raw):
                    leaves[path] = Leaf(value, self.origin)
            except NotAvailableError as reason:
                problem = problem or f"{self.name}: {name}.{key}: {reason}"
        self._look_at(name, leaves)
        if ("env_file",) in leaves:
            self.env_files[name] = leaves.pop(("env_file",))
        self.servers[name] = ImportedServer(
            name=name, source=self.name, leaves=leaves, problem=problem
        )

    def _converted(self, name: str, key: str, raw: Any) -> Iterator[tuple[KeyPath, Any]]:
        if raw is None or key.startswith(("_", "$", "//", "#")):
            return
        meaning = KEY_MAP.get(key)
        match meaning:
            case Here():
                yield from meaning.convert(raw)
            case Nowhere() if raw not in (False, {}, [], ""):
                raise NotAvailableError(meaning.why)
            case Pointless():
                self._pointless[key].append(name)
            case Nowhere():
                pass
            case None if key in keys.SERVER.keys:
                yield (key,), raw  # ours, with our own meaning; tables are all in the map
            case _:
                self.warnings.append(self._unknown(name, key))

    def _unknown(self, name: str, key: str) -> str:
        close = difflib.get_close_matches(key, [*KEY_MAP, *keys.SERVER.keys], n=1)
        hint = f'; did you mean "{close[0]}"?' if close else ""
        return f"{self.name}: {name}.{key} is not known here and does nothing{hint}"

    def _look_at(self, name: str, leaves: Mapping[KeyPath, Leaf]) -> None:
        """Shell-style `$NAME` is expanded by some clients; here it would be passed on as it is."""
        for path, leaf in leaves.items():
            if any(_SHELL_STYLE.search(text) for text in texts_of(leaf.raw)):
                self.warnings.append(
                    f"{self.name}: {name}.{'.'.join(path)} holds a `$NAME` in the style of a "
                    "shell, which is not expanded here; write it as `${NAME}`"
                )

    def notices(self) -> Iterator[str]:
        """One notice for all keys without meaning, one for all renamed servers."""
        if self._pointless:
            found = ", ".join(
                f"{key} ({len(names)} server{'s' if len(names) > 1 else ''})"
                for key, names in sorted(self._pointless.items())
            )
            yield f"{self.name}: without meaning here: {found}"
        if self.renamed:
            yield f"{self.name}: names made fit: {'; '.join(self.renamed)}"

    def twice(self, doubled: Iterable[str]) -> Iterator[str]:
        """Names that two servers of this file share, as written or after they were made fit."""
        known = set(self.servers)
        yield from dict.fromkeys([*self._twice, *(name for name in doubled if name in known)])


_SHELL_STYLE: Final = re.compile(r"(?<![\w$\\])\$[A-Z_][A-Z0-9_]*\b")


def fitting_name(name: str) -> str:
    """A name of ours for another client's server: unfit characters become one `-`."""
    if values.NAME.match(name):
        return name
    fit = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:64].rstrip("-._")
    return fit or "server"


_SETTINGS_FOLDERS: Final = frozenset(
    {".vscode", ".cursor", ".roo", ".kiro", ".gemini", ".zed", ".windsurf", ".amazonq", ".github"}
)


def places_of(folder: str, home: str) -> dict[str, str]:
    """What `${workspaceFolder}` and its kin mean in a file that lies in `folder`."""
    workspace = PurePath(folder)
    while workspace.name in _SETTINGS_FOLDERS or workspace.parent.name in _SETTINGS_FOLDERS:
        workspace = workspace.parent
    return {
        "workspaceFolder": str(workspace),
        "workspaceRoot": str(workspace),
        "workspaceFolderBasename": workspace.name,
        "userHome": home,
        "pathSeparator": "/",
        "/": "/",
    }
