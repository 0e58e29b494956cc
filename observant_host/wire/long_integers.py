"""Integers that nobody downstream could read are refused where they come in.

CPython refuses to convert integers of more than 4300 digits: such a result would pass here as bytes
and blow up in whoever decodes it. Shorter integers and any float pass through untouched.
"""

from __future__ import annotations

import json
import re
from typing import Final

MAX_DIGITS: Final = 4300
_DIGITS: Final = b"0123456789"
_DIGIT: Final = re.compile(rb"[0-9]")


def refuse_long_integers(frame: bytes | bytearray) -> None:
    """Raise ValueError for an integer of more than MAX_DIGITS digits outside of strings.

    `frame` is valid UTF-8. A run of so many digits covers at least one of the positions looked at,
    so the usual frame costs a look at every 4300th byte.
    """
    for digit in _DIGIT.finditer(frame[::MAX_DIGITS]):
        if _run_of_digits(frame, digit.start() * MAX_DIGITS) > MAX_DIGITS:
            json.loads(frame.decode(), parse_int=_short_integer, parse_float=str)
            return


def _run_of_digits(frame: bytes | bytearray, at: int) -> int:
    before = frame[max(0, at - MAX_DIGITS) : at]
    behind = frame[at : at + MAX_DIGITS + 1]
    left = len(before) - len(before.rstrip(_DIGITS))
    return left + len(behind) - len(behind.lstrip(_DIGITS))


def _short_integer(digits: str) -> None:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"an integer has more than {MAX_DIGITS} digits")
