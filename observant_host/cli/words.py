"""Decisions, evidence and moments in words: the same facts as the JSON, for a person."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from observant_host.cli.output import printable
from observant_host.decisions.words import OUTCOMES, STEPS, milliseconds

Json = Mapping[str, Any]

DIRECTIONS = {
    "first": "first decision",
    "none": "as before",
    "upgrade": "UPGRADE",
    "downgrade": "DOWNGRADE",
}


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
    unexpected = "" if decision.get("expected", True) else "NOT EXPECTED"
    notes = (direction, unexpected, f"generation {decision['generation']}")
    return (
        f"{moment(decision.get('time'))}  {decision['from']} -> {chosen}: {decision['reason']} "
        f"({', '.join(filter(None, notes))})"
    )


def moment(value: object) -> str:
    """An ISO 8601 moment, as "2026-11-29 10:20:30" UTC; what is no moment stays as it is."""
    try:
        parsed = datetime.fromisoformat(str(value))
    except ValueError:
        return str(value)
    return parsed.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
