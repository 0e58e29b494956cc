"""Holds the current catalogue: swapped at once, each change reported, grants handed to memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from observant_host.config import CollisionPolicy
    from observant_host.decisions.catalogue import Catalogue, PeerView
    from observant_host.decisions.names import Grants
    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock


class CatalogueStore:
    """`remember` is called with the grants whenever they changed (the caller keeps them on disk).

    `on_change` is called after each swap with the new catalogue.
    """

    def __init__(
        self,
        *,
        policy: CollisionPolicy,
        rename_grace_s: float,
        telemetry: Telemetry,
        clock: Clock,
        granted: Grants | None = None,
        remember: Callable[[Grants], None] | None = None,
        on_change: Callable[[Catalogue], None] | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def current(self) -> Catalogue:
        raise NotImplementedError

    @property
    def published(self) -> bool:
        """True from `publish` on: start-up is over."""
        raise NotImplementedError

    @property
    def wake_at(self) -> float | None:
        """Epoch seconds at which `refresh` is due though nothing happened (a grace ends)."""
        raise NotImplementedError

    def refresh(
        self, views: Sequence[PeerView], *, peer: str = "", trigger: str = ""
    ) -> Catalogue:
        """Merge and swap. `views` are all configured servers in config order; `peer` and `trigger`
        (a Trigger value) say what changed. Never raises for what servers listed."""
        raise NotImplementedError

    def publish(self, views: Sequence[PeerView]) -> Catalogue:
        """End start-up: every enabled server is settled, or startup_deadline_s is over.

        Raises NameCollision (policy "reject") naming both servers and the tool of each clash.
        """
        raise NotImplementedError
