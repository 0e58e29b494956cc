"""A peer in this process: for embedding a server without a child, and for tests."""

from __future__ import annotations

import asyncio
import contextvars
from typing import TYPE_CHECKING, Final, Literal

from observant_host.errors import TransportClosed
from observant_host.transports.base import End
from observant_host.transports.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.timing.clock import Clock
    from observant_host.transports.base import EndKind, Outbound, Receiver, Sent

QUEUE_BYTES: Final = 32 * 1024 * 1024
"""What may wait for a peer that holds: two messages of the largest usual size."""


class MemoryLink:
    """What the peer in memory holds: the way back to the host."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport

    def reply(self, frame: bytes) -> None:
        """Deliver one message to the host, in a later turn of the loop. Ignored once ended."""
        self._transport.soon(lambda: self._transport.deliver(frame))

    def end(self, kind: EndKind = "lost", detail: str = "the peer in memory ended") -> None:
        """End the life from the peer's side, after what it has replied."""
        self._transport.soon(lambda: self._transport.finish(kind, detail))

    def hold(self) -> None:
        """Read nothing more, as a stuck process does."""
        self._transport.held = True

    def resume(self) -> None:
        """Read again, beginning with what waits."""
        self._transport.held = False
        self._transport.soon(self._transport.flush)


class MemoryTransport:
    """`handler(frame, link)` is called on the loop for each frame that the host sends.

    It must not block or raise, and answers by `link.reply`, at once or from a task of its own.
    """

    kind: Literal["memory"] = "memory"
    pid: int | None = None
    ending: bool = False
    stderr_tail: str = ""

    def __init__(self, handler: Callable[[bytes, MemoryLink], None], *, clock: Clock) -> None:
        self._handler = handler
        self._clock = clock
        self._link = MemoryLink(self)
        self._receiver: Receiver | None = None
        self._outbox: Outbox | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: End | None = None
        self.held = False

    @property
    def link(self) -> MemoryLink:
        return self._link

    async def open(self, receiver: Receiver) -> None:
        if self._loop is not None or self._end is not None:
            raise TransportClosed("this life was already used")
        self._loop = asyncio.get_running_loop()
        self._receiver = receiver
        self._outbox = Outbox(self, now=self._clock.monotonic, max_bytes=QUEUE_BYTES)

    def send(self, out: Outbound, expires: float) -> Sent:
        if self._outbox is None:
            raise TransportClosed(self._end.detail if self._end else "the peer is not started")
        return self._outbox.put(out.frame, expires=expires)

    def cancel(self, request_id: int) -> bool:
        """Always False: cancellation is a notification."""
        return False

    def listen(self) -> None:
        """Nothing to open."""

    def forget_session(self) -> None:
        """Nothing to forget."""

    async def taken(self, *, expires: float) -> None:
        """Frames arrive in order."""

    async def close(self) -> End:
        return self.finish("closed", "the peer in memory was closed")

    # the outbox's pipe

    def write(self, data: bytes | memoryview) -> int:
        if self.held:
            return 0
        frame = bytes(data[:-1])
        self.soon(lambda: self._handler(frame, self._link))
        return len(data)

    def want_writable(self, wanted: bool) -> None:
        """Nothing to watch: `resume` flushes."""

    # the peer's side

    def soon(self, act: Callable[[], object]) -> None:
        """Later, so that neither side ever finds itself inside a call of its own."""
        if self._loop is not None:
            self._loop.call_soon(act, context=contextvars.Context())

    def flush(self) -> None:
        if self._outbox is not None:
            self._outbox.flush()

    def deliver(self, frame: bytes) -> None:
        if self._receiver is not None:
            self._receiver.frame_received(frame)

    def finish(self, kind: EndKind, detail: str) -> End:
        """The first end counts; the receiver hears of it once."""
        if self._end is None:
            self._end = End(kind=kind, detail=detail)
            receiver, self._receiver, self._outbox = self._receiver, None, None
            if receiver is not None:
                receiver.ended(self._end)
        return self._end
