"""Looking again at servers for as long as somebody watches: at every change, else at intervals."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from observant_host.errors import InvalidCall, Unavailable
from observant_host.timing.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from observant_host.cli.source import Source
    from observant_host.service.client import HostClient

REPAINT_S: Final = 1.0
"""At most so often: as often as a person can read."""


async def watched(source: Source) -> AsyncIterator[bytes]:
    """The servers' document, again and again. Raises HostError where the host is gone.

    A host that does not tell of changes is asked at intervals.
    """
    from observant_host.service import client

    if isinstance(source, client.HostClient):
        try:
            async for document in _followed(source):
                yield document
        except (InvalidCall, Unavailable):
            await source.servers()  # raises where it is gone, rather than slow to tell
    async for document in _polled(source):
        yield document


async def _followed(client: HostClient) -> AsyncIterator[bytes]:
    last = b""
    async with aclosing(client.events()) as events:
        async for _ in events:
            document = await client.servers()
            if document != last:
                yield document
                await SystemClock().sleep(REPAINT_S)
            last = document


async def _polled(source: Source) -> AsyncIterator[bytes]:
    while True:
        await SystemClock().sleep(REPAINT_S)
        yield await source.servers()
