"""How a log line looks, and where it goes: stderr by a thread, or somebody else's logging."""

from __future__ import annotations

import logging
import sys
from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.telemetry.background import Background

if TYPE_CHECKING:
    from typing import TextIO

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}
LINES_WAITING: Final = 10_000
"""Lines that wait for a stderr which nobody reads; later ones are dropped."""

TAIL_KEPT: Final = 1000
"""The last lines, kept for who collects what is needed to help: half a megabyte."""

Fields = dict[str, Any]

_json: Final = msgspec.json.Encoder(enc_hook=str)


def as_json(event: Fields) -> str:
    """One object a line."""
    return _json.encode(event).decode()


def as_console(event: Fields) -> str:
    """For a person at a terminal."""
    hidden = ("logger", "service.name", "schema", "trace_flags")
    return str(_console()(None, "", {k: v for k, v in event.items() if k not in hidden}))


def as_plain(event: Fields) -> str:
    """For the embedding program's own logging, which adds time and level."""
    hidden = ("timestamp", "level", "logger", "service.name", "schema")
    told = {"event": event["event"], **event}
    return " ".join(f"{key}={value!r}" for key, value in told.items() if key not in hidden)


@cache
def _console() -> Any:
    """On first use: the library brings a terminal's colours and tracebacks with it."""
    import structlog

    return structlog.dev.ConsoleRenderer(colors=False, pad_event_to=24)


class StderrLines:
    """Writes lines to stderr from a thread: a terminal or pipe that is full stops nobody."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._thread: Background[str] = Background("observant-host log", self._work, delay_s=0.02)
        self.up = True
        self.lost = 0
        self.tail: deque[str] = deque(maxlen=TAIL_KEPT)

    def __call__(self, level: str, line: str) -> None:
        self.tail.append(line)
        if self._thread.waiting() >= LINES_WAITING:
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


def is_heard(level: str) -> bool:
    """Whether the embedding program wants lines of that level from us at all."""
    return _library.isEnabledFor(LEVELS[level])


_library: Final = logging.getLogger("observant_host")
_library.addHandler(logging.NullHandler())
