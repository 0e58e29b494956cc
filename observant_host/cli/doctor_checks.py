"""What `doctor` makes of the facts it found: pure, so that every verdict can be tested."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

import msgspec

from observant_host.config import HostConfig, HttpServer, StdioServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from observant_host.config import ServerConfig

Result = Literal["ok", "hint", "warning", "failed"]


class Check(msgspec.Struct, frozen=True):
    """One thing that was checked. `fix` says what to do where `result` is not "ok"."""

    result: Result
    check: str
    finding: str
    server: str | None = None
    fix: str = ""


class Tool(msgspec.Struct, frozen=True):
    """One program: where it was found (None: nowhere), and what `--version` printed."""

    path: str | None
    version: str = ""


class Folder(msgspec.Struct, frozen=True):
    """The state folder: `mode` are its permission bits, None where it does not exist yet.

    `writable`: it, or the nearest folder above it that exists. `holder`: who holds the instance
    lock ("" nobody).
    """

    path: str
    writable: bool
    mode: int | None = None
    holder: str = ""


class Url(msgspec.Struct, frozen=True):
    """What was found of one server behind a URL: why its host takes no connection ("": it does, or
    a proxy stands between), why its `ca_bundle` cannot be used, the program of its
    `headers_command` that is not found."""

    unreachable: str = ""
    ca_problem: str = ""
    missing_program: str = ""


class Facts(msgspec.Struct, frozen=True):
    """What was found on this machine. `tools` and `urls` are by server; `unreachable` says why the
    OTLP endpoint cannot be reached (None: it can, or there is none)."""

    config: HostConfig
    tools: Mapping[str, Tool]
    missing_cwd: frozenset[str]
    state: Folder
    descriptors: tuple[int, int]
    today: date
    variables: Mapping[str, str] = {}
    otlp_endpoint: str | None = None
    unreachable: str | None = None
    warnings: tuple[str, ...] = ()
    urls: Mapping[str, Url] = {}


DESCRIPTORS_EACH: Final = 6
"""Three pipes, a pidfd, and two while a process is being replaced."""
DESCRIPTORS_OURS: Final = 128
"""Listeners, their connections, the record and the libraries."""
OLDEST_NODE: Final = 18
"""Older ones cannot start today's servers: their packages say so in `engines`."""
SOON: Final = timedelta(days=14)
"""An allowance that ends within this time is worth a word."""
BUILT: Final = date(2026, 11, 1)
"""No correct clock shows an earlier day to this version."""

HOW_TO_GET: Final[Mapping[str, str]] = {
    "npx": "install Node.js (https://nodejs.org)",
    "node": "install Node.js (https://nodejs.org)",
    "uvx": "install uv (https://docs.astral.sh/uv)",
    "uv": "install uv (https://docs.astral.sh/uv)",
    "bunx": "install Bun (https://bun.sh)",
    "docker": "install Docker, or start its service",
    "cmd": "this command line is for Windows; leave out `cmd /c`",
}
STDIO_WORDS: Final[Mapping[str, str]] = {
    "docling-mcp": "--transport stdio",
    "docling-mcp-server": "--transport stdio",
    "@modelcontextprotocol/server-pdf": "--stdio",
}
"""Servers that speak HTTP unless told otherwise: on pipes they are silent for ever."""


def all_checks(facts: Facts) -> list[Check]:
    """Everything that can be said about a configuration that could be read."""
    checks = [Check("warning", "config", text) for text in facts.warnings]
    checks += _state(facts.state)
    checks += _descriptors(facts)
    checks += _clock(facts)
    checks += _otlp(facts)
    for server in facts.config.servers:
        if server.enabled:
            checks += _server(server, facts)
    return checks


def _server(server: ServerConfig, facts: Facts) -> Iterator[Check]:
    if server.problem is not None:
        fix = "mend what the sentence names, then run doctor again"
        yield Check("failed", "config", server.problem, server.name, fix)
        return
    if isinstance(server.launch, StdioServer):
        yield from _command(server, server.launch, facts)
        yield from _package(server.name, server.launch.command)
        yield from _inherited(server.name, server.launch, facts.variables)
    elif isinstance(server.launch, HttpServer):
        yield from _url(server.name, server.launch, facts.urls.get(server.name, Url()))
    yield from _allowance(server, facts.today)


