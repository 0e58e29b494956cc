"""The log sink: one line a decision, one line a failed call, none for what went well.

JSON objects by structlog's renderers, on stderr (stdout carries answers, and frames of stdio
servers), or the embedding program's `logging`. Traffic's lines are rate-limited with a count of
what was left out; decisions never are.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from observant_host.telemetry.log_lines import LEVELS, Fields, as_json
from observant_host.telemetry.rules import RULES, level_of, rule_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.rules import Level
    from observant_host.telemetry.vocabulary import Fact

BURST: Final = 5
"""Lines of one kind, peer and outcome in a window; the rest is counted."""
WINDOW_S: Final = 10.0
SCHEMA: Final = "1"
TEXT_LIMIT: Final = 2048


class LogSink:
    """The sink named "log". `write(level, line)` gets the rendered line; nothing is rendered of a
    level that is not `heard`."""

    name: Final = "log"

    def __init__(
        self,
        *,
        write: Callable[[str, str], None],
        cleaner: Cleaner,
        level: Level = "info",
        render: Callable[[Fields], str] | None = None,
        service: str = "observant-host",
        monotonic: Callable[[], float] = time.monotonic,
        heard: Callable[[str], bool] | None = None,
    ) -> None:
        self.level: Level = level
        self._heard = heard
        self._write = write
        self._cleaner = cleaner
        self._render = render or as_json
        self._service = service
        self._limiter = _Limiter(monotonic)

    def wants(self, kind: type[Fact]) -> bool:
        return RULES[kind].log is not None

    def passes_over(self, kind: type[Fact]) -> bool:
        return not RULES[kind].log_ok

    def emit(self, done: Finished) -> None:
        rule = rule_of(done.fact)
        if rule.log is None or (not rule.log_ok and done.outcome == "ok"):
            return
        if rule.stream == "decisions" and done.outcome == "cancelled":
            return  # nothing was decided
        level = level_of(done.fact, done.outcome)
        if LEVELS[level] < LEVELS[self.level] or not self._is_heard(level):
            return
        suppressed = 0
        if rule.stream != "decisions":
            allowed = self._limiter.allow((rule.log, getattr(done.fact, "peer", ""), done.outcome))
            if allowed is None:
                return
            suppressed = allowed
        self._line(
            level, rule.log, _fields(done) | ({"suppressed": suppressed} if suppressed else {})
        )
        self._tell_suppressed()

    def notice(self, level: Level, event: str, **fields: object) -> None:
        """A line about telemetry itself (a sink that went down), or of a library."""
        if LEVELS[level] >= LEVELS[self.level] and self._is_heard(level):
            self._line(level, event, dict(fields))

    def _is_heard(self, level: Level) -> bool:
        return self._heard is None or self._heard(level)

    def set_level(self, level: str) -> None:
        """From the next line on. KeyError for a level that there is not."""
        LEVELS[level]
        self.level = cast("Level", level)

    async def flush(self) -> None:
        """Nothing of its own waits here."""

    async def close(self) -> None:
        """Say what is still uncounted, and let the libraries speak for themselves again."""
        self._tell_suppressed(all_of_them=True)
        release_library_logs(self)

    def _tell_suppressed(self, *, all_of_them: bool = False) -> None:
        for (event, peer, outcome), count in self._limiter.over(all_of_them=all_of_them):
            fields = {"peer": peer, "outcome": outcome, "suppressed": count}
            self._line("warning", event, fields)

    def _line(self, level: Level, event: str, fields: Fields) -> None:
        head = {
            "timestamp": datetime.now(UTC).isoformat(timespec="microseconds"),
            "level": level,
            "event": event,
            "logger": "observant_host",
            "service.name": self._service,
            "schema": SCHEMA,
        }
        self._write(level, self._render(head | self._clean(fields)))

    def _clean(self, value: Any) -> Any:
        match value:
            case str():
                return self._cleaner.text(value, limit=TEXT_LIMIT)
            case dict():
                return {self._clean(key): self._clean(one) for key, one in value.items()}
            case list() | tuple():
                return [self._clean(one) for one in value]
            case _:
                return value


def _fields(done: Finished) -> Fields:
    context = done.context
    fields: Fields = {
        "trace_id": context.trace_hex,
        "span_id": context.span_hex,
        "trace_flags": f"{context.sampled:02x}",
        **{
            key: value
            for key, value in msgspec.structs.asdict(done.fact).items()
            if value is not None and value not in ("", ())
        },
        "outcome": done.outcome,
    }
    if done.error_type is not None:
        fields["error_type"] = done.error_type
    if done.duration_ns:
        fields["duration_ms"] = round(done.duration_ns / 1e6, 3)
    return fields


class LibraryLines(logging.Handler):
    """Warnings of the libraries under us (an exporter that cannot connect), as lines of ours."""

    def __init__(self, sink: LogSink) -> None:
        super().__init__(logging.WARNING)
        self.sink = sink
        self._limiter = _Limiter(time.monotonic)

    def emit(self, record: logging.LogRecord) -> None:
        suppressed = self._limiter.allow((record.name, "", ""))
        if suppressed is not None and not record.name.startswith("observant_host"):
            level: Level = "error" if record.levelno >= logging.ERROR else "warning"
            self.sink.notice(level, "library_log", library=record.name, message=record.getMessage())


def take_over_library_logs(sink: LogSink) -> None:
    """Warnings of libraries become lines of ours, instead of plain text between JSON lines."""
    logging.getLogger().addHandler(LibraryLines(sink))


def release_library_logs(sink: LogSink) -> None:
    """Undo `take_over_library_logs`; does nothing where that was not done."""
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, LibraryLines) and h.sink is sink]:
        root.removeHandler(handler)


class _Limiter:
    """At most BURST of one key in a window. Keys are events, peers, outcomes: all bounded."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._windows: dict[tuple[str, str, str], list[float]] = {}

    def allow(self, key: tuple[str, str, str]) -> int | None:
        """How many were suppressed before this one, or None where this one is."""
        now = self._monotonic()
        window = self._windows.get(key)
        if window is None or now - window[0] >= WINDOW_S:
            suppressed = int(window[2]) if window is not None else 0
            self._windows[key] = [now, 1, 0]
            return suppressed
        if window[1] < BURST:
            window[1] += 1
            return 0
        window[2] += 1
        return None

    def over(self, *, all_of_them: bool) -> list[tuple[tuple[str, str, str], int]]:
        """Keys whose window is over and that have something uncounted; counted from now on."""
        now = self._monotonic()
        found = []
        for key, window in self._windows.items():
            if window[2] and (all_of_them or now - window[0] >= WINDOW_S):
                found.append((key, int(window[2])))
                window[2] = 0
        return found
