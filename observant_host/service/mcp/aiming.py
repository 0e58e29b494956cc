"""Whom a caller means: the server that owns what it names, within its part of the catalogue.

The host looks names up in the whole catalogue. What a caller's part does not hold must not be
reached by another spelling, nor because something else of that name exists outside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.decisions.catalogue import PromptEntry, ResourceEntry, ToolEntry
from observant_host.decisions.routes import (
    NotListed,
    find_prompt,
    find_resource,
    find_tool,
)
from observant_host.errors import InvalidCall
from observant_host.routing.refusals import no_route, shown

if TYPE_CHECKING:
    from observant_host.decisions.catalogue import Catalogue, EntryKind
    from observant_host.decisions.routes import NoRoute
    from observant_host.decisions.slices import Slice
    from observant_host.service.mcp.lists import Lists
    from observant_host.service.served import Served


class Aiming:
    """Each gives the owner's name, or None where the call itself says best why there is none.
    Raises InvalidCall for what is not in the caller's part."""

    def __init__(self, host: Served, lists: Lists) -> None:
        self._host = host
        self._lists = lists

    def tool(self, name: str, part: Slice) -> str | None:
        catalogue = self._catalogue(part)
        if (entry := catalogue.lookup.get(name)) is not None:
            return entry.server  # nearly always: what follows is for names that are not there
        return self._named(find_tool(catalogue, name), "tool", part, name)

    def prompt(self, name: str, part: Slice) -> str | None:
        return self._named(find_prompt(self._catalogue(part), name), "prompt", part, name)

    def resource(self, uri: str, part: Slice) -> str | None:
        """By a URI that is listed, or that fits a template."""
        catalogue = self._catalogue(part)
        return self._owned(find_resource(catalogue, uri), catalogue, part)

    def reference(self, uri: str, part: Slice) -> str | None:
        """As `resource`; a template may be named by its own text."""
        catalogue = self._catalogue(part)
        listed = (entry.server for entry in catalogue.resources if entry.uri == uri)
        return next(listed, None) or self.resource(uri, part)

    def _catalogue(self, part: Slice) -> Catalogue:
        return self._host.catalogue if part.is_whole else self._lists.seen_by(part)

    def _named(
        self, found: ToolEntry | PromptEntry | NoRoute, kind: EntryKind, part: Slice, name: str
    ) -> str | None:
        if isinstance(found, ToolEntry | PromptEntry):
            return found.server
        if part.is_whole:
            return None
        if not isinstance(found, NotListed):
            raise no_route(found, kind, self._catalogue(part))
        find = find_tool if kind == "tool" else find_prompt
        if find(self._host.catalogue, name) != found:
            raise InvalidCall(f"no {kind} is called {shown(name)}", unknown=True)
        return None

    def _owned(
        self, found: ResourceEntry | NoRoute, catalogue: Catalogue, part: Slice
    ) -> str | None:
        if isinstance(found, ResourceEntry):
            return found.server
        if part.is_whole or isinstance(found, NotListed):
            return None
        raise no_route(found, "resource", catalogue)
