"""What a changed configuration means for a host that runs: which servers begin anew, which only
take new values, which are not touched, and what must wait for a restart of the host.

Every key stands in one of two tables, so that a new one cannot be forgotten: a test compares them
with the structs.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.config.model import HostConfig, HttpServer
from observant_host.config.shown import MASK, shown_argv, shown_text, shown_url

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from observant_host.config.model import ServerConfig


class Effect(StrEnum):
    """What a changed key of one server does."""

    LIFE = "new_life"  # its process or connection ends, and a new one begins
    ERA = "era"  # its permission is judged again
    LISTS = "lists"  # its lists are read again
    NOW = "now"  # the next call, list or restart goes by it
    NEXT_LIFE = "next_life"  # from its next start on
    SWITCH = "switch"  # it is switched on or off


class Act(StrEnum):
    """What is done with one server."""

    ADD = "add"
    REMOVE = "remove"
    ENABLE = "enable"
    DISABLE = "disable"
    RESTART = "restart"
    UPDATE = "update"
    KEEP = "keep"


SERVER_KEYS: Final[Mapping[str, Effect]] = {
    **dict.fromkeys(
        (
            *("command", "env", "env_inherit", "cwd"),
            *("url", "headers", "headers_command", "ca_bundle", "transport", "header_files"),
            *("extensions", "propagate"),  # told to the server when its life begins
            "problem",
        ),
        Effect.LIFE,
    ),
    **dict.fromkeys(
        ("allow_legacy", "legacy_expires", "legacy_fingerprint", "expect_era", "fingerprint"),
        Effect.ERA,
    ),
    "tools": Effect.LISTS,
    **dict.fromkeys(
        (
            *("required", "trust_annotations", "retry_calls", "idempotent_tools"),
            *("max_in_flight", "queue_max", "legacy_reason", "legacy_owner"),
            *("probe_timeout_s", "legacy_probe_timeout_ms", "list_timeout_s", "ack_timeout_s"),
            *("call_timeout_s", "call_max_s", "reset_timeout_on_progress", "queue_timeout_s"),
            *("restart_initial_s", "restart_max_s", "healthy_after_s", "reprobe_max_s"),
            *("silent_restart_s", "restart_above_mb"),
        ),
        Effect.NOW,
    ),
    **dict.fromkeys(("connect_timeout_s", "shutdown_timeout_s"), Effect.NEXT_LIFE),
    "enabled": Effect.SWITCH,
}
"""Every key of a server but its name, which is what it is known by."""

HOST_KEYS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(
        (
            *("host.imports", "host.collision_policy", "host.rename_grace_s"),
            "host.startup_deadline_s",  # counts from the next start of the host
            *("service.ready_when", "service.drain_delay_s", "service.drain_timeout_s"),
            "telemetry.log_level",
        ),
        True,
    ),
    **dict.fromkeys(
        (
            *("host.state_dir", "host.cache_dir", "host.max_message_bytes", "host.remember_modern"),
            *("service.listen", "service.metrics_listen", "service.admin_listen"),
            *("service.allowed_hosts", "service.allowed_origins", "service.names"),
            *("service.tls_cert", "service.tls_key", "service.jwt"),
            *("service.state_key_file", "service.relay_input"),
            *("telemetry.otlp_endpoint", "telemetry.sample_ratio", "telemetry.record"),
            *("telemetry.decisions_max_bytes", "telemetry.decisions_max_days"),
            *("telemetry.traces_max_bytes", "telemetry.traces_max_days"),
            *("telemetry.log_format", "telemetry.capture_errors", "telemetry.capture_arguments"),
            *("telemetry.audit", "tokens", "profiles"),
        ),
        False,
    ),
}
"""Every key of the host's own tables: True takes effect at once, False with its next start."""


class Change(msgspec.Struct, frozen=True):
    """One key; values as a person may see them, None where it is not set."""

    key: str
    before: Any
    after: Any
    effect: str

    def __str__(self) -> str:
        return f"{self.key}: {_said(self.before)} -> {_said(self.after)}"


