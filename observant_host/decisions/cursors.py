"""Pages of a list, and cursors that mean something only in the list they were made for.

A cursor holds a digest of the list, not a session: any replica with the same configuration can go
on with it, and after a change no page is skipped or given twice, since the walk starts again.

Source: MCP 2026-07-28 server/utilities/pagination.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE_ITEMS: Final = 1000
"""Many clients never ask for a second page; a list of more is a case for the search mode."""
PAGE_BYTES: Final = 4 * 1024 * 1024
"""Of one page: common clients refuse more in one message."""
TAG_CHARS: Final = 16

_CURSOR: Final = re.compile(r"([0-9a-f]{16})-([0-9]{1,9})", re.ASCII)


def tag_of(*identity: str) -> str:
    """What a cursor is tied to: the list's content, its kind, and whose it is."""
    joined = "\0".join(identity).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:TAG_CHARS]


def cursor_at(tag: str, offset: int) -> str:
    return f"{tag}-{offset}"


def offset_of(cursor: object, tag: str, count: int) -> int | None:
    """Where that page begins; None for a cursor that is none of this list's."""
    found = _CURSOR.fullmatch(cursor) if isinstance(cursor, str) else None
    if found is None or found[1] != tag:
        return None
    offset = int(found[2])
    return offset if 0 < offset < count else None


def end_of_page(
    sizes: Sequence[int], start: int, *, items: int = PAGE_ITEMS, most_bytes: int = PAGE_BYTES
) -> int:
    """Where the page that begins at `start` ends: always after at least one entry."""
    end, total = start, 0
    while end < len(sizes) and end - start < items:
        total += sizes[end]
        if total > most_bytes and end > start:
            break
        end += 1
    return end
