"""Everything one server offers: all pages of what it announced, each bad entry losing only itself.

Source: MCP 2026-07-28 server/utilities/pagination, server/tools, server/prompts, server/resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from observant_host.config import ToolFilter
    from observant_host.decisions.catalogue import Listing
    from observant_host.decisions.terms import Trigger
    from observant_host.peers.life import Life
    from observant_host.telemetry.facade import TraceContext


class ListBounds(msgspec.Struct, frozen=True):
    """Budgets of one list: no server may make us page, hold or wait without end."""

    pages: int = 1000
    items: int = 50_000
    seconds: float = 30.0


async def list_everything(
    life: Life,
    *,
    tool_filter: ToolFilter,
    bounds: ListBounds,
    trigger: Trigger,
    previous: Listing | None = None,
    parent: TraceContext | None = None,
) -> Listing:
    """List what the server announced. Raises Unavailable only when the life ends meanwhile.

    A list that fails keeps its entries of `previous`, and makes `complete` False.
    """
    raise NotImplementedError
