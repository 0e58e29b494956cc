"""One `[servers.NAME]` table: from typed values to a ServerConfig, with what is wrong in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from observant_host.config import keys
from observant_host.config.fingerprint import fingerprint
from observant_host.config.model import (
    EraPolicy,
    HttpServer,
    RestartPolicy,
    ServerConfig,
    StdioServer,
    Timing,
    ToolFilter,
)
from observant_host.config.origin import KeyPath, Leaf

HTTP_IN_FLIGHT: Final = 64
"""An HTTP server answers in parallel; a child process reads one pipe (16)."""


SSE_WITHOUT_ALLOWANCE: Final = (
    'has `transport = "sse"` without `allow_legacy`: HTTP+SSE is the transport of '
    "revision 2024-11-05, so it needs both keys; add "
    'allow_legacy = ["2024-11-05"], or leave `transport` out'
)


def for_a_look(server: ServerConfig) -> ServerConfig:
    """The same for a person's own look at it, which needs no standing allowance: a server that
    only that keeps off is on."""
    lacking = server.problem == f"servers.{server.name} {SSE_WITHOUT_ALLOWANCE}"
    return msgspec.structs.replace(server, problem=None) if lacking else server


class Written(msgspec.Struct, frozen=True):
    """`values` are typed and expanded, `leaves` as written. `imported`: another client's file named
    it; `off` is a problem found before."""

    name: str
    values: Mapping[str, Any]
    leaves: Mapping[KeyPath, Leaf]
    imported: bool = False
    off: str | None = None


class Made(msgspec.Struct, frozen=True):
    """`problems` stop the start (a strict file's mistakes); a foreign file's cost one server.

    `defaults`: the values of keys that nobody wrote, for `config show`.
    """

    config: ServerConfig
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = {}


def server_config(written: Written) -> Made:
    """One server's configuration. Never raises: what is wrong is said in the answer."""
    values, foreign = dict(written.values), _is_foreign(written)
    conflicts = [f"servers.{written.name} {sentence}" for sentence in _conflicts(written)]
    misplaced = list(_misplaced(written))
    off = written.off or (conflicts[0] if conflicts and foreign else None)
    launch = _launch(values)
    limits = {key: values[key] for key in keys.LIMITS if key in values}
    if isinstance(launch, HttpServer):
        limits.setdefault("max_in_flight", HTTP_IN_FLIGHT)
    config = ServerConfig(
        name=written.name,
        launch=launch,
        fingerprint=fingerprint(_unexpanded(written)),
        era=EraPolicy(**_some(values, keys.ERA)),
        timing=Timing(**_some(values, keys.TIMING)),
        restarts=RestartPolicy(**_some(values, keys.RESTARTS)),
        tools=ToolFilter(**values.get("tools", {})),
        problem=off,
        **_some(values, set(keys.BOTH) - {"tools"}),
        **limits,
    )
    return Made(
        config=config,
        problems=() if foreign or written.off else (*conflicts, *misplaced),
        warnings=tuple(misplaced) if foreign else (),
        defaults=_defaults(config),
    )


def _some(values: Mapping[str, Any], wanted: Any) -> dict[str, Any]:
    return {key: values[key] for key in values if key in wanted}


def _is_foreign(written: Written) -> bool:
    """True where another client's file is to blame: it names the server, and our own file says
    nothing of how it is started."""
    kinds = {leaf.origin.kind for path, leaf in written.leaves.items() if path[0] in _LAUNCHES}
    return written.imported and "file" not in kinds


_LAUNCHES: Final = ("command", "url", "transport")


def _has(written: Written, key: str) -> bool:
    return any(path[0] == key for path in written.leaves)


def _conflicts(written: Written) -> Iterator[str]:
    has_command, has_url = _has(written, "command"), _has(written, "url")
    if has_command and has_url:
        yield "has both `command` and `url`; keep one of them"
    if not has_command and not has_url:
        yield "has neither `command` nor `url`; give it one of them" + (
            ""
            if written.imported
            else ", or correct the name: no imported file has a server of that name"
        )
    if written.values.get("transport") == "sse" and not written.values.get("allow_legacy"):
        yield SSE_WITHOUT_ALLOWANCE


def _misplaced(written: Written) -> Iterator[str]:
    """Keys of the other transport."""
    has_command, has_url = _has(written, "command"), _has(written, "url")
    if has_command == has_url:
        return
    wrong = keys.HTTP if has_command else keys.STDIO
    found = [key for key in wrong if _has(written, key)]
    if found:
        kind = "HTTP servers" if has_command else "servers with a `command`"
        listed = ", ".join(found)
        yield f"servers.{written.name} has {listed}, which belongs to {kind} and does nothing here"


def _launch(values: Mapping[str, Any]) -> StdioServer | HttpServer | None:
    if "command" in values:
        return StdioServer(
            command=(*values["command"], *values.get("args", ())),
            env=values.get("env", {}),
            **_some(values, ("env_inherit", "cwd")),
        )
    if "url" in values:
        return HttpServer(**_some(values, keys.HTTP))
    return None


def _unexpanded(written: Written) -> StdioServer | HttpServer | None:
    """The launch as it is written, for the fingerprint: rotating a secret changes nothing."""

    def raw(key: str) -> Any:
        leaf = written.leaves.get((key,))
        return None if leaf is None else leaf.raw

    def words(value: Any) -> tuple[str, ...]:
        listed = value if isinstance(value, list) else [] if value is None else [value]
        return tuple(str(word) for word in listed)

    if _has(written, "command"):
        return StdioServer(
            command=(*words(raw("command")), *words(raw("args"))),
            env={path[1]: "" for path in written.leaves if path[0] == "env"},
            env_inherit=words(raw("env_inherit")),
            cwd=None if raw("cwd") is None else str(raw("cwd")),
        )
    if _has(written, "url"):
        return HttpServer(url=str(raw("url")))
    return None


def _defaults(config: ServerConfig) -> dict[str, Any]:
    """Every key of the table with its effective value (those of the launch only if set)."""
    parts = (config, config.era, config.timing, config.restarts)
    own = set(keys.BOTH) | set(keys.ERA) | set(keys.DEFAULTS)
    return {
        key: getattr(part, key)
        for part in parts
        for key in part.__struct_fields__
        if key in own - {"tools"}
    }
