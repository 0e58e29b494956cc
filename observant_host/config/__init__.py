"""Configuration as frozen values, and the pure step from bytes to them.

Nothing here reads a file, the environment or the clock: `config_files` does.
"""

from __future__ import annotations

from observant_host.config.fingerprint import fingerprint
from observant_host.config.model import (
    CollisionPolicy,
    EraPolicy,
    HostConfig,
    HostSettings,
    HttpServer,
    JwtSettings,
    Profile,
    Propagate,
    ReadyWhen,
    RestartPolicy,
    RetryCalls,
    ServerConfig,
    ServiceSettings,
    StdioServer,
    TelemetrySettings,
    Timing,
    Token,
    ToolFilter,
    TransportChoice,
)

__all__ = [
    "CollisionPolicy",
    "EraPolicy",
    "HostConfig",
    "HostSettings",
    "HttpServer",
    "JwtSettings",
    "Profile",
    "Propagate",
    "ReadyWhen",
    "RestartPolicy",
    "RetryCalls",
    "ServerConfig",
    "ServiceSettings",
    "StdioServer",
    "TelemetrySettings",
    "Timing",
    "Token",
    "ToolFilter",
    "TransportChoice",
    "fingerprint",
]
