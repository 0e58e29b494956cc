"""What passes between a client and a host that may be replaced: who waits for what, and how a new
host is told what the old one knew.

Source: MCP 2025-11-25 basic/lifecycle, server/utilities/logging, server/resources › Subscriptions;
MCP 2026-07-28 basic/transports/stdio.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.wire.jsonrpc import Broken, Error, Notification, Request, Result, decode
from observant_host.wire.revisions import INTERNAL_ERROR

if TYPE_CHECKING:
    from observant_host.wire.jsonrpc import Id

AGAIN: Final = "observant-host/again-"
"""Prefix of the ids of what is said again to a new host: its answers are not the client's."""
MAX_KEPT: Final = 1024
"""Open requests, and followed resources, that are remembered; a host refuses before."""

LOST: Final = (
    "the host that served this call went away before it answered; it is not known whether the call "
    "was executed"
)
AWAY: Final = "the host is away just now and is being looked for again; nothing was executed"


class Bridge:
    """One client's traffic. `up` sees each line of the client, `down` each of the host."""

    def __init__(self) -> None:
        self._open: dict[tuple[type, Id], int | str] = {}
        self._initialize: Request | None = None
        self._initialized = False
        self._level: Request | None = None
        self._followed: dict[str, Request] = {}
        self._again = 0

    @property
    def busy(self) -> bool:
        """Whether the client waits for an answer."""
        return bool(self._open)

    def up(self, line: bytes) -> None:
        for message in decode(line, batches=True):
            if isinstance(message, Request):
                self._asked(message)
            elif isinstance(message, Notification) and message.method.endswith("/initialized"):
                self._initialized = True

    def down(self, line: bytes) -> bool:
        """Whether the line is for the client."""
        mine = True
        for message in decode(line, batches=True):
            if isinstance(message, Result | Error | Broken):
                self._open.pop((type(message.id), message.id), None)
                if isinstance(message.id, str) and message.id.startswith(AGAIN):
                    mine = False
        return mine

    def unanswerable(self, line: bytes) -> list[bytes]:
        """Errors for the requests in a line that no host is there for."""
        requests = [one for one in decode(line, batches=True) if isinstance(one, Request)]
        for one in requests:
            self._open.pop((type(one.id), one.id), None)
        return [_error(one.id, AWAY) for one in requests]

    def lost(self) -> list[bytes]:
        """Errors for all that was open at the host that went away."""
        errors = [_error(request_id, LOST) for request_id in self._open.values()]
        self._open.clear()
        return errors

    def again(self) -> list[bytes]:
        """What a new host has to hear first."""
        if self._initialize is None:
            return []
        lines = [self._repeated(self._initialize)]
        if self._initialized:
            lines.append(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        further = (*([self._level] if self._level else []), *self._followed.values())
        return lines + [self._repeated(one) for one in further]

    def changed(self) -> list[bytes]:
        """What the client has to hear of a new host: its lists may be others."""
        if not self._initialized:
            return []
        return [
            b'{"jsonrpc":"2.0","method":"notifications/%b/list_changed"}' % kind
            for kind in (b"tools", b"prompts", b"resources")
        ]

    def _asked(self, message: Request) -> None:
        if len(self._open) < MAX_KEPT:
            self._open[type(message.id), message.id] = message.id
        match message.method:
            case "initialize":
                self._initialize = message
            case "logging/setLevel":
                self._level = message
            case "resources/subscribe" if len(self._followed) < MAX_KEPT:
                self._followed[_uri(message)] = message
            case "resources/unsubscribe":
                self._followed.pop(_uri(message), None)
            case _:
                return

    def _repeated(self, message: Request) -> bytes:
        self._again += 1
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": f"{AGAIN}{self._again}"}
        body["method"] = message.method
        if message.params is not None:
            body["params"] = message.params
        return msgspec.json.encode(body).replace(b"\n", b" ").replace(b"\r", b" ")


class _Named(msgspec.Struct):
    uri: str = ""


def _uri(message: Request) -> str:
    try:
        return _named(message.params or b"{}").uri
    except (msgspec.MsgspecError, RecursionError):
        return ""


def _error(request_id: Id, why: str) -> bytes:
    error = {"code": INTERNAL_ERROR, "message": why}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


_named: Final = msgspec.json.Decoder(_Named).decode
