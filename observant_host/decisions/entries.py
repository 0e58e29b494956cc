"""What a catalogue holds: one entry for each thing offered, under the name that was decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import msgspec

from observant_host.decisions import api_names, names
from observant_host.decisions.catalogue import (
    EntryKind,
    Excluded,
    Listing,
    PromptEntry,
    ResourceEntry,
    ToolEntry,
)
from observant_host.decisions.terms import ExclusionReason, PeerState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from observant_host.decisions.catalogue import Catalogue, PeerView
    from observant_host.decisions.names import Assigned, Grant

ROUTABLE: Final = frozenset({PeerState.READY, PeerState.DEGRADED})
"""States in which a server takes calls."""

_NOTHING: Final = Listing("")


class Named(Protocol):
    """A ToolEntry or a PromptEntry."""

    @property
    def name(self) -> str: ...
    @property
    def api_name(self) -> str: ...
    @property
    def server(self) -> str: ...
    @property
    def local_name(self) -> str: ...


E = TypeVar("E", bound=Named)
T = TypeVar("T")


class ToolEntries(msgspec.Struct, frozen=True):
    kept: tuple[ToolEntry, ...]
    excluded: tuple[Excluded, ...]


class PromptEntries(msgspec.Struct, frozen=True):
    kept: tuple[PromptEntry, ...]
    excluded: tuple[Excluded, ...]


class ResourceEntries(msgspec.Struct, frozen=True):
    kept: tuple[ResourceEntry, ...]
    excluded: tuple[Excluded, ...]


def tool_entries(
    order: Sequence[PeerView], assigned: Assigned, *, rejecting: bool, previous: Catalogue
) -> ToolEntries:
    """In config order, each server's tools in its own order."""
    excluded = _rejected(order, assigned, "tool") if rejecting else {}
    rows = [
        (names_of(assigned, view.name, tool.name), view, tool)
        for view in order
        for tool in _listing(view).tools
        if (view.name, tool.name) not in excluded
    ]
    api = _api_names([name for name, _, _ in rows], assigned)
    known = previous.lookup
    return ToolEntries(
        tuple(
            _reused(
                known.get(name),
                ToolEntry(name, api[name], view.name, tool.name, is_routable(view), tool),
            )
            for name, view, tool in rows
        ),
        tuple(excluded.values()),
    )


def prompt_entries(
    order: Sequence[PeerView], assigned: Assigned, *, rejecting: bool, previous: Catalogue
) -> PromptEntries:
    """As `tool_entries`."""
    excluded = _rejected(order, assigned, "prompt") if rejecting else {}
    rows = [
        (names_of(assigned, view.name, prompt.name), view, prompt)
        for view in order
        for prompt in _listing(view).prompts
        if (view.name, prompt.name) not in excluded
    ]
    api = _api_names([name for name, _, _ in rows], assigned)
    known = previous.prompt_lookup
    return PromptEntries(
        tuple(
            _reused(
                known.get(name),
                PromptEntry(name, api[name], view.name, prompt.name, is_routable(view), prompt),
            )
            for name, view, prompt in rows
        ),
        tuple(excluded.values()),
    )


def resource_entries(order: Sequence[PeerView], *, previous: Catalogue) -> ResourceEntries:
    """A URI belongs to the first in config order that serves it.

    The others are excluded as `collision_rejected`: reading it there takes `server=`.
    """
    kept: dict[tuple[str, bool], ResourceEntry] = {}
    excluded: list[Excluded] = []
    known = {(e.uri, e.resource.is_template): e for e in previous.resources}
    for view in order:
        for resource in _listing(view).resources:
            key = (resource.uri, resource.is_template)
            owner = kept.get(key)
            if owner is None:
                entry = ResourceEntry(resource.uri, view.name, is_routable(view), resource)
                kept[key] = _reused(known.get(key), entry)
            else:
                excluded.append(_owned_elsewhere(view.name, resource.uri, owner.server))
    return ResourceEntries(tuple(kept.values()), tuple(excluded))


def lookup(kept: Sequence[E]) -> dict[str, E]:
    """Every accepted spelling: canonical, qualified, api name, and the qualified name's api form.

    The last keeps an api name working that was shown while the bare name was not granted yet.
    Where two spellings meet, the one named first in this list wins.
    """
    found = {entry.name: entry for entry in kept}
    spelled = [(names.qualified(entry.server, entry.local_name), entry) for entry in kept]
    for name, entry in spelled:
        found.setdefault(name, entry)
    for entry in kept:
        found.setdefault(entry.api_name, entry)
    for name, entry in spelled:
        found.setdefault(api_names.cleaned(name), entry)
    return found


def idle(assigned: Assigned, kept: Iterable[Named]) -> dict[str, Grant]:
    """Granted names that nobody serves now."""
    served = {entry.name for entry in kept}
    return {name: grant for name, grant in assigned.granted.items() if name not in served}


def names_of(assigned: Assigned, server: str, local_name: str) -> str:
    """The canonical name of one listed thing."""
    if assigned.owners.get(local_name) == server:
        return local_name
    return names.qualified(server, local_name)


def is_routable(view: PeerView) -> bool:
    return view.state in ROUTABLE and view.answers


def _api_names(canonical: Sequence[str], assigned: Assigned) -> Mapping[str, str]:
    """A granted name that is not served now keeps its api name free for its owner's return."""
    return api_names.assign_api_names(canonical, taken=assigned.granted)


def _listing(view: PeerView) -> Listing:
    return view.listing if view.enabled and view.listing is not None else _NOTHING


def _reused(old: T | None, new: T) -> T:
    return old if old is not None and old == new else new


def _owned_elsewhere(server: str, uri: str, owner: str) -> Excluded:
    detail = f"{owner} comes first in the configuration; read it here with server={server}"
    return Excluded(server, uri, ExclusionReason.COLLISION_REJECTED, detail, "resource")


def _rejected(
    order: Sequence[PeerView], assigned: Assigned, kind: EntryKind
) -> dict[tuple[str, str], Excluded]:
    """Policy "reject": what is listed under a name that another server owns."""
    rejected: dict[tuple[str, str], Excluded] = {}
    for view in order:
        listing = _listing(view)
        for entry in listing.tools if kind == "tool" else listing.prompts:
            owner = assigned.owners.get(entry.name)
            if owner is not None and owner != view.name:
                rejected[view.name, entry.name] = Excluded(
                    view.name,
                    entry.name,
                    ExclusionReason.COLLISION_REJECTED,
                    f'{owner} owns this name, and collision_policy is "reject"',
                    kind,
                )
    return rejected
