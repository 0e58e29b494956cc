"""Lists that somebody looks at: read anew when their server's own hint has run out, never before.

Nobody polls: a list that no one looks at grows old in peace. Whoever looks while it is being read
waits for that same reading, and gets the old one where it fails.

Source: MCP 2026-07-28 server/utilities/caching › TTL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.decisions import relisting
from observant_host.timing.tasks import wait_any

if TYPE_CHECKING:
    from observant_host.supervision.lives import Lives
    from observant_host.supervision.peer_state import PeerRecord
    from observant_host.timing.clock import Clock


class Freshening:
    """Of one peer's lists."""

    def __init__(self, record: PeerRecord, lives: Lives, clock: Clock) -> None:
        self._record = record
        self._lives = lives
        self._clock = clock
        self._asked_for: int | None = None

    @property
    def runs_out_s(self) -> float:
        """When a mere look is to have them read anew (monotonic seconds)."""
        listing = self._record.listing
        return relisting.runs_out_s(listing) if listing is not None else float("inf")

    def ask(self) -> bool:
        """Have them read anew if their time is over; True where a reading is under way."""
        record = self._record
        if self._asked_for == record.readings and self._alive:
            return True
        listing = record.listing
        due = listing is not None and relisting.is_due(listing, self._clock.monotonic())
        if not due or not self._alive or record.listing_layer != "ok":
            return False
        self._asked_for = record.readings
        self._lives.signals.expired.set()
        return True

    async def wait(self, until_s: float) -> None:
        """Until the reading that was asked for is over, at most until then (monotonic seconds)."""
        record, before = self._record, self._asked_for
        while before is not None and record.readings == before and self._alive:
            left = until_s - self._clock.monotonic()
            if left <= 0 or record.life is None:
                return
            record.listed.clear()
            await wait_any(self._clock, left, record.listed, record.life.end_signal)

    @property
    def _alive(self) -> bool:
        life = self._record.life
        return life is not None and life.end is None and life.era is not None
