"""What a catalogue holds: one entry for each thing offered, under the name that was decided.

Entries come in blocks, one for each server. A block is made anew where its server's list, its
state, or the name of one of its entries changed; the others are taken over as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import compress, count
from operator import attrgetter, is_not
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
    from collections.abc import Callable, Iterable

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


class Block(msgspec.Struct, Generic[E], frozen=True, gc=False):
    """The entries of one server, in its own order, and the view that they were made of.

    `digest` is over the names that they are offered under.
    """

    view: PeerView
    entries: tuple[E, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    digest: str = ""


class Changes(msgspec.Struct, frozen=True):
    """How many names came and went, and how many lead to another entry than before."""

    added: int = 0
    removed: int = 0
    changed: int = 0


class Side(msgspec.Struct, Generic[E], frozen=True):
    """All entries of one kind, tools or prompts, in config order, named as `assigned`.

    `lookup` has every accepted spelling: canonical, qualified and api name. `plain`: every api name
    follows from its own name alone, for no two of them meet. `remade` are the places of the blocks
    that were not taken over from the side before.
    """

    assigned: Assigned
    blocks: tuple[Block[E], ...] = ()
    entries: tuple[E, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    collisions: tuple[Collision, ...] = ()
    lookup: dict[str, E] = {}
    plain: bool = True
    changes: Changes = Changes()
    remade: Sequence[int] = ()


class Resources(msgspec.Struct, frozen=True):
    """`order` are the views that they were made of."""

    order: tuple[PeerView, ...] = ()
    entries: tuple[ResourceEntry, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    lookup: Mapping[str, ResourceEntry] = {}


def differing(before: Sequence[object], after: Sequence[object]) -> list[int]:
    """The places at which another object stands; all, where there are more or fewer."""
    if len(before) != len(after):
        return list(range(len(after)))
    return list(compress(count(), map(is_not, before, after)))


def tools(
    order: Sequence[PeerView],
    assigned: Assigned,
    *,
    moved: Sequence[int],
    before: Side[ToolEntry] | None,
) -> Side[ToolEntry]:
    """Every server's tools, under their names. `moved` are the places of the views that are others
    than those that the entries of `before` were made of."""
    return _Making("tool", order, assigned, make=ToolEntry, before=before).side(moved)


def prompts(
    order: Sequence[PeerView],
    assigned: Assigned,
    *,
    moved: Sequence[int],
    before: Side[PromptEntry] | None,
) -> Side[PromptEntry]:
    """As `tools`."""
    return _Making("prompt", order, assigned, make=PromptEntry, before=before).side(moved)


def resources(order: Sequence[PeerView], *, moved: Sequence[int], before: Resources) -> Resources:
    """A URI belongs to the first in config order that serves it.

    The others are excluded as `collision_rejected`: reading it there takes `server=`.
    """
    if len(order) == len(before.order) and all(
        _same_resources(order[at], before.order[at]) for at in moved
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
        self._met = False
        """Whether an api name reads like one that is granted."""
        self._remade: Sequence[int] = range(len(order))

    def side(self, moved: Sequence[int]) -> Side[E]:
        before = self._before
        blocks = self._blocks(moved, api_names.plain)
        if self._goes_on and not self._remade:
            kept: Side[E] = msgspec.structs.replace(
                before,
                assigned=self._assigned,
                collisions=self._collisions(),
                changes=Changes(),
                remade=(),
            )
            return kept
        gone, came = self._turnover(blocks)
        lookup = self._lookup(blocks, gone, came)
        plain = lookup is not None
        if lookup is None:
            blocks = self._exact_blocks(blocks)
            gone, came = self._turnover(blocks)
            lookup = {}
            _spell(lookup, _joined(blocks))
        return Side(
            self._assigned,
            blocks,
            _joined(blocks),
            tuple([lost for block in blocks for lost in block.excluded]),
            self._collisions(),
            lookup,
            plain,
            _changes(gone, came),
            self._remade,
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

    def _blocks(self, moved: Sequence[int], api_name: Callable[[str], str]) -> tuple[Block[E], ...]:
        if not self._goes_on:
            return tuple([self._block(view, api_name) for view in self._order])
        blocks, order, place = list(self._before.blocks), self._order, self._assigned.places
        affected = {place[server] for server in self._assigned.affected}
        affected.update(at for at in moved if not self._is_of(blocks[at], order[at]))
        self._remade = sorted(affected)
        for at in self._remade:
            blocks[at] = self._block(order[at], api_name, blocks[at])
        return tuple(blocks)

    def _exact_blocks(self, blocks: Sequence[Block[E]]) -> tuple[Block[E], ...]:
        """The same ones, with api names of which no two meet."""
        every = [entry.name for entry in _joined(blocks)]
        # a granted name that is not served now is kept free for its owner's return
        exact = api_names.assign_api_names(every, taken=self._assigned.granted)
        self._goes_on, self._remade = False, range(len(blocks))
        return self._blocks((), exact.__getitem__)

    def _is_of(self, block: Block[E], view: PeerView) -> bool:
        was = block.view
        same = self._listed(was) is self._listed(view)
        return same and is_routable(was) == is_routable(view)

    def _listed(self, view: PeerView) -> tuple[Any, ...]:
        listing = listing_of(view)
        return listing.tools if self._kind == "tool" else listing.prompts

    def _block(
        self, view: PeerView, api_name: Callable[[str], str], was: Block[E] | None = None
    ) -> Block[E]:
        server, owner, make = view.name, self._assigned.owner, self._make
        routable, content = is_routable(view), attrgetter(self._kind)
        rejecting, granted = self._assigned.policy == "reject", self._assigned.granted
        head, known, settled = names.qualified(server, ""), self._before.lookup, self._settled(was)
        entries: list[E] = []
        excluded: list[Excluded] = []
        for one in self._listed(view):
            local = one.name
            old = settled.get(local)
            if old is None or old.routable is not routable or content(old) != one:
                owned_by = owner(local)
                if owned_by == server:
                    name = local
                elif rejecting and owned_by is not None:
                    excluded.append(_rejected(self._kind, server, local, owned_by))
                    continue
                else:
                    name = head + local
                api = api_name(name)
                if api != name and api in granted:
                    self._met = True
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
        return Block(view, tuple(entries), tuple(excluded), offered_digest(entries))

    def _settled(self, was: Block[E] | None) -> dict[str, E]:
        """Local name to entry, of those that are still offered under the same name."""
        touched = self._assigned.touched
        found = was.entries if was is not None else ()
        return {old.local_name: old for old in found if old.local_name not in touched}

    def _turnover(self, blocks: Sequence[Block[E]]) -> tuple[Sequence[E], Sequence[E]]:
        """Entries that went, and those that came. One that has changed is among both."""
        before = self._before.blocks
        if not before:
            return (), _joined(blocks)
        known = _by_name([before[at] for at in self._remade] if self._goes_on else before)
        now = _by_name([blocks[at] for at in self._remade])
        return (
            [entry for name, entry in known.items() if now.get(name) is not entry],
            [entry for name, entry in now.items() if known.get(name) is not entry],
        )

    def _lookup(
        self, blocks: Sequence[Block[E]], gone: Sequence[E], came: Sequence[E]
    ) -> dict[str, E] | None:
        """Every spelling of all of them; None where two of them meet."""
        if not self._goes_on:
            found: dict[str, E] = {}
            came = _joined(blocks)
        else:
            found, leaving = self._before.lookup.copy(), dict[str, E]()  # `dict` counts the deleted
            _spell(leaving, gone)
            for spelling in leaving:
                del found[spelling]
        return found if _spell(found, came) and not self._met else None


def _joined(blocks: Sequence[Block[E]]) -> tuple[E, ...]:
    joined: list[E] = []
    for block in blocks:
        joined += block.entries
    return tuple(joined)


def _spell(found: dict[str, E], entries: Sequence[E]) -> bool:
    """Put them there under all their spellings; False where one of these was taken."""
    expected = len(found)
    for entry in entries:
        name, api = entry.name, entry.api_name
        full = names.qualified(entry.server, entry.local_name)
        found[name] = found[full] = found[api] = entry
        expected += 1 + (full != name) + (api != name)
    return len(found) == expected


def _by_name(blocks: Sequence[Block[E]]) -> dict[str, E]:
    return {entry.name: entry for block in blocks for entry in block.entries}


def _changes(gone: Sequence[Named], came: Sequence[Named]) -> Changes:
    """A name that went from one server to another is a changed one."""
    left = {entry.name for entry in gone}
    changed = sum([entry.name in left for entry in came]) if left else 0
    return Changes(len(came) - changed, len(gone) - changed, changed)


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
