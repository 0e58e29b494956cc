"""A peer in this process: for embedding a server without a child, and for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.timing.clock import Clock
    from observant_host.transports.base import End, EndKind, Outbound, Receiver, Sent


class MemoryLink(Protocol):
    """What the peer in memory holds: the way back to the host."""

    def reply(self, frame: bytes) -> None:
        """Deliver one message to the host, later in this turn of the loop. Ignored once ended."""

    def end(self, kind: EndKind = "lost", detail: str = "") -> None:
        """End the life from the peer's side."""

    def hold(self) -> None:
        """Read nothing more (a stuck pipe)."""

    def resume(self) -> None:
        """Read again."""


class MemoryTransport:
    """`handler(frame, link)` is called on the loop for each frame the host sends; it must not
    block or raise, and answers by `link.reply`, at once or from a task of its own.
    """

    kind: Literal["memory"] = "memory"

    def __init__(self, handler: Callable[[bytes, MemoryLink], None], *, clock: Clock) -> None:
        raise NotImplementedError

    @property
    def pid(self) -> int | None:
        return None

    @property
    def stderr_tail(self) -> str:
        return ""

    async def open(self, receiver: Receiver) -> None:
        raise NotImplementedError

    def send(self, out: Outbound, *, expires: float) -> Sent:
        raise NotImplementedError

    def cancel(self, request_id: int) -> bool:
        return False

    async def close(self) -> End:
        raise NotImplementedError