class ServerPlan(msgspec.Struct, frozen=True):
    """`changes` say why; `effects` of all of them together."""

    name: str
    act: Act
    changes: tuple[Change, ...] = ()

    @property
    def effects(self) -> frozenset[str]:
        return frozenset(change.effect for change in self.changes)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`servers` in the new order, those that go at the end. `host` are changes that take effect,
    `waiting` those that need a restart of the host and are not applied."""

    servers: tuple[ServerPlan, ...] = ()
    order_changed: bool = False
    host: tuple[Change, ...] = ()
    waiting: tuple[Change, ...] = ()

    @property
    def changes_something(self) -> bool:
        """False where the host goes on exactly as before."""
        acts = any(server.act is not Act.KEEP for server in self.servers)
        return acts or self.order_changed or bool(self.host)

    def named(self, *acts: Act) -> tuple[str, ...]:
        """The servers with one of these acts."""
        return tuple(server.name for server in self.servers if server.act in acts)

    def to_dict(self) -> dict[str, Any]:
        """For `reload --json`."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built

    def sentences(self) -> tuple[str, ...]:
        """One line a change for a person; the servers that are kept in one line at the end."""
        return tuple(_sentences(self))

    def summary(self) -> str:
        """One line, for the log and the record: names and keys, no values."""
        parts = [
            f"{act} "
            + ", ".join(_with_keys(server) for server in self.servers if server.act is act)
            for act in Act
            if act is not Act.KEEP and self.named(act)
        ]
        parts += [f"set {change.key}" for change in self.host]
        parts += ["new order of servers"] if self.order_changed else []
        parts.append(f"keep {len(self.named(Act.KEEP))}")
        parts += [f"needs a restart of the host: {change.key}" for change in self.waiting]
        return "; ".join(parts)


Clean = Callable[[str], str]


def plan(old: HostConfig, new: HostConfig, *, clean: Clean = str) -> Plan:
    """What leads from one effective configuration to another. `clean` masks what is a secret
    only because it came in by a reference."""
    before = {server.name: server for server in old.servers}
    after = {server.name: server for server in new.servers}
    coming = [_server_plan(before.get(name), server, clean) for name, server in after.items()]
    going = [ServerPlan(name, Act.REMOVE) for name in before if name not in after]
    changed = list(_host_changes(old, new, clean))
    return Plan(
        servers=(*coming, *going),
        order_changed=_kept(before, after) != _kept(after, before),
        host=tuple(change for change in changed if HOST_KEYS[change.key]),
        waiting=tuple(change for change in changed if not HOST_KEYS[change.key]),
    )


def in_force(old: HostConfig, new: HostConfig) -> HostConfig:
    """`new`, but for the keys that need a restart of the host: those are as they were."""
    tables = {
        name: msgspec.structs.replace(
            getattr(new, name),
            **{
                key: getattr(getattr(old, name), key)
                for key in getattr(old, name).__struct_fields__
                if not HOST_KEYS[f"{name}.{key}"]
            },
        )
        for name in ("host", "service", "telemetry")
    }
    return HostConfig(servers=new.servers, tokens=old.tokens, profiles=old.profiles, **tables)


