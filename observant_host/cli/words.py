"""Decisions, evidence and moments in words: the same facts as the JSON, for a person."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from observant_host.cli.output import printable

Json = Mapping[str, Any]

STEPS = {
    "spawn": "starting the process",
    "connect": "connecting",
    "discover": "server/discover",
    "initialize": "initialize",
    "get_sse": "GET for HTTP+SSE",
}

OUTCOMES = {
    "ok": "a valid answer",
    "modern_error": "an error that only modern servers know",
    "error": "an error that says nothing about the era",
    "empty": "an empty result",
    "malformed": "an answer that is no valid result",
    "timeout": "no answer",
    "closed": "the process ended",
    "invalid": "an answer that is no valid result of initialize",
    "unsupported_revision": "a revision that is not supported or not allowed",
    "modern_evidence": "the answer of a modern server",
    "http_candidate": "an HTTP answer as old servers give it",
    "http_other": "an HTTP answer that says nothing about the era",
}

DIRECTIONS = {
    "first": "first decision",
    "none": "as before",
    "upgrade": "UPGRADE",
    "downgrade": "DOWNGRADE",
}


def milliseconds(value: float | None) -> str:
    """12.3 -> "12 ms", 30000 -> "30 s"; "" for None."""
    if value is None:
        return ""
    if value < 1:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.3g} s"


def evidence_line(evidence: Json) -> str:
    """One observation as a line: what was asked, what came, after how long, its first bytes."""
    parts = [STEPS.get(str(evidence.get("step")), str(evidence.get("step")))]
    if evidence.get("version"):
        parts.append(f"at {evidence['version']}")
    outcome = str(evidence.get("outcome"))
    unanswered = outcome == "http_other" and evidence.get("http_status") is None
    parts.append("-> " + ("no HTTP answer" if unanswered else OUTCOMES.get(outcome, outcome)))
    parts.extend(_measurements(evidence, outcome))
    excerpt = printable(evidence.get("excerpt") or "").strip()
    return " ".join(parts) + (f": {excerpt}" if excerpt else "")


def _measurements(evidence: Json, outcome: str) -> list[str]:
    found = []
    if evidence.get("rpc_code") is not None:
        found.append(f"({evidence['rpc_code']})")
    if evidence.get("http_status") is not None:
        found.append(f"(HTTP {evidence['http_status']})")
    if outcome == "timeout" and evidence.get("timeout_ms") is not None:
        found.append(f"within {milliseconds(evidence['timeout_ms'])}")
    elif evidence.get("elapsed_ms") is not None:
        found.append(f"after {milliseconds(evidence['elapsed_ms'])}")
    if evidence.get("late"):
        found.append("(late)")
    return found


def era_of(server: Json) -> str:
    """ "modern 2026-07-28", or "unknown"."""
    return f"{server['era']} {server['version']}" if server.get("version") else str(server["era"])


def decision_line(decision: Json) -> str:
    """The head line of one decision of `explain`."""
    chosen = str(decision["to"])
    if decision.get("version"):
        chosen += f" {decision['version']}"
    refused = decision["to"] == "unknown"
    direction = "no era chosen" if refused else DIRECTIONS.get(decision["direction"], "")
    unexpected = "" if decision.get("expected", True) else ", NOT EXPECTED"
    return (
        f"{moment(decision.get('time'))}  {decision['from']} -> {chosen}: {decision['reason']} "
        f"({direction}{unexpected}, generation {decision['generation']})"
    )


def moment(value: object) -> str:
    """An ISO 8601 moment, as "2026-11-29 10:20:30" UTC; what is no moment stays as it is."""
    try:
        parsed = datetime.fromisoformat(str(value))
    except ValueError:
        return str(value)
    return parsed.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def counted(count: int, thing: str) -> str:
    """ "1 tool", "3 tools"."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def ago(since: object, now_ns: int) -> str:
    """How long a state lasts: "4 s", "3 min", "2 h", "5 d"; "" for what is no moment."""
    try:
        seconds = now_ns / 1e9 - datetime.fromisoformat(str(since)).timestamp()
    except ValueError:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def approximate_tokens(text: bytes) -> int:
    """Tokens a model reads for `text`, roughly: four bytes each, as tokenizers do on JSON."""
    return (len(text) + 3) // 4
