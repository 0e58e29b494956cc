"""Which servers' frames are being written down, until when: one file a server at a time."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from observant_host.errors import HostError, InvalidCall, Unavailable
from observant_host.host.capture import FOLDER, MAX_BYTES, Capture
from observant_host.service.served import CaptureBegun
from observant_host.supervision.peer_state import iso
from observant_host.timing.tasks import spawn

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.host.core import Core
    from observant_host.supervision.supervisor import PeerSupervisor
    from observant_host.timing.clock import Timer

MAX_S: Final = 3600.0
MAX_AT_ONCE: Final = 8
"""Each has a thread and a file that grows."""


class Captures:
    """Of one host."""

    def __init__(self) -> None:
        self._timers: dict[str, Timer] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def folder_of(self, core: Core, name: str, for_s: float) -> Path:
        """Where its file goes. Raises InvalidCall, Unavailable where nothing is kept on disk."""
        if core.plan.state_dir is None:
            raise Unavailable("this host keeps nothing on disk: it has no state_dir", fault="host")
        if not 0 < for_s <= MAX_S:
            raise InvalidCall(f"frames are captured for at most {MAX_S / 60:g} minutes")
        running = core.transports.captures.get(name)
        if running is not None:
            raise InvalidCall(f"the frames of {name} are being captured already: {running.path}")
        if len(core.transports.captures) >= MAX_AT_ONCE:
            raise InvalidCall(f"{MAX_AT_ONCE} servers are being captured already")
        return core.plan.state_dir / FOLDER

    async def begin(
        self, core: Core, peer: PeerSupervisor, *, folder: Path, for_s: float, arguments: bool
    ) -> CaptureBegun:
        """From the next frame on, over restarts of the server. Raises HostError where the disk
        refuses."""
        name, clock = peer.server.name, core.plan.clock
        captures = core.transports.captures
        until = clock.wall_ns() + round(for_s * 1e9)
        stamp = datetime.fromtimestamp(clock.wall_ns() / 1e9, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        capture = Capture(
            folder / f"{name}-{stamp}.jsonl",
            arguments=arguments,
            masker=core.plan.masker,
            clock=clock,
            ended=lambda: self._ended(core, name),
        )
        try:
            await asyncio.to_thread(capture.create)
        except OSError as error:
            raise HostError(f"cannot write below {folder}: {error.strerror or error}") from error
        if name in captures:  # somebody else's, begun in the same moment
            await capture.close()
            raise InvalidCall(f"the frames of {name} are being captured already")
        captures[name] = capture
        life = peer.peer.life
        if life is not None and life.end is None:
            capture.attach(life)
        self._timers[name] = clock.call_at(
            clock.monotonic() + for_s, lambda: capture.end("its time is over")
        )
        return CaptureBegun(
            server=name,
            file=str(capture.path),
            until=iso(until),
            max_bytes=MAX_BYTES,
            arguments=arguments,
        )

    def _ended(self, core: Core, name: str) -> None:
        capture = core.transports.captures.pop(name, None)
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
        if capture is not None:
            task = spawn(f"capture of {name}", capture.close(), on_error=core.around.broken)
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self, core: Core) -> None:
        """The host ends."""
        for capture in tuple(core.transports.captures.values()):
            capture.end("the host ended")
        for task in tuple(self._closing):
            await task
