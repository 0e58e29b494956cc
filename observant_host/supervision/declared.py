"""A server declared in code, by the keys of a `[servers.NAME]` table."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.config import (
    EraPolicy,
    HttpServer,
    RestartPolicy,
    ServerConfig,
    StdioServer,
    Timing,
    ToolFilter,
    fingerprint,
)
from observant_host.config.given import read_given
from observant_host.config.keys import SERVER
from observant_host.config.servers import HTTP_IN_FLIGHT, SSE_WITHOUT_ALLOWANCE
from observant_host.errors import ConfigError
from observant_host.wire import revisions

if TYPE_CHECKING:
    from observant_host.config import HostConfig

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
GROUPS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "era": EraPolicy,
    "timing": Timing,
    "restarts": RestartPolicy,
}
"""Keys of a server's table that live in a group of ServerConfig."""

_OWN: Final = frozenset(
    name
    for name in ServerConfig.__struct_fields__
    if name not in {*GROUPS, "name", "launch", "fingerprint", "problem"}
)


def declare(
    name: str,
    launch: StdioServer | HttpServer,
    *,
    allow_legacy: bool | Sequence[str],
    keys: Mapping[str, Any],
) -> ServerConfig:
    """Raises ConfigError with every problem at once; `True` allows every revision we support."""
    problems = [] if NAME.fullmatch(name) else [f"server name {name!r} must match {NAME.pattern}"]
    grouped: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    own: dict[str, Any] = {}
    for key, value in keys.items():
        place = _place(key)
        if place is None:
            problems.append(_unknown(name, key))
        elif value is not None:
            into = own if place == "" else grouped[place]
            into[key] = _read(name, key, value, problems)
    grouped["era"]["allow_legacy"] = _revisions(name, allow_legacy, problems)
    if isinstance(launch, HttpServer):
        own.setdefault("max_in_flight", HTTP_IN_FLIGHT)
        problems.extend(_without_allowance(name, launch, grouped["era"]["allow_legacy"]))
    if problems:
        raise ConfigError(problems)
    return _converted(name, launch, {**own, **grouped})


def _read(name: str, key: str, value: Any, problems: list[str]) -> Any:
    given = msgspec.to_builtins(value) if isinstance(value, ToolFilter) else value
    return read_given(f"servers.{name}.{key}", SERVER.keys.get(key), given, problems)


def _place(key: str) -> str | None:
    if key in _OWN:
        return ""
    return next((group for group, kind in GROUPS.items() if key in kind.__struct_fields__), None)


def _unknown(name: str, key: str) -> str:
    known = sorted({*_OWN, *(f for kind in GROUPS.values() for f in kind.__struct_fields__)})
    near = difflib.get_close_matches(key, known, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else f"; allowed: {', '.join(known)}"
    return f"servers.{name}: unknown key {key!r}{meant}"


def _revisions(name: str, allowed: bool | Sequence[str], problems: list[str]) -> tuple[str, ...]:
    if isinstance(allowed, bool):
        return revisions.LEGACY if allowed else ()
    problems.extend(
        f"servers.{name}.allow_legacy: {revision!r} is no legacy revision; "
        f"allowed: {', '.join(revisions.LEGACY)}"
        for revision in allowed
        if revision not in revisions.LEGACY
    )
    return tuple(allowed)


def _without_allowance(name: str, launch: HttpServer, allowed: Sequence[str]) -> list[str]:
    if launch.transport != "sse" or allowed:
        return []
    return [f"servers.{name} {SSE_WITHOUT_ALLOWANCE}"]


def _converted(
    name: str, launch: StdioServer | HttpServer, fields: Mapping[str, Any]
) -> ServerConfig:
    plain = {"name": name, "launch": None, "fingerprint": fingerprint(launch), **fields}
    return msgspec.structs.replace(msgspec.convert(plain, ServerConfig), launch=launch)


def secrets_of(config: HostConfig | Sequence[ServerConfig]) -> tuple[str, ...]:
    """Values that must never be shown: those of `env` and `headers`."""
    servers = config if isinstance(config, Sequence) else config.servers
    found: list[str] = []
    for server in servers:
        match server.launch:
            case StdioServer(env=env):
                found.extend(env.values())
            case HttpServer(headers=headers):
                found.extend(headers.values())
            case None:
                pass
    return tuple(found)
