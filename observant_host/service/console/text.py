"""Text of others, made fit to be looked at: bounded, and with nothing in it that hides or reorders.

Escaping for HTML is not done here: the templates do it to everything.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_CHARS: Final = 4_000
"""Of one value on a page: a long paragraph. What is meant to be longer says so."""
MAX_BLOCK_CHARS: Final = 65_536
"""Of one block of a result: what a person may scroll through."""

_KEPT: Final = frozenset("\n\t")
_PICTURES: Final = 0x2400
"""Source: Unicode 16, block Control Pictures: U+2400 + code, for U+0000 to U+001F."""
_HIDING: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of controls, invisible marks and overrides of direction, lone surrogates."""


def visible(text: str, *, at_most: int = MAX_CHARS) -> str:
    """`text` with each control character shown as a sign, cut after `at_most` characters with a
    note of how many are left out."""
    text = text.replace("\r\n", "\n")
    left_out = len(text) - at_most
    shown = text[:at_most]
    if not shown.isprintable():
        shown = "".join(map(_sign, shown))
    return f"{shown}… ({left_out} more characters)" if left_out > 0 else shown


def _sign(char: str) -> str:
    if char in _KEPT or unicodedata.category(char) not in _HIDING:
        return char
    code = ord(char)
    if code < 0x20:
        return chr(_PICTURES + code)
    return "\u2421" if code == 0x7F else f"\u27e8U+{code:04X}\u27e9"


def first_sentence(text: str, *, at_most: int = 160) -> str:
    """The beginning of a description, for a table."""
    sentence = " ".join(text[: 8 * at_most].split()).split(". ", 1)[0]
    return sentence if len(sentence) <= at_most else sentence[: at_most - 1] + "…"
