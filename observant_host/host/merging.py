"""What is new since the last merge, by the names of the servers that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.telemetry.propagation import Link

if TYPE_CHECKING:
    from collections.abc import Collection

    from observant_host.routing.catalogue_store import CatalogueStore
    from observant_host.supervision.fleet import Fleet

MAX_LINKS: Final = 32
"""Of one merge to the readings that it shows: more servers at once are a start."""


def listed(fleet: Fleet, names: Collection[str]) -> tuple[str, tuple[Link, ...]]:
    """Why lists were read anew, and by what; "state" where only a server's state changed."""
    trigger, links = "state", []
    for name in names:
        peer = fleet.get(name)
        if peer is not None and (taken := peer.record.take_listed()) is not None:
            trigger, context = taken
            links += [Link(context, "triggered_by")] if context is not None else []
    return trigger, tuple(links[:MAX_LINKS])


def first_listed(fleet: Fleet, names: Collection[str], store: CatalogueStore) -> bool:
    """Whether one of them offers something by now that no published catalogue has shown."""
    if not store.published:
        return False
    new = (fleet.get(name) for name in names if name not in store.current.listings)
    return any(peer is not None and peer.record.offered is not None for peer in new)
