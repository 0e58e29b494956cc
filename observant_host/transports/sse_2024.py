"""HTTP+SSE of 2024-11-05: one GET stream brings everything, its first event says where to POST.

Source: MCP 2024-11-05 basic/transports › HTTP with SSE.
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


class SseTransport:
    """A server of 2024-11-05 at one URL; arguments as of HttpTransport."""

    kind: Literal["sse"] = "sse"
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
        """GET the stream and wait for its `endpoint` event, within `connect_timeout_s`.

        Raises HttpFailure: kind "status" or "content" where this is no HTTP+SSE endpoint,
        "timeout" where the event never came, "redirect" where it names another origin.
        """
        raise NotImplementedError

    def send(self, out: Outbound, *, expires: float) -> Sent:
        """One POST; its answer comes on the stream. `request_lost` only where the POST failed."""
        raise NotImplementedError

    def cancel(self, request_id: int) -> bool:
        """Always False: cancellation is a notification."""
        return False

    def listen(self) -> None:
        """Nothing to open: the stream is the life."""

    def forget_session(self) -> None:
        """Nothing to forget: the stream is the session."""

    async def close(self) -> End:
        raise NotImplementedError
