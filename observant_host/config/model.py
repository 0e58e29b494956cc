"""The effective configuration as frozen values: what every other room reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal

import msgspec

CollisionPolicy = Literal["prefix", "qualified", "reject"]
ReadyWhen = Literal["required", "any", "all", "published"]
RetryCalls = Literal["not_sent", "idempotent", "never"]
Propagate = Literal["trace", "full", "none"]
TransportChoice = Literal["auto", "http", "sse"]


class StdioServer(msgspec.Struct, frozen=True, gc=False, tag="stdio"):
    """A server started as a child process and spoken to over its pipes.

    `command` is argv (program first). `env` is merged over the documented base environment plus
    the host's variables named in `env_inherit`. Values are secrets: never print them.
    """

    command: Sequence[str]
    env: Mapping[str, str] = {}
    env_inherit: tuple[str, ...] = ()
    cwd: str | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "command", tuple(self.command))


class HttpServer(msgspec.Struct, frozen=True, gc=False, tag="http"):
    """A server reached by URL. `headers` values are secrets: never print them.

    `header_files`: those of `headers` that hold `${file:…}`, to be read again as the files change:
    literal text and absolute paths in turn, beginning with text.
    """

    url: str
    headers: Mapping[str, str] = {}
    headers_command: tuple[str, ...] = ()
    ca_bundle: str | None = None
    transport: TransportChoice = "auto"
    header_files: Mapping[str, tuple[str, ...]] = {}


class EraPolicy(msgspec.Struct, frozen=True):
    """What a person allowed for exactly this server. Permission, never evidence.

    `allow_legacy` holds the permitted legacy revisions; empty means no allowance.
    `legacy_expires` is the last day (UTC, inclusive).
    """

    allow_legacy: tuple[str, ...] = ()
    legacy_reason: str | None = None
    legacy_owner: str | None = None
    legacy_expires: date | None = None
    legacy_fingerprint: str | None = None
    expect_era: Literal["modern", "legacy"] | None = None


class Timing(msgspec.Struct, frozen=True):
    """Seconds, but for `legacy_probe_timeout_ms`."""

    probe_timeout_s: float = 30.0
    legacy_probe_timeout_ms: float = 5000.0
    connect_timeout_s: float = 10.0
    call_timeout_s: float = 60.0
    call_max_s: float = 600.0
    reset_timeout_on_progress: bool = True
    list_timeout_s: float = 30.0
    ack_timeout_s: float = 10.0
    queue_timeout_s: float = 30.0
    shutdown_timeout_s: float = 5.0


class RestartPolicy(msgspec.Struct, frozen=True):
    """Seconds, but for `restart_above_mb` (None: off)."""

    restart_initial_s: float = 0.5
    restart_max_s: float = 60.0
    healthy_after_s: float = 60.0
    reprobe_max_s: float = 300.0
    silent_restart_s: float = 120.0
    restart_above_mb: float | None = None


class ToolFilter(msgspec.Struct, frozen=True):
    """Globs over local names; `deny` wins; an empty `allow` allows all."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class ServerConfig(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One configured server.

    `problem` is set where this server, and only this one, cannot be used (cause "config"): a
    sentence naming the key and the fix. `launch` is then None if it could not be read at all.
    `fingerprint` ("sha256:…") is over the *unexpanded* command, args, cwd and environment
    variable names, or the URL without query.
    """

    name: str
    launch: StdioServer | HttpServer | None
    fingerprint: str
    enabled: bool = True
    required: bool = False
    tools: ToolFilter = ToolFilter()
    trust_annotations: bool = False
    retry_calls: RetryCalls = "not_sent"
    idempotent_tools: tuple[str, ...] = ()
    max_in_flight: int = 16
    queue_max: int = 256
    propagate: Propagate = "trace"
    extensions: tuple[str, ...] = ()
    era: EraPolicy = EraPolicy()
    timing: Timing = Timing()
    restarts: RestartPolicy = RestartPolicy()
    problem: str | None = None

    @property
    def transport(self) -> Literal["stdio", "http", "sse"]:
        match self.launch:
            case HttpServer(transport="sse"):
                return "sse"
            case HttpServer():
                return "http"
            case _:
                return "stdio"


class HostSettings(msgspec.Struct, frozen=True):
    imports: tuple[str, ...] = ()
    state_dir: str | None = None
    collision_policy: CollisionPolicy = "prefix"
    startup_deadline_s: float = 10.0
    rename_grace_s: float = 300.0
    max_message_bytes: int = 16 * 1024 * 1024
    remember_modern: bool = True
    cache_dir: str | None = None


class JwtSettings(msgspec.Struct, frozen=True, kw_only=True):
    """JSON Web Tokens of one issuer, let in beside the configured tokens.

    Exactly one of `jwks_url`, `jwks_file`. `scope_map`: the issuer's word to scopes of ours; empty:
    its words are ours. `resource`: the URL that clients know this host by (RFC 9728).
    """

    issuer: str
    audience: tuple[str, ...]
    jwks_url: str | None = None
    jwks_file: str | None = None
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "EdDSA")
    principal_claim: str = "sub"
    scope_claim: str = "scope"
    scope_map: Mapping[str, tuple[str, ...]] = {}
    profile: str | None = None
    rate: float | None = None
    resource: str | None = None


class ServiceSettings(msgspec.Struct, frozen=True):
    listen: str = "127.0.0.1:8700"
    metrics_listen: str | None = None
    admin_listen: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    ready_when: ReadyWhen = "required"
    drain_delay_s: float = 0.0
    drain_timeout_s: float = 30.0
    names: Literal["api", "canonical"] = "api"
    tls_cert: str | None = None
    tls_key: str | None = None
    state_key_file: str | None = None
    relay_input: bool = True
    jwt: JwtSettings | None = None


class TelemetrySettings(msgspec.Struct, frozen=True):
    otlp_endpoint: str | None = None
    sample_ratio: float = 1.0
    record: bool = True
    decisions_max_bytes: int = 256 * 1024 * 1024
    decisions_max_days: float = 400.0
    traces_max_bytes: int = 1024 * 1024 * 1024
    traces_max_days: float = 7.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"
    capture_errors: Literal["message", "code"] = "message"
    capture_arguments: bool = False
    audit: Literal["off", "metadata", "arguments"] = "off"


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A northbound token: exactly one of `sha256`, `file`, `env`. Never printed."""

    sha256: str | None = None
    file: str | None = None
    env: str | None = None
    scopes: tuple[Literal["mcp", "read", "operate"], ...] = ()
    profile: str | None = None
    rate: float | None = None


class Profile(msgspec.Struct, frozen=True):
    servers: tuple[str, ...] = ()
    tools: ToolFilter = ToolFilter()
    mode: Literal["list", "search"] = "list"


class HostConfig(msgspec.Struct, frozen=True):
    """A whole effective configuration. `servers` keeps config order (it decides names)."""

    servers: tuple[ServerConfig, ...] = ()
    host: HostSettings = HostSettings()
    service: ServiceSettings = ServiceSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    tokens: Mapping[str, Token] = {}
    profiles: Mapping[str, Profile] = {}
