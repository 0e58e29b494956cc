"""A client's lines through the private socket of a host that runs already.

Each line is one WebSocket message: `serve` is the host's end, `Joined` the end of the process that
the client started.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final, Literal, Self

import aiohttp
from aiohttp import web

from observant_host.service.callers import Caller
from observant_host.service.mcp.lines import LineDoor
from observant_host.service.mcp.outgoing import Outgoing
from observant_host.service.private_socket import address, socket_path
from observant_host.timing.tasks import Signal, spawn

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from pathlib import Path

    from observant_host.service.mcp.desk import Desk
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock

    Kind = Literal["run", "stdio"]
    OnLine = Callable[[bytes], object]

PATH: Final = "/stdio"
KIND_HEADER: Final = "X-Observant-Host-Kind"
"""What kind of host it is: one that an operator runs comes back, one of a client ends with it."""
SOCKET: Final = Caller(principal="socket", scopes=frozenset({"mcp"}))
HELLO_S: Final = 5.0
"""For a host on this machine to accept a connection."""


def add_joining(
    app: web.Application, host: Served, *, desk: Desk, clock: Clock, kind: Kind
) -> None:
    """The route for processes that join this host."""

    async def serve(request: web.Request) -> web.StreamResponse:
        size = host.config.host.max_message_bytes
        ws = web.WebSocketResponse(max_msg_size=size, compress=False)
        ws.headers[KIND_HEADER] = kind
        await ws.prepare(request)
        out = Outgoing(clock)
        door = LineDoor(desk, host, caller=SOCKET, out=out, clock=clock)
        sending = spawn("lines to a client", _sent(ws, out), on_error=lambda _name, _error: None)
        try:
            async for message in ws:
                if message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT):
                    data = message.data
                    door.take(data if isinstance(data, bytes) else data.encode())
                    await out.room()
        finally:
            out.close()
            door.close()
            sending.cancel()
        return ws

    app.router.add_get(PATH, serve)


async def _sent(ws: web.WebSocketResponse, out: Outgoing) -> None:
    while lines := await out.take():
        for line in lines:
            await ws.send_bytes(line[:-1])
            out.written(len(line))


class Joined:
    """The way to a host that runs. `lost` is set once it is gone."""

    def __init__(self) -> None:
        self.kind: Kind = "run"
        self.lost = Signal()
        self._resources = AsyncExitStack()
        self._ws: aiohttp.ClientWebSocketResponse | None = None
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def to(cls, state_dir: Path, on_line: OnLine, *, max_bytes: int) -> Self | None:
        """Join the host that runs with this state folder; None where there is none."""
        if not socket_path(state_dir).exists():
            return None
        joined = cls()
        try:
            await joined._connect(state_dir, on_line, max_bytes)
        except (aiohttp.ClientError, OSError, TimeoutError):
            await joined.close()
            return None
        except BaseException:
            await joined.close()
            raise
        return joined

    async def send(self, line: bytes) -> None:
        """One line of the client."""
        if self._ws is None or self.lost.is_set():
            return
        try:
            await self._ws.send_bytes(line)
        except (aiohttp.ClientError, OSError):
            self.lost.set()

    async def close(self) -> None:
        """Idempotent."""
        self.lost.set()
        if self._reading is not None:
            self._reading.cancel()
        await self._resources.aclose()

    async def _connect(self, state_dir: Path, on_line: OnLine, max_bytes: int) -> None:
        path = self._resources.enter_context(address(state_dir))
        session = await self._resources.enter_async_context(
            aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(path),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=HELLO_S),
            )
        )
        self._ws = ws = await session.ws_connect(
            f"http://host{PATH}", max_msg_size=max_bytes * 2, compress=0
        )
        self.kind = "stdio" if _kind(ws) == "stdio" else "run"
        self._reading = spawn(
            "lines of a host", self._read(ws, on_line), on_error=lambda _name, _error: None
        )

    async def _read(self, ws: aiohttp.ClientWebSocketResponse, on_line: OnLine) -> None:
        try:
            async for message in ws:
                if message.type is aiohttp.WSMsgType.BINARY:
                    on_line(message.data)
        finally:
            self.lost.set()


def _kind(ws: aiohttp.ClientWebSocketResponse) -> str:
    return ws._response.headers.get(KIND_HEADER, "")  # noqa: SLF001 - has no other way to headers
