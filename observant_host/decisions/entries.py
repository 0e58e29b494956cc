"""What a catalogue holds: one entry for each thing offered, under the name that was decided.

Entries come in blocks, one for each server. A block is made anew where its server's list, its
state, or the name of one of its entries changed; the others are taken over as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import msgspec

from observant_host.decisions import api_names, names
from observant_host.decisions.assignment import Assigned
from observant_host.decisions.catalogue import (
    Collision,
    EntryKind,
    Excluded,
    Listing,
    PeerView,
    PromptEntry,
    ResourceEntry,
    ToolEntry,
)
from observant_host.decisions.terms import ExclusionReason, PeerState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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


class Block(msgspec.Struct, Generic[E], frozen=True):
    """The entries of one server, in its own order, and the view that they were made of.

    `digest` is over the names that they are offered under, `hashed` are their api names that are
    no canonical names; there are so many `spellings` of all of them.
    """

    view: PeerView
    entries: tuple[E, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    digest: str = ""
    hashed: frozenset[str] = frozenset()
    spellings: int = 0


class Changes(msgspec.Struct, frozen=True):
    """How many names came and went, and how many lead to another entry than before."""

    added: int = 0
    removed: int = 0
    changed: int = 0


class Side(msgspec.Struct, Generic[E], frozen=True):
    """All entries of one kind, tools or prompts, in config order, named as `assigned`.

    `lookup` has every accepted spelling: canonical, qualified and api name. `plain`: every api name
    follows from its own name alone, for no two of them meet.
    """

    assigned: Assigned
    blocks: tuple[Block[E], ...] = ()
    entries: tuple[E, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    collisions: tuple[Collision, ...] = ()
    lookup: Mapping[str, E] = {}
    plain: bool = True
    changes: Changes = Changes()


class Resources(msgspec.Struct, frozen=True):
    """`listed` is what they were made of: each server's list, and whether it takes calls."""

    listed: tuple[tuple[tuple[Any, ...], bool], ...] = ()
    entries: tuple[ResourceEntry, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    lookup: Mapping[str, ResourceEntry] = {}


def tools(
    order: Sequence[PeerView], assigned: Assigned, *, before: Side[ToolEntry] | None
) -> Side[ToolEntry]:
    """Every server's tools, under their names."""
    return _Making("tool", order, assigned, make=ToolEntry, before=before).side()


def prompts(
    order: Sequence[PeerView], assigned: Assigned, *, before: Side[PromptEntry] | None
) -> Side[PromptEntry]:
    """As `tools`."""
    return _Making("prompt", order, assigned, make=PromptEntry, before=before).side()


def resources(order: Sequence[PeerView], *, before: Resources) -> Resources:
    """A URI belongs to the first in config order that serves it.

    The others are excluded as `collision_rejected`: reading it there takes `server=`.
    """
    listed = tuple((listing_of(view).resources, is_routable(view)) for view in order)
    if _same_lists(listed, before.listed):
        return before
    kept: dict[tuple[str, bool], ResourceEntry] = {}
    excluded: list[Excluded] = []
    known = {(e.uri, e.resource.is_template): e for e in before.entries}
    for view in order:
        for resource in listing_of(view).resources:
            key = (resource.uri, resource.is_template)
            owner = kept.get(key)
            if owner is None:
                entry = ResourceEntry(resource.uri, view.name, is_routable(view), resource)
                kept[key] = _reused(known.get(key), entry)
            else:
                excluded.append(_owned_elsewhere(view.name, resource.uri, owner.server))
    return Resources(
        listed,
        tuple(kept.values()),
        tuple(excluded),
        {entry.uri: entry for (uri, is_template), entry in kept.items() if not is_template},
    )


def listing_of(view: PeerView) -> Listing:
    """What a server contributes: its last good listing of this run, unless it is disabled."""
    return view.listing if view.enabled and view.listing is not None else _NOTHING


def is_routable(view: PeerView) -> bool:
    return view.state in ROUTABLE and view.answers


def offered_digest(entries: Iterable[Named]) -> str:
    """Over the names under which one server's entries are offered."""
    offered = "\n".join([f"{entry.name}\0{entry.api_name}" for entry in entries])
    return hashlib.sha256(offered.encode("utf-8", "surrogatepass")).hexdigest()


class _Making(Generic[E]):
    """One side while it is made."""

    def __init__(
        self,
        kind: EntryKind,
        order: Sequence[PeerView],
        assigned: Assigned,
        *,
        make: Callable[[str, str, str, str, bool, Any], E],
        before: Side[E] | None,
    ) -> None:
        self._kind = kind
        self._order = order
        self._assigned = assigned
        self._make = make
        self._before = before = before or Side(assigned)
        # blocks of the same servers, of which none changed but those that `affected` names
        self._goes_on = assigned.goes_on and before.plain and len(before.blocks) == len(order)

    def side(self) -> Side[E]:
        before = self._before
        blocks, plain = self._blocks(api_names.plain), True
        lookup = self._lookup_on(blocks) if self._goes_on else self._lookup(blocks)
        if lookup is None:
            every = [entry.name for block in blocks for entry in block.entries]
            # a granted name that is not served now is kept free for its owner's return
            exact = api_names.assign_api_names(every, taken=self._assigned.granted)
            self._goes_on = plain = False
            blocks = self._blocks(exact.__getitem__)
            lookup = _spellings(blocks)
        if (
            plain
            and len(blocks) == len(before.blocks)
            and all(new is old for new, old in zip(blocks, before.blocks, strict=True))
        ):
            kept: Side[E] = msgspec.structs.replace(
                before,
                assigned=self._assigned,
                collisions=self._collisions(),
                changes=Changes(),
            )
            return kept
        return Side(
            self._assigned,
            blocks,
            tuple(chain.from_iterable([block.entries for block in blocks])),
            tuple(chain.from_iterable([block.excluded for block in blocks])),
            self._collisions(),
            lookup,
            plain,
            _changes(before.blocks, blocks),
        )

    def _collisions(self) -> tuple[Collision, ...]:
        """Names that several list, with an owner; under "reject" the others are excluded."""
        now = self._assigned
        if now.policy == "reject":
            return ()
        same = self._goes_on and now.listers is self._before.assigned.listers
        if same and now.touched.isdisjoint(now.listers):
            return self._before.collisions
        owned = ((name, now.owner(name), servers) for name, servers in now.listers.items())
        return tuple(
            Collision(n, owner, tuple((s, names.qualified(s, n)) for s in servers if s != owner))
            for n, owner, servers in owned
            if owner is not None
        )

    def _blocks(self, api_name: Callable[[str], str]) -> tuple[Block[E], ...]:
        old = self._before.blocks if self._goes_on else ()
        affected = self._assigned.affected
        return tuple(
            old[at]
            if old and view.name not in affected and self._is_of(old[at], view)
            else self._block(view, api_name)
            for at, view in enumerate(self._order)
        )

    def _is_of(self, block: Block[E], view: PeerView) -> bool:
        was = block.view
        return was is view or (
            self._listed(was) is self._listed(view) and is_routable(was) == is_routable(view)
        )

    def _listed(self, view: PeerView) -> tuple[Any, ...]:
        listing = listing_of(view)
        return listing.tools if self._kind == "tool" else listing.prompts

    def _block(self, view: PeerView, api_name: Callable[[str], str]) -> Block[E]:
        server, owner, make = view.name, self._assigned.owner, self._make
        routable = is_routable(view)
        rejecting, known = self._assigned.policy == "reject", self._before.lookup
        head = names.qualified(server, "")
        entries: list[E] = []
        excluded: list[Excluded] = []
        hashed: list[str] = []
        bare = 0
        for one in self._listed(view):
            local = one.name
            owned_by = owner(local)
            if owned_by == server:
                name, bare = local, bare + 1
            elif rejecting and owned_by is not None:
                excluded.append(_rejected(self._kind, server, local, owned_by))
                continue
            else:
                name = head + local
            api = api_name(name)
            if api != name:
                hashed.append(api)
            entry = make(name, api, server, local, routable, one)
            entries.append(_reused(known.get(name), entry) if known else entry)
        return Block(
            view,
            tuple(entries),
            tuple(excluded),
            offered_digest(entries),
            frozenset(hashed),
            len(entries) + len(hashed) + bare,
        )

    def _lookup(self, blocks: Iterable[Block[E]]) -> dict[str, E] | None:
        """Every spelling of all of them; None where two of them meet."""
        found, granted = _spellings(blocks), self._assigned.granted
        if any(not granted.keys().isdisjoint(block.hashed) for block in blocks):
            return None
        return found if len(found) == sum([block.spellings for block in blocks]) else None

    def _lookup_on(self, blocks: Iterable[Block[E]]) -> dict[str, E] | None:
        """As `_lookup`, from the one before."""
        granted, found = self._assigned.granted, dict(self._before.lookup)
        pairs = zip(self._before.blocks, blocks, strict=True)
        others = [(old, new) for old, new in pairs if old is not new]
        for old, _ in others:
            for entry in old.entries:
                for spelling in _spelled(entry):
                    del found[spelling]
        for _, new in others:
            if not granted.keys().isdisjoint(new.hashed):
                return None
            for entry in new.entries:
                for spelling in _spelled(entry):
                    if found.setdefault(spelling, entry) is not entry:
                        return None
        return found


def _spelled(entry: Named) -> set[str]:
    return {entry.name, entry.api_name, names.qualified(entry.server, entry.local_name)}


def _spellings(blocks: Iterable[Block[E]]) -> dict[str, E]:
    found: dict[str, E] = {}
    for block in blocks:
        head = names.qualified(block.view.name, "")
        for entry in block.entries:
            found[entry.name] = found[head + entry.local_name] = entry
            if block.hashed:
                found[entry.api_name] = entry
    return found


def _changes(before: Sequence[Block[E]], after: Sequence[Block[E]]) -> Changes:
    """A name that went from one server to another is a changed one."""
    if not before:
        return Changes(added=sum([len(block.entries) for block in after]))
    taken_over = {id(block) for block in before} & {id(block) for block in after}
    known = _by_name(block for block in before if id(block) not in taken_over)
    now = _by_name(block for block in after if id(block) not in taken_over)
    kept = known.keys() & now.keys()
    return Changes(
        added=len(now) - len(kept),
        removed=len(known) - len(kept),
        changed=sum(now[name] is not known[name] for name in kept),
    )


def _by_name(blocks: Iterable[Block[E]]) -> dict[str, E]:
    return {entry.name: entry for block in blocks for entry in block.entries}


def _same_lists(
    lists: Sequence[tuple[tuple[Any, ...], bool]], others: Sequence[tuple[tuple[Any, ...], bool]]
) -> bool:
    return len(lists) == len(others) and all(
        listed is other and up == was_up
        for (listed, up), (other, was_up) in zip(lists, others, strict=True)
    )


def _reused(old: T | None, new: T) -> T:
    return old if old is not None and old == new else new


def _owned_elsewhere(server: str, uri: str, owner: str) -> Excluded:
    detail = f"{owner} comes first in the configuration; read it here with server={server}"
    return Excluded(server, uri, ExclusionReason.COLLISION_REJECTED, detail, "resource")


def _rejected(kind: EntryKind, server: str, local_name: str, owner: str) -> Excluded:
    """Policy "reject": what is listed under a name that another server owns."""
    detail = f'{owner} owns this name, and collision_policy is "reject"'
    return Excluded(server, local_name, ExclusionReason.COLLISION_REJECTED, detail, kind)
