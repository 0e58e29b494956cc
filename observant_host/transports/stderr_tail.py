"""The last words of a child: bounded, without control sequences, masked before anyone sees them."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from observant_host.telemetry.masking import Masker

KEPT_BYTES: Final = 64 * 1024
"""Kept; far more than shown, so that a secret cut in two at the far end is never shown."""
SHOWN_CHARS: Final = 8 * 1024
"""Shown; a traceback and what led to it. Real servers write up to 25 kB in a whole session."""

_CONTROL: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


class StderrTail:
    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._chunks: deque[bytes] = deque()
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Keep `chunk`, and let go of what is too old. Constant time for chunks of a pipe."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._chunks[0]) >= KEPT_BYTES:
            self._size -= len(self._chunks.popleft())

    def text(self) -> str:
        """At most SHOWN_CHARS, whole lines where it had to be cut."""
        raw = b"".join(self._chunks).decode("utf-8", "replace")
        clean = self._masker.text(_CONTROL.sub("", raw)).strip()
        if len(clean) <= SHOWN_CHARS:
            return clean
        _, newline, whole_lines = clean[-SHOWN_CHARS:].partition("\n")
        return whole_lines if newline else clean[-SHOWN_CHARS:]
