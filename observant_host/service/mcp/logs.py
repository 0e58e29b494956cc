"""Log messages of servers, to the callers whose calls are open and who asked for them.

A server over stdio does not say to which call a message belongs. So a message goes to a caller only
while every call that is open at that server is that caller's: nobody reads about another's call.

Source: MCP 2026-07-28 server/utilities/logging › Per-request log level.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from observant_host.decisions.asking import LOG_LEVELS
from observant_host.service.mcp.outlet import Outlet, notification

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from observant_host.peers.told import LogMessage
    from observant_host.service.served import Served


class Reader(msgspec.Struct, frozen=True, eq=False):
    """One open call at `server`, whose caller wants to read along from `level` on."""

    server: str
    principal: str
    level: str
    out: Outlet


class Logs:
    """Everybody who reads along now."""

    def __init__(self, host: Served) -> None:
        self._host = host
        self._readers: set[Reader] = set()
        self._stop: Callable[[], None] | None = None

    @contextlib.contextmanager
    def read_along(self, reader: Reader) -> Iterator[None]:
        """While the block lasts. Raises Unavailable where the host does not run."""
        if self._stop is None:
            self._stop = self._host.follow_logs(self._told)
        self._readers.add(reader)
        try:
            yield
        finally:
            self._readers.discard(reader)
            if not self._readers and self._stop is not None:
                self._stop()
                self._stop = None

    def _told(self, message: LogMessage) -> None:
        at_server = [one for one in self._readers if one.server == message.server]
        if not at_server or message.level not in LOG_LEVELS:
            return
        calls = self._host.calls_in_flight()
        principals = {one.principal for one in calls if one.server == message.server}
        for reader in at_server:
            loud = LOG_LEVELS.index(message.level) >= LOG_LEVELS.index(reader.level)
            if loud and principals <= {reader.principal}:
                reader.out.notify(_note(message))


def _note(message: LogMessage) -> bytes:
    params: dict[str, object] = {"level": message.level, "data": message.data}
    if message.logger is not None:
        params["logger"] = message.logger
    return notification("notifications/message", params)
