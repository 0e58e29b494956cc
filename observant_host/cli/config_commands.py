"""`config show` and `config check`: what the host would run by, and where each value came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from observant_host.cli.options import command, config_option, json_option, pass_screen
from observant_host.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.config.effective import Entry
    from observant_host.config.origin import KeyPath
    from observant_host.config_files import Loaded

OFF_EXIT = 2
"""A configuration of which a part cannot be used is as invalid as one that cannot be read."""


@click.group("config")
def config() -> None:
    """Show or check the effective configuration.

    observant-host config show --origin · observant-host config check
    """


@command(
    "show",
    examples=(
        ("config show", "The effective configuration as TOML, secrets masked."),
        ("config show --origin", "The same, each value with the file and line it came from."),
        ("config show --json", "Values and origins for a machine."),
    ),
)
@click.option("--origin", is_flag=True, help="Say where each value came from.")
@json_option
@config_option
@pass_screen
def show(screen: Screen, *, origin: bool, as_json: bool, config: Path | None) -> None:
    """Show the effective configuration: flag over variable over file over import over default."""
    loaded = _load(config)
    if as_json:
        screen.json(show_document(loaded))
        return
    for line in show_lines(loaded, origin=origin):
        screen.answer(line)
    _remarks(screen, loaded)


@command(
    "check",
    examples=(
        ("config check", "Is it valid? Every mistake at once, each with its fix."),
        ("config check -c .mcp.json", "What would another client's file become?"),
    ),
)
@json_option
@config_option
@pass_screen
def check(screen: Screen, *, as_json: bool, config: Path | None) -> int:
    """Check the configuration without starting anything.

    Exit code 2 if it cannot be used, or an enabled server of it cannot.
    """
    try:
        loaded = _load(config)
    except ConfigError as error:
        if not as_json:
            raise
        screen.json(_check_document(None, error.problems))
        return OFF_EXIT
    problems = [one.problem for one in loaded.config.servers if one.problem and one.enabled]
    refused = _refused_listeners(loaded)
    if as_json:
        screen.json(_check_document(loaded, [*problems, *refused]))
    else:
        _remarks(screen, loaded)
        for problem in (*problems, *refused):
            screen.fail(problem)
        screen.answer(_verdict(loaded, len(problems), serves=not refused))
    return OFF_EXIT if problems or refused else 0


def _refused_listeners(loaded: Loaded) -> tuple[str, ...]:
    """Why `run` would refuse to listen there; what lies in files is `doctor`'s."""
    from observant_host.decisions.http_door import is_loopback

    service = loaded.config.service
    given = (service.listen, service.admin_listen, service.metrics_listen)
    hosts = (one.rpartition(":")[0].strip("[]") for one in given if one)
    if all(map(is_loopback, hosts)):
        return ()  # nearly every file, and the service is not imported for it
    from observant_host.service.access import listeners

    try:
        listeners(service, loaded.config.tokens)
    except ConfigError as error:
        return tuple(error.problems)
    return ()


config.add_command(show)
config.add_command(check)


def _load(given: Path | None) -> Loaded:
    from observant_host import config_files

    return config_files.load(given)


def _remarks(screen: Screen, loaded: Loaded) -> None:
    for warning in loaded.assembled.warnings:
        screen.say(f"warning: {warning}", style="yellow")
    for notice in loaded.assembled.notices:
        screen.say(f"note: {notice}")


def _verdict(loaded: Loaded, off: int, *, serves: bool) -> str:
    servers = loaded.config.servers
    enabled = sum(one.enabled for one in servers)
    counted = "1 server" if len(servers) == 1 else f"{len(servers)} servers"
    said = f"{loaded.path}: {counted}, {enabled} enabled"
    wrong = [f"{off} of them cannot be used"] if off else []
    wrong += [] if serves else ["`run` would not serve"]
    return f"{said}, {', '.join(wrong) or 'nothing wrong'}"


def _check_document(loaded: Loaded | None, problems: Any) -> dict[str, Any]:
    return {
        "ok": not problems,
        "file": None if loaded is None else str(loaded.path),
        "problems": list(problems),
        "warnings": [] if loaded is None else list(loaded.assembled.warnings),
        "notices": [] if loaded is None else list(loaded.assembled.notices),
        "servers": []
        if loaded is None
        else [
            {"name": one.name, "enabled": one.enabled, "problem": one.problem}
            for one in loaded.config.servers
        ],
    }


def show_document(loaded: Loaded) -> dict[str, Any]:
    """What `config show --json` prints: `config` is nested, `origins` are "kind where" by key."""
    nested: dict[str, Any] = {}
    for path, entry in loaded.assembled.entries.items():
        table = nested
        for part in path[:-1]:
            table = table.setdefault(part, {})
        table[path[-1]] = entry.value
    return {
        "file": str(loaded.path),
        "files": [str(path) for path in loaded.files],
        "config": nested,
        "origins": {
            ".".join(path): str(entry.origin) for path, entry in loaded.assembled.entries.items()
        },
        "servers": [
            {
                "name": one.name,
                "transport": one.transport,
                "fingerprint": one.fingerprint,
                "problem": one.problem,
            }
            for one in loaded.config.servers
        ],
        "warnings": list(loaded.assembled.warnings),
        "notices": list(loaded.assembled.notices),
    }


def show_lines(loaded: Loaded, *, origin: bool) -> Iterator[str]:
    """TOML with masked values; with `origin` each value's origin as a comment."""
    yield f"# {loaded.path}"
    problems = {one.name: one.problem for one in loaded.config.servers}
    prints = {one.name: one.fingerprint for one in loaded.config.servers}
    for table, entries in _tables(loaded).items():
        if table:
            yield ""
            yield f"[{_header(table)}]"
        if table[:1] == ("servers",) and len(table) == 2:
            yield f"# fingerprint: {prints[table[1]]}"
            if problems[table[1]]:
                yield f"# cannot be used: {problems[table[1]]}"
        for path, entry in entries:
            yield _entry_line(path[-1], entry, origin=origin)


def _tables(loaded: Loaded) -> dict[KeyPath, list[tuple[KeyPath, Entry]]]:
    """Entries by their table, tables of one server together, in the order of the file's tables."""
    tables: dict[KeyPath, list[tuple[KeyPath, Entry]]] = {(): []}
    for one in loaded.config.servers:
        tables[("servers", one.name)] = []
    for path, entry in loaded.assembled.entries.items():
        tables.setdefault(path[:-1], []).append((path, entry))
    order = ("", "host", "service", "telemetry", "defaults", "servers", "tokens", "profiles")
    names = [one.name for one in loaded.config.servers]

    def rank(table: KeyPath) -> tuple[Any, ...]:
        first = table[0] if table else ""
        name = table[1] if len(table) > 1 else ""
        return order.index(first), names.index(name) if name in names else 0, name, table

    return {table: tables[table] for table in sorted(tables, key=rank)}


def _header(table: KeyPath) -> str:
    from observant_host.config.suggest import toml_key

    return ".".join(toml_key(part) for part in table)


def _entry_line(key: str, entry: Entry, *, origin: bool) -> str:
    from observant_host.config.suggest import toml_key, toml_value

    if entry.value is None:
        line = f"# {toml_key(key)} is not set"
    else:
        line = f"{toml_key(key)} = {toml_value(entry.value)}"
    return f"{line}  # {entry.origin}" if origin else line
