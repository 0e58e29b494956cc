"""Open files: 500 servers with three pipes each pass the usual soft limit of 1,024."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING or sys.platform != "win32":
    import resource

WANTED: Final = 65_536
"""Room for ten thousand servers; far below where a high limit slows programs that close all."""


def raise_open_files(wanted: int = WANTED) -> int | None:
    """Raise our soft limit as far as is allowed; the old one (for children) where it changed.

    Never raises: a host with few servers runs well with the old limit.
    """
    if sys.platform == "win32":
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= target:
        return None
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    except (OSError, ValueError):
        return None
    return soft
