"""A legacy server over HTTP whose parts a test replaces, and a client that has begun."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.transports.http_subjects import Making, legacy, note
from tests.transports.suite import FAR, SkippingClock, opened

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from observant_host.transports.http.transport import HttpTransport
    from tests.support.http_peer import Exchange, HttpPeer
    from tests.support.receivers import Recorder


VERSION = "2025-11-25"
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


class QuickClock(SkippingClock):
    """Pauses are remembered and not waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        await asyncio.sleep(0)


class Server:
    """A legacy server whose parts a test replaces."""

    def __init__(self, **parts: Callable[[Exchange], Awaitable[None]]) -> None:
        self.parts = parts
        self.sessions = 0
        self.streams: list[Exchange] = []

    async def __call__(self, exchange: Exchange) -> None:
        seen = exchange.seen
        part = self.parts.get(seen.method or seen.verb)
        if part is not None:
            await part(exchange)
        elif seen.method == "initialize":
            self.sessions += 1
            await exchange.result(Mcp_Session_Id=f"s-{self.sessions}")
        elif seen.verb == "GET":
            self.streams.append(exchange)
            await exchange.stream()
            await exchange.gone()
        elif seen.verb == "DELETE":
            await exchange.empty(200)
        elif "id" in seen.message and "method" in seen.message:
            await exchange.result()
        else:
            await exchange.empty(202)


async def begun(making: Making, peer: HttpPeer, **options: Any) -> tuple[HttpTransport, Recorder]:
    """Opened, initialized with id 1, its answer among the frames."""
    transport = making.http(url=peer.url, **options)
    recorder = await opened(transport)
    transport.send(legacy(1, "initialize"), expires=FAR)
    await recorder.answer_to(1)
    transport.send(note(version=VERSION), expires=FAR)
    await peer.until(lambda peer: len(peer.seen) == 2)
    return transport, recorder


def verbs(peer: HttpPeer) -> list[str]:
    return [seen.verb for seen in peer.seen]
