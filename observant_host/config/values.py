"""What one value may be: each kind reads one raw value or says what it expected."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from observant_host.wire import revisions


class MismatchError(Exception):
    """A raw value is not of its kind; `str()` says what was expected, for which part."""


class Kind(msgspec.Struct, frozen=True):
    """One kind of value. `read` gives the typed value or raises MismatchError.

    `text`: a variable's text is the value itself (other kinds parse it first). `path`: relative to
    the folder of the file it is written in. `secret`: never shown, not even in the message that
    refuses it. `shown`: how a value is masked before a person sees it ("argv", "url" or "plain").
    """

    expected: str
    read: Callable[[Any], Any]
    text: bool = False
    many: bool = False
    path: bool = False
    secret: bool = False
    shown: str = "plain"


SHOWN: Final = 60
"""Characters of a value in a message."""


def type_name(raw: object) -> str:
    """The word for a value's type that a person would use."""
    match raw:
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a table"
        case None:
            return "null"
        case date():
            return "a date"
        case _:
            return type(raw).__name__


def seen(kind: Kind, raw: object) -> str:
    """What stood there, for an error message: its type, and its value where that is harmless."""
    if kind.secret or kind.shown != "plain":
        return type_name(raw)
    match raw:
        case bool():
            return str(raw).lower()
        case int() | float():
            return f"a number ({raw})"
        case str():
            return f"text ({raw[:SHOWN]!r})"
        case list() if kind.many and all(isinstance(item, str) for item in raw):
            return f"a list ({', '.join(raw)[:SHOWN]!r})"
        case _:
            return type_name(raw)


def from_text(kind: Kind, text: str) -> Any:
    """The raw value that a variable's text or a flag means for this kind.

    Text kinds take it as it stands; others read it as a TOML value, a list also by commas.
    """
    if kind.text:
        return text
    try:
        return tomllib.loads(f"value = {text}\n")["value"]
    except tomllib.TOMLDecodeError:
        return [part.strip() for part in text.split(",")] if kind.many else text


DURATION: Final = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*$")
SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SIZE: Final = re.compile(r"^\s*(\d+)\s*([KMG]i?B|B)?\s*$", re.IGNORECASE)
BYTES: Final = {
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}
NAME: Final = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
DIGEST: Final = re.compile(r"^(sha256:)?[0-9A-Fa-f]{64}$")
FINGERPRINT: Final = re.compile(r"^sha256:[0-9a-f]{64}$")
LISTEN: Final = re.compile(r"^(\[[0-9A-Fa-f:.]+\]|[^\s:/]+):(\d{1,5})$")
LONGEST_S: Final = 10 * 366 * 86400.0
"""No wait of ours is longer than ten years: a longer one is a slip of units."""


def _is_number(raw: object) -> bool:
    return isinstance(raw, (int, float)) and not isinstance(raw, bool)


def _text(raw: Any) -> str:
    if not isinstance(raw, str) or "\0" in raw:
        raise MismatchError
    return raw


def _filled(raw: Any) -> str:
    if not _text(raw).strip():
        raise MismatchError
    return str(raw)


def _flag(raw: Any) -> bool:
    if not isinstance(raw, bool):
        raise MismatchError
    return raw


def _texts(raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, (list, tuple)):
        raise MismatchError
    return tuple(_text(item) for item in raw)


def _command(raw: Any) -> tuple[str, ...]:
    words = _texts([raw] if isinstance(raw, str) else raw)
    if not words or not words[0].strip():
        raise MismatchError
    return words


def _command_line(raw: Any) -> tuple[str, ...]:
    return _command(list(_texts(raw)))


def _duration(raw: Any, unit: float, *, least: float) -> float:
    """Seconds. `unit` is what a bare number counts."""
    if isinstance(raw, str) and (match := DURATION.match(raw)):
        value = float(match[1]) * (SECONDS[match[2]] if match[2] else unit)
    elif _is_number(raw):
        value = float(raw) * unit
    else:
        raise MismatchError
    if not least <= value <= LONGEST_S:
        raise MismatchError
    return value


def _size(raw: Any) -> int:
    if isinstance(raw, str) and (match := SIZE.match(raw)):
        value = int(match[1]) * BYTES[(match[2] or "B").lower()]
    elif isinstance(raw, int) and not isinstance(raw, bool):
        value = raw
    else:
        raise MismatchError
    if not 1 <= value < 2**53:
        raise MismatchError
    return value


