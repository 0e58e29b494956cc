"""How long a server asks to be left alone.

Source: RFC 9110 10.2.3 Retry-After.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Final

MAX_S: Final = 30 * 86400.0
"""A month: longer is never, and a number to compute with must stay one."""


def retry_after_s(value: str | None, *, wall_ns: int) -> float | None:
    """Seconds from now, by a number or an HTTP date; None where there is neither."""
    text = (value or "").strip()
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,9})?", text):
        return min(float(text), MAX_S)
    try:
        then = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None
    return min(max(0.0, then - wall_ns / 1e9), MAX_S)
