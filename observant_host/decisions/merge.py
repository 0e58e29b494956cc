"""Many listings, one catalogue: a pure function of what each server last listed.

A merge goes on from the one before: names, entries and spellings of servers that did not change
are taken over, so that one server's change costs its own list and a copy of a few mappings,
however many others there are. Merging afresh gives the same; a test walks random histories both
ways.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions import assignment, entries
from observant_host.decisions.catalogue import (
    Catalogue,
    EntryKind,
    Missing,
    PeerView,
    PromptEntry,
    ToolEntry,
)
from observant_host.decisions.entries import Changes, Resources, Side
from observant_host.decisions.names import Claim, Grants, NameChange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from observant_host.config import CollisionPolicy
    from observant_host.decisions.assignment import Assigned
    from observant_host.decisions.catalogue import ListedPrompt, ListedTool, Listing


class Clash(msgspec.Struct, frozen=True):
    """Policy "reject": `newcomer` lists a name that `owner` lists too."""

    kind: EntryKind
    name: str
    owner: str
    newcomer: str


class NameDecided(msgspec.Struct, frozen=True, gc=False):
    """One decision about a tool's or prompt's name."""

    kind: EntryKind
    change: NameChange


class Standing(msgspec.Struct, frozen=True):
    """What the next merge goes on from; `order` are the views that it was made of, `lines` what
    each of them adds to the digest."""

    order: tuple[PeerView, ...]
    tools: Side[ToolEntry]
    prompts: Side[PromptEntry]
    resources: Resources
    lines: tuple[str, ...]


class Merged(msgspec.Struct, frozen=True):
    """`catalogue` is that of `before` itself where nothing changed. `decisions` are those about
    tool and prompt names. `clashes` are filled by the policy "reject" only: the caller refuses to
    start by them at first publication. `wake_at` (epoch seconds): merge again then, a grace
    ends. `changes` are those against `before`."""

    catalogue: Catalogue
    grants: Grants
    decisions: tuple[NameDecided, ...]
    clashes: tuple[Clash, ...]
    wake_at: float | None
    changes: Changes
    standing: Standing


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
    before: Merged | None = None,
) -> Merged:
    """`order` is config order, disabled servers included. `now_s` is epoch seconds.

    `before` is the merge before this one, if any; where `granted` are its own grants, it is gone on
    from, which gives what merging afresh would give.
    """
    last = before.standing if before is not None else None
    moved = entries.differing(last.order if last is not None else (), order)

    def assign(kind: EntryKind, side: Side[Any] | None) -> Assigned:
        return assignment.assign(
            _claims(order, kind, moved, side.assigned.claims if side is not None else ()),
            policy=policy,
            granted=granted.tools if kind == "tool" else granted.prompts,
            now_s=now_s,
            startup_over=startup_over,
            grace_s=grace_s,
            before=side.assigned if side is not None else None,
        )

    last_tools, last_prompts, last_resources = (
        (last.tools, last.prompts, last.resources) if last is not None else (None, None, None)
    )
    tool_names, prompt_names = assign("tool", last_tools), assign("prompt", last_prompts)
    now = Standing(
        tuple(order),
        tools := entries.tools(order, tool_names, moved=moved, before=last_tools),
        prompts := entries.prompts(order, prompt_names, moved=moved, before=last_prompts),
        entries.resources(order, moved=moved, before=last_resources or Resources()),
        _lines(order, moved, (tools, prompts), last),
    )
    same = tool_names.granted is granted.tools and prompt_names.granted is granted.prompts
    ends = (at for at in (tool_names.wake_at, prompt_names.wake_at) if at is not None)
    return Merged(
        catalogue=_catalogue(order, now, before),
        grants=granted if same else Grants(tool_names.granted, prompt_names.granted),
        decisions=(*_decided("tool", tool_names), *_decided("prompt", prompt_names)),
        clashes=tuple(_clashes(tool_names, prompt_names)) if policy == "reject" else (),
        wake_at=min(ends, default=None),
        changes=_both(now.tools.changes, now.prompts.changes),
        standing=now,
    )


def _claims(
    order: Sequence[PeerView], kind: EntryKind, moved: Sequence[int], old: Sequence[Claim]
) -> list[Claim]:
    """`old` but for the views at `moved`; object for object where they claim the same."""
    if len(order) != len(old):
        return [_claim(view, kind) for view in order]
    claims = list(old)
    for at in moved:
        claims[at] = _claim(order[at], kind, old[at])
    return claims


def _claim(view: PeerView, kind: EntryKind, old: Claim | None = None) -> Claim:
    listing, names, complete = shown(view), None, True
    if listing is not None:
        names = tuple([entry.name for entry in _listed(listing, kind)])
        complete = listing.complete and listing.truncated is None
    claim = Claim(view.name, view.enabled, view.settled, names, complete)
    return old if old is not None and old == claim else claim


def _listed(listing: Listing, kind: EntryKind) -> Sequence[ListedTool | ListedPrompt]:
    return listing.tools if kind == "tool" else listing.prompts


def _decided(kind: EntryKind, assigned: Assigned) -> Iterator[NameDecided]:
    return (NameDecided(kind, change) for change in assigned.changes)


def _both(one: Changes, other: Changes) -> Changes:
    return Changes(
        one.added + other.added, one.removed + other.removed, one.changed + other.changed
    )


def _clashes(tools: Assigned, prompts: Assigned) -> Iterator[Clash]:
    kinds: tuple[tuple[EntryKind, Assigned], ...] = (("tool", tools), ("prompt", prompts))
    for kind, assigned in kinds:
        for name, listers in assigned.listers.items():
            owner = assigned.owner(name)
            first = owner if owner is not None and owner in listers else listers[0]
            yield from (Clash(kind, name, first, s) for s in listers if s != first)


def _catalogue(order: Sequence[PeerView], now: Standing, before: Merged | None) -> Catalogue:
    """The one of before, where what it holds is the same."""
    previous = before.catalogue if before is not None else EMPTY
    listings = {view.name: found for view in order if (found := shown(view)) is not None}
    built = Catalogue(
        version=previous.version + 1,
        digest=_digest(now.lines),
        tools=now.tools.entries,
        prompts=now.prompts.entries,
        resources=now.resources.entries,
        collisions=now.tools.collisions,
        excluded=(
            *[lost for one in listings.values() for lost in one.excluded],
            *now.tools.excluded,
            *now.prompts.excluded,
            *now.resources.excluded,
        ),
        missing=tuple(_missing(order)),
        lookup=now.tools.lookup,
        prompt_lookup=now.prompts.lookup,
        resource_lookup=now.resources.lookup,
        prompt_collisions=now.prompts.collisions,
        idle_tools=now.tools.assigned.idle,
        idle_prompts=now.prompts.assigned.idle,
        configured=frozenset(now.tools.assigned.places),
        listings=listings,
    )
    return previous if _same(built, previous) else built


def shown(view: PeerView) -> Listing | None:
    """What a server contributes: its last good listing of this run, unless it is disabled."""
    return view.listing if view.enabled else None


def _missing(order: Iterable[PeerView]) -> Iterator[Missing]:
    """Enabled servers without a listing; a disabled one is not missed by anybody."""
    for view in order:
        if view.enabled and view.listing is None:
            yield Missing(view.name, view.state, view.cause, view.reason)


def catalogue_digest(
    listings: Mapping[str, Listing],
    tools: Iterable[entries.Named],
    prompts: Iterable[entries.Named],
) -> str:
    """Over the listings in config order and the names they are offered under. Entries stand in
    config order, those of one server together."""

    def offered(group: Iterable[entries.Named]) -> dict[str, str]:
        by_server = groupby(group, key=attrgetter("server"))
        return {server: entries.offered_digest(own) for server, own in by_server}

    of_tools, of_prompts = offered(tools), offered(prompts)
    return _digest(
        _line(server, listed, of_tools.get(server), of_prompts.get(server))
        for server, listed in listings.items()
    )


_NONE_OFFERED: Final = entries.offered_digest(())


def _line(server: str, listed: Listing | None, tools: str | None, prompts: str | None) -> str:
    if listed is None:
        return ""
    return f"{server} {listed.digest} {tools or _NONE_OFFERED} {prompts or _NONE_OFFERED}\n"


def _lines(
    order: Sequence[PeerView],
    moved: Sequence[int],
    now: tuple[Side[ToolEntry], Side[PromptEntry]],
    last: Standing | None,
) -> tuple[str, ...]:
    """Those of `last`, but for the servers of which something is another than it was."""
    tools, prompts = now
    known = last.lines if last is not None else ()
    lines = list(known) if len(known) == len(order) else [""] * len(order)
    for at in {*moved, *tools.remade, *prompts.remade}:
        view, offered = order[at], (tools.blocks[at].digest, prompts.blocks[at].digest)
        lines[at] = _line(view.name, shown(view), *offered)
    return tuple(lines)


def _digest(lines: Iterable[str]) -> str:
    return "sha256:" + hashlib.sha256("".join(lines).encode()).hexdigest()


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