def _command(server: ServerConfig, launch: StdioServer, facts: Facts) -> Iterator[Check]:
    program = launch.command[0]
    tool = facts.tools.get(server.name, Tool(None))
    name = program.rpartition("/")[2]
    if server.name in facts.missing_cwd:
        fix = "make the folder, or correct `cwd`"
        yield Check("failed", "cwd", f"the folder {launch.cwd} is not there", server.name, fix)
    if tool.path is None:
        fix = HOW_TO_GET.get(name, "install it, or give its full path as `command`")
        if " " in program.strip():
            fix = "`command` is one program; put what follows it into `args`"
        yield Check("failed", "command", f"{program} is not found", server.name, fix)
        return
    version = tool.version.strip()
    found = f"{program} is {tool.path}" + (f" ({version})" if version else "")
    major = re.match(r"v?(\d+)\.", version)
    if name in ("npx", "node") and major and int(major[1]) < OLDEST_NODE:
        fix = f"install Node.js {OLDEST_NODE} or later"
        yield Check("warning", "command", f"{found}: too old", server.name, fix)
    else:
        yield Check("ok", "command", found, server.name)


def package_of(command: Sequence[str]) -> str | None:
    """The package that `npx` or `uvx` would fetch, with its version if one is given."""
    name = command[0].rpartition("/")[2]
    words = list(command[1:])
    if name == "uv" and words[:2] == ["tool", "run"]:
        name, words = "uvx", words[2:]
    if name not in ("npx", "bunx", "uvx"):
        return None
    while words:
        word = words.pop(0)
        if word in ("--from", "--package", "-p"):
            return words[0] if words else None
        if word in ("--with", "--python", "--index", "--index-url", "--registry", "--cache"):
            words = words[1:]
        elif not word.startswith("-"):
            return word
    return None


def _package(server: str, command: Sequence[str]) -> Iterator[Check]:
    package = package_of(command)
    if package is None:
        return
    bare = re.split(r"(?<=.)@|==|>=|<=|~=|[<>\[]", package)[0]
    if bare in STDIO_WORDS and not any("stdio" in word for word in command):
        yield Check(
            "warning",
            "package",
            f"{bare} speaks HTTP unless told otherwise, and is silent on its pipes",
            server,
            f"add {STDIO_WORDS[bare]} to `args`",
        )
    pinned = bare != package and not package.endswith("@latest")
    if not pinned and "://" not in package:
        yield Check(
            "hint",
            "package",
            f"{package} is not pinned: its next release may answer otherwise",
            server,
            f"name a version, as {bare}{'==' if 'uv' in command[0] else '@'}X.Y.Z",
        )


def _inherited(server: str, launch: StdioServer, variables: Mapping[str, str]) -> Iterator[Check]:
    unset = [n for n in launch.env_inherit if "*" not in n and n not in variables]
    if unset:
        text = f"env_inherit names variables that are not set here: {', '.join(unset)}"
        yield Check("warning", "environment", text, server, "set them, or leave them out")


LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def _url(server: str, launch: HttpServer, found: Url) -> Iterator[Check]:
    parts = urlsplit(launch.url)
    port = f":{parts.port}" if parts.port else ""
    place = f"{parts.scheme}://{parts.hostname}{port}"
    if parts.scheme == "http" and parts.hostname not in LOOPBACK and launch.headers:
        text = f"{place} would get its headers unencrypted"
        yield Check("warning", "url", text, server, "use https")
    else:
        yield Check("ok", "url", place, server)
    if found.unreachable:
        text = f"{place} takes no connection: {found.unreachable}"
        yield Check("failed", "connect", text, server, "start it, or correct `url`")
    if found.ca_problem:
        text = f"`ca_bundle` cannot be used: {found.ca_problem}"
        yield Check("failed", "ca_bundle", text, server, "give a file of PEM certificates")
    if found.missing_program:
        text = f"headers_command: {found.missing_program} is not found"
        yield Check("failed", "headers_command", text, server, "install it, or give its full path")


