"""Whether bytes are UTF-8, without the text that they would make.

Source: RFC 8259 8.1 Character Encoding.
"""

from __future__ import annotations

import codecs
from typing import Final

PIECE_BYTES: Final = 64 * 1024
"""Decoded at a time: as text a message would take up to four times its size."""

_decoder: Final = codecs.getincrementaldecoder("utf-8")


def check_utf8(data: bytes | bytearray) -> None:
    """Raises UnicodeDecodeError."""
    if len(data) <= PIECE_BYTES:
        data.decode()
        return
    decode, view = _decoder().decode, memoryview(data)
    for begin in range(0, len(view), PIECE_BYTES):
        decode(view[begin : begin + PIECE_BYTES])
    decode(b"", final=True)
