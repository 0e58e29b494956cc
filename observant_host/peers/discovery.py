"""Everything one server offers: all pages of what it announced, each bad entry losing only itself.

A list never takes another down with it, and no server can make us page, hold or wait without end.

Source: MCP 2026-07-28 server/utilities/pagination, server/tools, server/prompts, server/resources.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions import sift
from observant_host.decisions.catalogue import (
    EntryKind,
    Excluded,
    ListedPrompt,
    ListedResource,
    ListedTool,
    Listing,
)
from observant_host.decisions.freshness import first_to_expire
from observant_host.errors import CallError, RpcError
from observant_host.peers.eras import ModernEra
from observant_host.peers.pages import ListBounds, Pages, read_pages
from observant_host.schema_check import input_schema_problem
from observant_host.wire import mirrored_headers
from observant_host.wire.messages import CacheScope, ListKey
from observant_host.wire.revisions import METHOD_NOT_FOUND

if TYPE_CHECKING:
    from observant_host.config import ToolFilter
    from observant_host.peers.life import Life
    from observant_host.telemetry.facade import TraceContext

Listed = ListedTool | ListedPrompt | ListedResource

CHECK_ASIDE: Final = 200
"""From so many tools on, their schemas are compiled in a worker thread: some 50 µs each."""


class _Want(msgspec.Struct, frozen=True):
    capability: str
    method: str
    key: ListKey
    kind: EntryKind
    optional: bool = False


_WANTED: Final = (
    _Want("tools", "tools/list", "tools", "tool"),
    _Want("prompts", "prompts/list", "prompts", "prompt"),
    _Want("resources", "resources/list", "resources", "resource"),
    # many servers announce resources and know no templates
    _Want("resources", "resources/templates/list", "resourceTemplates", "resource", optional=True),
)


async def list_everything(
    life: Life,
    *,
    tool_filter: ToolFilter,
    bounds: ListBounds,
    previous: Listing | None = None,
    parent: TraceContext | None = None,
) -> Listing:
    """List what the server announced, in its order. Raises Unavailable only when the life ends.

    A list that fails keeps its entries of `previous`, and makes `complete` False; `truncated` says
    what ended early or failed, and why.
    """
    growing = _Growing(life, tool_filter=tool_filter, previous=previous)
    for want in _WANTED:
        if want.capability not in life.capabilities:
            continue
        try:
            pages = await read_pages(life, want.method, want.key, bounds=bounds, parent=parent)
        except CallError as error:
            if life.end is not None:
                raise
            growing.failed(want, error)
        else:
            await growing.came(want, pages)
    listing = growing.listing()
    if life.headers is not None:
        life.headers.listed(listing.tools)
    return listing


class _Growing:
    """The listing while it grows."""

    def __init__(self, life: Life, *, tool_filter: ToolFilter, previous: Listing | None) -> None:
        self._server = life.server.name
        self._clock = life.clock
        self._mask = life.masker.text
        self._tasks_offered = _offers_tasks(life)
        self._mirrors = life.headers is not None and isinstance(life.era, ModernEra)
        self._filter = tool_filter
        self._previous = previous or Listing(server=self._server)
        self._kept: dict[ListKey, tuple[Any, ...]] = {}
        self._excluded: list[Excluded] = []
        self._marks: list[str] = []
        self._complete = True
        self._fresh_until: list[float] = []
        self._scopes: set[CacheScope] = set()

    async def came(self, want: _Want, pages: Pages) -> None:
        """All that came of one list; a mark where it ended early."""
        if pages.truncated is not None:
            self._marks.append(pages.truncated)
        self._fresh_until.append(pages.fresh_until_s)
        self._scopes.add(pages.scope)
        kept, excluded = await self._sifted(want.key, pages.items)
        self._kept[want.key] = kept
        self._excluded.extend(excluded)

    async def _sifted(
        self, key: ListKey, items: tuple[msgspec.Raw, ...]
    ) -> tuple[tuple[Listed, ...], tuple[Excluded, ...]]:
        match key:
            case "tools":
                if len(items) < CHECK_ASIDE:
                    return self._tools(items)
                return await asyncio.to_thread(self._tools, items)
            case "prompts":
                prompts = sift.sift_prompts(self._server, items)
                return prompts.kept, prompts.excluded
            case "resources" | "resourceTemplates":
                found = sift.sift_resources(
                    self._server, items, templates=key == "resourceTemplates"
                )
                return found.kept, found.excluded

    def _tools(
        self, items: tuple[msgspec.Raw, ...]
    ) -> tuple[tuple[ListedTool, ...], tuple[Excluded, ...]]:
        tools = sift.sift_tools(
            self._server,
            items,
            tool_filter=self._filter,
            schema_problem=input_schema_problem,
            annotations=mirrored_headers.annotations_of if self._mirrors else sift.no_annotations,
        )
        if self._tasks_offered:
            return tools.kept, tools.excluded
        plain = (msgspec.structs.replace(tool, task_required=False) for tool in tools.kept)
        return tuple(plain), tools.excluded

    def failed(self, want: _Want, error: CallError) -> None:
        """Keep the last good one; a server without templates has not failed."""
        if want.optional and isinstance(error, RpcError) and error.code == METHOD_NOT_FOUND:
            return
        self._complete = False
        self._marks.append(f"{want.method} failed: {error}")
        before = self._previous
        match want.key:
            case "tools":
                self._kept[want.key] = before.tools
            case "prompts":
                self._kept[want.key] = before.prompts
            case "resources" | "resourceTemplates":
                self._kept[want.key] = tuple(
                    one for one in before.resources if one.is_template is want.optional
                )
        if not want.optional:
            self._excluded.extend(one for one in before.excluded if one.kind == want.kind)

    def _told(self, left_out: Excluded) -> Excluded:
        """It is only talked about: without the secrets that the server was given."""
        return msgspec.structs.replace(
            left_out,
            local_name=self._mask(left_out.local_name),
            detail=self._mask(left_out.detail),
        )

    def listing(self) -> Listing:
        """What it has become."""
        return Listing(
            server=self._server,
            tools=self._kept.get("tools", ()),
            prompts=self._kept.get("prompts", ()),
            resources=self._kept.get("resources", ()) + self._kept.get("resourceTemplates", ()),
            excluded=tuple(map(self._told, self._excluded)),
            truncated=self._mask("; ".join(self._marks)) or None,
            complete=self._complete,
            read_s=self._clock.monotonic(),
            fresh_until_s=first_to_expire(self._fresh_until),
            scope="public" if self._scopes == {"public"} else "private",
        )


def _offers_tasks(life: Life) -> bool:
    """Whether tools marked taskSupport "required" will refuse plain calls.

    Source: MCP 2025-11-25 basic/utilities/tasks › Tool-Level Negotiation: the mark counts only
    beside the capability tasks.requests.tools.call.
    """
    if life.era is None or life.era.name != "legacy":
        return False
    at: Any = life.capabilities
    for key in ("tasks", "requests", "tools", "call"):
        at = at.get(key) if isinstance(at, dict) else None
    return at is not None
