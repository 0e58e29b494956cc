"""How each fact is told: its span, its log line, its stream of the record. Data, not code.

Span names and attributes follow the OpenTelemetry semantic conventions for MCP where they have a
word (`mcp.*`, `gen_ai.*`, `jsonrpc.*`, Development status), and `observant_host.*` elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from observant_host.decisions.subscription import Loss
from observant_host.telemetry import vocabulary as v

if TYPE_CHECKING:
    from observant_host.telemetry.propagation import Link

Value = str | bool | int | float | Sequence[str]
Stream = Literal["decisions", "traces"]
Level = Literal["debug", "info", "warning", "error"]

PREFIX: Final = "observant_host."
EVIDENCE_PREFIX: Final = PREFIX + "evidence."


class SpanEvent(msgspec.Struct, frozen=True):
    """Something that happened inside an operation; `time_ns` since the epoch."""

    name: str
    time_ns: int
    attributes: Mapping[str, Value]


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One fact's way out.

    span: its name; "" means "the method, and the target where there is one"; None: no span.
    stream: which half of the record keeps it; None: neither.
    log: the event of its log line; None: no line. `log_ok` False: only when it did not end ok.
    level: of the line when all is well; anything else is a warning.
    event: its name on the operation around it, where there is one.
    group: where its attributes live below `observant_host.`; `keys` names the exceptions.
    """

    span: str | None
    kind: v.SpanKind = "internal"
    stream: Stream | None = "traces"
    log: str | None = None
    log_ok: bool = True
    level: Level = "info"
    event: str | None = None
    group: str = ""
    keys: Mapping[str, str] = {}


COMMON: Final[Mapping[str, str]] = {
    "peer": PREFIX + "peer.name",
    "era": PREFIX + "peer.era",
    "generation": PREFIX + "peer.generation",
    "method": "mcp.method.name",
    "version": "mcp.protocol.version",
    "rpc_code": "rpc.response.status_code",
    "http_status": "http.response.status_code",
    "request_id": "jsonrpc.request.id",
    "uri": "mcp.resource.uri",
    "pid": "process.pid",
}
"""Fields that mean the same in every fact."""

STRINGS: Final = frozenset({"rpc.response.status_code", "jsonrpc.request.id"})
"""Attributes that the conventions want as strings."""