def _kept(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """The names of `one` that are in `other` too, in the order of `one`."""
    return [name for name in one if name in other]


def _server_plan(old: ServerConfig | None, new: ServerConfig, clean: Clean) -> ServerPlan:
    if old is None:
        return ServerPlan(new.name, Act.ADD)
    changes = tuple(_changes(leaves(old), leaves(new), clean))
    return ServerPlan(new.name, _act(new, {change.effect for change in changes}), changes)


def _act(new: ServerConfig, effects: set[str]) -> Act:
    if not effects:
        return Act.KEEP
    if Effect.SWITCH in effects:
        return Act.ENABLE if new.enabled else Act.DISABLE
    # a server that is switched off has no life that could end
    return Act.RESTART if Effect.LIFE in effects and new.enabled else Act.UPDATE


def leaves(server: ServerConfig) -> dict[str, Any]:
    """Every key of SERVER_KEYS that this server has, nested tables dissolved."""
    found = dict(_dissolved(server))
    if isinstance(server.launch, HttpServer):
        # what a file gives is read again by itself: only which file, is configuration
        files = server.launch.header_files
        found["headers"] = {k: v for k, v in server.launch.headers.items() if k not in files}
    found.pop("name")
    return found


def _dissolved(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for key in struct.__struct_fields__:
        value = getattr(struct, key)
        if isinstance(value, msgspec.Struct) and key != "tools":
            yield from _dissolved(value)
        elif key != "launch":
            yield key, value


def _changes(old: Mapping[str, Any], new: Mapping[str, Any], clean: Clean) -> Iterator[Change]:
    for key in dict.fromkeys((*old, *new)):
        before, after = old.get(key), new.get(key)
        if before == after or (before in _UNSET and after in _UNSET):
            continue
        if isinstance(before or after, dict):
            yield from _named_changes(key, before or {}, after or {})
        else:
            yield Change(
                key,
                _cleaned(_shown(key, before), clean),
                _cleaned(_shown(key, after), clean),
                SERVER_KEYS[key],
            )


_UNSET: Final[tuple[Any, ...]] = (None, ())
"""What a key of the other transport is, where the transport changes."""


def _named_changes(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Of `env` and headers: their names, never their values."""
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            before = MASK if name in old else None
            after = MASK if name in new else None
            yield Change(f"{key}.{name}", before, after, SERVER_KEYS[key])


def _host_changes(old: HostConfig, new: HostConfig, clean: Clean) -> Iterator[Change]:
    for table in ("host", "service", "telemetry"):
        before, after = getattr(old, table), getattr(new, table)
        for key in before.__struct_fields__:
            was, now = getattr(before, key), getattr(after, key)
            if was != now:
                before_said, after_said = _shown(key, was), _shown(key, now)
                yield _host_change(
                    f"{table}.{key}", _cleaned(before_said, clean), _cleaned(after_said, clean)
                )
    for table in ("tokens", "profiles"):
        was, now = getattr(old, table), getattr(new, table)
        if was != now:
            yield _host_change(table, sorted(was), sorted(now))


def _host_change(key: str, before: Any, after: Any) -> Change:
    return Change(key, before, after, Effect.NOW if HOST_KEYS[key] else "restart_of_the_host")


def _shown(key: str, value: Any) -> Any:
    match key, value:
        case (("command" | "headers_command"), [*words]):
            return shown_argv(words)
        case "url" | "otlp_endpoint", str():
            return shown_url(value)
        case _, str():
            return shown_text(value)
        case _:
            return msgspec.to_builtins(value)


def _cleaned(value: Any, clean: Clean) -> Any:
    match value:
        case str():
            return clean(value)
        case list() | tuple():
            return [_cleaned(one, clean) for one in value]
        case dict():
            return {key: _cleaned(one, clean) for key, one in value.items()}
        case _:
            return value


def _said(value: Any) -> str:
    return "unset" if value is None else msgspec.json.encode(value).decode()


def _with_keys(server: ServerPlan) -> str:
    keys = ", ".join(change.key for change in server.changes)
    return f"{server.name} ({keys})" if keys else server.name


_DONE: Final[Mapping[Act, str]] = {
    Act.ADD: "is added",
    Act.REMOVE: "is removed; its open calls may end",
    Act.ENABLE: "is switched on",
    Act.DISABLE: "is switched off; its open calls may end",
    Act.RESTART: "is started again; its open calls may end first",
    Act.UPDATE: "goes on with new values",
}
_EFFECT_SAID: Final[Mapping[str, str]] = {
    Effect.ERA: "what is allowed is judged again",
    Effect.LISTS: "its lists are read again",
    Effect.NEXT_LIFE: "from its next start on",
}


def _sentences(found: Plan) -> Iterator[str]:
    for server in found.servers:
        if server.act is Act.KEEP:
            continue
        yield f"{server.name} {_DONE[server.act]}"
        for change in server.changes:
            note = _EFFECT_SAID.get(change.effect) if server.act is Act.UPDATE else None
            yield f"  {change}" + (f" ({note})" if note else "")
    if found.order_changed:
        yield "the order of servers changes; a name that was granted stays with its owner"
    for change in found.host:
        yield f"{change}"
    kept = found.named(Act.KEEP)
    yield f"{_servers(kept)} not touched" + (f": {', '.join(kept)}" if kept else "")
    for change in found.waiting:
        yield f"{change} (not applied: needs a restart of the host)"


def _servers(names: Sequence[str]) -> str:
    return "1 server is" if len(names) == 1 else f"{len(names)} servers are"
