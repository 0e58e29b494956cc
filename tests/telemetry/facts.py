"""One fact of every kind, for tests that must not forget any."""

from __future__ import annotations

import msgspec

from observant_host.telemetry import vocabulary as v
from observant_host.telemetry.propagation import TraceContext

EVIDENCE = {
    "step": "discover",
    "version": "2026-07-28",
    "outcome": "timeout",
    "rpc_code": None,
    "http_status": None,
    "content_type": None,
    "excerpt": "garbage",
    "elapsed_ms": 5001.5,
    "timeout_ms": 5000.0,
    "late": False,
}

OPERATIONS: tuple[v.Fact, ...] = (
    v.PeerStart(peer="a", generation=1, trigger="boot", transport="stdio"),
    v.TransportConnect(peer="a", generation=1, transport="stdio", pid=12),
    v.EraDecide(
        peer="a",
        generation=1,
        trigger="boot",
        previous="modern",
        selected="legacy",
        direction="downgrade",
        reason="initialize_ok",
        expected=False,
        version="2025-06-18",
        candidates=("2026-07-28",),
        supported=("2025-06-18",),
        server_name="archive",
        server_version="1.2",
        detail="The server speaks the legacy era.",
        evidence=(EVIDENCE,),
    ),
    v.Request(
        peer="a",
        method="server/discover",
        era="unknown",
        purpose="era",
        probe_outcome="timeout",
        deadline_ms=5000.0,
    ),
    v.Request(
        peer="a", method="initialize", era="legacy", purpose="era", probe_outcome="ok", request_id=2
    ),
    v.Request(
        peer="a",
        method="tools/call",
        era="modern",
        generation=3,
        request_id=7,
        version="2026-07-28",
        target="search",
        purpose="call",
    ),
    v.Request(peer="a", method="prompts/get", era="modern", target="greet", purpose="call"),
    v.Request(peer="a", method="resources/read", era="modern", uri="file:///x", purpose="call"),
    v.Request(peer="a", method="tools/list", era="modern", purpose="list", page=1, items=20),
    v.RoutedCall(
        name="a/search",
        method="tools/call",
        peer="a",
        local_name="search",
        era="modern",
        attempts=1,
        delivery="replied",
    ),
    v.NorthboundRequest(method="tools/call", era="modern", target="a/search", principal="ci"),
    v.CatalogueRefresh(peer="a", trigger="boot", added=3, digest="sha256:ab", version=2),
    v.ServerMessage(peer="a", method="notifications/progress", era="modern", request=False),
    v.ServerMessage(
        peer="a", method="notifications/message", era="modern", request=False, level="error"
    ),
)

MOMENTS: tuple[v.Fact, ...] = (
    v.PeerStateChanged(
        peer="a",
        previous="ready",
        state="unavailable",
        cause="process",
        reason="ambiguous_closed",
        detail="It exited.",
        time_in_previous_ms=5.5,
        generation=2,
    ),
    v.PeerRestart(
        peer="a",
        reason="exit",
        generation=2,
        attempt=1,
        backoff_ms=500.0,
        exit_code=1,
        stderr_tail="Traceback: boom",
    ),
    v.HealthVerdict(
        peer="a",
        generation=2,
        verdict="unresponsive",
        health="wedged",
        detail="ping got no answer",
        unanswered=1,
        silent_ms=30000.0,
    ),
    v.EraDropped(peer="a", generation=1, era="modern", why="exit"),
    v.DeadlineExpired(peer="a", scope="call", budget_ms=5.0, elapsed_ms=6.0, method="tools/call"),
    v.RetryScheduled(peer="a", reason="not_sent", attempt=2, delay_ms=100.0),
    v.RetryDenied(peer="a", reason="not_idempotent"),
    v.SessionNotEnded(peer="a", detail="https://a.example/mcp answered 500"),
    v.FrameDropped(peer="a", kind="not_json", excerpt="hello"),
    v.ListingFlawed(
        peer="a", detail="tools/list ended early", excluded=1, left_out=("t: no schema",)
    ),
    v.CacheLookup(peer="a", found="hit"),
    v.StructuredContentProblem(peer="a", tool="search", problem="mismatch"),
    v.OperatorAct(verb="allow", peer="a", principal="alice", reason="old server"),
    v.HttpAnswered(route="/mcp", code="200"),
    v.AuthFailed(reason="scope", route="/mcp", scope="mcp", principal="ci", client="10.0.0.7"),
    v.NameDecision(name="search", peer="a", local_name="search", what="granted", reason="first"),
    v.ConfigLoaded(hash="sha256:cd", successful=True),
    v.HostLifecycle(what="published", detail="2 servers"),
    v.LoopStalled(lag_ms=812.5, stalls=2),
    v.TelemetryLost(stream="traces", spans=3),
    v.SubscriptionLost(
        peer="a", generation=1, request_id=2, reason="transport", age_s=3.0, messages=4
    ),
    v.WatchdogCheck(peer="a", generation=1, request_id=2, verdict="quiet", silent_s=900.0),
    v.GapHealed(
        peer="a",
        generation=1,
        reason="transport",
        gap_s=0.5,
        changes=1,
        added=("tool later",),
    ),
    v.WishUnmet(peer="a", uri="a:", detail="not granted"),
    v.ListenOpen(
        peer="a", generation=1, filter=("tools",), acked=("tools",), reopened=True, gap_s=0.5
    ),
)

ALL = OPERATIONS + MOMENTS


def every_kind() -> set[type[v.Fact]]:
    """The facts that the vocabulary has, states (levels) apart."""
    return {
        kind
        for kind in vars(v).values()
        if isinstance(kind, type) and issubclass(kind, v.Fact) and kind is not v.Fact
    } - {v.PeerLevel, v.HostLevel}


class Ended(msgspec.Struct):
    """A call that ended well after one request; see `telemetry.finished.OneOfMany`."""

    id: int
    outer: TraceContext
    context: TraceContext
    parent: TraceContext | None = None
    start_ns: int = 1_700_000_000_000_000_000
    duration_ns: int = 5_000
    lead_ns: int = 1_000
    inner_ns: int = 3_000
    queued_ns: int = 0
    deadline_ns: int = 30_000_000_000
