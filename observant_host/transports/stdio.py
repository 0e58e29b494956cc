"""One child process and its three pipes, as a transport life."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from observant_host.config import StdioServer
    from observant_host.telemetry.facade import Telemetry
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import End, GroupKeeper, Outbound, Receiver, Sent
    from observant_host.transports.child import StartGate


class StdioTransport:
    """A server started as a child process (MCP 2026-07-28 basic/transports/stdio).

    `max_message_bytes` bounds one inbound line; `shutdown_timeout_s` bounds `close()` as a whole.
    """

    kind: Literal["stdio"] = "stdio"

    def __init__(
        self,
        name: str,
        launch: StdioServer,
        *,
        max_message_bytes: int,
        shutdown_timeout_s: float,
        masker: Masker,
        guardian: GroupKeeper | None,
        starts: StartGate,
        telemetry: Telemetry,
        clock: Clock,
        host_environment: Mapping[str, str] = os.environ,
    ) -> None:
        raise NotImplementedError

    @property
    def pid(self) -> int | None:
        """Of the direct child; also its process group and session."""
        raise NotImplementedError

    @property
    def stderr_tail(self) -> str:
        raise NotImplementedError

    async def open(self, receiver: Receiver) -> None:
        raise NotImplementedError

    def send(self, out: Outbound, *, expires: float) -> Sent:
        raise NotImplementedError

    def cancel(self, request_id: int) -> bool:
        """Always False: on stdio cancellation is a notification."""
        return False

    async def close(self) -> End:
        raise NotImplementedError
