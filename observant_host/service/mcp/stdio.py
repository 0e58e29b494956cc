"""`observant-host stdio`: one client on stdin and stdout, served by the host that runs, or by one
of our own.

A host that an operator runs comes back after a restart, so its place is never taken: until then
calls are refused with a clear error. A host that another client's process had started ends with it:
then whoever is left takes over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from observant_host.errors import InstanceLocked
from observant_host.service.mcp.joining import Joined
from observant_host.service.mcp.outgoing import Outgoing
from observant_host.service.mcp.own import Own
from observant_host.service.mcp.pipes import Pipes
from observant_host.timing.tasks import Signal, spawn, wait_any
from observant_host.wire.bridging import Bridge

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from observant_host.service.mcp.joining import Kind
    from observant_host.service.served import Served
    from observant_host.timing.clock import Clock

LOOK_S: Final = 0.25
"""Between two looks for a host that is away: it listens within a second of its start."""
LOCKED_S: Final = 10.0
"""For a host that holds the folder to listen on its socket; one that ends may take as long."""
LAST_WORDS_S: Final = 1.0
"""After the end of stdin, for answers on their way; clients wait 2 s before they end us."""


class Upstream(Protocol):
    """A host behind the client."""

    @property
    def kind(self) -> Kind: ...

    @property
    def lost(self) -> Signal: ...

    async def send(self, line: bytes) -> None: ...

    async def close(self) -> None: ...


class Stdio:
    """`make_host` makes one that was not opened; `say` tells a person, on stderr."""

    def __init__(
        self,
        make_host: Callable[[], Served],
        *,
        state_dir: Path,
        max_bytes: int,
        clock: Clock,
        say: Callable[[str], object],
    ) -> None:
        self._make_host = make_host
        self._state_dir = state_dir
        self._max_bytes = max_bytes
        self._clock = clock
        self._say = say
        self._out = Outgoing(clock)
        self._bridge = Bridge()
        self._upstream: Upstream | None = None
        self._begun = Signal()

    async def run(self, stop: Signal, hurry: Signal) -> None:
        """Until stdin ends or `stop` is set. Raises HostError where no host can be had."""
        pipes = Pipes(self._out, self._line, max_bytes=self._max_bytes)
        pipes.start()
        writing = spawn("lines to stdout", pipes.write())
        try:
            await self._serve(pipes, stop)
            if pipes.over.is_set():
                await self._last_words()
            elif isinstance(self._upstream, Own):
                await self._upstream.drain(hurry)
            await self._out.flushed(LAST_WORDS_S)
        finally:
            self._begun.set()
            upstream, self._upstream = self._upstream, None
            if upstream is not None:
                await upstream.close()
            self._out.close()
            await writing

    async def _serve(self, pipes: Pipes, stop: Signal) -> None:
        ends = (pipes.over, stop)
        upstream: Upstream | None = await self._found(None, ends)
        while upstream is not None:
            self._upstream = upstream
            self._begun.set()
            await wait_any(self._clock, None, *ends, upstream.lost)
            if any(one.is_set() for one in ends):
                return
            await self._gone(upstream)
            upstream = await self._found(upstream.kind, ends)
            if upstream is not None:
                await self._told(upstream)

    async def _gone(self, upstream: Upstream) -> None:
        self._upstream = None
        for error in self._bridge.lost():
            self._out.put(error)
        self._say("the host went away; looking for it")
        await upstream.close()

    async def _told(self, upstream: Upstream) -> None:
        """Have a new host know what the old one knew, and the client that it is another."""
        for line in self._bridge.again():
            await upstream.send(line)
        for line in self._bridge.changed():
            self._out.put(line)
        self._say("there is a host again")

    async def _found(self, before: Kind | None, ends: tuple[Signal, ...]) -> Upstream | None:
        """A host, joined or of our own; None where an end came first."""
        locked_until = self._clock.monotonic() + LOCKED_S
        while not any(one.is_set() for one in ends):
            joined = await Joined.to(self._state_dir, self._heard, max_bytes=self._max_bytes)
            if joined is not None:
                self._say(f"serving the host that runs in {self._state_dir}")
                return joined
            if before != "run":
                try:
                    return await self._own()
                except InstanceLocked:
                    if self._clock.monotonic() >= locked_until and before is None:
                        raise
            await wait_any(self._clock, LOOK_S, *ends)
        return None

    async def _own(self) -> Upstream:
        own = Own(self._make_host(), clock=self._clock)
        try:
            await own.open(self._state_dir, self._heard)
        except BaseException:
            await own.close()
            raise
        return own

    async def _line(self, line: bytes) -> None:
        """One line of the client; the first ones wait until there is a host."""
        await self._begun.wait()
        self._bridge.up(line)
        if self._upstream is not None:
            await self._upstream.send(line)
        else:
            for error in self._bridge.unanswerable(line):
                self._out.put(error)

    def _heard(self, line: bytes) -> None:
        """One line of a host. What is no answer may be dropped where the client does not read."""
        if self._bridge.down(line):
            self._out.put(line)

    async def _last_words(self) -> None:
        until = self._clock.monotonic() + LAST_WORDS_S
        while self._bridge.busy and (left := until - self._clock.monotonic()) > 0:
            await wait_any(self._clock, min(left, LOOK_S / 5), Signal())
