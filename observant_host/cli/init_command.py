"""`init`: from somebody's existing client file to a working host in minutes."""

from __future__ import annotations

import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click
from msgspec import structs

from observant_host.cli.options import command, json_option, pass_screen
from observant_host.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import date

    from observant_host.cli.output import Screen
    from observant_host.config import HostConfig, ServerConfig
    from observant_host.config.suggest import Finding
    from observant_host.config_files import Loaded, Surroundings
    from observant_host.supervision.examine import Examination

AT_ONCE = 4
"""Servers tried at a time: cold package downloads share one line and a few cores."""

FIRST_START_S = 120.0
"""Patience with a server that perhaps was never installed here: four cold npx side by side on two
busy cores were seen to take 36 s, and one ended while it unpacks leaves a cache that stays broken
until a person removes it."""


class Examines(Protocol):
    """Tries one server in a process of its own, ended afterwards; never raises for the server."""

    async def examine(self, server: ServerConfig, *, principal: str) -> Examination: ...


if TYPE_CHECKING:
    Opens = Callable[[HostConfig], AbstractAsyncContextManager[Examines]]


@command(
    "init",
    examples=(
        ("init", "Read the client files that are found in their usual places."),
        ("init --from .mcp.json", "Read this one; may be given more than once."),
        ("init --from .mcp.json --yes", "Ask nothing: start every server in it once."),
    ),
)
@click.option(
    "--from",
    "sources",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    help="A client's file (Claude, Cursor, VS Code, Cline, Zed, …). Default: their usual places.",
)
@click.option("--yes", is_flag=True, help="Do not ask before the servers are started once.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("observant-host.toml"),
    show_default=True,
    help="Where to write the new file.",
)
@click.option("--force", is_flag=True, help="Overwrite the file that --out names.")
@json_option
@pass_screen
def init(
    screen: Screen, *, sources: tuple[Path, ...], yes: bool, out: Path, force: bool, as_json: bool
) -> None:
    """Make a configuration out of an existing client file.

    Shows the exact commands, asks, starts each server once with a bounded handshake, shows what
    was found, and writes a new file that imports yours. Your file is never changed.
    """
    from observant_host.config_files import Surroundings

    around = Surroundings.of_process()
    out = around.current / out
    _refuse_early(out, force=force)
    loaded = read_sources(screen, [around.current / path for path in sources], around)
    _show_commands(screen, loaded)
    _ask(screen, yes=yes)
    findings = try_servers(screen, loaded)
    today = datetime.fromtimestamp(_wall_s(), UTC).date()
    _write(out, findings, loaded, today, force=force)
    if as_json:
        screen.json(_document(out, findings))
    else:
        _show_findings(screen, findings)
    shown = _shown_path(out, around.current)
    screen.say(f"wrote {shown}")
    screen.say(f"next: observant-host run --config {shlex.quote(shown)}")


def _wall_s() -> float:
    from observant_host.timing.clock import SystemClock

    return SystemClock().wall_ns() / 1e9


