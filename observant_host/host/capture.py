"""The frames of one server, both ways, in a private file of JSON lines: for a time, up to a size.

{"time", "direction": "out" | "in", "method", "id", "size", "message"}. A response has the method of
its request. Contents are left out unless they were asked for; secrets are masked always.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.decisions.redaction import masked, redacted
from observant_host.state_files import PRIVATE_FILE, private_folder
from observant_host.supervision.peer_state import iso
from observant_host.telemetry.background import Background
from observant_host.transports.tap import listen_from_opening, listen_in
from observant_host.wire.values import decode_value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from observant_host.peers.life import Life
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Transport
    from observant_host.wire.jsonrpc import Frame

FOLDER: Final = "capture"
MAX_BYTES: Final = 16 * 1024 * 1024
"""Of one file: some ten thousand frames, which somebody still opens in an editor."""
MAX_FRAME: Final = 64 * 1024
"""A larger one is told by its size alone: decoding it would hold up the loop."""
KEPT: Final = 20
"""Files in the folder; the oldest go."""
REQUESTS: Final = 1000
"""Open requests whose method is remembered, in each direction."""
LIVES: Final = 4
"""Of a server that is captured: one, and those that still end."""


class Capture:
    """A transports.tap.Listener. `end` may be called any number of times."""

    def __init__(
        self,
        path: Path,
        *,
        arguments: bool,
        masker: Masker,
        clock: Clock,
        ended: Callable[[], None],
    ) -> None:
        self.path = path
        self._arguments = arguments
        self._masker = masker
        self._clock = clock
        self._ended = ended
        self._left = MAX_BYTES
        self._full = f"it has {MAX_BYTES} bytes"
        self._over = False
        self._methods: dict[tuple[str, Any], str] = {}
        self._stops: deque[Callable[[], None]] = deque(maxlen=LIVES)
        self._descriptor = -1
        self._writer: Background[bytes] = Background("observant-host capture", self._work)

    def create(self) -> None:
        """Blocks. Raises OSError."""
        folder = self.path.parent
        private_folder(folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags, PRIVATE_FILE)
        for old in sorted(folder.glob("*.jsonl"), key=lambda one: one.stat().st_mtime)[:-KEPT]:
            old.unlink(missing_ok=True)

    def attach(self, life: Life) -> None:
        """From the next frame of this life on."""
        self._stops.append(listen_in(life.transport, life.inbox, self))

    def attach_opening(self, transport: Transport) -> None:
        """To a life that is to begin."""
        if not self._over:
            listen_from_opening(transport, self, self._stops.append)

    def frame_sent(self, frame: bytes) -> None:
        self._tell("out", frame)

    def frame_received(self, frame: Frame) -> None:
        self._tell("in", frame)

    def end(self, why: str) -> None:
        """The last line says why."""
        if self._over:
            return
        self._over = True
        while self._stops:
            self._stops.pop()()
        self._writer.put(_line({"time": iso(self._clock.wall_ns()), "end": why}))
        self._ended()

    async def close(self) -> None:
        """Until everything is in the file."""
        await self._writer.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _tell(self, direction: str, frame: Frame) -> None:
        if self._over:
            return
        line = _line(self._shown(direction, frame))
        self._left -= len(line)
        if self._left < 0:
            self.end(self._full)
            return
        self._writer.put(line)

    def _shown(self, direction: str, frame: Frame) -> dict[str, Any]:
        head: dict[str, Any] = {
            "time": iso(self._clock.wall_ns()),
            "direction": direction,
            "method": None,
            "id": None,
            "size": len(frame),
        }
        if len(frame) > MAX_FRAME:
            return {**head, "message": None, "left_out": f"larger than {MAX_FRAME} bytes"}
        try:
            message = decode_value(frame)
            shown = message if self._arguments else redacted(message)
            shown = masked(shown, self._masker.text)
        except (ValueError, RecursionError):
            return {**head, "message": None, "left_out": "no JSON, or nested too deeply"}
        if isinstance(message, dict):
            head["method"], head["id"] = self._method(direction, message)
        return {**masked(head, self._masker.text), "message": shown}

    def _method(self, direction: str, message: dict[str, Any]) -> tuple[str | None, Any]:
        method, number = message.get("method"), message.get("id")
        if not isinstance(number, int | str):
            return (method if isinstance(method, str) else None), None
        if isinstance(method, str):
            self._methods[direction, number] = method
            if len(self._methods) > REQUESTS:
                self._methods.pop(next(iter(self._methods)))
            return method, number
        asked = "in" if direction == "out" else "out"
        return self._methods.pop((asked, number), None), number

    def _work(self, lines: list[bytes]) -> None:
        """In the writer's thread. A disk that takes no more ends the file."""
        left = memoryview(b"".join(lines))
        try:
            while left and self._descriptor >= 0:
                left = left[os.write(self._descriptor, left) :]
        except OSError as error:
            self._full, self._left = f"it cannot be written: {error.strerror}", 0


def _line(value: dict[str, Any]) -> bytes:
    return _encode(value) + b"\n"


_encode: Final = msgspec.json.Encoder(enc_hook=str, decimal_format="number").encode
