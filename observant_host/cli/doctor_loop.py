"""`doctor` on the running host's event loop: what is late there makes good servers look slow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.cli import series
from observant_host.cli.doctor_checks import Check
from observant_host.cli.words import moment
from observant_host.decisions.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LATE_S: Final = 0.25
"""Above this share of turns the alert on the loop's lag fires too: a bound of its histogram."""
LATE_SHARE: Final = 0.01
LATE_TURNS: Final = 4
"""A second of lateness: less is the start of the host."""
STALLED: Final = "observant_host.loop.stalled"
MEANS: Final = "calls and deadlines come as late, so that time-outs look like faults of servers"
FIX: Final = (
    "see who uses the machine (`top -H`) and whether its CPU is throttled; disable a server that "
    "floods; `observant-host incidents` tells what it did to calls"
)


class Lag(msgspec.Struct, frozen=True):
    """Turns of the loop since the host's start: how many, how many of them late, and how late at
    the most 99 of 100 were (None: later than is measured). Of the stalls that the host remembers
    the longest, and when the last one was told."""

    turns: int
    late: int
    within_s: float | None
    stalls: int = 0
    longest_ms: float = 0.0
    last: str = ""


def lag_of(shown: bytes, recent: Iterable[Mapping[str, Any]]) -> Lag | None:
    """What `/metrics` and the last decisions say; None where nothing was measured yet."""
    buckets = series.by_label(shown, "event_loop_lag_seconds_bucket", "le")
    counts = {float(bound): count for bound, count in buckets.items()}
    turns = max(counts.values(), default=0.0)
    if not turns:
        return None
    enough = (le for le, count in sorted(counts.items()) if count >= (1 - LATE_SHARE) * turns)
    within_s = next(enough)
    told = [one for one in recent if one["name"] == STALLED]
    lags = [float(one["attributes"]["observant_host.loop.lag_ms"]) for one in told]
    return Lag(
        turns=int(turns),
        late=int(turns - counts.get(LATE_S, turns)),
        within_s=within_s if within_s != float("inf") else None,
        stalls=sum(int(one["attributes"]["observant_host.loop.stalls"]) for one in told),
        longest_ms=max(lags, default=0.0),
        last=told[-1]["time"] if told else "",
    )


def judge_lag(lag: Lag) -> Check:
    """Now and then a turn is late on every machine: a stall of half a second is told, not judged
    alone."""
    within = "more than 2.5 s" if lag.within_s is None else f"at most {lag.within_s * 1000:g} ms"
    said = f"the running host's event loop: 99 of 100 turns came {within} late since its start"
    if lag.stalls:
        said += (
            f"; {counted(lag.stalls, 'stall')} of half a second and more, the longest "
            f"{lag.longest_ms / 1000:.1f} s, the last {moment(lag.last)}"
        )
    if lag.late >= LATE_TURNS and lag.late > LATE_SHARE * lag.turns:
        return Check("warning", "event loop", f"{said}; {MEANS}", None, FIX)
    if lag.stalls:
        return Check("hint", "event loop", f"{said}; {MEANS}", None, FIX)
    return Check("ok", "event loop", said)
