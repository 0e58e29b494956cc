"""Whether a server that is there still answers: from calls that time out to a life that is ended.

    healthy --a timeout, or three--> suspected --no answer--> wedged --none for long--> ended
       ^                                |                       |
       +---------- any message of the server: it lives ---------+

A call that times out says little: tools may be slow. So a timeout only asks a question, one bounded
health probe, and this asks it as seldom as it can:

- whatever the server says is a sign of life: an answer, an error, progress, a log message, its own
  request. While one call is slow and others are answered, or progress comes, nothing is suspected:
  only timeouts with no message between them count, and one alone only where not a single message
  came since that call was written;
- a probe that is answered, by an error too, means that calls are slow, and nothing else;
- a probe that is not answered may mean a server that does one thing at a time. It is left alone, in
  the hope that it comes back, and meanwhile callers are told at once instead of waiting for their
  deadlines; one at a time is let through, and its answer, or any message, heals everything;
- a life is ended only where a probe and one more question (a second probe, or a call let through)
  got nothing, where the server has been silent for `patience_s` in all, and where nobody still
  waits for a call that was written before: whoever gave a tool an hour gets that hour.

A process that is stopped (SIGSTOP), hangs in a loop, or no longer reads its input looks the same
from here: it says nothing, whether or not what it was asked has left.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUTS: Final = 3
"""In a row, with no message between them, where each call saw some message in its own time."""
QUESTIONS: Final = 2
"""Probes and trial calls that must all have got nothing before a life is ended for its silence."""


class Health(StrEnum):
    HEALTHY = "healthy"
    SUSPECTED = "suspected"  # a probe is due or under way; calls go on
    WEDGED = "wedged"  # it did not answer the probe; one trial call at a time


class Sign(StrEnum):
    """What was seen of a server."""

    HEARD = "heard"  # any message, or a probe that needs none (HTTP 429)
    TIMEOUT = "timeout"  # of a call, in whose time something else was heard
    QUIET_TIMEOUT = "quiet_timeout"  # of a call since whose writing nothing was heard
    UNANSWERED = "unanswered"  # a probe or a trial call ended, and nothing was heard


NEXT: Final[Mapping[tuple[Health, Sign], Health]] = {
    (Health.HEALTHY, Sign.HEARD): Health.HEALTHY,
    (Health.HEALTHY, Sign.TIMEOUT): Health.HEALTHY,  # the third in a row: see `after`
    (Health.HEALTHY, Sign.QUIET_TIMEOUT): Health.SUSPECTED,
    (Health.HEALTHY, Sign.UNANSWERED): Health.SUSPECTED,
    (Health.SUSPECTED, Sign.HEARD): Health.HEALTHY,
    (Health.SUSPECTED, Sign.TIMEOUT): Health.SUSPECTED,
    (Health.SUSPECTED, Sign.QUIET_TIMEOUT): Health.SUSPECTED,
    (Health.SUSPECTED, Sign.UNANSWERED): Health.WEDGED,
    (Health.WEDGED, Sign.HEARD): Health.HEALTHY,
    (Health.WEDGED, Sign.TIMEOUT): Health.WEDGED,
    (Health.WEDGED, Sign.QUIET_TIMEOUT): Health.WEDGED,
    (Health.WEDGED, Sign.UNANSWERED): Health.WEDGED,
}
"""Every state with every sign; calls that were open before the probe say nothing new by then."""


class Suspicion(msgspec.Struct, frozen=True):
    """What is held against one life. `timeouts` in a row, the last at message number `heard`;
    `unanswered` probes and trials; `since_s` (monotonic) is when the suspicion began, `asked_s`
    when the last question ended."""

    health: Health = Health.HEALTHY
    timeouts: int = 0
    heard: int = 0
    unanswered: int = 0
    since_s: float = 0.0
    asked_s: float = 0.0


NONE: Final = Suspicion()


def after(now: Suspicion, sign: Sign, *, at_s: float, heard: int) -> Suspicion:
    """What is held against it after `sign`. `heard` counts the messages of this life so far."""
    if sign is Sign.HEARD or (now.health is not Health.HEALTHY and heard != now.heard):
        return NONE
    health, timeouts = NEXT[now.health, sign], now.timeouts
    if sign is not Sign.UNANSWERED:
        timeouts = now.timeouts + 1 if heard == now.heard else 1
        if health is Health.HEALTHY and timeouts >= TIMEOUTS:
            health = Health.SUSPECTED
    asked = sign is Sign.UNANSWERED and now.health is not Health.HEALTHY
    return Suspicion(
        health,
        timeouts=timeouts,
        heard=heard,
        unanswered=now.unanswered + asked,
        since_s=at_s if now.health is Health.HEALTHY else now.since_s,
        asked_s=at_s if asked else now.asked_s,
    )


def hopeless(now: Suspicion, *, at_s: float, patience_s: float, awaited: bool) -> bool:
    """Whether its life is to be ended. `awaited`: a call written before still has time left."""
    return (
        now.health is Health.WEDGED
        and now.unanswered >= QUESTIONS
        and at_s - now.since_s >= patience_s
        and not awaited
    )


def probe_in_s(now: Suspicion, *, at_s: float, every_s: float) -> float | None:
    """Seconds until it is to be probed, None where it is not: a suspected one at once, a wedged
    one again `every_s` after the last question, so that it heals, or is ended, without callers."""
    if now.health is Health.HEALTHY:
        return None
    if now.health is Health.SUSPECTED:
        return 0.0
    return max(0.0, now.asked_s + every_s - at_s)
