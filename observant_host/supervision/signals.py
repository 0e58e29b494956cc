"""What happens in one life, as signals that its supervisor waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from observant_host.peers.notices import ListKind


class LifeSignals:
    """The LifeListener of one life. A new life gets new signals: an old one cannot wake it."""

    def __init__(self) -> None:
        self.lists = Signal()
        self.late_modern = Signal()
        self.answered = Signal()
        self.spoke = Signal()

    def list_changed(self, kind: ListKind) -> None:
        self.lists.set()

    def late_modern_evidence(self) -> None:
        self.late_modern.set()

    def evidence_arrived(self) -> None:
        self.answered.set()

    def any_traffic(self) -> None:
        self.spoke.set()
