"""A large result is in memory about once on its way through a host, whatever brings it."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from observant_host import StdioServer
from tests.scenarios.http import add_url
from tests.service.mcp.stage import make_host, staged
from tests.support.hosts import QUICK
from tests.support.peers import scripted
from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.service.mcp.stage import Stage

BODY = 8 << 20
ONCE = 1.7
"""Bodies: the buffer that it was gathered in, which may be an eighth larger than what is in it, and
what the library reads ahead of us."""

WRITTEN = 0.8
"""Bodies more on its way up: pieces, and what of them the socket does not take at once."""


@pytest.fixture(autouse=True)
def _traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


class Measured:
    """Bodies that were allocated at most, at one time, since it was entered."""

    def __enter__(self) -> Measured:
        tracemalloc.reset_peak()
        self._before = tracemalloc.get_traced_memory()[0]
        return self

    def __exit__(self, *_: object) -> None:
        self.bodies = (tracemalloc.get_traced_memory()[1] - self._before) / BODY


@pytest.fixture(params=["stdio", "http"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    host = make_host(tmp_path)
    if request.param == "stdio":
        host.add_server("s", StdioServer(scripted(tools="big")), **QUICK)
        async with staged(host, tmp_path) as one:
            yield one
        return
    async with serving(tools="big") as server:
        add_url(host, "s", server.url)
        async with staged(host, tmp_path) as one:
            yield one


async def test_a_caller_gets_the_buffer_that_it_was_gathered_in(stage: Stage) -> None:
    await stage.host.call_tool("big", {"bytes": 1000})
    with Measured() as call:
        result = await stage.host.call_tool("big", {"bytes": BODY})
    assert call.bodies < ONCE
    with Measured() as copied:
        assert len(result.raw) > BODY
    assert copied.bodies < 1.2


async def test_an_agent_gets_it_without_a_second_copy_of_it(stage: Stage) -> None:
    for size in (1000, BODY):
        with Measured() as call:
            read = await _read(stage, size)
        assert read > size
    assert call.bodies < ONCE + WRITTEN


async def _read(stage: Stage, size: int) -> int:
    """How many bytes the answer has, of which none is kept."""
    body, headers = stage.request("tools/call", {"name": "big", "arguments": {"bytes": size}})
    url = urlsplit(stage.url)
    lines = [f"POST {url.path} HTTP/1.1", f"Host: {url.netloc}", "Connection: close"]
    lines += [f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in headers.items())]
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        read = 0
        async with asyncio.timeout(30):
            while piece := await reader.read(64 * 1024):
                read += len(piece)
    finally:
        writer.close()
    return read
