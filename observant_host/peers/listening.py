"""How it stands with what one server tells of changes, over all its lives, and what went untold.

A gap begins when a stream is lost (or was never to be had), goes on over further losses and
restarts, and is healed by the first whole reading of the lists that began after a new stream was
acknowledged: only that finds what happened meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from observant_host.decisions.budget import DOUBTS, RELISTENS, Budget
from observant_host.decisions.listing_changes import Changes, between
from observant_host.telemetry.propagation import Link
from observant_host.telemetry.vocabulary import GapHealed
from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from observant_host.decisions.catalogue import Listing
    from observant_host.decisions.subscription import Loss
    from observant_host.peers.life import Life
    from observant_host.telemetry.facade import TraceContext


class Gap:
    """Changes went untold from `since_s` (monotonic) for `length_s`, None while they still do.

    `proven` is False where a stream was only doubted: then the gap was one if something changed
    in it. `before` are the lists of the time before, `stream` is what was lost and `lost` its loss.
    """

    __slots__ = (
        *("before", "length_s", "lost", "proven", "reason", "resources_told", "since_s"),
        "stream",
    )

    def __init__(
        self, since_s: float, reason: Loss, *, stream: TraceContext | None, proven: bool = True
    ) -> None:
        self.since_s = since_s
        self.reason = reason
        self.stream = stream
        self.lost: TraceContext | None = None
        self.proven = proven
        self.length_s: float | None = None
        self.before: Listing | None = None
        self.resources_told = 0

    @property
    def links(self) -> tuple[Link, ...]:
        found = ((self.stream, "of_stream"), (self.lost, "caused_by"))
        return tuple(Link(context, name) for context, name in found if context is not None)


class Listening:
    """`changed` is set whenever `layer` or `why` changes.

    "off": nothing is to be told, or the server cannot. `down_since` (monotonic seconds) is set
    while changes go untold although they should not. `last` is the stream opened last.
    """

    def __init__(self) -> None:
        self.layer: Literal["ok", "waiting", "down", "off"] = "off"
        self.why = ""
        self.down_since: float | None = None
        self.last: TraceContext | None = None
        self.changed = Signal()
        self.gap: Gap | None = None
        self.relistens = Budget(RELISTENS)
        self.doubts = Budget(DOUBTS)

    def wait(self) -> None:
        if self.layer == "off":
            self.layer = "waiting"

    def up(self, now: float) -> float | None:
        """Returns for how many seconds changes went untold; None where they did not."""
        self.down_since = None
        self._be("ok", "")
        gap = self.gap
        if gap is None or gap.length_s is not None:
            return None
        gap.length_s = now - gap.since_s
        return gap.length_s if gap.proven else None

    def down(self, now: float, why: str, *, reason: Loss, since: float | None = None) -> Gap:
        """Changes go untold from `since` (else now) on; a gap that is not healed yet goes on."""
        if self.down_since is None:
            self.down_since = now
        if self.gap is None:
            self.gap = Gap(now if since is None else since, reason, stream=self.last)
        self.gap.length_s, self.gap.proven = None, True
        self._be("down", why)
        return self.gap

    def doubted(self, since: float, reason: Loss) -> None:
        """A stream is replaced that may have been dead since then, or not."""
        if self.gap is None:
            self.gap = Gap(since, reason, stream=self.last, proven=False)

    def off(self, why: str = "") -> None:
        """What was missed until now is found by the reading that every life begins with."""
        self.down_since = self.gap = None
        self._be("off", why)

    def reading(self, before: Listing | None) -> Gap | None:
        """The lists are about to be read; returns the gap that this heals, if it succeeds."""
        gap = self.gap
        if gap is None:
            return None
        gap.before = gap.before or before
        return gap if gap.length_s is not None else None

    def healed(self, gap: Gap | None, after: Listing | None, *, life: Life) -> None:
        """All that it hid was read, `after` being the lists now (None: they were not covered)."""
        if gap is None or gap is not self.gap or gap.length_s is None:
            return
        self.gap = None
        changes = between(gap.before, after) if after is not None else Changes()
        if gap.proven or changes.count:
            _tell(gap, gap.length_s, changes, life)

    def note(self) -> str | None:
        """A part of a sentence about it, where it is not as it should be."""
        return f"it does not tell of changes: {self.why}" if self.down_since is not None else None

    def _be(self, layer: Literal["ok", "down", "off"], why: str) -> None:
        if (layer, why) != (self.layer, self.why):
            self.layer, self.why = layer, why
            self.changed.set()


def _tell(gap: Gap, length_s: float, changes: Changes, life: Life) -> None:
    mask = life.masker.text
    life.telemetry.count(
        GapHealed(
            peer=life.server.name,
            generation=life.generation,
            reason=gap.reason,
            gap_s=length_s,
            changes=changes.count,
            added=tuple(map(mask, changes.added)),
            removed=tuple(map(mask, changes.removed)),
            changed=tuple(map(mask, changes.changed)),
            resources_told=gap.resources_told,
        ),
        links=gap.links,
    )