def _megabytes(raw: Any) -> float | None:
    if raw == "off":
        return None
    value = _size(raw) / 1024**2 if isinstance(raw, str) else raw
    if not _is_number(value) or value <= 0:
        raise MismatchError
    return float(value)


def _url(raw: Any) -> str:
    try:
        parts = urlsplit(_text(raw))
        host = parts.hostname
        _ = parts.port
    except ValueError:
        raise MismatchError from None
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise MismatchError
    return str(raw)


def _listen(raw: Any) -> str:
    match = LISTEN.match(_text(raw))
    if match is None or int(match[2]) > 65535:
        raise MismatchError
    return str(raw)


def _day(raw: Any) -> date:
    if isinstance(raw, str):
        try:
            return date.fromisoformat(raw)
        except ValueError:
            raise MismatchError from None
    if not isinstance(raw, date) or isinstance(raw, datetime):
        raise MismatchError
    return raw


def _allowance(raw: Any) -> tuple[str, ...]:
    if isinstance(raw, bool):
        return revisions.LEGACY if raw else ()
    chosen = _texts(raw)
    if any(revision not in revisions.LEGACY for revision in chosen):
        raise MismatchError
    return chosen


def number(*, least: float, most: float | None = None, whole: bool = False) -> Kind:
    """A plain number within bounds (both inclusive)."""

    def read(raw: Any) -> float | int:
        if not _is_number(raw) or (whole and not isinstance(raw, int)):
            raise MismatchError
        if raw < least or (most is not None and raw > most):
            raise MismatchError
        return int(raw) if whole else float(raw)

    bounds = f"of at least {least:g}" if most is None else f"from {least:g} to {most:g}"
    expected = f"{least:g}" if least == most else f"a {'whole ' if whole else ''}number {bounds}"
    return Kind(expected, read)


def choice(*words: str) -> Kind:
    """One of a closed list of words."""

    def read(raw: Any) -> str:
        if raw not in words:
            raise MismatchError
        return str(raw)

    return Kind("one of " + ", ".join(f'"{word}"' for word in words), read, text=True)


def choices(*words: str) -> Kind:
    """A list of words from a closed list."""

    def read(raw: Any) -> tuple[str, ...]:
        chosen = _texts(raw)
        if any(word not in words for word in chosen):
            raise MismatchError
        return chosen

    return Kind("a list of " + ", ".join(f'"{word}"' for word in words), read, many=True)


def matching(pattern: re.Pattern[str], expected: str) -> Kind:
    """Text of one form."""

    def read(raw: Any) -> str:
        if not pattern.match(_text(raw)):
            raise MismatchError
        return str(raw)

    return Kind(expected, read, text=True)


_HOW_LONG = 'seconds as a number, or a duration like "500ms", "2m", "1h"'
TEXT: Final = Kind("text", _text, text=True)
FILLED: Final = Kind("text that is not empty", _filled, text=True)
SECRET: Final = Kind("text", _text, text=True, secret=True)
FLAG: Final = Kind("true or false", _flag)
TEXTS: Final = Kind("a list of texts", _texts, many=True)
ARGS: Final = Kind("a list of texts", _texts, many=True, shown="argv")
COMMAND: Final = Kind("the program to start, as text", _command, text=True, shown="argv")
COMMAND_LINE: Final = Kind(
    "a list of texts, the program first", _command_line, many=True, shown="argv"
)
PATH: Final = Kind("a path", _filled, text=True, path=True)
PATHS: Final = Kind("a list of paths", _texts, many=True)
SECONDS_ABOVE_0: Final = Kind(_HOW_LONG + ", above 0", lambda raw: _duration(raw, 1.0, least=1e-3))
SECONDS_FROM_0: Final = Kind(_HOW_LONG, lambda raw: _duration(raw, 1.0, least=0.0))
MILLISECONDS: Final = Kind(
    'milliseconds as a number, or a duration like "500ms", "2s"',
    lambda raw: round(_duration(raw, 1e-3, least=1e-3) * 1000, 6),
)
SIZE_BYTES: Final = Kind('bytes as a whole number, or a size like "512KiB", "16MiB"', _size)
MEGABYTES: Final = Kind('megabytes as a number, a size like "2GiB", or "off"', _megabytes)
URL: Final = Kind('a URL beginning with "http://" or "https://"', _url, text=True, shown="url")
ADDRESS: Final = Kind('an address like "127.0.0.1:8700"', _listen, text=True)
DAY: Final = Kind("a date like 2027-03-31", _day)
ALLOWANCE: Final = Kind(
    "true, false, or a list of revisions of: " + ", ".join(revisions.LEGACY), _allowance, many=True
)
