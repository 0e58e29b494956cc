"""The streams of changes that one life has open: what comes on each, and how it ends.

An event counts only with the id of an acknowledged stream that asked for its type. One that comes
before the acknowledgment is dropped, as the protocol forbids it; nothing is lost by that, because
what a stream covers is read after its acknowledgment.

Source: MCP 2026-07-28 server/utilities/subscriptions.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from observant_host.decisions.silence import Pulse
from observant_host.decisions.subscription import Filter, Loss, accepted
from observant_host.errors import CallError, RpcError
from observant_host.peers.errand import Errand
from observant_host.peers.pending import LISTEN
from observant_host.timing.tasks import Latch, Signal
from observant_host.wire.envelope import SUBSCRIPTION_ID
from observant_host.wire.revisions import METHOD_NOT_FOUND

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from observant_host.peers.life import Life
    from observant_host.peers.open_call import OpenCall
    from observant_host.telemetry.facade import TraceContext
    from observant_host.wire.jsonrpc import Notification

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
DEAD_PATH: Final = frozenset({errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH})
UPDATED = "notifications/resources/updated"


class Subscription:
    """One `subscriptions/listen`. `acked` is released with what was granted, `lost` with how it
    ended; `error` is then what it failed with. `stirred` is set where it is to be judged anew:
    its habit of keep-alives changed, or another request failed, made at `doubted_s`. Times are in
    monotonic seconds."""

    def __init__(self, asked: Filter, *, request_id: int, call: OpenCall) -> None:
        self.pulse = Pulse(call.began)
        self.stirred = Signal()
        self.doubted_s: float | None = None
        self.asked = asked
        self.id = request_id
        self.call = call
        self.acked: Latch[Filter] = Latch()
        self.lost: Latch[Loss] = Latch()
        self.error: CallError | None = None
        self.acked_at: float | None = None
        self.messages = 0
        self.last_message_at: float | None = None

    def doubt(self, failed_since_s: float) -> None:
        self.doubted_s = max(failed_since_s, self.doubted_s or failed_since_s)
        self.stirred.set()

    def kept_alive(self, now_s: float, *, least_gap_s: float) -> None:
        before = self.pulse.interval_s
        self.pulse = self.pulse.kept_alive(now_s, least_gap_s=least_gap_s)
        if self.pulse.interval_s != before:
            self.stirred.set()

    def covers(self, method: str) -> bool:
        """Whether it was granted that such notifications come on it."""
        granted = self.acked.value
        if granted is None:
            return False
        if method == UPDATED:
            return bool(granted.uris)
        return method.removeprefix("notifications/").partition("/")[0] in granted.lists


class Subscriptions:
    """Of one life; there is one at a time, and a moment of two while one takes another's place."""

    def __init__(self, life: Life, *, drop: Callable[..., None]) -> None:
        self._life = life
        self._drop = drop
        self._open: dict[int, Subscription] = {}
        self.closed = False
        self.least_gap_s = 0.0
        """Between two keep-alives that count as two."""
        self.on_reopened: Callable[[], None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    def open(self, asked: Filter, *, expires: float, trace: TraceContext) -> Subscription:
        """Ask for a stream; it must have left by `expires` (monotonic). Raises Unavailable."""
        errand = Errand(LISTEN, expires=expires)
        params = {"notifications": asked.to_params()}
        request_id, call = self._life.begin(errand, params, trace=trace)
        opened = self._open[request_id] = Subscription(asked, request_id=request_id, call=call)
        call.future.add_done_callback(lambda done: self._answered(opened, done))
        return opened

    def end(self, opened: Subscription) -> None:
        """We want it no more: the server is told by a notification, or its stream is closed."""
        if self._open.pop(opened.id, None) is not None:
            self._life.give_up(opened.id, opened.call)

    def close(self) -> None:
        """The life is about to be ended by us."""
        self.closed = self._life.end is None
        for opened in tuple(self._open.values()):
            self.end(opened)
            opened.lost.release(Loss.TRANSPORT)

    def heard(self, request_id: int) -> None:
        """Something came on this stream that is no message: it is alive."""
        opened = self._open.get(request_id)
        if opened is not None:
            opened.kept_alive(self._life.clock.monotonic(), least_gap_s=self.least_gap_s)

    def reopened(self) -> None:
        """The stream of what a legacy server says unasked stands again after a loss."""
        if self.on_reopened is not None:
            self.on_reopened()

    def doubt(self, failed_since_s: float) -> None:
        """A request that was made then has failed in a way in which a dead path would fail it. A
        pipe has no such path."""
        if self._life.transport.kind == "stdio":
            return
        for opened in self._open.values():
            opened.doubt(failed_since_s)

    def admits(self, note: Notification) -> TraceContext | None:
        """The stream on which a change was told; None where it must not be acted upon. Takes
        acknowledgments and ends itself."""
        told = _object(note.params)
        if note.method == CANCELLED:
            self._cancelled(told.get("requestId"))
            return None
        meta = _object(told.get("_meta"))
        opened = self._named(_value(meta.get(SUBSCRIPTION_ID)))
        if opened is None:
            self._drop("subscription_foreign")
        elif note.method == ACKNOWLEDGED:
            self._acknowledged(opened, told.get("notifications"))
        elif not opened.acked.is_set():
            self._drop("subscription_early")
        elif not opened.covers(note.method):
            self._drop("subscription_unasked")
        else:
            opened.messages += 1
            opened.last_message_at = now = self._life.clock.monotonic()
            opened.pulse = opened.pulse.message(now)
            return opened.call.context
        return None

    def _named(self, told: object) -> Subscription | None:
        """By number only: the JSON type is significant."""
        return self._open.get(told) if type(told) is int else None

    def _acknowledged(self, opened: Subscription, told: Raw | None) -> None:
        if opened.acked.is_set():
            self._drop("subscription_unasked")
            return
        opened.acked_at = now = self._life.clock.monotonic()
        opened.pulse = opened.pulse.message(now)
        opened.acked.release(accepted(opened.asked, _value(told)))

    def _cancelled(self, told: Raw | None) -> None:
        """Some servers end a stream so, some by its result, some by both in either order."""
        opened = self._named(_value(told))
        if opened is None:
            self._drop("cancelled_unknown_request")
            return
        if opened.call.future.done():
            return  # its result, or what it failed with, came first
        del self._open[opened.id]
        self._life.give_up(opened.id, opened.call, tell=False)
        opened.lost.release(Loss.CANCELLED)

    def _answered(self, opened: Subscription, done: asyncio.Future[Raw]) -> None:
        self._open.pop(opened.id, None)
        error = None if done.cancelled() else done.exception()
        opened.error = error if isinstance(error, CallError) else None
        if error is None:
            opened.lost.release(Loss.GRACEFUL)
        elif not isinstance(error, RpcError):
            opened.lost.release(Loss.WATCHDOG if timed_out(error) else Loss.TRANSPORT)
        elif opened.acked.is_set():
            opened.lost.release(Loss.TRANSPORT)  # it broke, whatever the server says of that
        elif error.code == METHOD_NOT_FOUND:
            opened.lost.release(Loss.UNKNOWN_METHOD)
        else:
            opened.lost.release(Loss.REFUSED)


def timed_out(error: BaseException | None) -> bool:
    """Whether the kernel found the path dead by probing it, and no end ever came."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in DEAD_PATH:
            return True
        error = error.__cause__
    return False


def _value(raw: object) -> Any:
    if not isinstance(raw, Raw):
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _object(raw: object) -> dict[str, Raw]:
    """Lenient: what is no object has nothing in it."""
    if not isinstance(raw, Raw):
        return {}
    try:
        return msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.MsgspecError, RecursionError):
        return {}
