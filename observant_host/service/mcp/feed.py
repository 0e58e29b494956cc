"""Changes of what agents see, told to whoever follows: once for each kind, however many come.

A follower holds the kinds that changed since it last looked, never a queue: a slow client costs
nothing, and learns all the same that it has to read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions.slices import sliced
from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from observant_host.decisions.catalogue import Catalogue
    from observant_host.decisions.slices import Slice
    from observant_host.service.served import Served

KINDS: Final = ("tools", "prompts", "resources")

MAX_UPDATED: Final = 1000
"""Resources of one follower that wait to be told; more of them at once are dropped, oldest last:
whoever follows a thousand and does not read has lost the thread anyway."""


class Follower:
    """`changed` is set while there is something to take."""

    def __init__(self, part: Slice, kinds: Collection[str], leave: Callable[[Follower], None]):
        self.part = part
        self.kinds = frozenset(kinds)
        self.changed = Signal()
        self._leave = leave
        self._kinds: dict[str, None] = {}
        self._updated: dict[str, None] = {}

    def listed(self, kind: str) -> None:
        """The list of that kind is another one. Who searches always sees the same two tools."""
        if kind == "tools" and self.part.mode == "search":
            return
        if kind in self.kinds:
            self._kinds[kind] = None
            self.changed.set()

    def updated(self, uri: str) -> None:
        """That resource changed."""
        if len(self._updated) < MAX_UPDATED:
            self._updated[uri] = None
            self.changed.set()

    def take(self) -> tuple[list[str], list[str]]:
        """(kinds, URIs) that changed since the last look."""
        kinds, updated = list(self._kinds), list(self._updated)
        self._kinds.clear()
        self._updated.clear()
        self.changed.clear()
        return kinds, updated

    def leave(self) -> None:
        """Hear of nothing more. Idempotent."""
        self._leave(self)


class Feed:
    """Compares each version of the catalogue with the one before, for each slice that is
    followed."""

    def __init__(self, host: Served) -> None:
        self._host = host
        self._followers: set[Follower] = set()
        self._before: dict[str, Catalogue] = {}
        self._stops: list[Callable[[], None]] = []

    def join(self, part: Slice, kinds: Collection[str]) -> Follower:
        """Follow from now on. Raises Unavailable where the host does not run."""
        if not self._stops:
            self._stops.append(self._host.follow_catalogue(self._swapped))
            self._stops.append(self._host.follow_announced(self._announced))
        self._before.setdefault(part.key, sliced(self._host.catalogue, part))
        follower = Follower(part, kinds, self._left)
        self._followers.add(follower)
        return follower

    def _left(self, follower: Follower) -> None:
        self._followers.discard(follower)
        if not any(one.part.key == follower.part.key for one in self._followers):
            self._before.pop(follower.part.key, None)
        if not self._followers:
            while self._stops:
                self._stops.pop()()

    def _announced(self, news: tuple[str, frozenset[str]]) -> None:
        """A server's own word counts also where its list is the same again."""
        server, kinds = news
        for follower in self._followers:
            if follower.part.has_server(server):
                for kind in KINDS:
                    if kind in kinds:
                        follower.listed(kind)

    def _swapped(self, catalogue: Catalogue) -> None:
        parts = {one.part.key: one.part for one in self._followers}
        for key, part in parts.items():
            now = sliced(catalogue, part)
            before, self._before[key] = self._before.get(key), now
            kinds = changed_kinds(before, now) if before is not None else KINDS
            for follower in self._followers:
                if follower.part.key == key:
                    for kind in kinds:
                        follower.listed(kind)


def changed_kinds(before: Catalogue, now: Catalogue) -> list[str]:
    """The lists that an agent would read differently; who is up is in none of them."""
    pairs = (
        (
            "tools",
            [(e.name, e.api_name, e.tool.raw) for e in before.tools],
            [(e.name, e.api_name, e.tool.raw) for e in now.tools],
        ),
        (
            "prompts",
            [(e.name, e.api_name, e.prompt.raw) for e in before.prompts],
            [(e.name, e.api_name, e.prompt.raw) for e in now.prompts],
        ),
        (
            "resources",
            [e.resource.raw for e in before.resources],
            [e.resource.raw for e in now.resources],
        ),
    )
    return [kind for kind, old, new in pairs if old != new]
