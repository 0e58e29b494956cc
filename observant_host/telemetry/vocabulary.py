"""The closed list of what this host says about itself.

Each fact is a frozen struct; its fields become span attributes and log fields, the ones that are
enums or configured names become metric labels. Never in a fact: tool arguments, results, header
values, message text of a peer beyond a masked, bounded excerpt.
"""

from __future__ import annotations

from typing import Literal

import msgspec

SpanKind = Literal["internal", "client", "server"]


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Base. `outcome`, `error_type`, `duration` are the operation's, not the fact's."""


# Work that takes time: telemetry.operation(fact)


class PeerStart(Fact):
    peer: str
    generation: int
    trigger: str
    transport: str
    era: str = "unknown"


class TransportConnect(Fact):
    peer: str
    generation: int
    transport: str
    pid: int | None = None


class EraDecide(Fact):
    """One round of negotiation and its decision; `evidence` holds dicts of contracts' shape."""

    peer: str
    generation: int
    trigger: str
    previous: str
    selected: str = "unknown"
    direction: str = "none"
    reason: str = ""
    expected: bool = True
    version: str | None = None
    candidates: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()
    server_name: str | None = None
    server_version: str | None = None
    detail: str = ""
    evidence: tuple[dict[str, object], ...] = ()


class Request(Fact):
    """One JSON-RPC request of ours. Span name: the method, and the target if there is one.

    `purpose` is "era" or "health" for discover, "list", "call", else "". `target` is the local tool
    or prompt name (never a URI). `probe_outcome` is a ProbeOutcome or LegacyProbeOutcome value.
    """

    peer: str
    method: str
    era: str
    generation: int = 0
    request_id: int = 0
    version: str | None = None
    target: str | None = None
    uri: str | None = None
    attempt: int = 1
    round: int = 0
    purpose: str = ""
    page: int | None = None
    items: int | None = None
    deadline_ms: float | None = None
    rpc_code: int | None = None
    http_status: int | None = None
    probe_outcome: str | None = None


class RoutedCall(Fact):
    """One call from a caller's view; `kind` is tools/call, prompts/get, resources/read, …"""

    name: str
    method: str
    peer: str = ""
    local_name: str = ""
    era: str = "unknown"
    attempts: int = 0
    deadline_ms: float | None = None
    fault: str = "none"
    delivery: str = "not_sent"
    principal: str | None = None
    cause: str | None = None


class CatalogueRefresh(Fact):
    peer: str
    trigger: str
    added: int = 0
    removed: int = 0
    changed: int = 0
    collisions: int = 0
    excluded: int = 0
    digest: str = ""
    version: int = 0
    truncated: str | None = None


class ServerMessage(Fact):
    """A notification or request that a peer sent us (SERVER span by the conventions)."""

    peer: str
    method: str
    era: str
    request: bool
    answered: bool = False


# Moments: telemetry.count(fact)


class PeerStateChanged(Fact):
    peer: str
    previous: str
    state: str
    cause: str | None
    reason: str
    detail: str
    time_in_previous_ms: float
    generation: int
    pid: int | None = None


class PeerRestart(Fact):
    peer: str
    reason: str
    generation: int
    attempt: int
    backoff_ms: float
    exit_code: int | None = None
    stderr_tail: str = ""
    gave_up: bool = False


class EraDropped(Fact):
    """A life ended and its era with it; recorded before the next discover."""

    peer: str
    generation: int
    era: str
    why: str


class DeadlineExpired(Fact):
    peer: str
    scope: str
    budget_ms: float
    elapsed_ms: float
    method: str = ""


class RetryScheduled(Fact):
    peer: str
    reason: str
    attempt: int
    delay_ms: float


class RetryDenied(Fact):
    peer: str
    reason: str


class FrameDropped(Fact):
    """Noise, orphans, foreign ids, violations: counted, excerpted at debug level, never fatal."""

    peer: str
    kind: str
    excerpt: str = ""


class OperatorAct(Fact):
    verb: str
    peer: str
    principal: str
    reason: str = ""
    detail: str = ""


class NameDecision(Fact):
    """A canonical name was granted, kept, given up, or moved; `what` is one of those words."""

    name: str
    peer: str
    local_name: str
    what: str
    reason: str


class ConfigLoaded(Fact):
    hash: str
    successful: bool
    problems: int = 0
    detail: str = ""


class HostLifecycle(Fact):
    """The host started, is published, drains, or stopped."""

    what: str
    detail: str = ""


# States: telemetry.level(fact, value)


class PeerLevel(Fact):
    """A number about one peer; `metric` is a metric name of this vocabulary, less the prefix."""

    peer: str
    metric: str


class HostLevel(Fact):
    metric: str
    label: str = ""
