"""Server-sent events out of a byte stream, in linear time and bounded memory.

Source: WHATWG HTML › Server-sent events › Parsing an event stream; MCP 2026-07-28
basic/transports/streamable-http › Receiving Messages.
"""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True):
    """`data` is b"" where the event has none (a priming event): that is no message.

    `id` is None where this event has no id field; `retry_ms` likewise.
    """

    event: str
    data: bytes
    id: str | None = None
    retry_ms: int | None = None


class EventSplitter:
    """Feed chunks, get whole events. `max_event_bytes` bounds one event."""

    def __init__(self, max_event_bytes: int) -> None:
        self.comments = 0
        self._max_bytes = max_event_bytes

    def feed(self, data: bytes) -> list[Event]:
        """Take a chunk; return the events that it completes, in order."""
        raise NotImplementedError

    def take_oversized(self) -> list[bytes]:
        """Excerpts (at most 512 bytes) of the events dropped since the last call.

        `jsonrpc.recover` reads the id out of one.
        """
        raise NotImplementedError
