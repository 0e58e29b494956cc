"""Facts in words that the command line and the console share."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STEPS: Final[Mapping[str, str]] = {
    "spawn": "starting the process",
    "connect": "connecting",
    "discover": "server/discover",
    "initialize": "initialize",
    "get_sse": "GET for HTTP+SSE",
}
"""What was asked, by the step of a round."""

OUTCOMES: Final[Mapping[str, str]] = {
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
"""What came, by the outcome of a step."""


def milliseconds(value: float | None) -> str:
    """12.3 -> "12 ms", 30000 -> "30 s"; "" for None."""
    if value is None:
        return ""
    if value < 1:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.3g} s"


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
