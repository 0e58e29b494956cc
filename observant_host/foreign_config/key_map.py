"""The map itself: each key of another client's server, and what it becomes here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from observant_host.config.origin import KeyPath
from observant_host.config.values import type_name
from observant_host.errors import ConfigError

Converted = Iterator[tuple[KeyPath, Any]]


class NotAvailableError(Exception):
    """This server asks for something that is not available here; `str()` says what and the fix."""


class Here(msgspec.Struct, frozen=True):
    """The key has a meaning here: `convert` gives our keys and raw values."""

    convert: Callable[[Any], Converted]


class Pointless(msgspec.Struct, frozen=True):
    """The key is known and has no meaning here (one notice a file)."""


class Nowhere(msgspec.Struct, frozen=True):
    """The key asks for what is not available here: that server is off, with the reason."""

    why: str


Meaning = Here | Pointless | Nowhere


def _to(*path: str) -> Here:
    def convert(raw: Any) -> Converted:
        yield path, raw

    return Here(convert)


def _negated(raw: Any) -> Converted:
    yield ("enabled",), (not raw if isinstance(raw, bool) else raw)


_OPENCODE: Final = re.compile(r"(?<!\$)\{((?:env|file):[^{}]+)\}")


def _plain(raw: Any) -> str:
    """JSON's numbers and booleans as the text that other clients pass on; opencode's `{env:X}` and
    `{file:X}` as references of ours."""
    match raw:
        case str():
            return _OPENCODE.sub(r"${\1}", raw)
        case bool():
            return "true" if raw else "false"
        case int() | float():
            return str(raw)
        case _:
            raise NotAvailableError(f"holds {type_name(raw)}; expected text")


def _args(raw: Any) -> Converted:
    if not isinstance(raw, list):
        raise NotAvailableError(f"is {type_name(raw)}; expected a list of texts")
    yield ("args",), [_plain(item) for item in raw]


def _mapping(key: str) -> Here:
    def convert(raw: Any) -> Converted:
        if raw is None:
            return
        if not isinstance(raw, dict):
            raise NotAvailableError(f"is {type_name(raw)}; expected an object")
        for name, value in raw.items():
            if value is not None:
                yield (key, name), _plain(value)

    return Here(convert)


def _command(raw: Any) -> Converted:
    """A program; opencode's whole argv; Zed's older `{path, args, env}`."""
    if isinstance(raw, dict):
        yield ("command",), raw.get("path")
        yield from _args(raw.get("args") or [])
        yield from ENV.convert(raw.get("env"))
    elif isinstance(raw, list):
        yield ("command",), [_plain(item) for item in raw]
    else:
        yield ("command",), raw


_STDIO_WORDS: Final = frozenset({"stdio", "local", "builtin"})
_HTTP_WORDS: Final = frozenset(
    {"http", "streamable-http", "streamablehttp", "streamable_http", "remote"}
)


def _transport(raw: Any) -> Converted:
    word = raw.lower() if isinstance(raw, str) else ""
    if word in _STDIO_WORDS:
        return
    if word in _HTTP_WORDS:
        yield ("transport",), "http" if word != "remote" else "auto"
    elif word in ("sse", "auto"):
        yield ("transport",), word
    else:
        raise NotAvailableError('is no transport known here; known are "stdio", "http" and "sse"')


MILLISECONDS_FROM: Final = 1000
"""Some clients count `timeout` in seconds, others in milliseconds; nobody waits 1,000 s for one
call or 1 s in milliseconds, so the size tells."""


def _timeout(raw: Any) -> Converted:
    is_number = isinstance(raw, (int, float)) and not isinstance(raw, bool)
    if is_number and raw <= 0:
        return
    yield ("call_timeout_s",), raw / 1000 if is_number and raw >= MILLISECONDS_FROM else raw


def _tools(raw: Any) -> Converted:
    """A list of allowed tools (`["*"]`: all); our own `{allow, deny}`; else per-tool settings."""
    if isinstance(raw, list):
        if "*" not in raw:
            yield ("tools", "allow"), raw
    elif isinstance(raw, dict):
        for key in ("allow", "deny"):
            if key in raw:
                yield ("tools", key), raw[key]


def _shell_headers(raw: Any) -> Converted:
    """Claude Code's `headersHelper` is one line for a shell."""
    yield ("headers_command",), ["sh", "-c", raw] if isinstance(raw, str) else raw


def _request_options(raw: Any) -> Converted:
    """Continue keeps headers one level down."""
    if isinstance(raw, dict) and "headers" in raw:
        yield from _mapping("headers").convert(raw["headers"])


def _nested_transport(raw: Any) -> Converted:
    """`transport` as a word, or Continue's whole `{type, command, args}`."""
    if not isinstance(raw, dict):
        yield from _transport(raw)
        return
    for key, value in raw.items():
        meaning = KEY_MAP.get(key)
        if isinstance(meaning, Here) and key != "transport":
            yield from meaning.convert(value)


