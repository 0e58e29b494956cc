"""Who is told what happens in a life: its supervisor, which alone may end it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from observant_host.decisions.terms import Reason
    from observant_host.peers.notices import ListKind
    from observant_host.telemetry.propagation import TraceContext


class LifeListener(Protocol):
    """Who is told what happens in a life; on the loop, so it must neither block nor raise."""

    def list_changed(self, kind: ListKind, told_in: TraceContext | None = None) -> None:
        """One of the lists changed: the server says so (`told_in` is the span of its
        notification), or may have while it could not."""

    def late_modern_evidence(self) -> None:
        """After `initialize` was written, the server proved modern: end this life."""

    def evidence_arrived(self) -> None:
        """A discover left unanswered by its round got its answer: begin the next round now."""

    def any_traffic(self) -> None:
        """A JSON-RPC message arrived, whatever it was."""

    def ailing(self) -> None:
        """A request was lost in a way that makes one doubt whether the server is still there."""

    def session_renewed(self) -> None:
        """A new session stands: what the server was told or has listed before is void."""

    def stale_lists(self) -> None:
        """The server refuses what its lists said: read them again now."""

    def legacy_refused(self) -> Reason | None:
        """Why `initialize` may not be sent now; None where a person still allows it."""

    def broken(self, reason: Reason, detail: str) -> None:
        """This life can serve no more and must be ended. `detail` is a sentence part."""
