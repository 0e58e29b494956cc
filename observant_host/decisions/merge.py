"""Many listings, one catalogue: a pure function of what each server last listed.

What did not change is reused, object for object: one server's change then costs a walk over the
others' entries, and neither hashing nor building them again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions import entries, names
from observant_host.decisions.catalogue import (
    Catalogue,
    Collision,
    EntryKind,
    Excluded,
    ListingDigest,
    Missing,
    PeerView,
)
from observant_host.decisions.names import Assigned, Grants, NameChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from observant_host.config import CollisionPolicy
    from observant_host.decisions.catalogue import Listing


class Clash(msgspec.Struct, frozen=True):
    """Policy "reject": `newcomer` lists a name that `owner` lists too."""

    kind: EntryKind
    name: str
    owner: str
    newcomer: str


class NameDecided(msgspec.Struct, frozen=True):
    """One decision about a tool's or prompt's name."""

    kind: EntryKind
    change: NameChange


class Merged(msgspec.Struct, frozen=True):
    """`catalogue` is `previous` itself where nothing changed. `decisions` are those about tool and
    prompt names. `clashes` are filled by the policy "reject" only: the caller refuses to start by
    them at first publication. `wake_at` (epoch seconds): merge again then, a grace ends."""

    catalogue: Catalogue
    grants: Grants
    decisions: tuple[NameDecided, ...]
    clashes: tuple[Clash, ...]
    wake_at: float | None


EMPTY: Final = Catalogue(
    version=0,
    digest="sha256:" + hashlib.sha256().hexdigest(),
    tools=(),
    prompts=(),
    resources=(),
    collisions=(),
    excluded=(),
    missing=(),
    lookup={},
    prompt_lookup={},
    resource_lookup={},
)
"""The catalogue before anything was listed."""


def merge(
    order: Sequence[PeerView],
    *,
    policy: CollisionPolicy,
    granted: Grants,
    now_s: float,
    startup_over: bool,
    grace_s: float,
    previous: Catalogue | None = None,
) -> Merged:
    """`order` is config order, disabled servers included. `now_s` is epoch seconds."""
    before = previous or EMPTY

    def assign(kind: EntryKind) -> Assigned:
        return names.assign(
            [_claim(view, kind) for view in order],
            policy=policy,
            granted=granted.tools if kind == "tool" else granted.prompts,
            now_s=now_s,
            startup_over=startup_over,
            grace_s=grace_s,
        )

    tools, prompts = assign("tool"), assign("prompt")
    catalogue = _Build(order, before, rejecting=policy == "reject").catalogue(tools, prompts)
    return Merged(
        catalogue=catalogue,
        grants=Grants(tools.granted, prompts.granted),
        decisions=(*_decided("tool", tools), *_decided("prompt", prompts)),
        clashes=tuple(_clashes(tools, prompts)) if policy == "reject" else (),
        wake_at=min(
            (at for at in (tools.wake_at, prompts.wake_at) if at is not None), default=None
        ),
    )


def shown(view: PeerView) -> Listing | None:
    """What a server contributes: its last good listing of this run, unless it is disabled."""
    return view.listing if view.enabled else None


def _claim(view: PeerView, kind: EntryKind) -> names.Claim:
    listing = shown(view)
    if listing is None:
        return names.Claim(view.name, view.enabled, view.settled, None)
    listed = listing.tools if kind == "tool" else listing.prompts
    return names.Claim(
        view.name,
        view.enabled,
        view.settled,
        [entry.name for entry in listed],
        complete=listing.complete and listing.truncated is None,
    )


def _decided(kind: EntryKind, assigned: Assigned) -> Iterator[NameDecided]:
    return (NameDecided(kind, change) for change in assigned.changes)


def _clashes(tools: Assigned, prompts: Assigned) -> Iterator[Clash]:
    kinds: tuple[tuple[EntryKind, Assigned], ...] = (("tool", tools), ("prompt", prompts))
    for kind, assigned in kinds:
        for name, listers in assigned.listers.items():
            owner = assigned.owners.get(name)
            first = owner if owner in listers else listers[0]
            yield from (Clash(kind, name, first, s) for s in listers if s != first)


class _Build:
    """Puts one catalogue together from names that are decided."""

    def __init__(self, order: Sequence[PeerView], previous: Catalogue, *, rejecting: bool) -> None:
        self._order = order
        self._previous = previous
        self._rejecting = rejecting

    def catalogue(self, tools: Assigned, prompts: Assigned) -> Catalogue:
        tool_entries = entries.tool_entries(
            self._order, tools, rejecting=self._rejecting, previous=self._previous
        )
        prompt_entries = entries.prompt_entries(
            self._order, prompts, rejecting=self._rejecting, previous=self._previous
        )
        resources = entries.resource_entries(self._order, previous=self._previous)
        listings = _digests(self._order, self._previous.listings)
        built = Catalogue(
            version=self._previous.version + 1,
            digest=catalogue_digest(listings, tool_entries.kept, prompt_entries.kept),
            tools=tool_entries.kept,
            prompts=prompt_entries.kept,
            resources=resources.kept,
            collisions=self._collisions(tools),
            excluded=(
                *_listed_excluded(self._order),
                *tool_entries.excluded,
                *prompt_entries.excluded,
                *resources.excluded,
            ),
            missing=tuple(_missing(self._order)),
            lookup=entries.lookup(tool_entries.kept),
            prompt_lookup=entries.lookup(prompt_entries.kept),
            resource_lookup={e.uri: e for e in resources.kept if not e.resource.is_template},
            prompt_collisions=self._collisions(prompts),
            idle_tools=entries.idle(tools, tool_entries.kept),
            idle_prompts=entries.idle(prompts, prompt_entries.kept),
            configured=frozenset(view.name for view in self._order),
            listings=listings,
        )
        return self._previous if _same(built, self._previous) else built

    def _collisions(self, assigned: Assigned) -> tuple[Collision, ...]:
        if self._rejecting:
            return ()
        owned = ((n, assigned.owners.get(n), s) for n, s in assigned.listers.items())
        return tuple(
            Collision(n, owner, tuple((s, names.qualified(s, n)) for s in servers if s != owner))
            for n, owner, servers in owned
            if owner is not None
        )


def _listed_excluded(order: Iterable[PeerView]) -> Iterator[Excluded]:
    for view in order:
        listing = shown(view)
        if listing is not None:
            yield from listing.excluded


def _missing(order: Iterable[PeerView]) -> Iterator[Missing]:
    """Enabled servers without a listing; a disabled one is not missed by anybody."""
    for view in order:
        if view.enabled and view.listing is None:
            yield Missing(view.name, view.state, view.cause, view.reason)


def _digests(
    order: Iterable[PeerView], known: Mapping[str, ListingDigest]
) -> dict[str, ListingDigest]:
    digests: dict[str, ListingDigest] = {}
    for view in order:
        listing = shown(view)
        if listing is not None:
            old = known.get(view.name)
            unchanged = old is not None and old.listing is listing
            digests[view.name] = (
                old if unchanged and old else ListingDigest(listing, listing_digest(listing))
            )
    return digests


def listing_digest(listing: Listing) -> str:
    """Over the bytes of every entry, each with its length, so that no two lists look alike."""
    digest = hashlib.sha256()
    for group in (listing.tools, listing.prompts, listing.resources):
        digest.update(b"%d;" % len(group))
        for entry in group:
            raw = memoryview(entry.raw)
            digest.update(b"%d:" % len(raw))
            digest.update(raw)
    return digest.hexdigest()


def catalogue_digest(
    listings: Mapping[str, ListingDigest],
    tools: Sequence[entries.Named],
    prompts: Sequence[entries.Named],
) -> str:
    """Over the listings in config order and the names they are offered under."""
    digest = hashlib.sha256()
    for server, listed in listings.items():
        digest.update(f"{server} {listed.digest}\n".encode())
    for group in (tools, prompts):
        offered = "\n".join(f"{entry.name}\0{entry.api_name}" for entry in group)
        digest.update(offered.encode("utf-8", "surrogatepass"))
        digest.update(b"\0\0")
    return "sha256:" + digest.hexdigest()


_CONTENT: Final = (
    "digest",
    "tools",
    "prompts",
    "resources",
    "collisions",
    "excluded",
    "missing",
    "prompt_collisions",
    "idle_tools",
    "idle_prompts",
    "configured",
)
"""What a change of makes a new version; the lookups follow from these."""


def _same(built: Catalogue, previous: Catalogue) -> bool:
    return all(getattr(built, field) == getattr(previous, field) for field in _CONTENT)
