"""From written values to the frozen configuration that everything runs by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from observant_host.config import keys, shown
from observant_host.config.access import access_problems, emptied, jwt_settings
from observant_host.config.assemble import Layers, fallback
from observant_host.config.expand import (
    HARMLESS,
    Lookup,
    UnresolvedError,
    absolute,
    expand,
    file_parts,
)
from observant_host.config.keys import Open, Table
from observant_host.config.model import (
    HostConfig,
    HostSettings,
    HttpServer,
    JwtSettings,
    Profile,
    ServerConfig,
    ServiceSettings,
    TelemetrySettings,
    Token,
    ToolFilter,
)
from observant_host.config.origin import DEFAULT, KeyPath, Leaf, Origin, dotted
from observant_host.config.servers import Written, server_config
from observant_host.config.values import Kind, MismatchError, seen
from observant_host.errors import ConfigError

S = TypeVar("S", bound=msgspec.Struct)


class Entry(msgspec.Struct, frozen=True):
    """One key as `config show` prints it: `value` is already masked."""

    value: Any
    origin: Origin


class Assembled(msgspec.Struct, frozen=True):
    """`entries`: every key of every table, in order. `secrets`: every value that must never be
    shown, for the masker. `notices` and `warnings` are sentences for a person."""

    config: HostConfig
    entries: Mapping[KeyPath, Entry]
    secrets: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Builder:
    """Reads every written value once: typed, shown, and remembered where it is a secret."""

    def __init__(self, layers: Layers, lookup: Lookup) -> None:
        self.layers, self.lookup = layers, lookup
        self.entries: dict[KeyPath, Entry] = {}
        self.secrets: list[str] = []
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.off: dict[str, str] = dict(layers.problems)

    def table(self, table: Table, path: KeyPath) -> dict[str, Any]:
        """The typed values that were written below `path`, by key; nested tables as dicts."""
        found: dict[str, Any] = {}
        for key, node in table.keys.items():
            below = (*path, key)
            if isinstance(node, Kind):
                leaf = fallback(self.layers.leaves, below)
                if leaf is not None and (value := self.value(node, leaf, below)) is not _ABSENT:
                    found[key] = value
            elif nested := self.table(self._closed(node, below), below):
                found[key] = nested
        return found

    def _closed(self, node: Table | Open, path: KeyPath) -> Table:
        """An open table with the entries that people wrote in it."""
        if isinstance(node, Table):
            return node
        written = (p[len(path)] for p in self.layers.leaves if p[: len(path)] == path)
        return Table(dict.fromkeys(written, node.each))

    def value(self, kind: Kind, leaf: Leaf, path: KeyPath) -> Any:
        """The typed value, or _ABSENT with the problem reported where it belongs."""
        self.entries[path] = Entry(shown_value(kind, leaf.raw), leaf.origin)
        try:
            raw, came_in = self._expanded(leaf)
            value = kind.read(raw)
        except UnresolvedError as error:
            self._refuse(path, leaf, f"cannot be used: {error}", one_server=True)
            return _ABSENT
        except MismatchError:
            sentence = f"expects {kind.expected}; seen: {seen(kind, leaf.raw)}"
            self._refuse(path, leaf, sentence, one_server=leaf.origin.kind == "import")
            return _ABSENT
        if kind.path:
            value = absolute(value, self.lookup, folder=leaf.origin.folder)
        if not came_in and not kind.secret:
            effective = raw if kind.shown == "argv" else value
            self.entries[path] = Entry(shown_value(kind, effective), leaf.origin)
        if path[0] != "servers" or path[2] != "env" or path[-1] not in HARMLESS:
            self.secrets += secrets_of(kind, value, came_in if path[0] == "servers" else ())
        return value

    def _expanded(self, leaf: Leaf) -> tuple[Any, tuple[str, ...]]:
        origin = leaf.origin
        came_in: list[str] = []

        def one(raw: Any) -> Any:
            match raw:
                case str():
                    done = expand(raw, self.lookup, folder=origin.folder, places=origin.places)
                    came_in.extend(done.values)
                    return done.text
                case list() | tuple():
                    return [one(item) for item in raw]
                case _:
                    return raw

        return one(leaf.raw), tuple(came_in)

    def _refuse(self, path: KeyPath, leaf: Leaf, sentence: str, *, one_server: bool) -> None:
        text = f"{leaf.origin.where}: {dotted(path)} {sentence}"
        if one_server and path[0] == "servers":
            self.off.setdefault(path[1], text)
        else:
            self.problems.append(text)

    def settings(self, table: Table, name: str, made: type[S]) -> S:
        """One table's struct; defaults are the struct's own."""
        written = self.table(table, (name,))
        if "jwt" in written:
            written["jwt"] = self._jwt(written["jwt"])
        if "import" in written:
            written["imports"] = written.pop("import")
        settings = made(**written)
        for key, node in table.keys.items():
            if isinstance(node, Kind):
                field = "imports" if key == "import" else key
                self.show_default((name, key), getattr(settings, field))
        return settings

    def _jwt(self, written: dict[str, Any]) -> JwtSettings | None:
        found, problems = jwt_settings(written)
        self.problems += problems
        return found

    def show_default(self, path: KeyPath, value: object) -> None:
        self.entries.setdefault(path, Entry(value, DEFAULT))

    def placed(self, sentence: str) -> str:
        """With the place of the key that it begins with, where that key, or one below, is written:
        what must hold among several keys knows no place of its own."""
        key = sentence.partition(" ")[0]
        for path, leaf in self.layers.leaves.items():
            if f"{dotted(path)}.".startswith(f"{key}."):
                return f"{leaf.origin.where}: {sentence}"
        return sentence

    def named(self, table: Table, name: str) -> dict[str, dict[str, Any]]:
        """The entries of a table whose keys are names: `[tokens.NAME]`, `[profiles.NAME]`."""
        names = dict.fromkeys(path[1] for path in self.layers.leaves if path[0] == name)
        return {entry: self.table(table, (name, entry)) for entry in names}


_ABSENT: Final = object()


def shown_value(kind: Kind, raw: Any) -> Any:
    """A value as a person may see it. Given as written (references unexpanded) where a secret may
    have come in by a reference."""
    match kind.shown, raw:
        case _ if kind.secret:
            return shown.shown_secret(raw) if isinstance(raw, str) else shown.MASK
        case "argv", str():
            return shown.shown_argv([raw])[0]
        case "argv", list():
            return shown.shown_argv([str(word) for word in raw])
        case _, str():
            return shown.shown_text(raw)
        case _:
            return raw


def secrets_of(kind: Kind, value: Any, came_in: Sequence[str]) -> list[str]:
    """What of a typed value must be masked wherever it turns up."""
    if kind.secret:
        return [str(value), *_bearer(str(value))]
    if kind.shown == "argv":
        return [*came_in, *shown.argv_secrets(value)]
    if kind.shown == "url":
        return [*came_in, *shown.url_secrets(value)]
    return []


def _bearer(value: str) -> list[str]:
    """The token of `Bearer TOKEN` and `Basic TOKEN`, which turns up without its scheme."""
    scheme, _, token = value.partition(" ")
    return [token.strip()] if scheme.lower() in ("bearer", "basic", "token") else []


def build(layers: Layers, lookup: Lookup) -> Assembled:
    """Raises ConfigError with every problem that is not one server's own."""
    builder = _Builder(layers, lookup)
    builder.table(Table({"version": keys.ROOT.keys["version"]}), ())
    host = builder.settings(keys.HOST, "host", HostSettings)
    service = builder.settings(keys.SERVICE, "service", ServiceSettings)
    telemetry = builder.settings(keys.TELEMETRY, "telemetry", TelemetrySettings)
    builder.table(Table(keys.DEFAULTS), ("defaults",))
    servers = [_server(builder, name) for name in layers.servers]
    shown_parts = builder.named(keys.PROFILE, "profiles")
    builder.problems += emptied(shown_parts)
    profiles = {name: Profile(**_with_filter(one)) for name, one in shown_parts.items()}
    tokens = {
        name: Token(**written) for name, written in builder.named(keys.TOKEN, "tokens").items()
    }
    builder.problems += access_problems(service, tokens, profiles, servers=layers.servers)
    if builder.problems:
        raise ConfigError(list(map(builder.placed, dict.fromkeys(builder.problems))))
    config = HostConfig(
        servers=tuple(servers),
        host=host,
        service=service,
        telemetry=telemetry,
        tokens=tokens,
        profiles=profiles,
    )
    return Assembled(
        config=config,
        entries=builder.entries,
        secrets=shown.worth_masking(builder.secrets),
        warnings=tuple(builder.warnings),
    )