RULES: Final[Mapping[type[v.Fact], Rule]] = {
    v.PeerStart: Rule(span="observant_host.peer.start", group="peer.start"),
    v.TransportConnect: Rule(
        span="observant_host.transport.connect", kind="client", group="transport"
    ),
    v.EraDecide: Rule(
        span="observant_host.era.decide",
        stream="decisions",
        log="era_decided",
        group="era",
        keys={
            "server_name": PREFIX + "server.name",
            "server_version": PREFIX + "server.version",
        },
    ),
    v.Request: Rule(span="", kind="client", group="request"),
    v.ListenOpen: Rule(
        span="subscriptions/listen", kind="client", log="listening", group="subscription"
    ),
    v.SubscriptionLost: Rule(
        span="observant_host.subscription.lost",
        log="listen_lost",
        level="warning",
        group="subscription",
    ),
    v.WatchdogCheck: Rule(
        span="observant_host.watchdog.check",
        stream="decisions",
        log="stream_distrusted",
        group="watchdog",
    ),
    v.GapHealed: Rule(
        span="observant_host.subscription.gap",
        stream="decisions",
        log="gap_healed",
        group="gap",
    ),
    v.WishUnmet: Rule(
        span=None,
        stream=None,
        log="resource_wish_unmet",
        level="warning",
        group="subscription",
    ),
    v.RoutedCall: Rule(
        span="observant_host.call",
        log="call_failed",
        log_ok=False,
        group="call",
        keys={"name": PREFIX + "route.exposed_name", "local_name": PREFIX + "route.local_name"},
    ),
    v.NorthboundRequest: Rule(
        span="", kind="server", group="northbound", keys={"era": PREFIX + "client.era"}
    ),
    v.CatalogueRefresh: Rule(
        span="observant_host.catalogue.refresh",
        log="catalogue_refreshed",
        group="catalogue",
        keys={"version": PREFIX + "catalogue.version"},
    ),
    v.ListingFlawed: Rule(
        span=None, stream=None, log="listing_flawed", level="warning", group="listing"
    ),
    v.ServerMessage: Rule(span="", kind="server", group="message"),
    v.PeerStateChanged: Rule(
        span="observant_host.peer.state", stream="decisions", log="state_changed", group="state"
    ),
    v.PeerRestart: Rule(
        span="observant_host.peer.restart",
        stream="decisions",
        log="peer_restart",
        level="warning",
        group="restart",
    ),
    v.HealthVerdict: Rule(
        span="observant_host.watchdog.check",
        stream="decisions",
        log="health_verdict",
        level="warning",
        group="watchdog",
    ),
    v.EraDropped: Rule(
        span="observant_host.era.drop",
        stream="decisions",
        log="era_dropped",
        group="era",
        keys={"why": PREFIX + "era.dropped_because"},
    ),
    v.DeadlineExpired: Rule(
        span="observant_host.deadline",
        log="deadline_exceeded",
        level="warning",
        event="deadline.exceeded",
        group="deadline",
    ),
    v.RetryScheduled: Rule(
        span=None,
        stream=None,
        log="retry_scheduled",
        level="warning",
        event="retry.scheduled",
        group="retry",
    ),
    v.RetryDenied: Rule(
        span=None,
        stream=None,
        log="retry_denied",
        level="warning",
        event="retry.denied",
        group="retry",
    ),
    v.SessionNotEnded: Rule(
        span=None,
        stream=None,
        log="session_not_ended",
        event="session.not_ended",
        group="session",
    ),
    v.FrameDropped: Rule(
        span=None,
        stream=None,
        log="frame_dropped",
        level="debug",
        event="frame.dropped",
        group="frame",
    ),
    v.CacheLookup: Rule(span=None, stream=None, event="cache.lookup", group="cache"),
    v.StructuredContentProblem: Rule(
        span=None,
        stream=None,
        log="structured_content_problem",
        level="warning",
        event="structured_content.problem",
        group="structured_content",
    ),
    v.OperatorAct: Rule(
        span="observant_host.operator", stream="decisions", log="operator_act", group="operator"
    ),
    v.HttpAnswered: Rule(span=None, stream=None, group="http"),
    v.AuthFailed: Rule(span=None, stream=None, log="auth_failed", level="warning", group="auth"),
    v.NameDecision: Rule(
        span="observant_host.name.decide", stream="decisions", log="name_decided", group="name"
    ),
    v.ConfigLoaded: Rule(
        span="observant_host.config.load", stream="decisions", log="config_loaded", group="config"
    ),
    v.HostLifecycle: Rule(
        span="observant_host.host.lifecycle",
        stream="decisions",
        log="host_lifecycle",
        group="host",
    ),
    v.LoopStalled: Rule(
        span="observant_host.loop.stalled",
        stream="decisions",
        log="loop_stalled",
        level="warning",
        group="loop",
    ),
    v.TelemetryLost: Rule(
        span="observant_host.telemetry.lost",
        stream="decisions",
        log="telemetry_lost",
        group="telemetry",
    ),
}

DECISION_SPANS: Final = frozenset(
    rule.span for rule in RULES.values() if rule.stream == "decisions" and rule.span
) | {
    *("observant_host.peer.start", "observant_host.deadline"),
    *("subscriptions/listen", "observant_host.subscription.lost"),
}
"""Spans that no sampling ratio ever touches."""

KEPT: Final = frozenset(kind for kind, rule in RULES.items() if rule.span in DECISION_SPANS)
"""The facts behind those spans."""

STDOUT_NOISE: Final = frozenset({"not_json", "not_a_message"})
"""Kinds of dropped frames that a server's author should hear of. The others may be parts of
answers, and their calls fail with lines of their own.

Source: MCP 2026-07-28 basic/transports/stdio (a server MUST NOT write anything else to stdout).
"""

TROUBLES: Final = frozenset({"sink_down", "crashed", "crashed_before", "guardian_lost"})
"""What a host says of itself that somebody should look at."""

_KEYS: Final[dict[type[v.Fact], tuple[tuple[str, str], ...]]] = {}


def rule_of(fact: v.Fact) -> Rule:
    return RULES[type(fact)]


def keys_of(kind: type[v.Fact]) -> tuple[tuple[str, str], ...]:
    """(field, outward attribute key) of a fact, in the order of its fields."""
    if (known := _KEYS.get(kind)) is None:
        rule = RULES[kind]
        known = tuple(
            (name, rule.keys.get(name) or COMMON.get(name) or f"{PREFIX}{rule.group}.{name}")
            for name in kind.__struct_fields__
        )
        _KEYS[kind] = known
    return known


def span_name(fact: v.Fact) -> str:
    name = RULES[type(fact)].span
    if name:
        return name
    method: str = getattr(fact, "method", type(fact).__name__)
    target: str | None = getattr(fact, "target", None)
    return f"{method} {target}" if target else method


