"""A serving host, its API over the network and over the private socket."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp

from observant_host.service.private_socket import socket_path
from tests.service.test_service import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host

ACTING = {"X-Observant-Host-Principal": "cli:ann"}


class Api:
    """`answer("GET", "/servers")` below /api/v1."""

    def __init__(self, http: aiohttp.ClientSession, base: str) -> None:
        self.http = http
        self.base = f"{base}/api/v1"

    async def answer(self, method: str, path: str, **keys: Any) -> tuple[int, Any, Any]:
        """(status, headers, document or None)"""
        async with self.http.request(method, self.base + path, **keys) as answer:
            body = await answer.read()
            is_json = answer.content_type == "application/json" and body
            return answer.status, answer.headers, await answer.json() if is_json else None

    async def ok(self, method: str, path: str, **keys: Any) -> Any:
        status, _, document = await self.answer(method, path, **keys)
        assert status == 200, (method, path, status, document)
        return document


@asynccontextmanager
async def served(host: Host, state_dir: Path) -> AsyncIterator[tuple[Api, Api]]:
    """(over the network, over the private socket)"""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(running(host, state_dir))
        connector = aiohttp.UnixConnector(str(socket_path(state_dir)))
        private = aiohttp.ClientSession(connector=connector, headers=ACTING)
        network = aiohttp.ClientSession()
        await stack.enter_async_context(private)
        await stack.enter_async_context(network)
        yield Api(network, (await one.listening)["admin"]), Api(private, "http://host")


async def until_open(api: Api) -> dict[str, Any]:
    """The one call that is on its way."""
    async with asyncio.timeout(30):
        while True:
            document = await api.ok("GET", "/calls")
            if document["in_flight"] and document["in_flight"][0]["state"] == "sent":
                call: dict[str, Any] = document["in_flight"][0]
                return call
            await asyncio.sleep(0.01)
