"""What became of a server's lists between two readings: for the record of what nobody told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from observant_host.decisions.catalogue import Listing

MAX_NAMES: Final = 20
"""Of each kind of change, told by name; `count` has them all."""
MAX_CHARS: Final = 120
"""Of one name: it is the server's word."""


class Changes(msgspec.Struct, frozen=True):
    """Names such as "tool search", "prompt greet", "resource file:///a"; at most MAX_NAMES each,
    sorted. `count` is of all."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    count: int = 0


def between(before: Listing | None, after: Listing) -> Changes:
    """Nothing where nothing was known before: then all of it is new, and none of it was missed."""
    if before is None or before is after:
        return Changes()
    known, now = _entries(before), _entries(after)
    added = now.keys() - known.keys()
    removed = known.keys() - now.keys()
    changed = {key for key in now.keys() & known.keys() if bytes(now[key]) != bytes(known[key])}
    return Changes(
        _named(added), _named(removed), _named(changed), len(added) + len(removed) + len(changed)
    )


def _entries(listing: Listing) -> Mapping[tuple[str, str], Raw]:
    found = {("tool", tool.name): tool.raw for tool in listing.tools}
    found.update({("prompt", prompt.name): prompt.raw for prompt in listing.prompts})
    for one in listing.resources:
        found["template" if one.is_template else "resource", one.uri] = one.raw
    return found


def _named(keys: set[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{kind} {name[:MAX_CHARS]}" for kind, name in sorted(keys)[:MAX_NAMES])
