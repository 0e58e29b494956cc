"""Every key of the configuration as data: where it stands and what its value may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from observant_host.config import values
from observant_host.config.model import RestartPolicy, Timing
from observant_host.config.values import Kind, choice, choices, matching, number


class Table(msgspec.Struct, frozen=True):
    """A table with exactly these keys."""

    keys: Mapping[str, Node]


class Open(msgspec.Struct, frozen=True):
    """A table whose keys people choose; each entry is `each`. `named`: keys are names of ours."""

    each: Node
    named: bool = False


Node = Kind | Table | Open

TIMING: Final[Mapping[str, Kind]] = {
    "probe_timeout_s": values.SECONDS_ABOVE_0,
    "legacy_probe_timeout_ms": values.MILLISECONDS,
    "connect_timeout_s": values.SECONDS_ABOVE_0,
    "call_timeout_s": values.SECONDS_ABOVE_0,
    "call_max_s": values.SECONDS_ABOVE_0,
    "reset_timeout_on_progress": values.FLAG,
    "list_timeout_s": values.SECONDS_ABOVE_0,
    "ack_timeout_s": values.SECONDS_ABOVE_0,
    "queue_timeout_s": values.SECONDS_ABOVE_0,
    "shutdown_timeout_s": values.SECONDS_ABOVE_0,
}
RESTARTS: Final[Mapping[str, Kind]] = {
    "restart_initial_s": values.SECONDS_ABOVE_0,
    "restart_max_s": values.SECONDS_ABOVE_0,
    "healthy_after_s": values.SECONDS_ABOVE_0,
    "reprobe_max_s": values.SECONDS_ABOVE_0,
    "silent_restart_s": values.SECONDS_ABOVE_0,
    "restart_above_mb": values.MEGABYTES,
}
LIMITS: Final[Mapping[str, Kind]] = {
    "max_in_flight": number(least=1, whole=True),
    "queue_max": number(least=0, whole=True),
}
DEFAULTS: Final[Mapping[str, Kind]] = {**TIMING, **RESTARTS, **LIMITS}
"""What `[defaults]` may hold: timing and limits, never a permission."""

ERA: Final[Mapping[str, Kind]] = {
    "allow_legacy": values.ALLOWANCE,
    "legacy_reason": values.TEXT,
    "legacy_owner": values.TEXT,
    "legacy_expires": values.DAY,
    "legacy_fingerprint": matching(values.FINGERPRINT, '"sha256:" and 64 hexadecimal digits'),
    "expect_era": choice("modern", "legacy"),
}
STDIO: Final[Mapping[str, Node]] = {
    "command": values.COMMAND,
    "args": values.ARGS,
    "env": Open(values.SECRET),
    "env_inherit": values.TEXTS,
    "cwd": values.PATH,
}
HTTP: Final[Mapping[str, Node]] = {
    "url": values.URL,
    "headers": Open(values.SECRET),
    "headers_command": values.COMMAND_LINE,
    "ca_bundle": values.PATH,
    "transport": choice("auto", "http", "sse"),
}
BOTH: Final[Mapping[str, Node]] = {
    "enabled": values.FLAG,
    "required": values.FLAG,
    "tools": Table({"allow": values.TEXTS, "deny": values.TEXTS}),
    "trust_annotations": values.FLAG,
    "retry_calls": choice("not_sent", "idempotent", "never"),
    "idempotent_tools": values.TEXTS,
    "propagate": choice("trace", "full", "none"),
    "extensions": values.TEXTS,
}
SERVER: Final = Table({**STDIO, **HTTP, **BOTH, **ERA, **DEFAULTS})

HOST: Final = Table(
    {
        "import": values.PATHS,
        "state_dir": values.PATH,
        "collision_policy": choice("prefix", "qualified", "reject"),
        "startup_deadline_s": values.SECONDS_FROM_0,
        "rename_grace_s": values.SECONDS_FROM_0,
        "max_message_bytes": values.SIZE_BYTES,
        "remember_modern": values.FLAG,
        "cache_dir": values.PATH,
    }
)
SCOPES: Final = choices("mcp", "read", "operate")
RATE: Final = number(least=0.001)
JWT: Final = Table(
    {
        "issuer": values.URL,
        "audience": values.TEXTS,
        "jwks_url": values.URL,
        "jwks_file": values.PATH,
        "algorithms": choices(
            *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
            *("ES256", "ES384", "ES512", "EdDSA"),
        ),
        "principal_claim": values.FILLED,
        "scope_claim": values.FILLED,
        "scope_map": Open(SCOPES),
        "profile": values.TEXT,
        "rate": RATE,
        "resource": values.URL,
    }
)
SERVICE: Final = Table(
    {
        "listen": values.ADDRESS,
        "metrics_listen": values.ADDRESS,
        "admin_listen": values.ADDRESS,
        "allowed_hosts": values.TEXTS,
        "allowed_origins": values.TEXTS,
        "ready_when": choice("required", "any", "all", "published"),
        "drain_delay_s": values.SECONDS_FROM_0,
        "drain_timeout_s": values.SECONDS_FROM_0,
        "names": choice("api", "canonical"),
        "tls_cert": values.PATH,
        "tls_key": values.PATH,
        "state_key_file": values.PATH,
        "relay_input": values.FLAG,
        "jwt": JWT,
    }
)
TELEMETRY: Final = Table(
    {
        "otlp_endpoint": values.URL,
        "sample_ratio": number(least=0, most=1),
        "record": values.FLAG,
        "decisions_max_bytes": values.SIZE_BYTES,
        "decisions_max_days": number(least=1),
        "traces_max_bytes": values.SIZE_BYTES,
        "traces_max_days": number(least=1),
        "log_level": choice("debug", "info", "warning", "error"),
        "log_format": choice("json", "console"),
        "capture_errors": choice("message", "code"),
        "capture_arguments": values.FLAG,
        "audit": choice("off", "metadata", "arguments"),
    }
)
TOKEN: Final = Table(
    {
        "sha256": msgspec.structs.replace(
            matching(values.DIGEST, "64 hexadecimal digits: a token's SHA-256, never the token"),
            secret=True,
        ),
        "file": msgspec.structs.replace(values.SECRET, path=True),
        "env": values.SECRET,
        "scopes": SCOPES,
        "profile": values.TEXT,
        "rate": RATE,
    }
)
PROFILE: Final = Table(
    {
        "servers": values.TEXTS,
        "tools": Table({"allow": values.TEXTS, "deny": values.TEXTS}),
        "mode": choice("list", "search"),
    }
)
ROOT: Final = Table(
    {
        "version": number(least=1, most=1, whole=True),
        "host": HOST,
        "service": SERVICE,
        "telemetry": TELEMETRY,
        "defaults": Table(DEFAULTS),
        "servers": Open(SERVER, named=True),
        "tokens": Open(TOKEN, named=True),
        "profiles": Open(PROFILE, named=True),
    }
)


def node_at(path: tuple[str, ...], root: Node = ROOT) -> Node | None:
    """The node that `path` names, or None where there is no such key."""
    node: Node | None = root
    for part in path:
        match node:
            case Table():
                node = node.keys.get(part)
            case Open():
                node = node.each
            case _:
                return None
    return node


assert set(TIMING) == set(Timing.__struct_fields__)  # noqa: S101 -- the table and the structs are one list
assert set(RESTARTS) == set(RestartPolicy.__struct_fields__)  # noqa: S101 -- as above
