"""Small writes that nobody awaits: notifications, probes, answers. None of them may raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.errors import QueueFull, TransportError
from observant_host.transports.base import Outbound

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Transport

WAIT_S: Final = 30.0
"""How long such a frame may wait in a stuck pipe before it is withdrawn."""


class Outbox:
    """Writes to one transport; what cannot be written is counted by `drop`."""

    def __init__(self, transport: Transport, *, clock: Clock, drop: Callable[[str], None]) -> None:
        self._transport = transport
        self._clock = clock
        self._drop = drop

    def write(
        self,
        frame: bytes,
        method: str = "",
        *,
        version: str | None = None,
        request_id: int | None = None,
        modern: bool = False,
    ) -> None:
        """Hand it over now; `version` is the value of its HTTP header, where it has one."""
        out = Outbound(frame, method, request_id, version, modern=modern)
        try:
            self._transport.send(out, expires=self._clock.monotonic() + WAIT_S)
        except QueueFull:
            self._drop("write_queue_full")
        except TransportError:
            self._drop("write_after_end")
