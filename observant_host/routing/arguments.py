"""A caller's arguments as bytes that fit into one frame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from observant_host.decisions.asking import LOG_LEVELS
from observant_host.errors import InvalidCall

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = 64
"""Bytes looked at for the opening brace: white space before it is rarely more than none."""


def as_object(arguments: Mapping[str, Any] | Raw | None, what: str = "arguments") -> Raw:
    """A JSON object's bytes, without line breaks. Raises InvalidCall naming `what`.

    Bytes of a caller stay as they are, but for line breaks between tokens: a stdio frame ends at
    the first one (MCP 2026-07-28 basic/transports/stdio).
    """
    if isinstance(arguments, Raw):
        return _checked(arguments, what)
    try:
        if type(arguments) is not dict:
            arguments = {} if arguments is None else dict(arguments)
        return Raw(msgspec.json.encode(arguments))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidCall(f"{what} cannot be written as a JSON object: {error}") from error


def _checked(raw: Raw, what: str) -> Raw:
    data = memoryview(raw)
    if not bytes(data[:_HEAD]).lstrip().startswith(b"{"):
        raise InvalidCall(f"{what} must be a JSON object")
    whole = bytes(data)
    if b"\n" not in whole and b"\r" not in whole:
        return raw
    try:
        return Raw(msgspec.json.format(whole, indent=-1))
    except (ValueError, RecursionError) as error:
        raise InvalidCall(f"{what} is no valid JSON: {error}") from error


def check_deadline(deadline_s: float | None) -> None:
    """Raises InvalidCall for a deadline that is no positive number of seconds."""
    if deadline_s is not None and not (deadline_s > 0 and math.isfinite(deadline_s)):
        raise InvalidCall(f"deadline_s must be a positive number of seconds, not {deadline_s}")


def check_log_level(level: str | None) -> None:
    """Raises InvalidCall for a level that the protocol does not have."""
    if level is not None and level not in LOG_LEVELS:
        raise InvalidCall(f"log_level must be one of {', '.join(LOG_LEVELS)}, not {level!r}")
