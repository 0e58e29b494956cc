"""Heads of HTTP messages that come again and again.

A program writes the same head before each of its requests, but for the length of the body and the
trace, and a server before each of its answers, but for that length and the date. So whatever was
once found out about such a head holds for the next one, to the byte: nothing is read a second time
here, and nothing is read that was not read in full before.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

MAX_HEADS: Final = 1024
"""That are told apart: one for each client, tool and token. Beyond it the oldest is forgotten."""


MAX_HEAD_BYTES: Final = 16 * 1024
"""Of one: a long token and a little more. What a head says is kept, a thousand times at most."""
MAX_DIGITS: Final = 8
"""Of a length: nothing that large is taken at once anyway."""


class Varying(NamedTuple):
    """A field whose value is another one each time. `marker` is a part of it that is found fast."""

    marker: bytes
    field: re.Pattern[bytes]


_BEFORE: Final = len(b"\r\nt")
"""How much of a field stands before its marker."""

TRACE: Final = Varying(
    b"raceparent: ",
    re.compile(rb"\r\n[tT]raceparent: ([0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})\r\n"),
)
"""As W3C Trace Context writes it; whatever it is worth, it is a plain field."""

DATE: Final = Varying(
    b"ate: ",
    re.compile(rb"\r\n[dD]ate: ([A-Za-z]{3}, [0-9]{2} [A-Za-z]{3} [0-9]{4} [0-9:]{8} GMT)\r\n"),
)
"""As RFC 9110 5.6.7 writes it."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """`digest` is of all that stays the same: a head holds a token, which is kept nowhere. The body
    begins at `begin` and has `length` bytes. `varied` is the value of the varying field."""

    digest: bytes
    begin: int
    length: int
    varied: str | None = None


def head_of(data: bytes, varying: Varying = TRACE) -> Head | None:
    """The head that data begins with; None where it is not whole, too long, or says no plain
    length."""
    end = data.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)
    at = data.find(_LENGTH, 0, end)
    if at < 0:
        at = data.find(_LENGTH_LOWER, 0, end)
    first = at + len(_LENGTH)
    last = data.find(b"\r", first)
    length = data[first:last]
    if end < 0 or at < 0 or len(length) > MAX_DIGITS or not length.isdigit():
        return None
    at = data.find(varying.marker, 0, end)
    if at >= 0 and (found := varying.field.search(data, at - _BEFORE, end + 2)) is not None:
        return _varied(data, end, (first, last), found)
    return Head(sha256(data[:first] + data[last:end]).digest(), end + 4, int(length))


def _varied(data: bytes, end: int, length: tuple[int, int], found: re.Match[bytes]) -> Head:
    """As `head_of`, where there is the varying field as well."""
    begins, ends = found.span(1)
    first, last = length
    if begins < first:
        same = data[:begins] + data[ends:first] + data[last:end]
    else:
        same = data[:first] + data[last:begins] + data[ends:end]
    same += b"\n"  # nor is it the head that has the field without a value
    return Head(sha256(same).digest(), end + 4, int(data[first:last]), found[1].decode())


class Heads(Generic[T]):
    """What was found out about heads. Whoever keeps something has made sure that the head has one
    Content-Length, and at most one varying field: then there is one way alone to leave them out."""

    def __init__(self, *, most: int = MAX_HEADS) -> None:
        self._most = most
        self._kept: dict[bytes, T] = {}
        self.find: Callable[[bytes], T | None] = self._kept.get
        """By a head's digest."""

    def keep(self, head: Head, what: T) -> None:
        kept = self._kept
        kept.pop(head.digest, None)
        if len(kept) >= self._most:
            del kept[next(iter(kept))]
        kept[head.digest] = what


_LENGTH: Final = b"\r\nContent-Length: "
_LENGTH_LOWER: Final = _LENGTH.lower()
"""As programs write it, one or the other."""
