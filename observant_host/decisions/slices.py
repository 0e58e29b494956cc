"""The part of the catalogue that exists for one caller.

A slice only takes away: what is left keeps its names, so that two callers who both see a tool call
it the same. Nothing tells of what was taken: not a collision with it, not a reason why it is gone,
not a digest that changes with it.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec

from observant_host.decisions.catalogue import (
    Catalogue,
    Collision,
    Excluded,
    Listing,
    ResourceEntry,
)
from observant_host.decisions.merge import catalogue_digest
from observant_host.decisions.names import SEPARATOR, Grant, qualified
from observant_host.decisions.terms import ExclusionReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from observant_host.config import Profile
    from observant_host.decisions.catalogue import PromptEntry, ToolEntry

    Named = TypeVar("Named", ToolEntry, PromptEntry)


class Slice(msgspec.Struct, frozen=True):
    """`key` tells slices apart in caches; "" is everything. `mode` "search" puts two tools in front
    of a large catalogue instead of listing it.

    `servers`: these only; empty: all. `allow` and `deny` are case-sensitive globs over tools, by
    local and by qualified name (`server/tool`); `deny` wins, an empty `allow` allows all.
    """

    key: str = ""
    mode: Literal["list", "search"] = "list"
    servers: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def has_server(self, server: str) -> bool:
        """Whether the server, with its prompts and resources, is part of it."""
        return not self.servers or server in self.servers

    def admits(self, server: str, tool_name: str) -> bool:
        """Whether a server's tool, by its local name, is part of it."""
        if not self.has_server(server):
            return False
        spellings = (tool_name, qualified(server, tool_name))
        if _any_fits(spellings, self.deny):
            return False
        return not self.allow or _any_fits(spellings, self.allow)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is taken away."""
        return not (self.servers or self.allow or self.deny)


ALL: Final = Slice()
"""Everything there is."""
ELSEWHERE: Final = "its name or URI is held by another server"


def slice_of(profile: Profile | None) -> Slice:
    """Two profiles that show the same have one key; a changed one has another."""
    if profile is None:
        return ALL
    made = Slice("", profile.mode, profile.servers, profile.tools.allow, profile.tools.deny)
    return ALL if made == ALL else msgspec.structs.replace(made, key=_key(made))


def sliced(catalogue: Catalogue, part: Slice) -> Catalogue:
    """The catalogue as it is for that slice; itself where nothing is taken away. Its `version` is
    the whole catalogue's: with the slice's key it names one value."""
    if part.is_whole:
        return catalogue
    tools = tuple(entry for entry in catalogue.tools if part.admits(entry.server, entry.local_name))
    prompts = tuple(entry for entry in catalogue.prompts if part.has_server(entry.server))
    listings = {
        server: _listed(listing, part)
        for server, listing in catalogue.listings.items()
        if part.has_server(server)
    }
    here = part.has_server
    return Catalogue(
        version=catalogue.version,
        digest=catalogue_digest(listings, tools, prompts),
        tools=tools,
        prompts=prompts,
        resources=tuple(entry for entry in catalogue.resources if here(entry.server)),
        collisions=_collisions(catalogue.collisions, part.admits),
        excluded=_excluded(catalogue.excluded, part),
        missing=tuple(one for one in catalogue.missing if here(one.server)),
        lookup=_spellings(catalogue.lookup, tools),
        prompt_lookup=_spellings(catalogue.prompt_lookup, prompts),
        resource_lookup=_owned(catalogue.resource_lookup, part),
        prompt_collisions=_collisions(catalogue.prompt_collisions, lambda server, _: here(server)),
        idle_tools=_idle(catalogue.idle_tools, part.admits),
        idle_prompts=_idle(catalogue.idle_prompts, lambda server, _: here(server)),
        configured=frozenset(server for server in catalogue.configured if here(server)),
        listings=listings,
    )


def _any_fits(spellings: Iterable[str], globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, glob) for name in spellings for glob in globs)


def _key(part: Slice) -> str:
    return msgspec.json.encode((part.mode, part.servers, part.allow, part.deny)).decode()


def _listed(listing: Listing, part: Slice) -> Listing:
    """A listing without the tools that are not there; itself where all of them are."""
    tools = tuple(tool for tool in listing.tools if part.admits(listing.server, tool.name))
    excluded = _excluded(listing.excluded, part)
    digest = listing.digest if len(tools) == len(listing.tools) else ""
    kept: Listing = msgspec.structs.replace(listing, tools=tools, excluded=excluded, digest=digest)
    return kept


def _excluded(excluded: Iterable[Excluded], part: Slice) -> tuple[Excluded, ...]:
    """The sentence about a collision would name the server on its other side."""
    return tuple(
        msgspec.structs.replace(lost, detail=ELSEWHERE)
        if lost.reason is ExclusionReason.COLLISION_REJECTED
        else lost
        for lost in excluded
        if _tells_of(lost, part)
    )


def _tells_of(lost: Excluded, part: Slice) -> bool:
    if lost.kind == "tool":
        return part.admits(lost.server, lost.local_name)
    return part.has_server(lost.server)


def _spellings(lookup: Mapping[str, Named], kept: Iterable[Named]) -> dict[str, Named]:
    """By identity: entries hold whole schemas, which nobody should compare or hash here."""
    there = {id(entry) for entry in kept}
    return {name: entry for name, entry in lookup.items() if id(entry) in there}


def _owned(lookup: Mapping[str, ResourceEntry], part: Slice) -> dict[str, ResourceEntry]:
    return {uri: entry for uri, entry in lookup.items() if part.has_server(entry.server)}


def _collisions(
    collisions: Iterable[Collision], admits: Callable[[str, str], bool]
) -> tuple[Collision, ...]:
    """Of a collision only what happens between those that are there."""
    kept = []
    for one in collisions:
        others = tuple(
            (server, name) for server, name in one.others if admits(server, _local(server, name))
        )
        if others and admits(one.owner, one.name):
            kept.append(Collision(one.name, one.owner, others))
    return tuple(kept)


def _local(server: str, name: str) -> str:
    return name.removeprefix(f"{server}{SEPARATOR}")


def _idle(idle: Mapping[str, Grant], admits: Callable[[str, str], bool]) -> dict[str, Grant]:
    return {name: grant for name, grant in idle.items() if admits(grant.owner, name)}
