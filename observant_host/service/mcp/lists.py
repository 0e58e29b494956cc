"""Lists as one caller sees them: the merged catalogue, in pages, with hints how long they hold.

Entries are made once for a version of the catalogue and a slice, and reused from the version before
where their server's bytes are the same.

Source: MCP 2026-07-28 server/utilities/pagination, server/utilities/caching.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.catalogue import Catalogue, PromptEntry, ToolEntry
from observant_host.decisions.cursors import PAGE_ITEMS, cursor_at, end_of_page, offset_of, tag_of
from observant_host.decisions.exposing import Exposed, exposed_prompt, exposed_tool
from observant_host.decisions.instructions import Absent, instructions
from observant_host.decisions.northbound import Refusal
from observant_host.decisions.routes import entry_of
from observant_host.decisions.slices import sliced
from observant_host.decisions.terms import PeerState
from observant_host.service.mcp.announced import OUR_META
from observant_host.service.mcp.front_tools import FRONT, FRONT_LISTED
from observant_host.service.mcp.outlet import encode, error_of, result_of
from observant_host.wire.revisions import INVALID_PARAMS

if TYPE_CHECKING:
    from observant_host.decisions.northbound import Question
    from observant_host.decisions.slices import Slice
    from observant_host.service.callers import Caller
    from observant_host.service.mcp.outlet import Response
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock
    from observant_host.wire.mirrored_headers import Mirrored

LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""Method to the member that holds the entries."""

MAX_VIEWS: Final = 64
"""Slices whose lists are kept: a hundred tokens usually share a few profiles."""

PRESENT: Final = frozenset({PeerState.READY, PeerState.DEGRADED, PeerState.DISABLED})
"""States of a server that nobody misses."""


class Shown(msgspec.Struct, frozen=True):
    """The lists of one version of the catalogue for one slice, by member; `tools` and `prompts`
    remember what each entry was made from. `mirrors`: whether there is a tool with arguments that
    headers repeat; in most there is none."""

    catalogue: Catalogue
    items: Mapping[str, tuple[msgspec.Raw, ...]]
    tools: Mapping[str, tuple[ToolEntry, Exposed]]
    prompts: Mapping[str, tuple[PromptEntry, Exposed]]
    mirrors: bool


