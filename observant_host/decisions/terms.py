"""The closed lists of words that decisions speak: each value is an outward name.

A value is never renamed: dashboards, alerts and people's scripts read them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Era(StrEnum):
    MODERN = "modern"
    LEGACY = "legacy"
    UNKNOWN = "unknown"


class PeerState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    BACKOFF = "backoff"
    UNAVAILABLE = "unavailable"
    DISABLED = "disabled"
    STOPPED = "stopped"


class Cause(StrEnum):
    """Why a peer is unavailable. The first three wait for a person, the others are outages."""

    POLICY = "policy"
    AUTH = "auth"
    CONFIG = "config"
    PROCESS = "process"
    NETWORK = "network"
    PROTOCOL = "protocol"


class Reason(StrEnum):
    """Why an era was chosen or refused."""

    DISCOVER_OK = "discover_ok"
    MODERN_ERROR_RETRY = "modern_error_retry"
    MODERN_ERROR_UNFIXABLE = "modern_error_unfixable"
    NO_MUTUAL_VERSION = "no_mutual_version"
    LEGACY_ONLY_ADVERTISED = "legacy_only_advertised"
    LATE_MODERN_EVIDENCE = "late_modern_evidence"
    INITIALIZE_OK = "initialize_ok"
    AMBIGUOUS_TIMEOUT = "ambiguous_timeout"
    AMBIGUOUS_CLOSED = "ambiguous_closed"
    AMBIGUOUS_ERROR = "ambiguous_error"
    AMBIGUOUS_EMPTY = "ambiguous_empty"
    AMBIGUOUS_MALFORMED = "ambiguous_malformed"
    LEGACY_PROBE_TIMEOUT = "legacy_probe_timeout"
    LEGACY_PROBE_ERROR = "legacy_probe_error"
    LEGACY_PROBE_INVALID = "legacy_probe_invalid"
    LEGACY_PROBE_CLOSED = "legacy_probe_closed"
    LEGACY_UNSUPPORTED_REVISION = "legacy_unsupported_revision"
    WAS_MODERN = "was_modern"
    ALLOWANCE_EXPIRED = "allowance_expired"
    ALLOWANCE_MISMATCH = "allowance_mismatch"
    AUTH_REQUIRED = "auth_required"
    FORBIDDEN = "forbidden"
    RATE_LIMITED = "rate_limited"
    UNREACHABLE = "unreachable"
    HTTP_UNAVAILABLE = "http_unavailable"
    SPAWN_FAILED = "spawn_failed"
    CONFIG_INVALID = "config_invalid"


class ProbeOutcome(StrEnum):
    """What came of one `server/discover`."""

    OK = "ok"
    MODERN_ERROR = "modern_error"
    ERROR = "error"
    EMPTY = "empty"
    MALFORMED = "malformed"
    TIMEOUT = "timeout"
    CLOSED = "closed"
    HTTP_CANDIDATE = "http_candidate"
    HTTP_OTHER = "http_other"


class LegacyProbeOutcome(StrEnum):
    """What came of one `initialize`."""

    OK = "ok"
    TIMEOUT = "timeout"
    ERROR = "error"
    INVALID = "invalid"
    CLOSED = "closed"
    UNSUPPORTED_REVISION = "unsupported_revision"
    MODERN_EVIDENCE = "modern_evidence"


class Direction(StrEnum):
    FIRST = "first"
    NONE = "none"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"


class RestartReason(StrEnum):
    EXIT = "exit"
    SIGNAL = "signal"
    UNRESPONSIVE = "unresponsive"
    MEMORY = "memory"
    SILENT = "silent"
    PROTOCOL_VIOLATION = "protocol_violation"
    LATE_MODERN_EVIDENCE = "late_modern_evidence"
    CONNECTION_LOST = "connection_lost"
    RELOAD = "reload"
    OPERATOR = "operator"


class Trigger(StrEnum):
    """What began a round of negotiation, a listing, or a life."""

    BOOT = "boot"
    RESTART = "restart"
    REPROBE = "reprobe"
    LATE_EVIDENCE = "late_evidence"
    RELOAD = "reload"
    MANUAL = "manual"
    LOOK = "look"  # a person's, by a process of its own that serves nobody
    LIST_CHANGED = "list_changed"
    EXPIRED = "expired"
    WAKE = "wake"  # a call wanted it before its time


class ExclusionReason(StrEnum):
    INVALID_HEADER_ANNOTATION = "invalid_header_annotation"
    INVALID_SCHEMA = "invalid_schema"
    INVALID_NAME = "invalid_name"
    DUPLICATE_IN_SERVER = "duplicate_in_server"
    COLLISION_REJECTED = "collision_rejected"
    DENIED = "denied"
    DRIFTED = "drifted"
    UNPINNED = "unpinned"
    OVER_BUDGET = "over_budget"


OUTAGES: Final = frozenset({Cause.PROCESS, Cause.NETWORK, Cause.PROTOCOL})
"""Causes that alerts on outages look at; the others are a person's decision."""
