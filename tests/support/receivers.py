"""A receiver of frames that remembers everything and lets a test wait for it, always bounded."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.transports.base import Answering, End, NoiseKind

PATIENCE_S = 20
"""How long a test waits for what must come: far beyond a loaded machine's worst."""


class Recorder:
    """Implements transports.base.Receiver."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.answering: list[Answering | None] = []
        self.noise: list[tuple[NoiseKind, bytes]] = []
        self.lost: list[tuple[int, Exception]] = []
        self.heard: list[int] = []
        self.reopened = 0
        self.ends: list[End] = []
        self.after_end = 0
        self._news = asyncio.Event()

    def frame_received(self, frame: bytes | bytearray, answering: Answering | None = None) -> bool:
        self._tell()
        self.frames.append(frame)
        self.answering.append(answering)
        if answering is None or answering.request_id is None:
            return False
        return self._is_answer_to(answering.request_id, frame)

    @staticmethod
    def _is_answer_to(request_id: int, frame: bytes) -> bool:
        try:
            message = json.loads(frame)
        except ValueError:
            return False
        return (
            isinstance(message, dict)
            and message.get("id") == request_id
            and "method" not in message
        )

    def noise_received(self, kind: NoiseKind, excerpt: bytes) -> None:
        self._tell()
        self.noise.append((kind, excerpt))

    def request_lost(self, request_id: int, error: Exception) -> None:
        self._tell()
        self.lost.append((request_id, error))

    def stream_heard(self, request_id: int) -> None:
        self._tell()
        self.heard.append(request_id)

    def stream_reopened(self) -> None:
        self._tell()
        self.reopened += 1

    def ended(self, end: End) -> None:
        self._tell()
        self.ends.append(end)

    def _tell(self) -> None:
        self.after_end += bool(self.ends)
        self._news.set()

    @property
    def messages(self) -> list[Any]:
        return [json.loads(frame) for frame in self.frames]

    async def until(self, condition: Callable[[Recorder], object]) -> None:
        """Until `condition(self)` holds; checked at each arrival."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition(self):
                self._news.clear()
                await self._news.wait()

    async def answer_to(self, request_id: object) -> Any:
        """The first message with this id, decoded."""

        def found(recorder: Recorder) -> list[Any]:
            return [msg for msg in recorder.messages if msg.get("id") == request_id]

        await self.until(found)
        return found(self)[0]

    async def frame_count(self, count: int) -> None:
        await self.until(lambda recorder: len(recorder.frames) >= count)

    async def loss_of(self, request_id: int) -> Exception:
        """Why this request got no answer."""
        await self.until(lambda recorder: request_id in dict(recorder.lost))
        return dict(self.lost)[request_id]

    async def end(self) -> End:
        await self.until(lambda recorder: recorder.ends)
        return self.ends[0]