class Lists:
    """`page_items` bounds a page."""

    def __init__(self, host: Served, *, clock: Clock, page_items: int = PAGE_ITEMS) -> None:
        self._host = host
        self._clock = clock
        self._page_items = page_items
        self._views: OrderedDict[tuple[str, str], Shown] = OrderedDict()

    def seen_by(self, part: Slice) -> Catalogue:
        """The present catalogue as it is for a slice."""
        return self.shown(part).catalogue

    def shown(self, part: Slice) -> Shown:
        """Its lists, made anew where the catalogue changed."""
        host = self._host
        current, key = host.catalogue, (host.config.service.names, part.key)
        known = self._views.get(key)
        if known is not None and known.catalogue.version == current.version:
            return known
        self._views[key] = made = self._made(sliced(current, part), known, part)
        self._views.move_to_end(key)
        if len(self._views) > MAX_VIEWS:
            self._views.popitem(last=False)
        return made

    def mirrored(self, name: str, caller: Caller) -> tuple[Mirrored, ...]:
        """The arguments of that tool which HTTP headers repeat; none where there is no tool."""
        if caller.slice.mode == "search" and name in FRONT:
            return ()
        shown = self.shown(caller.slice)
        if not shown.mirrors:
            return ()
        entry = entry_of(shown.catalogue, name)
        found = None if entry is None else shown.tools.get(entry.name)
        return () if found is None else found[1].mirrored

    async def page(self, question: Question, caller: Caller) -> Response:
        """The answer to a `*/list`: the page that its cursor names."""
        await self._host.fresh_catalogue()
        shown = self.shown(caller.slice)
        member = LISTS[question.method]
        items = shown.items[member]
        tag = tag_of(member, shown.catalogue.digest, caller.slice.key, self._names)
        start = 0
        if (cursor := question.value("cursor")) is not None:
            offset = offset_of(cursor, tag, len(items))
            if offset is None:
                return error_of(question.id, CURSOR_LOST)
            start = offset
        end = end_of_page([len(memoryview(one)) for one in items], start, items=self._page_items)
        result: dict[str, Any] = {"resultType": "complete", member: items[start:end]}
        if end < len(items):
            result["nextCursor"] = cursor_at(tag, end)
        if question.era == "modern":
            result |= self.hints(caller)
        return result_of(question.id, encode({**result, "_meta": OUR_META}))

    def hints(self, caller: Caller) -> dict[str, Any]:
        """How long (`ttlMs`) and for whom (`cacheScope`) what we list may be kept: no longer than
        the first of the servers said, and not at all where one said nothing or is missing."""
        has = caller.slice.has_server
        listings = [one for name, one in self._host.listings.items() if has(name)]
        untils = [0.0 if one is None else one.fresh_until_s for one in listings]
        left = min(untils, default=math.inf) - self._clock.monotonic()
        everything = caller.slice.is_whole and caller.slice.mode == "list"
        shared = everything and all(one is not None and one.scope == "public" for one in listings)
        return {
            "ttlMs": max(0, int(left * 1000)) if math.isfinite(left) else 0,
            "cacheScope": "public" if shared else "private",
        }

    def instructions(self, caller: Caller) -> str | None:
        """What a caller is told of servers that are not there."""
        return instructions(
            [
                Absent(view.name, view.state, view.cause, view.detail)
                for view in self._host.servers.values()
                if view.state not in PRESENT and caller.slice.has_server(view.name)
            ]
        )

    @property
    def by_api(self) -> bool:
        """Whether tools are shown under names that fit every model API."""
        return self._names == "api"

    def name_of(self, tool: ToolEntry) -> str:
        """The name that it is shown under."""
        return tool.api_name if self.by_api else tool.name

    @property
    def _names(self) -> str:
        return self._host.config.service.names

    def _made(self, catalogue: Catalogue, before: Shown | None, part: Slice) -> Shown:
        by_api = self.by_api
        tools: dict[str, tuple[ToolEntry, Exposed]] = {}
        for tool in catalogue.tools:
            old = None if before is None else before.tools.get(tool.name)
            if old is not None and old[0].tool is tool.tool and old[0].api_name == tool.api_name:
                tools[tool.name] = (tool, old[1])
                continue
            name = self.name_of(tool)
            tools[tool.name] = (tool, exposed_tool(tool.tool.raw, name, tool.local_name))
        prompts: dict[str, tuple[PromptEntry, Exposed]] = {}
        for entry in catalogue.prompts:
            name = entry.api_name if by_api else entry.name
            made = exposed_prompt(entry.prompt.raw, name, entry.local_name)
            prompts[entry.name] = (entry, made)
        items = {
            "tools": FRONT_LISTED if part.mode == "search" else _raws(tools),
            "prompts": _raws(prompts),
            "resources": _resources(catalogue, templates=False),
            "resourceTemplates": _resources(catalogue, templates=True),
        }
        mirrors = any(made.mirrored for _, made in tools.values())
        return Shown(catalogue, items, tools, prompts, mirrors)


CURSOR_LOST: Final = Refusal(
    INVALID_PARAMS,
    "the cursor is not one of this list (any more): it may have changed meanwhile; read it again "
    "from its start, without a cursor",
)


def _raws(made: Mapping[str, tuple[Any, Exposed]]) -> tuple[msgspec.Raw, ...]:
    return tuple(one.raw for _, one in made.values())


def _resources(catalogue: Catalogue, *, templates: bool) -> tuple[msgspec.Raw, ...]:
    return tuple(
        one.resource.raw for one in catalogue.resources if one.resource.is_template is templates
    )
