"""What is wrong with a server's lists though it works: told to a person once, named entry by entry.

A tool that silently is not there costs somebody an afternoon. What a person has left out on purpose
(`tools.deny`, a pin) is no flaw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.terms import ExclusionReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from observant_host.decisions.catalogue import Excluded, Listing

FLAWS: Final = frozenset(
    {
        ExclusionReason.INVALID_HEADER_ANNOTATION,
        ExclusionReason.INVALID_SCHEMA,
        ExclusionReason.INVALID_NAME,
        ExclusionReason.DUPLICATE_IN_SERVER,
    }
)
"""Reasons for which the server, and nobody else, is to blame."""

MAX_NAMED: Final = 20
"""Entries named in one report; all of them are in the catalogue's `excluded`."""
MAX_CHARS: Final = 160
MAX_DETAIL: Final = 400

CHATTY: Final = "it says again and again that its lists changed, so they are read ever more rarely"


class Flaws(msgspec.Struct, frozen=True):
    """`detail` says in a sentence what ended early, failed, or goes on for ever; "" for nothing.

    `left_out` are "name: why" of the first of the `excluded` entries. False where all is well.
    """

    detail: str = ""
    excluded: int = 0
    left_out: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.detail or self.excluded)

    def sentence(self) -> str:
        """For a person, with the next step; "" where all is well."""
        parts = [self.detail] if self.detail else []
        if self.excluded:
            entries = "entry is" if self.excluded == 1 else "entries are"
            parts.append(
                f"{self.excluded} {entries} unusable and left out: `observant-host tools` says why"
            )
        return "; ".join(parts)


def flaws(listing: Listing | None, *, chatty: bool = False) -> Flaws:
    """What to tell of this listing; `chatty`: its server says without end that it changed."""
    parts = [listing.truncated[:MAX_DETAIL]] if listing is not None and listing.truncated else []
    if chatty:
        parts.append(CHATTY)
    found = [] if listing is None else [one for one in listing.excluded if one.reason in FLAWS]
    return Flaws("; ".join(parts), len(found), tuple(_named(found)))


def _named(found: list[Excluded]) -> Iterator[str]:
    for one in found[:MAX_NAMED]:
        name = one.local_name or "an entry without a name"
        yield f"{name[:MAX_CHARS]}: {(one.detail or one.reason)[:MAX_CHARS]}"