def _refuse_early(out: Path, *, force: bool) -> None:
    """Servers are not started for a file that cannot be written then."""
    if out.exists() and not force:
        raise _exists_already(out)
    above = next(folder for folder in out.parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise _cannot_be_written(out, f"{above} is no folder that you may write to")


def _exists_already(out: Path) -> ConfigError:
    return ConfigError(
        [f"{out} exists already; name another file with --out, or overwrite it with --force"]
    )


def _cannot_be_written(out: Path, why: str | None) -> ConfigError:
    return ConfigError([f"{out} cannot be written: {why}; name another file with --out"])


def read_sources(screen: Screen, given: Sequence[Path], around: Surroundings) -> Loaded:
    """The servers of the files given, or of the known places. Raises ConfigError."""
    from observant_host import config_files

    paths = list(given) or _usual_places(screen, around)
    loaded = config_files.load_clients(paths, around)
    for warning in loaded.assembled.warnings:
        screen.say(f"warning: {warning}", style="yellow")
    for notice in loaded.assembled.notices:
        screen.say(f"note: {notice}")
    if not loaded.config.servers:
        names = ", ".join(str(path) for path in paths)
        raise ConfigError([f"{names}: no server is configured there; use another --from FILE"])
    return loaded


def _usual_places(screen: Screen, around: Surroundings) -> list[Path]:
    """Files that can be read, hold servers, and share no server's name with one before them."""
    from observant_host.config_files import read_client_file
    from observant_host.foreign_config.places import LYING_AROUND, client_files

    chosen: list[Path] = []
    taken: dict[str, Path] = {}
    for client, place in client_files(str(around.home), around.platform):
        path = Path(place)
        if not path.is_file():
            continue
        try:
            names = [server.name for server in read_client_file(path, around).servers]
        except ConfigError as error:
            screen.detail(f"{client}: {error}")
            continue
        shared = [name for name in names if name in taken]
        if shared:
            screen.say(f"note: {path} ({client}) is left out: it has {', '.join(shared)} as well")
        elif names:
            chosen.append(path)
            taken |= dict.fromkeys(names, path)
    if chosen:
        return chosen
    lying = [name for name in LYING_AROUND[1:] if (around.current / name).is_file()]
    found = f"found ./{lying[0]}; to use it: init --from {lying[0]}" if lying else "use --from FILE"
    raise ConfigError([f"no client's file with servers lies in its usual place; {found}"])


def _show_commands(screen: Screen, loaded: Loaded) -> None:
    """Exactly what would be started, secrets masked."""
    screen.say("These servers would be started once, one process each, and ended again:")
    for server in loaded.config.servers:
        screen.say(f"  {server.name}: {_command_of(server, loaded)}", hanging=6)


def _command_of(server: ServerConfig, loaded: Loaded) -> str:
    from observant_host.config.servers import for_a_look

    server = for_a_look(server)
    if not server.enabled:
        return "not started: it is disabled"
    if server.problem is not None:
        return f"not started: {server.problem}"
    entries = loaded.assembled.entries
    path = ("servers", server.name)
    if (*path, "url") in entries:
        return f"connect to {entries[*path, 'url'].value}"
    words: list[str] = []
    for key in ("command", "args"):
        value = entries[*path, key].value if (*path, key) in entries else []
        words += [value] if isinstance(value, str) else list(value)
    where = entries[*path, "cwd"].value if (*path, "cwd") in entries else None
    return shlex.join(words) + (f"  (in {where})" if where else "")


def _ask(screen: Screen, *, yes: bool) -> None:
    if yes:
        return
    if not screen.err.isatty() or not sys.stdin.isatty():
        raise ConfigError(
            ["nobody can be asked here (no terminal); to start these servers once, give --yes"]
        )
    click.confirm("Start them?", default=False, abort=True, err=True)


def try_servers(screen: Screen, loaded: Loaded, opens: Opens | None = None) -> list[Finding]:
    """Each server once, a few at a time, in config order. `opens` makes the examiner."""
    from observant_host.cli.session import run_async

    if opens is None:
        opens = _open_examiner(loaded)
    return run_async(_try_all(screen, loaded, opens))


def _open_examiner(loaded: Loaded) -> Opens:
    from observant_host.host import Examiner

    folder = loaded.config.host.state_dir
    return lambda config: Examiner(config, state_dir=folder, secrets=loaded.secrets)


async def _try_all(screen: Screen, loaded: Loaded, opens: Opens) -> list[Finding]:
    import anyio

    from observant_host.cli.init_progress import Trials
    from observant_host.cli.source import principal
    from observant_host.config.servers import for_a_look
    from observant_host.telemetry.masking import Masker

    servers = [for_a_look(server) for server in loaded.config.servers]
    masker = Masker(loaded.secrets)
    found: dict[str, Finding] = {}
    places = anyio.Semaphore(AT_ONCE)

    async def one(server: ServerConfig, examiner: Examines, trials: Trials) -> None:
        if server.problem is not None or not server.enabled:
            found[server.name] = _untried(server)
            return
        async with places:
            trials.began(server.name)
            examination = await examiner.examine(patient(server), principal=principal())
            found[server.name] = finding_of(examination, masker.text)
            trials.ended(found[server.name])

    async with (
        opens(loaded.config) as examiner,
        Trials(screen, len(servers)) as trials,
        anyio.create_task_group() as group,
    ):
        for server in servers:
            group.start_soon(one, server, examiner, trials)
    return [found[server.name] for server in servers]


def patient(server: ServerConfig) -> ServerConfig:
    """The same, given time for an installation where it is a process."""
    if server.transport != "stdio":
        return server
    timeout_s = max(server.timing.probe_timeout_s, FIRST_START_S)
    timing = structs.replace(server.timing, probe_timeout_s=timeout_s)
    return structs.replace(server, timing=timing)


def _untried(server: ServerConfig) -> Finding:
    from observant_host.config.suggest import Finding

    detail = server.problem or "it is disabled in the imported file"
    disabled = server.problem is None
    return Finding(name=server.name, era="unknown", detail=detail, tried=False, disabled=disabled)


def finding_of(examination: Examination, mask: Callable[[str], str]) -> Finding:
    """What the table and the new file need of one examination."""
    from observant_host.config.suggest import Finding

    suggestion = examination.suggestion
    view = examination.view
    legacy = examination.legacy_revision
    return Finding(
        name=examination.server,
        era="legacy" if legacy else str(view.era),
        version=legacy or view.version,
        tools=view.tools,
        start_s=examination.elapsed_ms / 1e3,
        detail=mask(examination.sentence),
        allowance={} if suggestion is None else suggestion.keys,
    )


def _write(
    out: Path, findings: Sequence[Finding], loaded: Loaded, today: date, *, force: bool
) -> None:
    from observant_host.config.suggest import init_file

    imports = [_shown_path(path, out.parent) for path in loaded.files]
    text = init_file(findings, imports=imports, today=today)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        if isinstance(error, FileExistsError) and out.exists():
            raise _exists_already(out) from None
        raise _cannot_be_written(out, error.strerror) from None


def _shown_path(path: Path, folder: Path) -> str:
    """Relative to `folder` where the file lies below it, else absolute."""
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _document(out: Path, findings: Sequence[Finding]) -> dict[str, Any]:
    return {
        "file": str(out),
        "servers": [
            {
                "name": one.name,
                "era": one.era,
                "version": one.version,
                "tools": one.tools,
                "start_s": round(one.start_s, 3),
                "detail": one.detail,
            }
            for one in findings
        ],
    }


def _show_findings(screen: Screen, findings: Sequence[Finding]) -> None:
    rows = [
        (
            one.name,
            one.era,
            one.version or "-",
            one.tools if one.era != "unknown" else "-",
            f"{one.start_s:.1f} s" if one.start_s else "-",
            _note(one),
        )
        for one in findings
    ]
    screen.table(("server", "era", "version", "tools", "start", "note"), rows, fold="note")
    for one in findings:
        if one.era == "unknown" and not one.disabled:
            screen.answer(f"{one.name}: {one.detail}")


def _note(finding: Finding) -> str:
    if finding.era == "legacy":
        return "allowed in the new file, for this command, until a date"
    if finding.era != "unknown":
        return ""
    return "disabled in the imported file" if finding.disabled else "see below"
