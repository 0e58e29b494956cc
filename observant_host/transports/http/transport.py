"""Streamable HTTP as a transport life: one POST per message, each with a task of its own.

One life serves both eras, because the same URL is asked first as a modern server and then, where
that is allowed, as a legacy one: which rules hold comes with each `Outbound`.

Source: MCP 2026-07-28 basic/transports/streamable-http; 2025-03-26 to 2025-11-25 basic/transports.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import HttpServer
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Credentials, End, Outbound, Receiver, Sent


class HttpTransport:
    """A server at one URL.

    `max_message_bytes` bounds one decoded message; `connect_timeout_s` making one connection;
    `shutdown_timeout_s` `close()` as a whole. Static `headers` of the endpoint belong to
    `credentials` (auth.credentials.for_server), which is all that this transport asks.
    `environment` holds the proxy variables.
    """

    kind: Literal["http"] = "http"
    pid: int | None = None
    stderr_tail: str = ""

    def __init__(
        self,
        name: str,
        endpoint: HttpServer,
        *,
        credentials: Credentials,
        max_message_bytes: int,
        connect_timeout_s: float,
        shutdown_timeout_s: float,
        masker: Masker,
        telemetry: Telemetry,
        clock: Clock,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        raise NotImplementedError

    async def open(self, receiver: Receiver) -> None:
        """Ready to send; the first POST makes the first connection.

        Raises TransportError where the CA bundle or the URL cannot be used.
        """

    def send(self, out: Outbound, *, expires: float) -> Sent:
        """One POST, in a task of its own. Raises QueueFull where too many are under way.

        What becomes of it is told by the receiver: frames, or `request_lost` with an HttpFailure.
        For messages without an id nothing is told, but that a lost session is.
        """
        raise NotImplementedError

    def cancel(self, request_id: int) -> bool:
        """True where the request was modern: its stream is closed, which is the cancellation.

        False for a legacy request: the caller sends the notification; the stream is kept for what
        else it may carry, and ends with the response, the server or the life.
        """
        raise NotImplementedError

    def listen(self) -> None:
        """Open the GET stream (legacy). Idempotent; a server without one is fine."""

    def forget_session(self) -> None:
        """Send no session id, and listen no more, until the next `initialize` gives one."""

    async def close(self) -> End:
        """End every stream, DELETE the session (bounded), close the connections."""
        raise NotImplementedError
