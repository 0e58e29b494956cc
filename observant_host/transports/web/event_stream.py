"""Following one stream of server-sent events, and what must be known to go on with it later.

Source: WHATWG HTML › Server-sent events; MCP 2025-11-25 basic/transports › Resumability and
Redelivery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.wire.sse import DEFAULT_EVENT, EventSplitter

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.transports.web.reply import Reply
    from observant_host.wire.sse import Event


class Cursor:
    """How far a stream was read: its last event id, its wish for a pause, and how much came."""

    __slots__ = ("last_id", "messages", "retry_s")

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry_s: float | None = None
        self.messages = 0

    def note(self, event: Event) -> None:
        if event.id is not None:
            self.last_id = event.id
        if event.retry_ms is not None:
            self.retry_s = event.retry_ms / 1000
        if event.data:
            self.messages += 1


async def follow(
    reply: Reply,
    *,
    max_bytes: int,
    cursor: Cursor,
    take: Callable[[Event], bool],
    oversized: Callable[[bytes], None],
    kept_alive: Callable[[], None] | None = None,
) -> bool:
    """Read events until one is the last (`take` said True) or the stream ends (False).

    Events are noted before they are taken. `kept_alive` is called after what held comments, or
    events that are no messages. Raises HttpFailure where the stream breaks.
    """
    splitter = EventSplitter(max_bytes)
    while data := await reply.read():
        comments, events = splitter.comments, splitter.feed(data)
        if kept_alive is not None and (
            splitter.comments > comments or not all(map(is_message, events))
        ):
            kept_alive()
        for event in events:
            cursor.note(event)
            if take(event):
                return True
        for excerpt in splitter.take_oversized():
            oversized(excerpt)
    return False


def is_message(event: Event) -> bool:
    """Other names are other people's, and an event without data only primes an id."""
    return event.event == DEFAULT_EVENT and bool(event.data)
