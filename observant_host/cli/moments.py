"""Moments as people type them: a duration before now, a date, or ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from observant_host.errors import InvalidCall

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
LONGEST_DIGITS = 9


def before(text: str, *, now_ns: int, option: str) -> int:
    """Epoch nanoseconds that "24h", "2026-11-29" or "2026-11-29T18:00Z" mean, looking back.

    A moment without a zone is UTC. Raises InvalidCall, which names the option.
    """
    if match := re.fullmatch(r"(\d+)([smhdw])", text):
        seconds = int(match[1][:LONGEST_DIGITS]) * UNITS[match[2]]
        return max(0, now_ns - seconds * 1_000_000_000)
    try:
        parsed = datetime.fromisoformat(text)
        aware = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
        return max(0, int(aware.timestamp() * 1e9))
    except (ValueError, OverflowError):
        raise InvalidCall(
            f"{option} {text}: give a duration (30m, 24h, 7d), a date (2026-11-29) "
            "or a moment (2026-11-29T18:00Z)"
        ) from None
