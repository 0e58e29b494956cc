"""Listening in on one transport life: every frame, both ways, from the next one on.

While nobody listens it costs nothing at all: two methods are replaced on the two objects that talk,
and put back afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.transports.base import Answering, Outbound, Receiver, Sent, Transport
    from observant_host.wire.jsonrpc import Frame


class Listener(Protocol):
    """Called on the loop; must neither block nor raise."""

    def frame_sent(self, frame: bytes) -> None:
        """It was handed to the transport, which took it."""

    def frame_received(self, frame: Frame) -> None:
        """It arrived, and is about to be read."""


def listen_in(transport: Transport, receiver: Receiver, listener: Listener) -> Callable[[], None]:
    """Returns what ends it; idempotent. One at a time on a life."""
    send, received = transport.send, receiver.frame_received

    def tapped_send(out: Outbound, expires: float) -> Sent:
        sent = send(out, expires)
        listener.frame_sent(out.frame)
        return sent

    def tapped_received(frame: Frame, answering: Answering | None = None) -> bool:
        listener.frame_received(frame)
        return received(frame, answering)

    vars(transport)["send"] = tapped_send
    vars(receiver)["frame_received"] = tapped_received

    def stop() -> None:
        vars(transport).pop("send", None)
        vars(receiver).pop("frame_received", None)

    return stop


def listen_from_opening(
    transport: Transport, listener: Listener, stops: Callable[[Callable[[], None]], object]
) -> None:
    """For a life that begins: the frames of its negotiation too. `stops` gets what ends it."""
    opened = transport.open

    async def tapped(receiver: Receiver) -> None:
        vars(transport).pop("open", None)
        stops(listen_in(transport, receiver, listener))
        await opened(receiver)

    vars(transport)["open"] = tapped