def attributes_of(fact: v.Fact, outcome: str, error_type: str | None) -> dict[str, Value]:
    """Flat attributes by outward key; None and empty fields left out, no evidence."""
    out: dict[str, Value] = {}
    values = msgspec.structs.astuple(fact)
    for (name, key), value in zip(keys_of(type(fact)), values, strict=True):
        if (plain := attribute(name, key, value)) is not None:
            out[key] = plain
    out.update(extra_attributes(fact))
    out[OUTCOME] = outcome
    if error_type is not None:
        out[ERROR_TYPE] = error_type
    return out


def link_attributes(links: Sequence[Link]) -> dict[str, Value]:
    """Where each link leads, once more as an attribute: no query language follows links."""
    return {f"{PREFIX}{link.type}.trace_id": link.context.trace_hex for link in links}


def attribute(name: str, key: str, value: object) -> Value | None:
    """One field as an attribute value; None where it is left out."""
    if value is None or value in ("", ()) or name in ELSEWHERE:
        return None
    if type(value) is tuple:
        return [str(item) for item in value]
    if key in STRINGS or not isinstance(value, _PLAIN):
        return str(value)
    return value


def extra_attributes(fact: v.Fact) -> dict[str, Value]:
    """The conventions' own name of what is called: local on a request, exposed on a call."""
    if isinstance(fact, v.Request | v.NorthboundRequest):
        return _target(fact.method, fact.target)
    if isinstance(fact, v.RoutedCall):
        return _target(fact.method, fact.name) if fact.method in _TARGET_KEYS else {}
    return {}


def _target(method: str, target: str | None) -> dict[str, Value]:
    out: dict[str, Value] = {}
    if target:
        out[_TARGET_KEYS.get(method, PREFIX + "request.target")] = target
    if method == "tools/call":
        out["gen_ai.operation.name"] = "execute_tool"
    return out


def events_of(fact: v.Fact, time_ns: int) -> tuple[SpanEvent, ...]:
    """What a fact carries that is too big, or too structured, for an attribute."""
    if isinstance(fact, v.EraDecide):
        return tuple(SpanEvent("evidence", time_ns, _evidence(one)) for one in fact.evidence)
    if isinstance(fact, v.PeerRestart) and fact.stderr_tail:
        return (SpanEvent("stderr", time_ns, {PREFIX + "stderr_tail": fact.stderr_tail}),)
    return ()


def _evidence(one: Mapping[str, object]) -> dict[str, Value]:
    return {
        EVIDENCE_PREFIX + key: value if isinstance(value, _PLAIN) else str(value)
        for key, value in one.items()
        if value is not None
    }


def is_error(fact: v.Fact, outcome: str) -> bool:
    """Whether the span's status is ERROR; a tool's own error is none of a routed call."""
    match fact:
        case v.RoutedCall():
            return outcome not in ("ok", "tool_error")
        case v.PeerStateChanged():
            return fact.state == "unavailable"
        case v.PeerRestart():
            return fact.gave_up
        case v.ConfigLoaded():
            return not fact.successful
        case v.HealthVerdict():
            return True
        case v.TelemetryLost():
            return fact.spans > 0
        case v.HostLifecycle():
            return fact.what in TROUBLES
        case v.SubscriptionLost():
            return fact.reason not in (Loss.GRACEFUL, Loss.CANCELLED)
        case _:
            return outcome != "ok"


def level_of(fact: v.Fact, outcome: str) -> Level:
    """The level of its log line: what went wrong, every downgrade, and a server that writes its log
    where messages belong (the most common fault there is) is at least a warning. That nothing is
    lost at the start is for the record alone."""
    if isinstance(fact, v.FrameDropped) and fact.kind in STDOUT_NOISE:
        return "warning"
    if isinstance(fact, v.TelemetryLost) and not fact.spans:
        return "debug"
    level = RULES[type(fact)].level
    downgrade = isinstance(fact, v.EraDecide) and fact.direction == "downgrade"
    partial = isinstance(fact, v.ListenOpen) and bool(fact.left_out)
    bad = downgrade or partial or is_error(fact, outcome)
    return "warning" if level == "info" and bad else level


ELSEWHERE: Final = frozenset({"evidence", "stderr_tail", "target"})
"""Fields that are told as events, or under the conventions' name."""
OUTCOME: Final = PREFIX + "outcome"
ERROR_TYPE: Final = "error.type"

_PLAIN: Final = (str, bool, int, float)
_TARGET_KEYS: Final = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
