"""`doctor`: everything that can be checked before something fails, each with its fix."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from observant_host.cli.options import command, config_option, json_option, pass_screen
from observant_host.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from observant_host.cli.doctor_checks import Check, Facts, Folder, Tool
    from observant_host.cli.output import Screen
    from observant_host.config import HostConfig, ServerConfig, StdioServer
    from observant_host.config_files import Loaded, Surroundings

FAILED_EXIT: Final = 3
VERSION_S: Final = 5.0
"""A program that does not tell its version in this time is not asked again."""
CONNECT_S: Final = 2.0
INDENT: Final = 9
STYLES: Final = {"ok": "green", "hint": "cyan", "warning": "yellow", "failed": "red"}


@command(
    "doctor",
    examples=(
        ("doctor", "Check the user's own configuration and this machine."),
        ("doctor -c observant-host.toml", "Check another configuration."),
        ("doctor --json | jq '.checks[] | select(.result == \"failed\")'", "For a script."),
    ),
)
@click.option("--all", "everything", is_flag=True, help="Show also what is in order.")
@json_option
@config_option
@pass_screen
def doctor(screen: Screen, *, everything: bool, as_json: bool, config: Path | None) -> int:
    """Check everything that can be checked without starting a server, each with a fix.

    A span (`canary`) is sent through the record and to the collector, to see whether it arrives.
    A running host is asked for its metrics, which sinks of its telemetry take nothing, and how
    late its event loop is. Where no configuration is given and none lies in its place, the running
    host's file is checked. Exit code 3 if something failed.
    """
    checks = examine_machine(config)
    failed = sum(check.result == "failed" for check in checks)
    if as_json:
        screen.json({"failed": failed, "checks": checks})
    else:
        _show(screen, checks, everything=everything)
    return FAILED_EXIT if failed else 0


def examine_machine(given: Path | None) -> list[Check]:
    """Every check, the broken configuration as the only one where it cannot be read."""
    from observant_host import config_files
    from observant_host.cli.doctor_checks import Check, all_checks
    from observant_host.cli.doctor_pipeline import judge, look
    from observant_host.cli.doctor_serving import serving_problems
    from observant_host.cli.running_file import file_meant

    around = config_files.Surroundings.of_process()
    try:
        loaded = config_files.load(file_meant(given, around), around=around)
    except ConfigError as error:
        return [Check("failed", "config", text) for text in error.problems]
    checks = [
        *all_checks(gather(loaded, around)),
        *(Check("failed", "serving", text) for text in serving_problems(loaded.config)),
        *judge(look(loaded, around)),
    ]
    return [Check("ok", "config", f"{loaded.path} is valid"), *_masked(checks, loaded.secrets)]


def _masked(checks: Sequence[Check], secrets: Sequence[str]) -> list[Check]:
    """A second fence: no finding holds a configured secret, whatever a program printed."""
    import msgspec

    from observant_host.telemetry.masking import Masker

    masker = Masker(secrets)
    return [
        msgspec.structs.replace(
            check, finding=masker.text(check.finding), fix=masker.text(check.fix)
        )
        for check in checks
    ]


def _show(screen: Screen, checks: Sequence[Check], *, everything: bool) -> None:
    """Two sentences in a row of a table are a mess at any width: each check is told by itself."""
    from observant_host.decisions.words import counted

    for check in checks:
        if everything or check.result != "ok":
            where = f" {check.server}:" if check.server else ""
            said = f"{check.result:<8} {check.check}:{where} {check.finding}"
            screen.prose(said, style=STYLES[check.result], hanging=INDENT)
            if check.fix:
                screen.prose(f"{'':<{INDENT}}fix: {check.fix}", hanging=INDENT + len("fix: "))
    counts = {result: sum(check.result == result for check in checks) for result in STYLES}
    said = ", ".join(f"{count} {result}" for result, count in counts.items() if count)
    screen.answer(f"{counted(len(checks), 'check')}: {said}")


def gather(loaded: Loaded, around: Surroundings) -> Facts:
    """Look at the machine: programs, folders, limits, clock, collector. Starts no server."""
    from observant_host.cli.doctor_checks import Facts
    from observant_host.cli.doctor_urls import look_at_urls
    from observant_host.timing.clock import SystemClock

    config = loaded.config
    endpoint = _otlp_endpoint(config, around.variables)
    return Facts(
        config=config,
        tools=_tools(config.servers, around),
        missing_cwd=frozenset(
            one.name for one, launch in _local(config.servers) if not _folder_is_there(launch.cwd)
        ),
        state=_state_folder(Path(config.host.state_dir or around.folder("state"))),
        descriptors=_descriptors(),
        today=datetime.fromtimestamp(SystemClock().wall_ns() / 1e9, UTC).date(),
        variables=around.variables,
        otlp_endpoint=endpoint,
        unreachable=None if endpoint is None else _unreachable(endpoint),
        warnings=loaded.assembled.warnings,
        urls=look_at_urls([one for one in config.servers if one.enabled]),
    )


def _local(servers: Sequence[ServerConfig]) -> list[tuple[ServerConfig, StdioServer]]:
    from observant_host.config import StdioServer

    return [(one, one.launch) for one in servers if isinstance(one.launch, StdioServer)]


def _folder_is_there(cwd: str | None) -> bool:
    return cwd is None or Path(cwd).is_dir()


def _tools(servers: Sequence[ServerConfig], around: Surroundings) -> dict[str, Tool]:
    from observant_host.cli.doctor_checks import Tool

    versions: dict[str, str] = {}
    tools: dict[str, Tool] = {}
    for one, launch in _local(servers):
        found = _which(launch, around)
        if found is not None and Path(found).name in ("npx", "node", "uvx", "uv", "bunx"):
            versions.setdefault(found, _version(found, around.variables))
        tools[one.name] = Tool(found, versions.get(found or "", ""))
    return tools


def _which(launch: StdioServer, around: Surroundings) -> str | None:
    """As the child's start would find it: a path from the child's folder, a name on its PATH."""
    program = launch.command[0]
    if "/" in program:
        path = Path(launch.cwd or around.current, program)
        return str(path) if path.is_file() and os.access(path, os.X_OK) else None
    return shutil.which(program, path=launch.env.get("PATH", around.variables.get("PATH")))


def _version(program: str, variables: Mapping[str, str]) -> str:
    """`npx` tells npm's version: for it, Node's beside it is asked."""
    beside = Path(program).with_name("node")
    asked = str(beside) if Path(program).name == "npx" and beside.exists() else program
    try:
        done = subprocess.run(
            [asked, "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=dict(variables),
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return done.stdout.strip().partition("\n")[0][:60]


def _state_folder(path: Path) -> Folder:
    from observant_host.cli.doctor_checks import Folder

    if path.is_dir():
        return Folder(
            path=str(path),
            writable=os.access(path, os.W_OK | os.X_OK),
            mode=path.stat().st_mode & 0o777,
            holder=_holder(path),
        )
    above = next((folder for folder in path.parents if folder.exists()), Path("/"))
    writable = not path.exists() and above.is_dir() and os.access(above, os.W_OK | os.X_OK)
    return Folder(path=str(path), writable=writable)


def _holder(folder: Path) -> str:
    """The pid of the host that serves from this folder, "" for none: asked by its socket, because
    trying the lock would keep a host that is just starting from getting it."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(CONNECT_S)
            asking.connect(str(folder / "host.sock"))
    except OSError:
        return ""
    try:
        return (folder / "instance.lock").read_text(errors="replace").strip()[:20] or "unknown"
    except OSError:
        return "unknown"


def _descriptors() -> tuple[int, int]:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = 2**31
    return (
        endless if soft == resource.RLIM_INFINITY else soft,
        endless if hard == resource.RLIM_INFINITY else hard,
    )


def _otlp_endpoint(config: HostConfig, variables: Mapping[str, str]) -> str | None:
    for found in (
        config.telemetry.otlp_endpoint,
        variables.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        variables.get("OTEL_EXPORTER_OTLP_ENDPOINT"),
    ):
        if found:
            return found
    return None


def _unreachable(endpoint: str) -> str | None:
    """Why no connection can be made, or None."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(endpoint)
        place = (parts.hostname or "", parts.port or 4318)
        with socket.create_connection(place, timeout=CONNECT_S):
            return None
    except ValueError:
        return "it is no URL"
    except OSError as error:
        return str(error.strerror or "no answer")
