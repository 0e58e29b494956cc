"""What spans of one kind have in common, made once: a call like those before costs one lookup.

Two calls of one tool differ in ids, times and a few measured numbers. Whatever else a way out needs
of them (cleaned attributes, encoded pieces) is its shape: made at the first, found at the others by
the fields that repeat.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_args

import msgspec

from observant_host.telemetry.rules import (
    ERROR_TYPE,
    OUTCOME,
    RULES,
    STRINGS,
    attribute,
    extra_attributes,
    keys_of,
    link_attributes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.util.types import AttributeValue

    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.masking import Cleaner
    from observant_host.telemetry.rules import Value
    from observant_host.telemetry.vocabulary import Fact

MAX_SHAPES: Final = 4096
"""Shapes kept by each way out: servers, tools, methods and outcomes, with room. About 2 KiB each;
when it is full all are forgotten and made again."""
MAX_TEXT: Final = 512
"""Characters of the texts of a shape that is kept: long ones (a resource's URI) seldom repeat."""

_ONCE: Final = frozenset({"jsonrpc.request.id", "process.pid"})
"""Attributes that identify: their values do not come again."""
_EVENTS: Final = frozenset({"evidence", "stderr_tail"})
"""Fields that are told as events only."""

T = TypeVar("T")


class Fields(msgspec.Struct, frozen=True):
    """How a kind of fact divides: what repeats, and what is never the same twice.

    repeating, once: (field, attribute key) of both. values: all of `repeating` at a stroke, with
    the target, which names the span. eventful: some fields are told as events.
    """

    repeating: tuple[tuple[str, str], ...]
    once: tuple[tuple[str, str], ...]
    values: Any
    eventful: bool


class Shapes(Generic[T]):
    """Finds, or has `make` make, what spans like this one have in common. For one thread.

    Decisions are made each time: they are rare, and no two are alike.
    """

    def __init__(self, make: Callable[[Finished], T], cleaner: Cleaner) -> None:
        self._make = make
        self._cleaner = cleaner
        self._version = cleaner.version
        self._values: dict[type[Fact], Callable[[Fact], Any]] = {}
        self._known: dict[tuple[object, ...], T] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, done: Finished) -> T:
        fact = done.fact
        kind = type(fact)
        if self._version != self._cleaner.version:
            self._version = self._cleaner.version
            self._known.clear()
        if (values := self._values.get(kind)) is None:
            values = self._values[kind] = fields_of(kind).values
        key = (kind, values(fact), done.outcome, done.error_type)
        if (found := self._known.get(key)) is None:
            found = self._make(done)
            if RULES[kind].stream == "traces" and _length(key) <= MAX_TEXT:
                if len(self._known) >= MAX_SHAPES:
                    self._known.clear()
                self._known[key] = found
        return found


def fields_of(kind: type[Fact]) -> Fields:
    if (known := _FIELDS.get(kind)) is None:
        types = {field.name: field.type for field in msgspec.structs.fields(kind)}
        keys = keys_of(kind)
        once = tuple((name, key) for name, key in keys if _is_once(key, types[name]))
        repeating = tuple(pair for pair in keys if pair not in once and pair[0] not in _EVENTS)
        names = [name for name, _ in repeating]
        values = attrgetter(*names) if names else _nothing
        known = _FIELDS[kind] = Fields(repeating, once, values, not _EVENTS.isdisjoint(types))
    return known


def repeating_attributes(done: Finished) -> dict[str, Value]:
    """Those of `done.attributes` that spans of its shape share."""
    fact = done.fact
    out: dict[str, Value] = {}
    for name, key in fields_of(type(fact)).repeating:
        if (plain := attribute(name, key, getattr(fact, name))) is not None:
            out[key] = plain
    out.update(extra_attributes(fact))
    out[OUTCOME] = done.outcome
    if done.error_type is not None:
        out[ERROR_TYPE] = done.error_type
    return out


def add_own(
    attributes: dict[str, AttributeValue],
    done: Finished,
    own: tuple[tuple[str, str], ...],
    clean: Callable[[str], str],
) -> None:
    """Add the others, cleaned, to those that repeat: each span's `own`, and few."""
    fact = done.fact
    for name, key in own:
        value = getattr(fact, name)
        kind = type(value)
        if kind is float:
            attributes[key] = value
        elif value is not None and value != "":
            if kind is str:
                attributes[key] = clean(value)
            else:
                attributes[key] = str(value) if key in STRINGS else value
    if done.links:
        attributes.update(link_attributes(done.links))


def _is_once(key: str, kind: object) -> bool:
    """Numbers that are measured, and ids."""
    return kind is float or float in get_args(kind) or key in _ONCE


def _length(key: object) -> int:
    if isinstance(key, tuple):
        return sum(map(_length, key))
    return len(key) if isinstance(key, str) else 0


def _nothing(_: Fact) -> None:
    return None


_FIELDS: Final[dict[type[Fact], Fields]] = {}
