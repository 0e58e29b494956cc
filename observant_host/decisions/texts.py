"""Members of what a server sent, each read for itself: a wrong one costs nothing elsewhere."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType


class _Told(msgspec.Struct):
    title: Raw | UnsetType = UNSET
    description: Raw | UnsetType = UNSET
    annotations: Raw | UnsetType = UNSET


_told: Final = msgspec.json.Decoder(_Told).decode
_any: Final = msgspec.json.Decoder().decode
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def title(raw: Raw) -> str | None:
    """Of a tool: its own, else that of its annotations."""
    told = _read(raw)
    return text(told.title) or as_text(members(told.annotations).get("title"))


def description(raw: Raw) -> str | None:
    return text(_read(raw).description)


def value(raw: Raw | UnsetType) -> Any:
    """None where it is absent or cannot be decoded."""
    if raw is UNSET:
        return None
    try:
        return _any(raw)
    except UNREADABLE:
        return None


def text(raw: Raw | UnsetType) -> str | None:
    return as_text(value(raw))


def members(raw: Raw | UnsetType) -> dict[str, Any]:
    """Empty where it is no object."""
    found = value(raw)
    return found if isinstance(found, dict) else {}


def as_text(found: object) -> str | None:
    return found if isinstance(found, str) else None


def _read(raw: Raw) -> _Told:
    try:
        return _told(raw)
    except UNREADABLE:
        return _Told()
