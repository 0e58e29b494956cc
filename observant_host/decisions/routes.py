"""Where a name leads, or why it leads nowhere: a lookup first, an explanation only on a miss."""

from __future__ import annotations

import difflib
import heapq
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from observant_host.decisions import api_names, names
from observant_host.decisions.catalogue import (
    Catalogue,
    EntryKind,
    Excluded,
    PromptEntry,
    ResourceEntry,
    ToolEntry,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from observant_host.decisions.entries import Named
    from observant_host.decisions.names import Grant

E = TypeVar("E", bound="Named")

MAX_CLOSE: Final = 3
"""Suggestions: more is a list to read, not a hint."""

MAX_RANKED: Final = 3000
MAX_COMPARED: Final = 30
"""Names ranked roughly, and of them compared exactly: together about 10 ms, for a wrong name must
not hold up other calls."""

_CUTOFF: Final = 0.6


class NotListed(msgspec.Struct, frozen=True):
    """The name belongs to `server`, which has not listed it in this run."""

    name: str
    server: str


class Released(msgspec.Struct, frozen=True):
    """Its owner gave the bare name up; until the grace ends it is nobody's. `instead` are the
    qualified names of those that list it."""

    name: str
    owner: str
    instead: tuple[str, ...]


class Withheld(msgspec.Struct, frozen=True):
    """Listed by its server, but not offered."""

    name: str
    excluded: Excluded


class Unknown(msgspec.Struct, frozen=True):
    """`close` are names that were perhaps meant, nearest first."""

    name: str
    close: tuple[str, ...]


NoRoute = NotListed | Released | Withheld | Unknown


def find_tool(catalogue: Catalogue, name: str) -> ToolEntry | NoRoute:
    """By canonical, api or qualified name, or an api name that was shown before."""
    entry = catalogue.lookup.get(name)
    if entry is not None:
        return entry
    former = shown_before(name, catalogue.tools)
    if former is not None:
        return former
    return _why_not(catalogue, name, "tool", catalogue.idle_tools, catalogue.tools)


def find_prompt(catalogue: Catalogue, name: str) -> PromptEntry | NoRoute:
    """As `find_tool`."""
    entry = catalogue.prompt_lookup.get(name)
    if entry is not None:
        return entry
    former = shown_before(name, catalogue.prompts)
    if former is not None:
        return former
    return _why_not(catalogue, name, "prompt", catalogue.idle_prompts, catalogue.prompts)


def entry_of(catalogue: Catalogue, name: str) -> ToolEntry | None:
    """As `find_tool`, for whoever does not ask why there is none."""
    return catalogue.lookup.get(name) or shown_before(name, catalogue.tools)


def shown_before(name: str, entries: Iterable[E]) -> E | None:
    """The entry whose api name this was while its bare name was not granted yet: an agent may hold
    on to it. Looked for only where nothing else is spelled so, instead of kept for every entry."""
    if not api_names.is_hashed(name):
        return None
    spelled = ((one, names.qualified(one.server, one.local_name)) for one in entries)
    return next((one for one, full in spelled if api_names.cleaned(full) == name), None)


def find_resource(catalogue: Catalogue, uri: str) -> ResourceEntry | Unknown:
    """The owner of a URI: who lists it, else the first whose template it fits."""
    entry = catalogue.resource_lookup.get(uri)
    if entry is not None:
        return entry
    for candidate in catalogue.resources:
        if candidate.resource.is_template and fits_template(uri, candidate.uri):
            return candidate
    return Unknown(uri, close_matches(uri, catalogue.resource_lookup))


def fits_template(uri: str, template: str) -> bool:
    """True where the template's literal parts stand in `uri` in their order, the first at its
    start, the last at its end.

    Rougher than RFC 6570 on purpose: whether the values make sense only the server can say.
    """
    first, *rest = _literals(template)
    if not uri.startswith(first):
        return False
    if not rest:
        return uri == first
    position = len(first)
    for literal in rest[:-1]:
        found = uri.find(literal, position)
        if found < 0:
            return False
        position = found + len(literal)
    return uri.endswith(rest[-1]) and len(uri) - len(rest[-1]) >= position


def _literals(template: str) -> list[str]:
    """What stands between the expressions; one more than there are expressions."""
    literals: list[str] = []
    while "{" in template:
        literal, _, rest = template.partition("{")
        literals.append(literal)
        template = rest.partition("}")[2]
    return [*literals, template]


def close_matches(name: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """Up to three names like this one, nearest first: same last part, then similar spelling."""
    tail = _tail(name)
    pool = list(dict.fromkeys(candidates))
    same_tail = [other for other in pool if _tail(other) == tail]
    ranked = list(islice((other for other in pool if _comparable(name, other)), MAX_RANKED))
    pairs = _pairs(name)
    compared = heapq.nlargest(MAX_COMPARED, ranked, key=lambda other: len(pairs & _pairs(other)))
    similar = difflib.get_close_matches(name, compared, n=MAX_CLOSE, cutoff=_CUTOFF)
    return tuple(dict.fromkeys([*same_tail, *similar]))[:MAX_CLOSE]


def _pairs(name: str) -> set[str]:
    return {name[i : i + 2] for i in range(len(name) - 1)}


def _tail(name: str) -> str:
    return name.rpartition(names.SEPARATOR)[2].lower()


def _comparable(name: str, other: str) -> bool:
    """Cheap: lengths that could reach the cutoff at all, and a bound on what is compared."""
    short, long = sorted((len(name), len(other)))
    return long <= 200 and 2 * short >= _CUTOFF * (short + long)


def _why_not(
    catalogue: Catalogue,
    name: str,
    kind: EntryKind,
    idle: Mapping[str, Grant],
    offered: Sequence[Named],
) -> NoRoute:
    withheld = next(_excluded_as(catalogue, name, kind), None)
    if withheld is not None:
        return Withheld(name, withheld)
    grant = idle.get(name)
    if grant is not None and grant.given_up_at is not None:
        return Released(name, grant.owner, _qualified_of(name, offered))
    owner = grant.owner if grant is not None else _unlisted_server(catalogue, name)
    if owner is not None:
        return NotListed(name, owner)
    return Unknown(name, close_matches(name, (entry.name for entry in offered)))


def _excluded_as(catalogue: Catalogue, name: str, kind: EntryKind) -> Iterator[Excluded]:
    """Exclusions under this name, qualified or bare, but no second entry of one that is offered."""
    for lost in catalogue.excluded:
        spelled = (lost.local_name, names.qualified(lost.server, lost.local_name))
        if lost.kind == kind and lost.local_name and name in spelled:
            yield lost


def _qualified_of(name: str, offered: Iterable[Named]) -> tuple[str, ...]:
    return tuple(entry.name for entry in offered if entry.local_name == name)


def _unlisted_server(catalogue: Catalogue, name: str) -> str | None:
    """The server of a qualified name, where it has not listed anything in this run."""
    server, separator, _ = name.partition(names.SEPARATOR)
    known = separator and server in catalogue.configured
    return server if known and server not in catalogue.listings else None
