"""The flight recorder: the last decisions in memory, for when disk and collector took nothing.

A ring for decisions and one for what belongs to them (starts, deadlines, streams of changes), so
that a storm of expired deadlines does not push out the downgrade that began it. Dumped as OTLP JSON
lines, the format of the record: whatever reads the one reads the other.
"""

from __future__ import annotations

import os
import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from observant_host.telemetry.rules import KEPT, RULES, events_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.otlp_json import OtlpJson
    from observant_host.telemetry.rules import Value
    from observant_host.telemetry.vocabulary import Fact

EACH: Final = 1000
"""Facts a ring: days of a quiet fleet, minutes of a burning one, at most a few MiB."""
DUMPS_KEPT: Final = 10
"""Dumps in a folder: somebody who asks again and again must not fill the disk."""


class FlightRecorder:
    """A sink that only remembers. Fed on the loop; read and dumped from any thread."""

    name: Final = "recorder"

    def __init__(self, *, encoder: Callable[[], OtlpJson], cleaner: Cleaner) -> None:
        self._encoder = encoder
        self._cleaner = cleaner
        self._decisions: deque[Finished] = deque(maxlen=EACH)
        self._around: deque[Finished] = deque(maxlen=EACH)
        self._followers: set[Callable[[dict[str, Any]], object]] = set()

    def follow(self, told: Callable[[dict[str, Any]], object]) -> Callable[[], None]:
        """Have `told` called, on the loop, with each decision from now on, in the shape of
        `recent`; it must neither block nor raise. Returns what ends that."""
        self._followers.add(told)
        return lambda: self._followers.discard(told)

    def wants(self, kind: type[Fact]) -> bool:
        return kind in KEPT

    def emit(self, done: Finished) -> None:
        decided = RULES[type(done.fact)].stream == "decisions"
        (self._decisions if decided else self._around).append(done)
        if decided and self._followers:
            shown = self._shown(done)
            for told in tuple(self._followers):
                told(shown)

    def recent(self) -> list[dict[str, Any]]:
        """All that is remembered, oldest first, masked: time (ISO 8601, UTC), name, server,
        outcome, duration_ms, trace_id, span_id, attributes, events."""
        return [self._shown(done) for done in self._in_order()]

    def dump(self, folder: Path, why: str) -> Path:
        """Write it to a file of its own in `folder`, private to the user. Raises OSError."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path = folder / f"flight-recorder-{stamp}-{os.getpid()}-{why}.jsonl"
        encoder = self._encoder()
        lines = b"".join(map(encoder.line, self._in_order()))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(lines)
        for old in sorted(folder.glob("flight-recorder-*.jsonl"))[:-DUMPS_KEPT]:
            old.unlink(missing_ok=True)
        return path

    def _in_order(self) -> list[Finished]:
        both = (*self._decisions.copy(), *self._around.copy())
        return sorted(both, key=lambda done: done.start_ns + done.duration_ns)

    def _shown(self, done: Finished) -> dict[str, Any]:
        ended_ns = done.start_ns + done.duration_ns
        return {
            "time": datetime.fromtimestamp(ended_ns / 1e9, UTC).isoformat(timespec="milliseconds"),
            "name": done.name,
            "server": getattr(done.fact, "peer", None) or None,
            "outcome": done.outcome,
            "duration_ms": done.duration_ns / 1e6,
            "trace_id": done.context.trace_hex,
            "span_id": done.context.span_hex,
            "attributes": {key: self._clean(value) for key, value in done.attributes.items()},
            "events": [
                {
                    "name": event.name,
                    "attributes": {k: self._clean(v) for k, v in event.attributes.items()},
                }
                for event in (*done.events, *events_of(done.fact, done.start_ns))
            ],
        }

    def _clean(self, value: Value) -> Value:
        if isinstance(value, str):
            return self._cleaner.text(value)
        return [self._cleaner.text(one) for one in value] if isinstance(value, list) else value
