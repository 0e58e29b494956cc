"""Holds the current catalogue: swapped at once, each change reported, grants handed to memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions.merge import EMPTY, Clash, Merged, NameDecided, merge
from observant_host.decisions.names import Grants
from observant_host.errors import NameCollision
from observant_host.telemetry.vocabulary import CatalogueRefresh, NameDecision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from observant_host.config import CollisionPolicy
    from observant_host.decisions.catalogue import Catalogue, PeerView
    from observant_host.telemetry.facade import Link, Telemetry
    from observant_host.timing.clock import Clock

MAX_PLAIN_GRANTS_TOLD: Final = 50
"""First grants that nobody contests, told one by one in one refresh. A server with thousands of
tools would bury the decisions that matter; the refresh itself counts them all."""


MAX_MARKS_CHARS: Final = 1024
"""Of all the marks of one refresh: what one attribute holds."""


class CatalogueStore:
    """`remember` is called with the grants whenever they changed (the caller keeps them on disk).

    `on_change` is called after each swap with the new catalogue. For `startup_deadline_s` seconds
    from now the order in which servers start decides no name, also where the first catalogue was
    published before: servers that are added meanwhile wait for those before them.
    """

    def __init__(
        self,
        *,
        policy: CollisionPolicy,
        rename_grace_s: float,
        telemetry: Telemetry,
        clock: Clock,
        startup_deadline_s: float = 0.0,
        granted: Grants | None = None,
        remember: Callable[[Grants], None] | None = None,
        on_change: Callable[[Catalogue], None] | None = None,
    ) -> None:
        self.policy: CollisionPolicy = policy
        self.rename_grace_s = rename_grace_s
        self._telemetry = telemetry
        self._clock = clock
        self._grants = granted or Grants()
        self._remember = remember
        self._on_change = on_change
        self._current = EMPTY
        self._last: Merged | None = None
        self._published = False
        self._startup_until = clock.monotonic() + startup_deadline_s
        self._wake_at: float | None = None

    @property
    def current(self) -> Catalogue:
        return self._current

    @property
    def published(self) -> bool:
        """True from `publish` on: start-up is over."""
        return self._published

    @property
    def wake_at(self) -> float | None:
        """Epoch seconds at which `refresh` is due though nothing happened: a grace ends, or names
        that waited for the end of start-up are free."""
        return self._wake_at

    def refresh(
        self,
        views: Sequence[PeerView],
        *,
        peer: str = "",
        trigger: str = "",
        links: Sequence[Link] = (),
    ) -> Catalogue:
        """Merge and swap. `views` are all configured servers in config order; `peer` and `trigger`
        (a Trigger value, or "state") say what changed. Never raises for what servers listed."""
        self._merge(views, peer=peer, trigger=trigger, links=links)
        return self._current

    def publish(self, views: Sequence[PeerView]) -> Catalogue:
        """End start-up: every enabled server is settled, or startup_deadline_s is over.

        Raises NameCollision (policy "reject") naming both servers and the tool of each clash.
        Later calls are a refresh.
        """
        first, self._published = not self._published, True
        clashes = self._merge(views, trigger="boot")
        if first and clashes:
            raise NameCollision([_sentence(clash) for clash in clashes])
        return self._current

    def collisions_of(self, server: str) -> int:
        """How many of this server's names are qualified because another owns the bare one."""
        every = (*self._current.collisions, *self._current.prompt_collisions)
        return sum(server == other for collision in every for other, _ in collision.others)

    def _merge(
        self,
        views: Sequence[PeerView],
        *,
        peer: str = "",
        trigger: str,
        links: Sequence[Link] = (),
    ) -> tuple[Clash, ...]:
        before = self._current
        fact = CatalogueRefresh(peer=peer, trigger=trigger)
        with self._telemetry.operation(fact, links=links) as operation:
            merged = merge(
                views,
                policy=self.policy,
                granted=self._grants,
                now_s=self._clock.wall_ns() / 1e9,
                startup_over=self._published and self._startup_left_s() <= 0,
                grace_s=self.rename_grace_s,
                before=self._last,
            )
            operation.note(**_changes(before, merged, views, peer))
            self._adopt(merged)
        return merged.clashes

    def _adopt(self, merged: Merged) -> None:
        changed = merged.catalogue is not self._current
        self._current, self._last = merged.catalogue, merged
        self._wake_at = self._next_wake(merged)
        for decided in self._worth_telling(merged):
            self._telemetry.count(_fact(decided))
        if merged.grants is not self._grants:
            self._grants = merged.grants
            if self._remember is not None:
                self._remember(merged.grants)
        if changed and self._on_change is not None:
            self._on_change(merged.catalogue)

    def _startup_left_s(self) -> float:
        return self._startup_until - self._clock.monotonic()

    def _next_wake(self, merged: Merged) -> float | None:
        left = self._startup_left_s()
        if not self._published or left <= 0:
            return merged.wake_at
        ends = self._clock.wall_ns() / 1e9 + left
        return ends if merged.wake_at is None else min(ends, merged.wake_at)

    def _worth_telling(self, merged: Merged) -> Iterator[NameDecided]:
        """All but uncontested first grants of the start-up, and of those later a bounded number."""
        if not merged.decisions:
            return
        catalogue = merged.catalogue
        contested = {c.name for c in (*catalogue.collisions, *catalogue.prompt_collisions)}
        plain = 0
        for decided in merged.decisions:
            change = decided.change
            if change.what == "granted" and change.name not in contested:
                plain += 1
                if not self._published or plain > MAX_PLAIN_GRANTS_TOLD:
                    continue
            yield decided


def _fact(decided: NameDecided) -> NameDecision:
    change = decided.change
    return NameDecision(
        name=change.name,
        peer=change.server,
        local_name=change.name,
        what=change.what,
        reason=f"{decided.kind}: {change.reason}",
    )


def _changes(
    before: Catalogue, merged: Merged, views: Sequence[PeerView], peer: str
) -> dict[str, object]:
    """What the refresh reports: counts of names, and where a list was cut short."""
    after = merged.catalogue
    return {
        "added": merged.changes.added,
        "removed": merged.changes.removed,
        "changed": merged.changes.changed,
        "collisions": len(after.collisions) + len(after.prompt_collisions),
        "excluded": len(after.excluded),
        "digest": after.digest,
        "version": after.version,
        "truncated": _truncated(before, views, peer),
    }


def _truncated(before: Catalogue, views: Sequence[PeerView], peer: str) -> str | None:
    """Of the one peer that changed; of several, each that was read anew, by its name."""
    marks = []
    for view in views:
        listing = view.listing
        if listing is None or listing.truncated is None:
            continue
        if view.name == peer:
            return listing.truncated
        known = before.listings.get(view.name)
        if not peer and known is not listing:
            marks.append(f"{view.name}: {listing.truncated}")
    return "; ".join(marks)[:MAX_MARKS_CHARS] or None


def _sentence(clash: Clash) -> str:
    return (
        f'collision_policy = "reject": {clash.kind} "{clash.name}" is listed by {clash.owner} and '
        f"by {clash.newcomer}; leave one out with `tools.deny`, disable a server, or set "
        'collision_policy = "prefix"'
    )
