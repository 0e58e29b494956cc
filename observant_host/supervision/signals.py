"""What happens in one life, as signals that its supervisor waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from observant_host.decisions.restart import IMMEDIATE
from observant_host.decisions.terms import Reason, RestartReason
from observant_host.timing.tasks import Latch, Signal

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.peers.notices import ListKind
    from observant_host.telemetry.propagation import TraceContext


class Broken(msgspec.Struct, frozen=True):
    """Why a life can serve no more, though its transport has not ended (HTTP)."""

    reason: Reason
    detail: str


class Condemned(msgspec.Struct, frozen=True):
    """Why the host ends a life that could go on: it hangs, has grown, or a person wants it."""

    reason: RestartReason
    detail: str


class LifeSignals:
    """The LifeListener of one life. A new life gets new signals: an old one cannot wake it.

    `refused` says why `initialize` may not be sent at this moment, None where it may; `held`,
    whether a person wants nothing to happen by itself. `heard` counts its server's messages,
    `changed_s` is when it last said that a list changed.
    """

    def __init__(
        self,
        refused: Callable[[], Reason | None],
        now_s: Callable[[], float] = lambda: 0.0,
        *,
        held: Callable[[], bool] = lambda: False,
    ) -> None:
        self._refused = refused
        self.held = held
        self._now_s = now_s
        self.lists = Signal()
        self.changed_s = 0.0
        self._told_in: TraceContext | None = None
        self._kinds: frozenset[ListKind] = frozenset()
        self.late_modern = Signal()
        self.answered = Signal()
        self.spoke = Signal()
        self.heard = 0
        self.doubt = Signal()
        self.stale = Signal()
        self.expired = Signal()
        self.lost: Latch[Broken] = Latch()
        self.condemned: Latch[Condemned] = Latch()

    def list_changed(self, kind: ListKind, told_in: TraceContext | None = None) -> None:
        self.changed_s = self._now_s()
        self._told_in = self._told_in or told_in
        self._kinds |= {kind}
        self.lists.set()

    def take_changes(self) -> tuple[TraceContext | None, frozenset[ListKind]]:
        """The lists are being read: returns where the first change since the last time was told,
        and of which lists the server said that they changed."""
        self.lists.clear()
        told_in, self._told_in = self._told_in, None
        kinds, self._kinds = self._kinds, frozenset()
        return told_in, kinds

    def late_modern_evidence(self) -> None:
        self.late_modern.set()

    def evidence_arrived(self) -> None:
        self.answered.set()

    def any_traffic(self) -> None:
        self.heard += 1
        if not self.spoke.raised:  # while it is, nobody waits for it
            self.spoke.set()

    def ailing(self) -> None:
        self.doubt.set()

    def session_renewed(self) -> None:
        self.stale.set()

    def stale_lists(self) -> None:
        self.stale.set()

    def legacy_refused(self) -> Reason | None:
        return self._refused()

    def broken(self, reason: Reason, detail: str) -> None:
        self.lost.release(Broken(reason, detail))

    def condemn(self, reason: RestartReason, detail: str) -> None:
        """Have this life ended, and another one begun after what `decisions.restart` says. Nothing
        happens where a person wants it to go on, unless a person wants that, too."""
        if reason in IMMEDIATE or not self.held():
            self.condemned.release(Condemned(reason, detail))
