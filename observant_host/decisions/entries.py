"""What a catalogue holds: one entry for each thing offered, under the name that was decided.

Entries come in blocks, one for each server. A block is made anew where its server's list, its
state, or the name of one of its entries changed; the others are taken over as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import chain
from operator import attrgetter, is_
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
    @property
    def routable(self) -> bool: ...


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
    lookup: dict[str, E] = {}
    plain: bool = True
    changes: Changes = Changes()


class Resources(msgspec.Struct, frozen=True):
    """`order` are the views that they were made of."""

    order: tuple[PeerView, ...] = ()
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
    if len(order) == len(before.order) and all(
        view is was or _same_resources(view, was)
        for view, was in zip(order, before.order, strict=True)
    ):
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
        tuple(order),
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
        if plain and len(blocks) == len(before.blocks) and all(map(is_, blocks, before.blocks)):
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
            _joined(block.entries for block in blocks),
            _joined(block.excluded for block in blocks),
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
        if not self._goes_on:
            return tuple([self._block(view, api_name) for view in self._order])
        affected, blocks = self._assigned.affected, list(self._before.blocks)
        for at, (block, view) in enumerate(zip(self._before.blocks, self._order, strict=True)):
            if view.name in affected or (block.view is not view and not self._is_of(block, view)):
                blocks[at] = self._block(view, api_name)
        return tuple(blocks)

    def _is_of(self, block: Block[E], view: PeerView) -> bool:
        was = block.view
        same = self._listed(was) is self._listed(view)
        return same and is_routable(was) == is_routable(view)

    def _listed(self, view: PeerView) -> tuple[Any, ...]:
        listing = listing_of(view)
        return listing.tools if self._kind == "tool" else listing.prompts

    def _block(self, view: PeerView, api_name: Callable[[str], str]) -> Block[E]:
        server, owner, make = view.name, self._assigned.owner, self._make
        routable, content = is_routable(view), attrgetter(self._kind)
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
            old = known.get(name)
            if (
                old is None
                or old.server != server
                or old.api_name != api
                or old.routable is not routable
                or content(old) != one
            ):
                old = make(name, api, server, local, routable, one)
            entries.append(old)
        return Block(
            view,
            tuple(entries),
            tuple(excluded),
            offered_digest(entries),
            frozenset(hashed),
            len(entries) + len(hashed) + bare,
        )

    def _lookup(self, made: Iterable[Block[E]]) -> dict[str, E] | None:
        """Every spelling of all of them; None where two of them meet."""
        blocks, granted = tuple(made), self._assigned.granted
        found = _spellings(blocks)
        if any(not granted.keys().isdisjoint(block.hashed) for block in blocks):
            return None
        return found if len(found) == sum([block.spellings for block in blocks]) else None

    def _lookup_on(self, blocks: Iterable[Block[E]]) -> dict[str, E] | None:
        """As `_lookup`, from the one before."""
        pairs = zip(self._before.blocks, blocks, strict=True)
        others = [(old, new) for old, new in pairs if old is not new]
        was, now = _spellings(old for old, _ in others), self._lookup(new for _, new in others)
        if now is None:
            return None
        found = self._before.lookup.copy()  # `dict` would count over what was deleted before
        for spelling in was.keys() - now.keys():
            del found[spelling]
        if not found.keys().isdisjoint(now.keys() - was.keys()):
            return None
        found.update(now)
        return found


def _joined(parts: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    joined: list[T] = []
    for part in parts:
        joined += part
    return tuple(joined)


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
    pairs = list(zip(before, after, strict=False))
    known = _by_name([old for old, new in pairs if old is not new], before[len(pairs) :])
    now = _by_name([new for old, new in pairs if old is not new], after[len(pairs) :])
    kept = known.keys() & now.keys()
    return Changes(
        added=len(now) - len(kept),
        removed=len(known) - len(kept),
        changed=sum([now[name] is not known[name] for name in kept]),
    )


def _by_name(*parts: Iterable[Block[E]]) -> dict[str, E]:
    return {entry.name: entry for block in chain(*parts) for entry in block.entries}


def _same_resources(view: PeerView, was: PeerView) -> bool:
    """As far as the catalogue shows them."""
    same = listing_of(view).resources is listing_of(was).resources
    return same and is_routable(view) == is_routable(was)


def _reused(old: T | None, new: T) -> T:
    return old if old is not None and old == new else new


def _owned_elsewhere(server: str, uri: str, owner: str) -> Excluded:
    detail = f"{owner} comes first in the configuration; read it here with server={server}"
    return Excluded(server, uri, ExclusionReason.COLLISION_REJECTED, detail, "resource")


def _rejected(kind: EntryKind, server: str, local_name: str, owner: str) -> Excluded:
    """Policy "reject": what is listed under a name that another server owns."""
    detail = f'{owner} owns this name, and collision_policy is "reject"'
    return Excluded(server, local_name, ExclusionReason.COLLISION_REJECTED, detail, kind)
