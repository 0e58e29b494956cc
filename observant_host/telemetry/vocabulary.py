"""The closed list of what this host says about itself.

Each fact is a frozen struct; its fields become span attributes and log fields, the ones that are
enums or configured names become metric labels. Never in a fact: tool arguments, results, header
values, message text of a peer beyond a masked, bounded excerpt.
"""

from __future__ import annotations

from observant_host.telemetry.fact import Fact as Fact
from observant_host.telemetry.fact import SpanKind as SpanKind
from observant_host.telemetry.northbound_facts import AuthFailed as AuthFailed
from observant_host.telemetry.northbound_facts import HttpAnswered as HttpAnswered
from observant_host.telemetry.northbound_facts import NorthboundRequest as NorthboundRequest
from observant_host.telemetry.snapshot import PeerSnapshot as PeerSnapshot

# Work that takes time: telemetry.operation(fact)


class PeerStart(Fact, frozen=True, kw_only=True):
    peer: str
    generation: int
    trigger: str
    transport: str
    era: str = "unknown"


class TransportConnect(Fact, frozen=True, kw_only=True):
    peer: str
    generation: int
    transport: str
    pid: int | None = None


class EraDecide(Fact, frozen=True, kw_only=True):
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


class Request(Fact, frozen=True, kw_only=True):
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


class ListenOpen(Fact, frozen=True, kw_only=True):
    """One `subscriptions/listen`, from its request to its acknowledgment: the stream lasts longer.

    `filter`, `acked`, `left_out`: kinds of lists, and how many resources. `reopened` after a loss;
    `gap_s` is then for how long changes went untold, once that is over.
    """

    peer: str
    generation: int
    method: str = "subscriptions/listen"
    era: str = "modern"
    request_id: int = 0
    version: str | None = None
    filter: tuple[str, ...] = ()
    acked: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    reopened: bool = False
    gap_s: float | None = None
    rpc_code: int | None = None
    http_status: int | None = None


class RoutedCall(Fact, frozen=True, kw_only=True):
    """One call from a caller's view; `method` is tools/call, prompts/get, resources/read, …

    `name` is the exposed name as asked for, `local_name` the server's. `queued_ms` was spent
    waiting for a place with the peer.
    """

    name: str
    method: str
    peer: str = ""
    local_name: str = ""
    era: str = "unknown"
    attempts: int = 0
    queued_ms: float = 0.0
    deadline_ms: float | None = None
    fault: str = "none"
    delivery: str = "not_sent"
    principal: str | None = None
    cause: str | None = None


class CatalogueRefresh(Fact, frozen=True, kw_only=True):
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


class ListingFlawed(Fact, frozen=True, kw_only=True):
    """What is wrong with a server's lists though it works; told whenever that changes.

    `left_out` are "name: why" of the first of the `excluded` entries.
    """

    peer: str
    detail: str = ""
    excluded: int = 0
    left_out: tuple[str, ...] = ()


class ServerMessage(Fact, frozen=True, kw_only=True):
    """A notification or request that a peer sent us (SERVER span by the conventions).

    `level` is a log message's, one of the protocol's eight or "" for any other.
    """

    peer: str
    method: str
    era: str
    request: bool
    answered: bool = False
    level: str | None = None


# Moments: telemetry.count(fact)


class PeerStateChanged(Fact, frozen=True, kw_only=True):
    peer: str
    previous: str
    state: str
    cause: str | None
    reason: str
    detail: str
    time_in_previous_ms: float
    generation: int
    pid: int | None = None


class PeerRestart(Fact, frozen=True, kw_only=True):
    peer: str
    reason: str
    generation: int
    attempt: int
    backoff_ms: float
    exit_code: int | None = None
    stderr_tail: str = ""
    gave_up: bool = False


class HealthVerdict(Fact, frozen=True, kw_only=True):
    """A server was asked for a sign of life and is not well; told for nothing else.

    `verdict`: "unresponsive" (a probe, or a call let in as a trial, got no answer), "gone" (over
    HTTP: it is no longer there), "hopeless" (its life is ended for it). `health` is what it counts
    as now, `unanswered` how many questions got nothing in a row, `silent_ms` since when it is
    suspected.
    """

    peer: str
    generation: int
    verdict: str
    health: str
    detail: str = ""
    unanswered: int = 0
    silent_ms: float = 0.0


