"""One POST of a legacy client: its requests, and the one way back for their answers.

A JSON body where nothing else is to be said, else an event stream. The requests belong to the
session: where the connection breaks, they go on, and what they say is kept for a while if a stream
had begun.

Source: MCP 2025-11-25 basic/transports › Sending Messages to the Server; MCP 2025-03-26 basic ›
Batching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from observant_host.service.mcp.legacy_streams import Stream
    from observant_host.service.mcp.legacy_table import Seat
    from observant_host.service.mcp.outlet import Response


class Exchange:
    """`open` requests wait for their answer. `moved` is set when a stream begins, and at the end.

    `stream` is None as long as JSON is enough; without `streams` it always is.
    """

    def __init__(self, seat: Seat, count: int, *, json: bool, streams: bool) -> None:
        self._seat = seat
        self.streams = streams
        self.open = count
        self.moved = Signal()
        self.gone = False
        self.responses: list[Response] = []
        self.stream: Stream | None = None
        if not json:
            self.begin_stream()

    @property
    def done(self) -> bool:
        return self.open <= 0

    def begin_stream(self) -> Stream:
        """The stream, from now on."""
        if self.stream is None:
            self.stream = self._seat.new_stream()
            for response in self.responses:
                self.stream.put(*response.one_line(), vital=True)
            self.responses.clear()
            self.moved.set()
        return self.stream

    def say(self, message: bytes, *, vital: bool = False) -> None:
        """Something beside the answers. A client that reads no streams is told nothing."""
        if self.streams and not (self.gone and self.stream is None):
            self.begin_stream().put(message, vital=vital)

    def answer(self, response: Response) -> None:
        if self.stream is not None:
            self.stream.put(*response.one_line(), vital=True)
        elif not self.gone:
            self.responses.append(response)
        self.over()

    def over(self) -> None:
        """One request is at its end, answered or cancelled."""
        self.open -= 1
        if self.done:
            if self.stream is not None:
                self.stream.end()
            self.moved.set()

    def abandon(self) -> None:
        """The connection is over; what it carried may be fetched from its stream."""
        self.gone = True
        self.responses.clear()


class ExchangeOutlet:
    """One request of it, as an outlet."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.cut: str | None = None

    @property
    def closed(self) -> bool:
        return self._exchange.gone and self._exchange.stream is None

    def notify(self, message: bytes) -> None:
        # a question to the client is a request: the only messages here that have an id
        self._exchange.say(message, vital=b'"id":' in message[:64])

    async def respond(self, response: Response) -> None:
        self._exchange.answer(response)
