"""A tolerant second look at a line that no decoder takes: whose reply was it?

A reply that is broken inside must fail its own request at once, which needs its id and nothing
else. This scanner wants neither valid UTF-8 nor valid numbers, does not recurse, runs in linear
time, and gives up after a bounded number of tokens. It never makes a message out of what it reads.
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

import msgspec

MAX_TOKENS: Final = 20_000
"""About 10 ms of looking: a reply larger than that ends with its id or is left to its deadline."""

MAX_SCALAR: Final = 256
"""Bytes of an id or a code that are looked at: our own ids have a dozen at most."""

Scalar = int | str | float | bool | None


class Salvaged(msgspec.Struct, frozen=True):
    """`reply`: it has a result or an error and no method. `id` is None where none can be read."""

    reply: bool
    id: Scalar = None
    code: int | None = None


_TOKEN: Final = re.compile(
    rb"""[\s,:]*+(?:
      (?P<string>"(?:[^"\\]++|\\.)*+")(?P<colon>\s*+:)?
    | (?P<opened>[\[{]++)
    | (?P<closed>[\]}]++)
    | (?P<bare>[^\s"\[\]{},:]++)
    )""",
    re.DOTALL | re.VERBOSE,
)
_ID_AT_END: Final = re.compile(
    rb"""[,{]\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|[^\s"\[\]{},:]+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$""",
)


class _Reading:
    """The top level of one object, and the code inside its error."""

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.id: bytes = b""
        self.code: bytes = b""
        self._depth = 0
        self._key = b""
        self._inner_key = b""

    def read(self, frame: bytes | bytearray) -> bool:
        """True where the object was read to its end."""
        at = 0
        for _ in range(MAX_TOKENS):
            token = _TOKEN.match(frame, at)
            if token is None:
                break
            at = token.end()
            self._take(token)
        return self._depth == 0 and at > 0

    def _take(self, token: re.Match[bytes]) -> None:
        if token["opened"]:
            self._depth += len(token["opened"])
        elif token["closed"]:
            self._depth -= len(token["closed"])
        elif token["colon"]:
            self._take_key(token["string"][1:-1])
        else:
            self._take_scalar(token["string"] or token["bare"])

    def _take_key(self, key: bytes) -> None:
        if self._depth == 1:
            self._key, self._inner_key = key, b""
            if key in _KEYS:
                self.keys.add(key)
        elif self._depth == 2:
            self._inner_key = key

    def _take_scalar(self, value: bytes) -> None:
        if self._depth == 1 and self._key == b"id":
            self.id = value if _scalar(value) is not None else self.id  # the last that can be read
        elif self._depth == 2 and self._key == b"error" and self._inner_key == b"code":
            self.code = value


_KEYS: Final = frozenset({b"jsonrpc", b"id", b"method", b"result", b"error"})


def salvage(frame: bytes | bytearray) -> Salvaged:
    """Read what can be read of one frame, or of the head and tail of one."""
    reading = _Reading()
    if not reading.read(frame) and not reading.id:
        reading.id = _id_at_end(frame)
    reply = b"method" not in reading.keys and bool(reading.keys & {b"result", b"error"})
    ours = bool(reading.id) or b"jsonrpc" in reading.keys
    code = _scalar(reading.code)
    return Salvaged(
        reply=reply and ours,
        id=_scalar(reading.id),
        code=code if type(code) is int else None,
    )


def _id_at_end(frame: bytes | bytearray) -> bytes:
    found = _ID_AT_END.search(frame[-MAX_SCALAR:])
    return found[1] if found else b""


def _scalar(value: bytes) -> Scalar:
    if not value or len(value) > MAX_SCALAR:
        return None
    try:
        decoded: Scalar = json.loads(value, parse_constant=_refuse)
    except ValueError:
        return None
    return decoded


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
