"""What one value may be: each kind reads one raw value or says what it expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class MismatchError(Exception):
    """A raw value is not of its kind; `str()` says what was expected and what was seen."""


class Kind(msgspec.Struct, frozen=True):
    """One kind of value. `read` gives the typed value or raises MismatchError.

    `text` says that a variable's text is the value itself; other kinds parse it first. `path`
    values are relative to the folder of the file they are written in. `secret` values are never
    shown, not even in the message that refuses them.
    """

    expected: str
    read: Callable[[Any], Any]
    text: bool = False
    path: bool = False
    secret: bool = False


def from_text(kind: Kind, text: str) -> Any:
    """The raw value that a variable's text or a flag means for this kind."""
    raise NotImplementedError


Values = Mapping[str, Any]
