"""One JSON value as Python objects, with every number that JSON can write.

JSON has no largest number, Python's floats do: 1e400 would become an infinity, which no JSON can
write again. Such a number comes as a Decimal, integers come digit for digit.
"""

from __future__ import annotations

import json
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from msgspec import Raw

_decode: Final = msgspec.json.Decoder().decode


def decode_value(raw: Raw | bytes | bytearray) -> Any:
    """Of duplicate keys the last one wins, as in `jsonrpc.decode`.

    Raises ValueError for what is no JSON, and RecursionError where it is nested too deeply for the
    stack that is left.
    """
    try:
        return _decode(raw)
    except msgspec.ValidationError:  # the one thing it refuses in valid JSON: a float out of range
        return json.loads(bytes(raw).decode(), parse_float=_number)


def _number(text: str) -> float | Decimal:
    number = float(text)
    return number if isfinite(number) else Decimal(text)