class EraDropped(Fact, frozen=True, kw_only=True):
    """A life ended and its era with it; recorded before the next discover."""

    peer: str
    generation: int
    era: str
    why: str


class DeadlineExpired(Fact, frozen=True, kw_only=True):
    peer: str
    scope: str
    budget_ms: float
    elapsed_ms: float
    method: str = ""


class RetryScheduled(Fact, frozen=True, kw_only=True):
    peer: str
    reason: str
    attempt: int
    delay_ms: float


class RetryDenied(Fact, frozen=True, kw_only=True):
    peer: str
    reason: str


class SubscriptionLost(Fact, frozen=True, kw_only=True):
    """A stream of changes ended that had been acknowledged, and not by us; `reason` is "graceful",
    "cancelled", "transport" or "watchdog_silent"."""

    peer: str
    generation: int
    request_id: int
    reason: str
    age_s: float
    messages: int
    last_message_age_s: float | None = None
    detail: str = ""


class WatchdogCheck(Fact, frozen=True, kw_only=True):
    """A stream of changes that has not ended is no longer trusted. `verdict`: "silent" (its
    keep-alives stayed away), "quiet" (nothing at all came for the longest time), "doubtful"
    (another request failed meanwhile). `silent_s` is since anything was heard on it."""

    peer: str
    generation: int
    request_id: int
    verdict: str
    silent_s: float
    interval_s: float | None = None


class GapHealed(Fact, frozen=True, kw_only=True):
    """Changes went untold for `gap_s`, and what a stream of them covers was read anew since.

    `reason` is how the stream before was lost, or why there was none. `added`, `removed`, `changed`
    name the first of the entries that are different now, `changes` counts them all;
    `resources_told` is of followed resources whose followers were told that they may have changed.
    """

    peer: str
    generation: int
    reason: str
    gap_s: float
    changes: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    resources_told: int = 0


class WishUnmet(Fact, frozen=True, kw_only=True):
    """A resource that somebody wants to follow is not followed, and why; told once a try."""

    peer: str
    uri: str
    detail: str


class SessionNotEnded(Fact, frozen=True, kw_only=True):
    """A server did not take the end of its session: it will find out by itself."""

    peer: str
    detail: str


class FrameDropped(Fact, frozen=True, kw_only=True):
    """Noise, orphans, foreign ids, violations: counted, never fatal; excerpted in the log, noise on
    stdout as a warning, the rest at debug level."""

    peer: str
    kind: str
    excerpt: str = ""


class CacheLookup(Fact, frozen=True, kw_only=True):
    """A read that a kept answer might have served; `found` is "hit", "stale" or "miss"."""

    peer: str
    found: str


class StructuredContentProblem(Fact, frozen=True, kw_only=True):
    """A result's structuredContent is not known to fit its tool's outputSchema. `problem` is
    "mismatch", "missing", "unusable_schema" or "not_judged"; `tool` the local name."""

    peer: str
    tool: str
    problem: str


class OperatorAct(Fact, frozen=True, kw_only=True):
    verb: str
    peer: str
    principal: str
    reason: str = ""
    detail: str = ""


class NameDecision(Fact, frozen=True, kw_only=True):
    """A canonical name was granted, kept, given up, or moved; `what` is one of those words."""

    name: str
    peer: str
    local_name: str
    what: str
    reason: str


class ConfigLoaded(Fact, frozen=True, kw_only=True):
    hash: str
    successful: bool
    problems: int = 0
    detail: str = ""


class HostLifecycle(Fact, frozen=True, kw_only=True):
    """The host started, is published, drains, or stopped."""

    what: str
    detail: str = ""


class LoopStalled(Fact, frozen=True, kw_only=True):
    """The event loop was late by so much that deadlines of that moment prove little.

    `lag_ms` is the longest of `stalls` since the last time this was told.
    """

    lag_ms: float
    stalls: int = 1


class TelemetryLost(Fact, frozen=True, kw_only=True):
    """Spans that could not be kept or exported since the last time this was told.

    `stream` is "decisions" or "traces" of the record, or "otlp" for the exporter. Told once with 0
    at the start: from then on silence means that nothing was lost.
    """

    stream: str
    spans: int


# States: telemetry.level(fact, value)


class PeerLevel(Fact, frozen=True, kw_only=True):
    """A number about one peer; `metric` is a metric name of this vocabulary, less the prefix."""

    peer: str
    metric: str


class HostLevel(Fact, frozen=True, kw_only=True):
    metric: str
    label: str = ""