def _allowance(server: ServerConfig, today: date) -> Iterator[Check]:
    era = server.era
    renew = "give a later `legacy_expires`, or take the allowance out"
    if not era.allow_legacy:
        return
    if era.expect_era == "modern":
        text = '`allow_legacy` is never used while `expect_era = "modern"` stands'
        yield Check("warning", "allowance", text, server.name, "keep one of the two")
    if era.legacy_fingerprint not in (None, server.fingerprint):
        yield Check(
            "failed",
            "allowance",
            "the server is not started as it was when the allowance was given "
            f"(fingerprint now: {server.fingerprint})",
            server.name,
            "look at what changed; then write the present one as `legacy_fingerprint`",
        )
    if era.legacy_expires is None:
        text = "the allowance has no end"
        yield Check("hint", "allowance", text, server.name, "give a `legacy_expires` date")
    elif era.legacy_expires < today:
        text = f"the allowance ended on {era.legacy_expires}"
        yield Check("failed", "allowance", text, server.name, renew)
    elif era.legacy_expires - today <= SOON:
        text = f"the allowance ends on {era.legacy_expires}"
        yield Check("warning", "allowance", text, server.name, renew)
    else:
        text = f"the allowance holds until {era.legacy_expires}"
        yield Check("ok", "allowance", text, server.name)


def _state(folder: Folder) -> Iterator[Check]:
    if not folder.writable:
        fix = "give another `state_dir`, or the right to write there"
        yield Check("failed", "state", f"{folder.path} cannot be written", None, fix)
    elif folder.mode is not None and folder.mode & 0o077:
        fix = f"chmod 700 {folder.path} (the host does so when it starts)"
        yield Check("warning", "state", f"others can read {folder.path}", None, fix)
    else:
        yield Check("ok", "state", f"{folder.path} is private and can be written")
    if folder.holder:
        yield Check("ok", "instance", f"a host is running there (pid {folder.holder})")
    else:
        yield Check("ok", "instance", "no host is running there")


def _descriptors(facts: Facts) -> Iterator[Check]:
    count = sum(isinstance(one.launch, StdioServer) for one in facts.config.servers if one.enabled)
    needed = DESCRIPTORS_OURS + DESCRIPTORS_EACH * count
    soft, hard = facts.descriptors
    said = f"{count} servers need about {needed} open files; allowed are {soft}"
    if needed > hard:
        fix = f"raise the limit: ulimit -Hn {needed} (systemd: LimitNOFILE={needed})"
        yield Check("failed", "open files", f"{said}, at most {hard}", None, fix)
    elif needed > soft:
        yield Check("ok", "open files", f"{said}, which `run` raises to {hard}")
    else:
        yield Check("ok", "open files", said)


def _clock(facts: Facts) -> Iterator[Check]:
    if facts.today < BUILT:
        text = f"the clock says {facts.today}, before this version was built"
        fix = "set the clock: allowances and certificates are judged by it"
        yield Check("failed", "clock", text, None, fix)
    else:
        yield Check("ok", "clock", f"it is {facts.today} (UTC)")


def _otlp(facts: Facts) -> Iterator[Check]:
    endpoint = facts.otlp_endpoint
    if endpoint is None:
        return
    try:
        parts = urlsplit(endpoint)
        port = parts.port or 4318
    except ValueError:
        text = "the endpoint for spans is no URL"
        yield Check("failed", "otlp", text, None, 'write it as "http://HOST:4318"')
        return
    place = f"{parts.scheme}://{parts.hostname}:{port}"
    if port == 4317:
        text = f"{place} is the port for gRPC; spans are sent over HTTP"
        yield Check("failed", "otlp", text, None, "use port 4318")
    elif facts.unreachable is not None:
        text = f"{place} cannot be reached: {facts.unreachable}"
        fix = "start the collector, or correct `otlp_endpoint`; the record works without it"
        yield Check("failed", "otlp", text, None, fix)
    else:
        yield Check("ok", "otlp", f"{place} can be reached")