def _with_filter(written: dict[str, Any]) -> dict[str, Any]:
    return {**written, "tools": ToolFilter(**written.get("tools", {}))}


def _server(builder: _Builder, name: str) -> ServerConfig:
    path = ("servers", name)
    written = Written(
        name=name,
        values=builder.table(keys.SERVER, path),
        leaves={p[2:]: leaf for p, leaf in builder.layers.leaves.items() if p[:2] == path},
        imported=name in builder.layers.imported,
        off=builder.off.get(name),
    )
    made = server_config(written)
    builder.problems += made.problems
    builder.warnings += made.warnings
    for key, value in made.defaults.items():
        builder.show_default((*path, key), value)
    return _rereading(made.config, written, builder.lookup)


def _rereading(config: ServerConfig, written: Written, lookup: Lookup) -> ServerConfig:
    """With the headers that name files, for reading them again."""
    launch = config.launch
    if not isinstance(launch, HttpServer):
        return config
    files = {
        header: parts
        for header in launch.headers
        if (leaf := written.leaves.get(("headers", header))) is not None
        and isinstance(leaf.raw, str)
        and (parts := _parts(leaf, lookup))
    }
    if not files:
        return config
    return msgspec.structs.replace(
        config, launch=msgspec.structs.replace(launch, header_files=files)
    )


def _parts(leaf: Leaf, lookup: Lookup) -> tuple[str, ...]:
    return file_parts(leaf.raw, lookup, folder=leaf.origin.folder, places=leaf.origin.places)
