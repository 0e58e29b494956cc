"""When a stream that ended is opened again, and when no more.

A stream that a server closes at once, again and again, must not become a storm: only a stream that
brought something or lived counts as a good one.

Source: MCP 2025-11-25 basic/transports › Sending Messages to the Server (`retry` is respected).
"""

from __future__ import annotations

from typing import Final

FIRST_PAUSE_S: Final = 1.0
MAX_PAUSE_S: Final = 60.0
MIN_PAUSE_S: Final = 0.05
LIVED_S: Final = 10.0
"""A stream of this age was a good one, even if nothing was said on it."""

MAX_FRUITLESS: Final = 12
"""Reopenings in a row that brought nothing: several minutes of trying, then silence."""


def pause_s(fruitless: int, *, retry_s: float | None, at_least_s: float | None = None) -> float:
    """Seconds before the next opening, `fruitless` (from 0) of them in a row having failed.

    The server's `retry` replaces the first pause; it and `at_least_s` (a Retry-After) are floors.
    """
    first = FIRST_PAUSE_S if retry_s is None else max(retry_s, MIN_PAUSE_S)
    grown = first * 2.0 ** max(0, min(fruitless, 30) - 1)
    return max(first, min(grown, MAX_PAUSE_S), at_least_s or 0.0)


def is_fruitful(*, messages: int, lived_s: float) -> bool:
    return messages > 0 or lived_s >= LIVED_S
