"""The calls that are on their way, and the last ones that have ended: for whoever operates a host.

A call in flight is its `Routed` itself, so that nothing is written down while it goes; it is
looked at only when somebody asks.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.errors import InvalidCall
from observant_host.telemetry.vocabulary import RoutedCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.routing.routed import Routed
    from observant_host.timing.clock import Clock

    Told = Callable[["EndedCall"], object]

RECENT: Final = 256
"""Ended calls that are remembered: what a person scrolls through; the record holds all."""
MESSAGE_CHARS: Final = 200
"""Of a server's own words about its progress."""


class Progress(msgspec.Struct, frozen=True):
    """What the server said last."""

    progress: float
    total: float | None = None
    message: str | None = None


class CallInFlight(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is open now. `id` is unique in this run. `since` and `deadline` are ISO 8601;
    `deadline` None: its server's own times. `state`: "queued" while nothing of it can have left,
    else "sent"; `attempts` counts what was sent. A resource's `name` is "", for its URI may hold a
    secret."""

    id: str
    name: str
    method: str
    server: str
    principal: str | None
    since: str
    deadline: str | None
    attempts: int
    state: str
    progress: Progress | None
    trace_id: str


class EndedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that has ended, at `time` (ISO 8601)."""

    id: str
    name: str
    method: str
    server: str
    principal: str | None
    time: str
    outcome: str
    delivery: str
    fault: str
    attempts: int
    duration_ms: float
    trace_id: str


_Ended = tuple[int, RoutedCall, str, str, int, int, float, int]
"""What is kept of a call, put into words when somebody asks: a few atoms, so that the memory of
each call is there for the next one. Its key, what it was (all of it where it did not end well),
outcome, delivery, attempts, when it ended (ns), how long it took (ms) and its trace's id."""


class OpenCalls:
    """Of one router. A call costs an entry in a dict, and a place in a ring once it has ended.
    `nobody` is called whenever the last one that was open has ended."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[int, Routed] = {}
        self._recent: deque[_Ended] = deque(maxlen=RECENT)
        self._last = 0
        self.followers: set[Told] = set()
        self.nobody: Callable[[], object] | None = None

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def began(self, call: Routed) -> None:
        """It is open from now on, under a key that it keeps."""
        self._last = key = self._last + 1
        call.key = key
        self._open[key] = call

    def ended(self, call: Routed, outcome: str) -> None:
        """It is over, however it ended."""
        del self._open[call.key]
        if (context := call.context) is not None:
            if call.ended_s is None:
                call.ended_s = self._clock.monotonic()
            well = outcome == "ok"
            fact = call.given if well else call.fact
            delivery = call.delivery if well else fact.delivery
            now_ns, took_ms = self._clock.wall_ns(), (call.ended_s - call.began) * 1e3
            trace_id, attempts = context.trace_id, call.attempts
            kept = (call.key, fact, outcome, delivery, attempts, now_ns, took_ms, trace_id)
            self._recent.append(kept)
            if not well and self.followers:
                shown = _shown(kept)
                for told in tuple(self.followers):
                    told(shown)
        if self.nobody is not None and not self._open:
            self.nobody()

    def in_flight(self) -> list[CallInFlight]:
        """Oldest first."""
        now_s, now_ns = self._clock.monotonic(), self._clock.wall_ns()
        return [
            _in_flight(key, call, now_s=now_s, now_ns=now_ns)
            for key, call in self._open.items()
            if call.context is not None
        ]

    def recent(self) -> list[EndedCall]:
        """Newest first."""
        return [_shown(kept) for kept in reversed(self._recent)]

    def cancel(self, call_id: str, why: str) -> CallInFlight:
        """End one, southbound too; its caller gets a CallError with the outcome "cancelled".

        Returns what it was. Raises InvalidCall where no call of this id is open.
        """
        key = int(call_id) if call_id.isascii() and call_id.isdigit() else 0
        call = self._open.get(key)
        if call is None:
            raise InvalidCall(
                f"no call {call_id[:32]!r} is open; `observant-host calls` lists those that are",
                unknown=True,
            )
        shown = _in_flight(key, call, now_s=self._clock.monotonic(), now_ns=self._clock.wall_ns())
        call.cancel(why)
        return shown


def _in_flight(key: int, call: Routed, *, now_s: float, now_ns: int) -> CallInFlight:
    fact, context, note = call.fact, call.context, call.progress
    if context is None:
        raise LookupError(f"call {key} has not begun")
    return CallInFlight(
        id=str(key),
        name=fact.name,
        method=fact.method,
        server=fact.peer,
        principal=fact.principal,
        since=_iso(now_ns - round((now_s - call.began) * 1e9)),
        deadline=None
        if call.expires is None
        else _iso(now_ns + round((call.expires - now_s) * 1e9)),
        attempts=call.attempts,
        state="queued" if call.delivery == "not_sent" else "sent",
        progress=None
        if note is None
        else Progress(note.progress, note.total, (note.message or "")[:MESSAGE_CHARS] or None),
        trace_id=f"{context.trace_id:032x}",
    )


def _shown(kept: _Ended) -> EndedCall:
    key, fact, outcome, delivery, attempts, ended_ns, duration_ms, trace_id = kept
    return EndedCall(
        id=str(key),
        name=fact.name,
        method=fact.method,
        server=fact.peer,
        principal=fact.principal,
        time=_iso(ended_ns),
        outcome=outcome,
        delivery=delivery,
        fault=fact.fault,
        attempts=attempts,
        duration_ms=round(duration_ms, 3),
        trace_id=f"{trace_id:032x}",
    )


def _iso(wall_ns: int) -> str:
    moment = datetime.fromtimestamp(wall_ns / 1e9, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
