"""All pages of one list, within budgets of pages, items and time.

A cursor is opaque and "" is one: only null or absence ends a list. A cursor seen before ends it
too, with what came: some servers repeat the last one for ever.

Source: MCP 2026-07-28 server/utilities/pagination › Implementation Guidelines.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from observant_host.decisions.freshness import first_to_expire, fresh_until
from observant_host.errors import CallTimeout, InvalidResult, RpcError
from observant_host.peers.errand import Errand
from observant_host.wire.messages import CacheScope, ListKey, Page, parse_page, peek
from observant_host.wire.revisions import INVALID_PARAMS

if TYPE_CHECKING:
    from observant_host.peers.life import Life
    from observant_host.telemetry.facade import Operation, TraceContext


class ListBounds(msgspec.Struct, frozen=True):
    """Budgets of one list: no server may make us page, hold or wait without end."""

    pages: int = 1000
    items: int = 50_000
    seconds: float = 30.0


class Pages(msgspec.Struct, frozen=True):
    """`truncated` says in a sentence what ended the list early, else None. Only a modern server
    says how long a page is fresh; the list is so until the first page is not (monotonic)."""

    items: tuple[Raw, ...]
    truncated: str | None = None
    fresh_until_s: float = math.inf
    scope: CacheScope = "private"


class _CursorLost(Exception):
    """The server no longer knows its own cursor: a turn of events inside this module."""


async def read_pages(
    life: Life,
    method: str,
    key: ListKey,
    *,
    bounds: ListBounds,
    parent: TraceContext | None = None,
) -> Pages:
    """Read one list to its end or its bound. Raises CallError where the first page fails.

    A cursor that the server no longer knows (-32602) restarts the list, once.
    """
    reading = _Reading(life, method, key, bounds=bounds, parent=parent)
    try:
        return await reading.run(restart=True)
    except _CursorLost:
        return await reading.run(restart=False)


class _Reading:
    def __init__(
        self,
        life: Life,
        method: str,
        key: ListKey,
        *,
        bounds: ListBounds,
        parent: TraceContext | None,
    ) -> None:
        self._life = life
        self._method = method
        self._key = key
        self._bounds = bounds
        self._parent = parent
        self._expires = life.clock.monotonic() + bounds.seconds
        self._fresh_until: list[float] = []
        self._scopes: set[CacheScope] = set()

    async def run(self, *, restart: bool) -> Pages:
        items: list[Raw] = []
        self._fresh_until, self._scopes = [], set()
        seen: set[str] = set()
        cursor: str | None = None
        for number in range(1, self._bounds.pages + 1):
            try:
                page = await self._page(cursor, number)
            except CallTimeout:
                if number == 1:
                    raise
                return self._early(items, f"its {self._bounds.seconds:g} seconds were over")
            except RpcError as error:
                if number > 1 and error.code == INVALID_PARAMS and restart:
                    raise _CursorLost from error
                raise
            items.extend(page.items)
            cursor = page.next_cursor
            room = self._bounds.items - len(items)
            if room < 0 or (room == 0 and cursor is not None):
                del items[self._bounds.items :]
                return self._early(items, f"it has more than {self._bounds.items} entries")
            if cursor is None:
                return self._pages(items)
            if cursor in seen:
                return self._early(items, "the server repeated a cursor")
            seen.add(cursor)
        return self._early(items, f"it has more than {self._bounds.pages} pages")

    async def _page(self, cursor: str | None, number: int) -> Page:
        errand = _PageErrand(
            self._method,
            expires=self._expires,
            scope="list",
            purpose="list",
            page=number,
            parent=self._parent,
        )
        errand.key = self._key
        await self._life.run(errand, {"cursor": cursor} if cursor is not None else None)
        if self._life.era is not None and self._life.era.name == "modern":
            now = self._life.clock.monotonic()
            self._fresh_until.append(fresh_until(now, errand.found.ttl_ms))
            self._scopes.add(errand.found.cache_scope)
        return errand.found

    def _early(self, items: list[Raw], why: str) -> Pages:
        return self._pages(items, f"{self._method} ended after {len(items)} entries: {why}")

    def _pages(self, items: list[Raw], truncated: str | None = None) -> Pages:
        scope: CacheScope = "public" if self._scopes == {"public"} else "private"
        return Pages(tuple(items), truncated, first_to_expire(self._fresh_until), scope)


class _PageErrand(Errand):
    """Reads its page while the request's operation is open, so that a bad one is its outcome."""

    __slots__ = ("found", "key")
    found: Page
    key: ListKey

    def look(self, op: Operation, result: Raw) -> None:
        kind = peek(result).result_type
        if kind not in (None, "complete"):
            raise InvalidResult(f"the server answered {self.method} with resultType {kind!r}")
        page = parse_page(result, self.key)
        if isinstance(page, str):
            raise InvalidResult(f"the server's answer to {self.method} is no list: {page}")
        op.note(items=len(page.items))
        self.found = page
