"""Lines out of a byte stream, in linear time and bounded memory.

A line ends at byte 0x0A and nowhere else: U+2028, U+0085 and a lone CR are content. A CR before the
newline and a byte order mark at the very start are tolerated, empty lines are skipped. A line over
the bound is dropped without being kept, but for an excerpt from which its id may be recovered.

Source: MCP 2026-07-28 basic/transports/stdio › Sending Messages, Receiving Messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

EXCERPT_HEAD: Final = 400
EXCERPT_TAIL: Final = 108
ELLIPSIS: Final = b" .. "
"""Head, mark and tail make 512 bytes: some servers write the id first, some last."""

MAX_OVERSIZED: Final = 64
"""Excerpts kept between two `take_oversized`: more lines than that in one read say nothing new."""

COPIED_BYTES: Final = 64 * 1024
"""A line up to this size becomes bytes of its own; a larger one is handed over as the buffer that
it was gathered in, so that it is in memory once."""

_BOM: Final = b"\xef\xbb\xbf"


class LineSplitter:
    """Feed chunks, get whole lines without their delimiter.

    `max_bytes` bounds one line; what is buffered never exceeds it by more than one chunk.
    `oversized` has what `take_oversized` would give.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._line: bytes | bytearray = b""  # a buffer from the second piece on
        self._head: bytes | None = None  # set while an oversized line is being skipped
        self._tail = b""
        self._at_start = True
        self.oversized: list[bytes] = []

    def feed(self, data: bytes) -> Sequence[bytes | bytearray]:
        """Take a chunk; return the lines that it completes, in order. They are the caller's."""
        if self._line and b"\n" not in data:
            self._take(data)  # the middle of a long line, which splitting would copy once more
            return []
        pieces = data.split(b"\n")
        if self._line or self._at_start or self._head is not None or len(data) > self._max_bytes:
            return self._joined(pieces)
        self._line = pieces.pop()
        if b"\r" in data:
            pieces = [piece.removesuffix(b"\r") for piece in pieces]
        return [piece for piece in pieces if piece]  # the usual chunk: nothing is left to be joined

    def _joined(self, pieces: list[bytes]) -> list[bytes | bytearray]:
        first, *others = pieces
        self._take(first)
        lines: list[bytes | bytearray] = []
        for piece in others:
            self._complete(lines)
            self._take(piece)
        return lines

    def take_oversized(self) -> list[bytes]:
        """Excerpts (at most 512 bytes: head, mark, tail) of the lines dropped since the last call.

        `jsonrpc.recover` reads the id out of one.
        """
        taken, self.oversized = self.oversized, []
        return taken

    def end(self) -> bytes | bytearray | None:
        """The stream is over: the unterminated rest, or None where there is none."""
        lines: list[bytes | bytearray] = []
        self._complete(lines)
        return lines[0] if lines else None

    def _take(self, piece: bytes) -> None:
        if self._head is not None:
            self._tail = (self._tail + piece[-EXCERPT_TAIL:])[-EXCERPT_TAIL:]
            return
        if isinstance(self._line, bytearray):
            self._line += piece
        else:
            self._line = bytearray(self._line) + piece if self._line else piece
        if len(self._line) > self._max_bytes:
            whole, self._line = self._line, b""
            self._head = bytes(whole[:EXCERPT_HEAD])
            self._tail = bytes(whole[max(EXCERPT_HEAD, len(whole) - EXCERPT_TAIL) :])

    def _complete(self, lines: list[bytes | bytearray]) -> None:
        if self._head is not None:
            if len(self.oversized) < MAX_OVERSIZED:
                self.oversized.append(self._head + ELLIPSIS + self._tail)
            self._head = None
        else:
            line, self._line = self._line, b""
            if self._at_start and line.startswith(_BOM):
                line = line[len(_BOM) :]
            if line.endswith(b"\r"):
                line = line[:-1]
            if line:
                lines.append(line if len(line) > COPIED_BYTES else bytes(line))
        self._at_start = False
