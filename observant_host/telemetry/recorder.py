"""The record: every decision and every trace on this machine's disk, whatever is sampled.

Decisions and traffic are separate streams with separate budgets, so that traffic never evicts the
proof of a downgrade. A decision is on disk within a second; a full disk is retried and counted.

Spans are encoded where they end, a few microseconds each, and only bytes wait for the thread: one
that encodes holds the GIL for milliseconds, which every call of that moment waits for, and objects
that wait for it grow old enough for the slowest collections.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from observant_host.telemetry.background import Background
from observant_host.telemetry.finished import pair_of
from observant_host.telemetry.guard import FIRST_WAIT_S, LONGEST_WAIT_S
from observant_host.telemetry.rules import RULES
from observant_host.telemetry.stream_files import StreamFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from observant_host.config import TelemetrySettings
    from observant_host.telemetry.finished import Finished, OneOfMany
    from observant_host.telemetry.otlp_json import OtlpJson
    from observant_host.telemetry.vocabulary import Fact

    _Encoded = tuple["Stream", tuple[bytes, ...], int]
    """Where it goes, encoded spans in pieces, and how many these are."""

TRACES_WAITING: Final = 8192
"""Calls (or spans that came alone) waiting for the thread: half a second of the fastest host, below
20 MiB."""
BATCH: Final = 1024
"""Of these written at once: a millisecond's work, and 2 MiB."""
LINE: Final = 64
"""Of these on one line, below 150 KiB: who is written once a line, and whoever looks for one span
decodes all of its line."""
DECISIONS_KEPT: Final = 10_000
"""Decisions kept in memory while the disk takes none: hours of a very unlucky fleet, 10 MiB."""
KEPT: Final = {"decisions": DECISIONS_KEPT, "traces": 4096, "audit": DECISIONS_KEPT}
"""Spans (of the audit: lines) kept meanwhile."""


class Recorder:
    """The sink named "recorder". `emit` encodes and queues; a thread writes."""

    name: Final = "recorder"

    def __init__(
        self,
        state_dir: Path,
        *,
        settings: TelemetrySettings,
        encoder: OtlpJson,
        monotonic: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._encoder = encoder
        decisions = StreamFiles(
            state_dir / "decisions",
            max_bytes=settings.decisions_max_bytes,
            max_days=settings.decisions_max_days,
            wall_ns=wall_ns,
        )
        traces = StreamFiles(
            state_dir / "traces",
            max_bytes=settings.traces_max_bytes,
            max_days=settings.traces_max_days,
            wall_ns=wall_ns,
        )
        self._decisions = Stream("decisions", decisions, monotonic)
        self._traces = Stream("traces", traces, monotonic)
        self._streams = {"decisions": self._decisions, "traces": self._traces}
        self._thread: Background[_Encoded] = Background(
            "observant-host record", self._work, batch=BATCH
        )
        self._rotating = False

    @property
    def up(self) -> bool:
        """False while the disk takes nothing."""
        return all(stream.up for stream in self._streams.values())

    @property
    def trouble(self) -> str:
        """What the disk said when it last refused, "" while it takes everything."""
        return next((one.trouble for one in self._streams.values() if one.trouble), "")

    @property
    def bytes_on_disk(self) -> dict[str, int]:
        return {name: stream.files.total_bytes for name, stream in self._streams.items()}

    @property
    def lost(self) -> dict[str, int]:
        """Spans that could not be kept, since the start."""
        return {name: stream.lost for name, stream in self._streams.items()}

    def wants(self, kind: type[Fact]) -> bool:
        return RULES[kind].stream is not None

    def emit(self, done: Finished) -> None:
        urgent = RULES[type(done.fact)].stream == "decisions"
        stream = self._decisions if urgent else self._traces
        if not urgent and self._thread.waiting() >= TRACES_WAITING:
            stream.lost += 1
            return
        try:
            span = self._encoder.span(done)
        except Exception:  # noqa: BLE001 - one span that cannot be encoded must not end the record
            stream.lost += 1
            return
        self._thread.put((stream, (span,), 1), urgent=urgent)

    def alike(self, call: Finished, request: Finished) -> Callable[[OneOfMany], None]:
        """Both spans by one form; see `Repetitive`."""
        encoded, stream = self._encoder.pair(call, request), self._traces
        waiting, put = self._thread.waiting, self._thread.put

        def keep(done: OneOfMany) -> None:
            if waiting() >= TRACES_WAITING:
                stream.lost += 2
                return
            if done.outer.tracestate:
                for one in pair_of(done, call, request):
                    self.emit(one)
                return
            try:
                both = encoded(done)
            except Exception:  # noqa: BLE001 - as in `emit`
                stream.lost += 2
            else:
                put((stream, both, 2))

        return keep

    def rotate(self) -> None:
        """With the next flush, finish the files that are being written: others may change them."""
        self._rotating = True

    async def flush(self) -> None:
        await self._thread.flush()

    async def close(self) -> None:
        await self._thread.close()
        for stream in self._streams.values():
            stream.close()

    def _work(self, items: list[_Encoded]) -> float | None:
        """Decisions on a line each, traffic on few."""
        traffic = [one for one in items if one[0] is self._traces]
        for stream, span, _ in items if len(traffic) < len(items) else ():
            if stream is not self._traces:
                stream.keep(self._encoder.pieces_of([span]))
        for start in range(0, len(traffic), LINE):
            part = traffic[start : start + LINE]
            line = self._encoder.pieces_of([spans for _, spans, _ in part])
            self._traces.keep(line, sum([count for _, _, count in part]))
        waits = [stream.write() for stream in self._streams.values()]
        if self._rotating:
            self._rotating = False
            for stream in self._streams.values():
                stream.files.close()
        return min((wait for wait in waits if wait is not None), default=None)


class Stream:
    """Lines on their way to the files, kept and retried while the disk refuses them. `lost` and
    what is kept are counted by spans."""

    def __init__(self, name: str, files: StreamFiles, monotonic: Callable[[], float]) -> None:
        self.files = files
        self.lost = 0
        self.trouble = ""
        self._durable = name != "traces"
        self._limit = KEPT[name]
        self._monotonic = monotonic
        self._pieces: list[bytes] = []
        self._kept = 0
        self._wait = 0.0
        self._until = 0.0

    @property
    def up(self) -> bool:
        return not self._wait

    def keep(self, line: Sequence[bytes], spans: int = 1) -> None:
        """A line, in pieces."""
        if self._kept + spans > self._limit:
            self.lost += spans
            return
        self._kept += spans
        self._pieces += line

    def close(self) -> None:
        """What the disk did not take until now is lost."""
        self.lost += self._kept
        self._pieces, self._kept = [], 0
        self.files.close()

    def write(self) -> float | None:
        """Write what is kept, if it is time to; seconds until the next attempt, None if none."""
        if not self._pieces:
            return None
        remaining = self._until - self._monotonic()
        if self._wait and remaining > 0:
            return remaining
        try:
            self.files.append(self._pieces, durable=self._durable)
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
            self._wait = min(LONGEST_WAIT_S, self._wait * 2) or FIRST_WAIT_S
            self._until = self._monotonic() + self._wait
            return self._wait
        self._pieces, self._kept = [], 0
        self._wait = 0.0
        self.trouble = ""
        return None
