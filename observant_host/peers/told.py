"""What a server is told once in a life, and what it tells beside its answers.

Source: MCP 2025-11-25 server/utilities/logging; MCP 2026-07-28 server/utilities/logging.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from observant_host.errors import CallError

if TYPE_CHECKING:
    from observant_host.peers.life import Life

SET_LEVEL_S: Final = 5.0
"""For the answer to logging/setLevel: no call waits longer for what only its log needs."""


class LogMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One log message of a server, untrusted: to be shown as coming from `server`. `level` is one
    of the protocol's eight, "" where it is none; `data` is any JSON value."""

    server: str
    level: str
    logger: str | None
    data: Raw


OnLog = Callable[[LogMessage], object]
"""Called on the loop for each message that is told further: it must neither block nor raise."""


class Told:
    """The log level that one peer's servers were told, life by life."""

    def __init__(self) -> None:
        self._life: Life | None = None
        self._session: Any = None

    async def level(self, life: Life, level: str, *, expires: float) -> None:
        """Send logging/setLevel, once in a life (in a session, over HTTP). That it failed costs
        only the log: its own request tells of it."""
        session = life.session
        if self._life is life and self._session == session:
            return
        self._life, self._session = life, session
        until = min(expires, life.clock.monotonic() + SET_LEVEL_S)
        with contextlib.suppress(CallError):
            await life.request("logging/setLevel", {"level": level}, expires=until)
