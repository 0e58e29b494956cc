"""A host of one's own behind a client's lines, for where none runs.

It holds the state folder and has the private socket, so that commands, and further clients on this
machine, find it; it has no listener on the network.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from observant_host.service.app import Service
from observant_host.service.callers import LOCAL
from observant_host.service.mcp.key_file import keys_of
from observant_host.service.mcp.lines import LineDoor
from observant_host.service.mcp.outgoing import Outgoing
from observant_host.timing.tasks import spawn, wait_any

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.service.mcp.joining import Kind, OnLine
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal


class Own:
    """The same shape as `Joined`. `lost` is the end of the host, for whatever reason."""

    kind: Kind = "stdio"

    def __init__(self, host: Served, *, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._service = Service(host, clock=clock, kind="stdio")
        self._out = Outgoing(clock)
        self._door: LineDoor | None = None
        self._carrying: asyncio.Task[None] | None = None

    @property
    def lost(self) -> Signal:
        return self._host.over

    async def open(self, state_dir: Path, on_line: OnLine) -> None:
        """Start; servers are being started when this returns. Raises InstanceLocked, HostError."""
        keys = await asyncio.to_thread(keys_of, self._host.config.service)
        self._service.desk.inputs.use_keys(keys)
        await self._host.open()
        self._service.opened()
        await self._service.listen_privately(state_dir)
        self._door = LineDoor(
            self._service.desk, self._host, caller=LOCAL, out=self._out, clock=self._clock
        )
        self._carrying = spawn("lines of our own host", self._carry(on_line))

    async def send(self, line: bytes) -> None:
        if self._door is not None:
            self._door.take(line)
            await self._out.room()

    async def drain(self, hurry: Signal) -> None:
        """Refuse new calls and wait for the open ones, within drain_timeout_s."""
        self._host.leave()
        self._host.refuse_calls()
        self._service.desk.close()
        limit = self._host.config.service.drain_timeout_s
        await wait_any(self._clock, limit, hurry, self._host.idle, self._host.over)

    async def close(self) -> None:
        """Raises what the host ended with."""
        if self._door is not None:
            self._door.close()
        await self._service.hide()
        try:
            await self._host.close()
        finally:
            await self._service.close()
            self._out.close()

    async def _carry(self, on_line: OnLine) -> None:
        while lines := await self._out.take():
            for line in lines:
                on_line(line[:-1])
                self._out.written(len(line))