def _source(raw: Any) -> Converted:
    if raw == "extension":
        raise NotAvailableError(
            "the server comes with an extension of the editor, which is not available here; "
            "give its command in a [servers.NAME] table"
        )
    yield from ()


ENV: Final = _mapping("env")
_NO_OAUTH: Final = Nowhere(
    "signing in by OAuth is not available here; give a token under `headers`, "
    'as `Authorization = "Bearer ${VAR}"`'
)
_NO_SANDBOX: Final = Nowhere(
    "the client would start it in a sandbox, which is not available here; "
    "start it through a sandboxing command, or set the key to false"
)

KEY_MAP: Final[Mapping[str, Meaning]] = {
    "command": Here(_command),
    "args": Here(_args),
    "env": ENV,
    "environment": ENV,
    "envFile": _to("env_file"),
    "cwd": _to("cwd"),
    "workingDirectory": _to("cwd"),
    "url": _to("url"),
    "serverUrl": _to("url"),
    "serverURL": _to("url"),
    "httpUrl": _to("url"),
    "uri": _to("url"),
    "headers": _mapping("headers"),
    "http_headers": _mapping("headers"),
    "headersHelper": Here(_shell_headers),
    "requestOptions": Here(_request_options),
    "type": Here(_transport),
    "transport": Here(_nested_transport),
    "transportType": Here(_transport),
    "disabled": Here(_negated),
    "enabled": _to("enabled"),
    "isActive": _to("enabled"),
    "timeout": Here(_timeout),
    "tools": Here(_tools),
    "includeTools": _to("tools", "allow"),
    "enabledTools": _to("tools", "allow"),
    "excludeTools": _to("tools", "deny"),
    "disabledTools": _to("tools", "deny"),
    "source": Here(_source),
    "oauth": _NO_OAUTH,
    "auth": _NO_OAUTH,
    "authProviderType": _NO_OAUTH,
    "targetAudience": _NO_OAUTH,
    "targetServiceAccount": _NO_OAUTH,
    "sandboxEnabled": _NO_SANDBOX,
    **dict.fromkeys(
        (
            "name",
            "title",
            "description",
            "icon",
            "iconUrl",
            "logo",
            "logoUrl",
            "tags",
            "category",
            "notes",
            "version",
            "provider",
            "gallery",
            "id",
            "author",
            "homepage",
            "autoApprove",
            "alwaysAllow",
            "alwaysAllowTools",
            "trust",
            "toolsSettings",
            "dev",
            "settings",
            "watchPaths",
            "instructions",
            "priority",
            "autoStart",
            "startOnLaunch",
            "fromGalleryId",
            "defaultToolsApprovalMode",
            "networkTimeout",
        ),
        Pointless(),
    ),
}
"""Each key of a server in another client's file. What is not listed is a warning."""

_TABLES: Final[Sequence[KeyPath]] = (
    ("mcpServers",),
    ("servers",),
    ("context_servers",),
    ("mcp", "servers"),
    ("mcp",),
    ("amp.mcpServers",),
    ("experimental", "modelContextProtocolServers"),
)
"""Where clients keep their servers."""

_NO_SERVERS: Final = (
    "holds no servers: expected a table `mcpServers`, `servers` or `context_servers`"
)


def server_tables(tree: Any, name: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The tables of servers in a file, and notices. Raises ConfigError where there are none."""
    if not isinstance(tree, dict):
        raise ConfigError([f"{name}: is {type_name(tree)}; expected an object with `mcpServers`"])
    found = [table for path in _TABLES if (table := _table_at(tree, path)) is not None]
    if not found and tree and all(_looks_like_server(entry) for entry in tree.values()):
        found = [tree]
    if not found:
        raise ConfigError([f"{name}: {_NO_SERVERS}"])
    return found, list(_of_projects(tree, name))


def _table_at(tree: dict[str, Any], path: KeyPath) -> dict[str, Any] | None:
    node: Any = tree
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    if isinstance(node, list):
        named = [entry for entry in node if isinstance(entry, dict)]
        return {str(e.get("name", f"server-{i}")): e for i, e in enumerate(named, start=1)}
    if not isinstance(node, dict):
        return None
    if path == ("mcp",):
        servers = {k: v for k, v in node.items() if _looks_like_server(v)}
        return servers or None
    return node


def _looks_like_server(entry: Any) -> bool:
    return isinstance(entry, dict) and any(
        key in entry for key in ("command", "url", "serverUrl", "httpUrl")
    )


def _of_projects(tree: dict[str, Any], name: str) -> Iterator[str]:
    """Claude Code keeps servers of single projects in the user's file."""
    projects = tree.get("projects")
    if not isinstance(projects, dict):
        return
    tables = [p.get("mcpServers") for p in projects.values() if isinstance(p, dict)]
    count = sum(len(table) for table in tables if isinstance(table, dict))
    if count:
        yield (
            f"{name}: {count} more server{'s' if count > 1 else ''} under `projects` are not read; "
            "they belong to single projects"
        )
