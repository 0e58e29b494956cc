"""Lines out of a byte stream, in linear time and bounded memory.

A line ends at byte 0x0A and nowhere else: U+2028, U+0085 and a lone CR are content. A CR before the
newline and a byte order mark at the very start are tolerated, empty lines are skipped. A line over
the bound is dropped without being kept, but for an excerpt from which its id may be recovered.

Source: MCP 2026-07-28 basic/transports/stdio › Sending Messages, Receiving Messages.
"""

from __future__ import annotations

from typing import Final

EXCERPT_HEAD: Final = 400
EXCERPT_TAIL: Final = 108
ELLIPSIS: Final = b" .. "
"""Head, mark and tail make 512 bytes: some servers write the id first, some last."""

MAX_OVERSIZED: Final = 64
"""Excerpts kept between two `take_oversized`: more lines than that in one read say nothing new."""

MAX_PIECES: Final = 64
"""Pieces of one line kept apart before they are put together: a peer that dribbles a line byte by
byte would otherwise cost an object for each."""

_BOM: Final = b"\xef\xbb\xbf"


class LineSplitter:
    """Feed chunks, get whole lines without their delimiter.

    `max_bytes` bounds one line; what is buffered never exceeds it by more than one chunk.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._gathered = bytearray()
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None  # set while an oversized line is being skipped
        self._tail = b""
        self._at_start = True
        self._oversized: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Take a chunk; return the lines that it completes, in order."""
        first, *others = data.split(b"\n")
        self._take(first)
        if not others:
            return []
        lines: list[bytes] = []
        for piece in others:
            self._complete(lines)
            self._take(piece)
        return lines

    def take_oversized(self) -> list[bytes]:
        """Excerpts (at most 512 bytes: head, mark, tail) of the lines dropped since the last call.

        `jsonrpc.recover` reads the id out of one.
        """
        taken, self._oversized = self._oversized, []
        return taken

    def end(self) -> bytes | None:
        """The stream is over: the unterminated rest, or None where there is none."""
        lines: list[bytes] = []
        self._complete(lines)
        return lines[0] if lines else None

    def _take(self, piece: bytes) -> None:
        if self._head is not None:
            self._tail = (self._tail + piece[-EXCERPT_TAIL:])[-EXCERPT_TAIL:]
            return
        self._parts.append(piece)
        self._size += len(piece)
        if self._size > self._max_bytes:
            whole = self._whole()
            self._head, self._tail = whole[:EXCERPT_HEAD], whole[EXCERPT_HEAD:][-EXCERPT_TAIL:]
        elif len(self._parts) > MAX_PIECES:
            self._gathered += b"".join(self._parts)
            self._parts.clear()

    def _complete(self, lines: list[bytes]) -> None:
        if self._head is not None:
            if len(self._oversized) < MAX_OVERSIZED:
                self._oversized.append(self._head + ELLIPSIS + self._tail)
            self._head = None
        else:
            line = self._whole()
            if self._at_start:
                line = line.removeprefix(_BOM)
            if line := line.removesuffix(b"\r"):
                lines.append(line)
        self._at_start = False

    def _whole(self) -> bytes:
        """The line so far; the next one begins. One piece alone is not copied."""
        parts = [bytes(self._gathered), *self._parts] if self._gathered else self._parts
        self._gathered, self._parts, self._size = bytearray(), [], 0
        return b"".join(parts)
