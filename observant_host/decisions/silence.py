"""When a stream of changes that has not ended is to be taken for dead, or at least doubted.

Silence proves nothing by itself: comments that keep a connection alive are optional. So it is a
loss only where such comments came at an interval and then stayed away; any other silence ends, at
the latest after `max_quiet_s`, with another stream in its place and what it covers read anew.

Source: WHATWG HTML › Server-sent events › Authoring notes; MCP 2026-07-28
basic/transports/streamable-http.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final

import msgspec

LEARNT_AFTER: Final = 3
"""So many intervals make a habit; fewer may be chance."""
KEPT_GAPS: Final = 8
"""The longest of the last few is the interval: a busy server may be late now and then."""
JITTER: Final = 0.1
"""Streams that were opened together are not renewed together: up to this part earlier."""


class Patience(msgspec.Struct, frozen=True):
    """`missed` keep-alives that stayed away are a loss, but never less than `least_silence_s`.
    Keep-alives within `least_gap_s` of each other are one. Where nothing at all was heard for
    `max_quiet_s`, another stream is opened: no change goes unnoticed for longer."""

    max_quiet_s: float = 900.0
    missed: int = 4
    least_silence_s: float = 10.0
    least_gap_s: float = 1.0


class Pulse(msgspec.Struct, frozen=True):
    """What was heard on one stream, in monotonic seconds: anything, and the last keep-alive;
    `gaps` lie between keep-alives."""

    heard_s: float
    kept_s: float | None = None
    gaps: tuple[float, ...] = ()

    def message(self, now_s: float) -> Pulse:
        """A message came on it."""
        return Pulse(now_s, self.kept_s, self.gaps)

    def kept_alive(self, now_s: float, *, least_gap_s: float = 0.0) -> Pulse:
        """A comment came on it, or another event that is no message."""
        if self.kept_s is None:
            return Pulse(now_s, now_s)
        gap = now_s - self.kept_s
        if gap < least_gap_s:
            return Pulse(now_s, self.kept_s, self.gaps)
        return Pulse(now_s, now_s, (*self.gaps, gap)[-KEPT_GAPS:])

    @property
    def interval_s(self) -> float | None:
        """At which it is kept alive; None where that is not known."""
        return max(self.gaps) if len(self.gaps) >= LEARNT_AFTER else None


class Verdict(StrEnum):
    OK = "ok"
    SILENT = "silent"  # its keep-alives stayed away: lost
    QUIET = "quiet"  # nothing at all for the longest time: to be renewed
    DOUBTFUL = "doubtful"  # something else failed while nothing was heard on it: to be renewed


class Judged(msgspec.Struct, frozen=True):
    """`left_s`: seconds after which to look again, had nothing been heard until then."""

    verdict: Verdict
    left_s: float = 0.0


def judge(pulse: Pulse, patience: Patience, *, now_s: float, random_0_1: float) -> Judged:
    """What the silence on one stream means now. `random_0_1` is drawn once a stream."""
    silence = now_s - pulse.heard_s
    interval = pulse.interval_s
    limit = math.inf
    if interval is not None:
        limit = max(patience.least_silence_s, patience.missed * interval)
    quiet = patience.max_quiet_s * (1.0 - JITTER * random_0_1)
    if silence >= limit:
        return Judged(Verdict.SILENT)
    if silence >= quiet:
        return Judged(Verdict.QUIET)
    return Judged(Verdict.OK, min(limit, quiet) - silence)


def is_doubtful(pulse: Pulse, failed_since_s: float) -> bool:
    """Whether nothing was heard since the beginning of a request that failed."""
    return pulse.heard_s <= failed_since_s
