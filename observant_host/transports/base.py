"""What every transport gives: frames out, frames in, and one end.

A transport knows bytes only: no eras, no catalogues, no meaning of ids. It serves exactly one life
(one child process, one endpoint connection): opened once, ended once, never reopened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.wire.jsonrpc import Frame

TransportKind = Literal["stdio", "http", "sse", "memory"]
EndKind = Literal["exit", "eof", "closed", "lost"]
NoiseKind = Literal["not_json", "oversized", "unterminated"]


class End(msgspec.Struct, frozen=True, kw_only=True):
    """How a life ended.

    kind: "exit" (the process ended), "eof" (stdout closed while the process lived), "closed" (we
    closed it), "lost" (connection or pipe broke). `exit_code` is negative for a signal.
    `stderr_tail` is bounded and masked. `detail` is a sentence for a person.
    """

    kind: EndKind
    detail: str
    exit_code: int | None = None
    stderr_tail: str = ""


class Outbound(msgspec.Struct, frozen=True, gc=False):
    """One frame on its way out, with what an HTTP transport must mirror into headers.

    `request_id` is None for notifications and for answers to a server's request. `name` is the
    value of `Mcp-Name` where the method has one. `mirrored` are `Mcp-Param-*` headers, encoded.
    `modern`: all of these become headers, and no session id does. Otherwise only `version` does,
    where it is given, beside the session id that the transport may hold.
    """

    frame: bytes
    method: str
    request_id: int | None = None
    version: str | None = None
    name: str | None = None
    mirrored: tuple[tuple[str, str], ...] = ()
    modern: bool = False


class Answering(msgspec.Struct, frozen=True):
    """The POST on whose response a frame came back.

    `request_id` is None where a notification or an answer was posted. `content_type` is lower
    case and without parameters.
    """

    request_id: int | None
    status: int
    content_type: str


class Sent(Protocol):
    """What became of a frame handed to `Transport.send`."""

    @property
    def started(self) -> bool:
        """True once any byte may have left: from then on delivery is never "not_sent"."""

    def withdraw(self) -> bool:
        """Take the frame back while no byte of it has left; True if that was possible."""


class Receiver(Protocol):
    """Who a transport talks to. All calls come on the event loop and must not block or raise."""

    def frame_received(self, frame: Frame, answering: Answering | None = None) -> bool:
        """One complete message, without its delimiter. The bytes belong to the receiver.

        True if it was the answer to the request that `answering` names: its stream is over then.
        """

    def noise_received(self, kind: NoiseKind, excerpt: bytes) -> None:
        """Something that is no message arrived and was dropped (first 512 bytes given)."""

    def request_lost(self, request_id: int, error: Exception) -> None:
        """This one request can get no answer any more, though the life goes on (HTTP).

        `error` is an HttpFailure, whose body may still be a JSON-RPC error. Ignored for a request
        that was answered.
        """

    def stream_heard(self, request_id: int) -> None:
        """Something that is no message came on the response to this request, which is a stream of
        changes: a comment that keeps it alive, or another event (HTTP)."""

    def stream_reopened(self) -> None:
        """The stream for what a legacy server says unasked had ended and stands again, and nothing
        says from where to go on: what was said meanwhile is lost (HTTP)."""

    def ended(self, end: End) -> None:
        """The life is over; called exactly once, and nothing is called after it."""


class Transport(Protocol):
    @property
    def kind(self) -> TransportKind: ...

    @property
    def pid(self) -> int | None: ...

    @property
    def ending(self) -> bool:
        """One of its ways is gone, so that its end comes in a moment, with what is known of it."""

    @property
    def stderr_tail(self) -> str:
        """The last bytes of stderr, bounded and masked; empty where there is none."""

    async def open(self, receiver: Receiver) -> None:
        """Start. Raises SpawnFailed (or another TransportError) and leaves nothing behind."""

    def send(self, out: Outbound, expires: float) -> Sent:
        """Write now or queue; never blocks.

        `expires` (monotonic seconds): a frame of which no byte was written by then is withdrawn.
        Raises QueueFull or TransportClosed, both meaning that nothing was sent.
        """

    def cancel(self, request_id: int) -> bool:
        """Cancel by closing the request's own stream, where the transport has one (modern HTTP).

        False where cancellation is a notification, which the caller then sends.
        """

    def listen(self) -> None:
        """Open the stream for what the server says unasked (legacy HTTP); elsewhere a no-op.

        Called once an era is legacy and `initialize` was answered.
        """

    def forget_session(self) -> None:
        """Send no session id until the next `initialize` gives one (legacy HTTP)."""

    async def taken(self, *, expires: float) -> None:
        """Until what was sent without an id has been taken by the server, or is lost; no longer
        than to `expires` (monotonic seconds).

        Only HTTP needs this: elsewhere messages arrive in the order in which they were sent.
        """

    async def close(self) -> End:
        """End the life within its bound. Idempotent; callable while sends are stuck."""


class Credentials(Protocol):
    """What authorises requests to one server. Values are secrets."""

    async def headers(self) -> Mapping[str, str]:
        """For the next request to this server's own origin, and to no other.

        Raises a HostError whose text is masked where they cannot be had.
        """

    def present(self, now: float) -> Mapping[str, str] | None:
        """What `headers` would give at `now` (monotonic seconds) without waiting for anything; None
        where it would have to, or has not yet."""

    async def rejected(self, used: Mapping[str, str]) -> bool:
        """The server answered 401 to these. True if there are others now, worth one try."""


class GroupKeeper(Protocol):
    """Who ends the children of a host that was killed; told about every process group.

    Calls come on the event loop and must not block or raise.
    """

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables each child must be given, by which a lost one is recognised."""

    def watch(self, pgid: int) -> None:
        """This group exists from now on."""

    def forget(self, pgid: int) -> None:
        """Called before the group's leader is reaped, so before its number can be used again."""
