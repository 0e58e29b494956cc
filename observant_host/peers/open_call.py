"""One request that somebody awaits: its future, what left of it, and how long it may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.peers.notices import is_coroutine
from observant_host.timing.tasks import spawn

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from typing import Any

    from msgspec import Raw

    from observant_host.errors import CallError, Delivery
    from observant_host.peers.errand import Errand
    from observant_host.peers.notices import ProgressNote
    from observant_host.telemetry.facade import TraceContext
    from observant_host.transports.base import Sent


class OpenCall:
    """`errand` says how long it may take, and what each progress gives it again. It is its own
    entry among the open requests (peers.pending.Entry): a second object would say nothing more.
    Made for each call, so by position: CPython makes an object for arguments by name.
    """

    __slots__ = (
        "_last_progress",
        "_telling",
        "began",
        "context",
        "errand",
        "expires",
        "future",
        "id",
        "method",
        "sent",
    )

    def __init__(
        self,
        errand: Errand,
        future: asyncio.Future[Raw],
        request_id: int,
        began: float,
        context: TraceContext,
    ) -> None:
        self.id = request_id
        self.method = errand.method
        self.expires = errand.expires
        self.errand = errand
        self.future = future
        self.began = began
        self.context = context
        self.sent: Sent | None = None
        self._last_progress: float | None = None
        self._telling: asyncio.Task[Any] | None = None

    @property
    def waiter(self) -> OpenCall:
        return self

    @property
    def delivery(self) -> Delivery:
        """How far it got, while no answer came."""
        return "sent_no_reply" if self.sent is not None and self.sent.started else "not_sent"

    def withdraw(self) -> bool:
        """Take it back while no byte of it has left; True if that was possible."""
        unsent = self.sent is None or self.sent.withdraw()
        if unsent and self.errand.witness is not None:
            self.errand.witness.delivery = "not_sent"
        return unsent

    def succeed(self, result: Raw) -> None:
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: CallError) -> None:
        if not self.future.done():
            self.future.set_exception(error)

    def settle_quietly(self) -> None:
        """Its caller is gone: an error that came in the same instant is nobody's."""
        if self.future.done() and not self.future.cancelled():
            self.future.exception()

    def advances(self, progress: float) -> bool:
        """Whether this value is new: the protocol only lets it rise."""
        if self._last_progress is not None and progress <= self._last_progress:
            return False
        self._last_progress = progress
        return True

    def tell(self, note: ProgressNote) -> bool:
        """Note it, and call the caller's callback; False if that failed. A coroutine is run one at
        a time: what comes while it still runs is skipped, since only the newest progress matters.
        """
        on_progress, witness = self.errand.on_progress, self.errand.witness
        if witness is not None:
            witness.progress = note
        if on_progress is None or (self._telling is not None and not self._telling.done()):
            return True
        try:
            told = on_progress(note.progress, note.total, note.message)
        except Exception:  # noqa: BLE001 - the caller's code must not end the reader
            return False
        if is_coroutine(told):
            self._telling = _run(told)
        return True


def _run(told: Any) -> asyncio.Task[Any]:
    coroutine: Coroutine[Any, Any, Any] = told
    return spawn("progress callback", coroutine, on_error=lambda _name, _error: None)
