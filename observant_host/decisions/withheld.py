"""Tools that a person switched off: their server lists them, and nobody gets them.

Their names stay their own, as those of a server that is off, and it says who, why and how long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from observant_host.decisions.acts import sentence
from observant_host.decisions.catalogue import Excluded
from observant_host.decisions.names import SEPARATOR
from observant_host.decisions.terms import ExclusionReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.decisions.acts import Ruling
    from observant_host.decisions.catalogue import Listing


def offered(listing: Listing, off: Mapping[str, Ruling]) -> Listing:
    """The listing without the tools of `off` (by local name); itself where it has none of them."""
    kept = tuple(tool for tool in listing.tools if tool.name not in off)
    if len(kept) == len(listing.tools):
        return listing
    gone = tuple(
        _excluded(listing.server, tool.name, off[tool.name])
        for tool in listing.tools
        if tool.name in off
    )
    changed: Listing = msgspec.structs.replace(
        listing, tools=kept, excluded=(*listing.excluded, *gone)
    )
    return changed


def _excluded(server: str, tool: str, ruling: Ruling) -> Excluded:
    lifted = f"`observant-host enable {server}{SEPARATOR}{tool}` offers it again"
    return Excluded(server, tool, ExclusionReason.DENIED, f"{sentence(ruling)}; {lifted}")


def split(name: str) -> tuple[str, str | None]:
    """(server, tool or None) of "server" and "server/tool"; no server's name has a slash."""
    server, separator, tool = name.partition(SEPARATOR)
    return server, tool if separator else None
