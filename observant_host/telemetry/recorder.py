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
from observant_host.telemetry.guard import FIRST_WAIT_S, LONGEST_WAIT_S
from observant_host.telemetry.rules import RULES
from observant_host.telemetry.stream_files import StreamFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from observant_host.config import TelemetrySettings
    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.otlp_json import OtlpJson
    from observant_host.telemetry.vocabulary import Fact

TRACES_WAITING: Final = 8192
"""Spans of traffic waiting for the thread: a second of the fastest host, below 16 MiB."""
DECISIONS_KEPT: Final = 10_000
"""Decisions kept in memory while the disk takes none: hours of a very unlucky fleet, 10 MiB."""
LINES_KEPT: Final = {"decisions": DECISIONS_KEPT, "traces": 2048, "audit": DECISIONS_KEPT}


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
        self._thread: Background[tuple[Stream, bytes]] = Background(
            "observant-host record", self._work
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
        if not urgent and self._thread.waiting >= TRACES_WAITING:
            stream.lost += 1
            return
        try:
            line = self._encoder.line(done)
        except Exception:  # noqa: BLE001 - one span that cannot be encoded must not end the record
            stream.lost += 1
            return
        self._thread.put((stream, line), urgent=urgent)

    def rotate(self) -> None:
        """With the next flush, finish the files that are being written: others may change them."""
        self._rotating = True

    async def flush(self) -> None:
        await self._thread.flush()

    async def close(self) -> None:
        await self._thread.close()
        for stream in self._streams.values():
            stream.close()

    def _work(self, items: list[tuple[Stream, bytes]]) -> float | None:
        for stream, line in items:
            stream.keep(line)
        waits = [stream.write() for stream in self._streams.values()]
        if self._rotating:
            self._rotating = False
            for stream in self._streams.values():
                stream.files.close()
        return min((wait for wait in waits if wait is not None), default=None)


class Stream:
    """Lines on their way to the files, kept and retried while the disk refuses them."""

    def __init__(self, name: str, files: StreamFiles, monotonic: Callable[[], float]) -> None:
        self.files = files
        self.lost = 0
        self.trouble = ""
        self._durable = name != "traces"
        self._limit = LINES_KEPT[name]
        self._monotonic = monotonic
        self._lines: list[bytes] = []
        self._wait = 0.0
        self._until = 0.0

    @property
    def up(self) -> bool:
        return not self._wait

    def keep(self, line: bytes) -> None:
        if len(self._lines) >= self._limit:
            self.lost += 1
            return
        self._lines.append(line)

    def close(self) -> None:
        """What the disk did not take until now is lost."""
        self.lost += len(self._lines)
        self._lines = []
        self.files.close()

    def write(self) -> float | None:
        """Write what is kept, if it is time to; seconds until the next attempt, None if none."""
        if not self._lines:
            return None
        remaining = self._until - self._monotonic()
        if self._wait and remaining > 0:
            return remaining
        try:
            self.files.append(self._lines, durable=self._durable)
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
            self._wait = min(LONGEST_WAIT_S, self._wait * 2) or FIRST_WAIT_S
            self._until = self._monotonic() + self._wait
            return self._wait
        self._lines = []
        self._wait = 0.0
        self.trouble = ""
        return None
