"""One response, read in decoded pieces and within bounds, and always given back or closed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

import aiohttp

from observant_host.transports.web.encodings import Undecodable, decoder_for
from observant_host.transports.web.failures import BODY_BYTES, READ_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from yarl import URL

    from observant_host.errors import HttpFailure, HttpFailureKind
    from observant_host.timing.clock import Clock
    from observant_host.transports.web.connections import Passage
    from observant_host.transports.web.direct import DirectResponse
    from observant_host.transports.web.encodings import Inflate
    from observant_host.transports.web.failures import Failures
    from observant_host.transports.web.lines import Known
    from observant_host.wire.jsonrpc import Frame

    Response: TypeAlias = aiohttp.ClientResponse | DirectResponse | Known

LINGER_S: Final = 0.25
"""For the end of a stream whose response is in: most end at once, and then their connection can
be used again; one that stays open is closed."""

PATIENCE_S: Final = 2.0
"""For a body that only decorates a status already known."""

EVENT_STREAM: Final = "text/event-stream"

COPIED_BYTES: Final = 64 * 1024
"""A body up to this size becomes bytes of its own."""

MAX_TYPE_CHARS: Final = 127
"""Longer ones are no media types (RFC 6838 4.2), and are shown in errors."""


@lru_cache(64)
def media_type(value: str) -> str:
    """Of a Content-Type: lower case, without parameters, printable."""
    bare = value.partition(";")[0].strip().lower()[:MAX_TYPE_CHARS]
    return bare.encode("ascii", "replace").decode()


class Reply:
    """`media_type` is lower case and without parameters, "" where none was given."""

    def __init__(
        self,
        response: Response,
        *,
        url: URL,
        passage: Passage,
        failures: Failures,
        clock: Clock,
    ) -> None:
        self.status = response.status
        self.url = url
        self.media_type = media_type(response.headers.get("Content-Type", ""))
        self._response = response
        self._passage = passage
        self._failures = failures
        self._clock = clock
        self._decoder: Inflate | None = None
        self._encoding: str | None = response.headers.get("Content-Encoding", "")

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_stream(self) -> bool:
        return self.ok and self.media_type == EVENT_STREAM

    async def read(self) -> bytes:
        """The next decoded piece, b"" at the end. Raises HttpFailure."""
        try:
            return await self._piece()
        except Undecodable as error:
            raise self.failure("encoding", str(error)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise self.broken(error) from error

    async def whole(self, max_bytes: int) -> Frame:
        """The decoded body. Raises HttpFailure, kind "too_large" beyond `max_bytes`.

        A large one is the buffer that it was read into: it is in memory once.
        """
        first = await self.read()
        if len(first) > max_bytes:
            raise self._too_large(first, max_bytes)
        if self._decoder is None and self._response.content.at_eof():
            return first
        gathered = bytearray(first)
        while piece := await self.read():
            gathered += piece
            if len(gathered) > max_bytes:
                raise self._too_large(gathered, max_bytes)
        return gathered if len(gathered) > COPIED_BYTES else bytes(gathered)

    def _too_large(self, body: Frame, max_bytes: int) -> HttpFailure:
        return self.failure(
            "too_large",
            f"answered with more than max_message_bytes ({max_bytes} bytes)",
            body=body,
        )

    async def beginning(self) -> bytes:
        """The first 64 KiB of a body that is only to be shown; never raises, never waits long."""
        begun = bytearray()
        timer = self._clock.call_at(self._clock.monotonic() + PATIENCE_S, self.close)
        try:
            while len(begun) < BODY_BYTES and (piece := await self._piece()):
                begun += piece
        except (aiohttp.ClientError, OSError, Undecodable):
            pass  # what came is enough to show
        finally:
            timer.cancel()
            self.close()
        return bytes(begun[:BODY_BYTES])

    async def finish(self, patience_s: float = LINGER_S) -> None:
        """Give the connection back if the body ends soon and is short, else close it."""
        if self._response.content.at_eof():
            return
        left = BODY_BYTES
        timer = self._clock.call_at(self._clock.monotonic() + patience_s, self.close)
        try:
            while left > 0 and (piece := await self._response.content.readany()):
                left -= len(piece)
        except (aiohttp.ClientError, OSError):
            pass  # it is closed, which is what was wanted
        finally:
            timer.cancel()
            self.close()

    def close(self) -> None:
        """Idempotent; where the body was read to its end, the connection stays usable."""
        if not (self._response.content.at_eof() or isinstance(self._response, tuple)):
            self._response.close()

    def failure(self, kind: HttpFailureKind, what: str, *, body: Frame = b"") -> HttpFailure:
        return self._failures.make(
            kind,
            self.url,
            what,
            status=self.status,
            content_type=self.media_type,
            body=bytes(body[:BODY_BYTES]),
            headers=self.headers,
        )

    def broken(self, error: Exception) -> HttpFailure:
        return self._failures.of_error(
            error, self.url, self._passage, status=self.status, content_type=self.media_type
        )

    async def refusal(self) -> HttpFailure:
        """Of kind "status", with the beginning of the body."""
        body = await self.beginning()
        return self.failure("status", self.said(body), body=body)

    def said(self, body: Frame) -> str:
        """`answered 502 Bad Gateway (text/html): Bad gateway`."""
        return self._failures.refusal(self.status, self.media_type, bytes(body[:READ_BYTES]))

    async def _piece(self) -> bytes:
        if self._encoding is not None:
            self._decoder, self._encoding = decoder_for(self._encoding), None
        decoder = self._decoder
        if decoder is None:
            return await self._response.content.readany()
        while not (piece := decoder.take()):
            data = await self._response.content.readany()
            if not data:
                decoder.end()
                return b""
            decoder.feed(data)
        return piece
