"""The log sink: one line a decision, one line a failed call, none for what went well.

JSON objects by structlog's renderers, on stderr (stdout carries answers, and frames of stdio
servers), or the embedding program's `logging`. Traffic's lines are rate-limited with a count of
what was left out; decisions never are.
"""

from __future__ import annotations

import logging
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from observant_host.telemetry.background import Background
from observant_host.telemetry.rules import is_error, rule_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.rules import Level

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
BURST: Final = 5
"""Lines of one kind, peer and outcome in a window; the rest is counted."""
WINDOW_S: Final = 10.0
LINES_WAITING: Final = 10_000
"""Lines that wait for a stderr which nobody reads; later ones are dropped."""
SCHEMA: Final = "1"
TEXT_LIMIT: Final = 2048

Fields = dict[str, Any]


class LogSink:
    """The sink named "log". `write(level, line)` gets the rendered line."""

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
    ) -> None:
        self.level: Level = level
        self._write = write
        self._cleaner = cleaner
        self._render = render or as_json
        self._service = service
        self._limiter = _Limiter(monotonic)

    def emit(self, done: Finished) -> None:
        rule = rule_of(done.fact)
        if rule.log is None or (not rule.log_ok and done.outcome == "ok"):
            return
        level = rule.level
        if is_error(done.fact, done.outcome) and LEVELS[level] < LEVELS["warning"]:
            level = "warning"
        if LEVELS[level] < LEVELS[self.level]:
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
        if LEVELS[level] >= LEVELS[self.level]:
            self._line(level, event, dict(fields))

    def last_words(self) -> None:
        """Say what is still uncounted; called before closing."""
        self._tell_suppressed(all_of_them=True)

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


_json: Final = msgspec.json.Encoder(enc_hook=str)
_render_json: Final = structlog.processors.JSONRenderer(
    serializer=lambda event, **_: _json.encode(event).decode()
)
_render_console: Final = structlog.dev.ConsoleRenderer(colors=False, pad_event_to=24)
_render_plain: Final = structlog.processors.KeyValueRenderer(key_order=["event"])


def as_json(event: Fields) -> str:
    return str(_render_json(None, "", event))


def as_console(event: Fields) -> str:
    """For a person at a terminal."""
    hidden = ("logger", "service.name", "schema", "trace_flags")
    return str(_render_console(None, "", {k: v for k, v in event.items() if k not in hidden}))


def as_plain(event: Fields) -> str:
    """For the embedding program's own logging, which adds time and level."""
    hidden = ("timestamp", "level", "logger", "service.name", "schema")
    return str(_render_plain(None, "", {k: v for k, v in event.items() if k not in hidden}))


class StderrLines:
    """Writes lines to stderr from a thread: a terminal or pipe that is full stops nobody."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._thread: Background[str] = Background("observant-host log", self._work, delay_s=0.02)
        self.up = True
        self.lost = 0

    def __call__(self, level: str, line: str) -> None:
        if self._thread.waiting >= LINES_WAITING:
            self.lost += 1
            return
        self._thread.put(line, urgent=LEVELS[level] >= LEVELS["warning"])

    async def flush(self) -> None:
        await self._thread.flush()

    async def close(self) -> None:
        await self._thread.close()

    def _work(self, lines: list[str]) -> None:
        if not lines:
            return
        stream = self._stream or sys.stderr
        try:
            stream.write("".join(line + "\n" for line in lines))
            stream.flush()
        except (OSError, ValueError):
            self.up = False
            self.lost += len(lines)
        else:
            self.up = True


def to_logging(level: str, line: str) -> None:
    """The embedding program decides what becomes of our lines: logger `observant_host`."""
    _library.log(LEVELS[level], "%s", line)


_library: Final = logging.getLogger("observant_host")
_library.addHandler(logging.NullHandler())


class LibraryLines(logging.Handler):
    """Warnings of the libraries under us (an exporter that cannot connect), as lines of ours."""

    def __init__(self, sink: LogSink) -> None:
        super().__init__(logging.WARNING)
        self._sink = sink
        self._limiter = _Limiter(time.monotonic)

    def emit(self, record: logging.LogRecord) -> None:
        suppressed = self._limiter.allow((record.name, "", ""))
        if suppressed is not None and not record.name.startswith("observant_host"):
            level: Level = "error" if record.levelno >= logging.ERROR else "warning"
            self._sink.notice(
                level, "library_log", library=record.name, message=record.getMessage()
            )


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
