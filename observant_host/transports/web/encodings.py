"""Content codings, undone piece by piece, so that a bomb is stopped by the reader's own bound.

The library would decode by itself, but hands a lie and a bomb to nobody who knows the bound.

Source: RFC 9110 8.4 Content-Encoding.
"""

from __future__ import annotations

import zlib
from typing import Final, Literal

PIECE_BYTES: Final = 64 * 1024
"""Decoded at a time: the most that one read can add before the reader's bound is checked."""

_GZIP: Final = 31
_ZLIB: Final = 15
_RAW: Final = -15


class Undecodable(Exception):
    """The bytes are not what Content-Encoding says; the text is the end of a sentence."""


class Inflate:
    """gzip (also several members) or deflate, in its zlib and in its raw form."""

    def __init__(self, coding: Literal["gzip", "deflate"]) -> None:
        self._coding = coding
        self._window = _GZIP if coding == "gzip" else 0
        self._inflate = zlib.decompressobj(self._window or _ZLIB)
        self._rest = b""
        self._more = False
        self._began = False

    def feed(self, data: bytes) -> None:
        """Coded bytes, to be taken out decoded before more is fed."""
        if not self._began and data:
            self._began = True
            if not self._window:
                self._window = _ZLIB if _is_zlib(data) else _RAW
                self._inflate = zlib.decompressobj(self._window)
        self._rest += data

    def take(self) -> bytes:
        """At most PIECE_BYTES of what can be decoded now; b"" if nothing more can."""
        while self._rest or self._more:
            try:
                piece = self._inflate.decompress(self._rest, PIECE_BYTES)
            except zlib.error as error:
                raise Undecodable(f"says {self._coding}, but its bytes are none") from error
            self._more = len(piece) == PIECE_BYTES
            self._rest = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self._next_member()
            if piece:
                return piece
        return b""

    def end(self) -> None:
        """Raises Undecodable if the coded bytes stopped in the middle."""
        if self._began and not self._inflate.eof:
            raise Undecodable(f"is {self._coding} that stops in the middle")

    def _next_member(self) -> None:
        self._more = False
        self._rest = self._inflate.unused_data.lstrip(b"\0")
        if self._rest:
            self._inflate = zlib.decompressobj(self._window)


def decoder_for(content_encoding: str) -> Inflate | None:
    """None where nothing is to be decoded. Raises Undecodable for a coding we never asked for."""
    coding = content_encoding.strip().lower()
    if coding in ("", "identity"):
        return None
    if coding in ("gzip", "x-gzip"):
        return Inflate("gzip")
    if coding == "deflate":
        return Inflate("deflate")
    raise Undecodable(f"is coded as {content_encoding[:40]!r}, which was not asked for")


def _is_zlib(data: bytes) -> bool:
    if len(data) < 2:
        return data[0] & 0x0F == 8
    return data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
