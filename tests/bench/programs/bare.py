"""The floor: what a client costs that only sends, waits and pairs answers with questions.

{"transport": "stdio" | "http", "target": [command…] or URL, "at": {"16": 8000}}
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from driving import META, REVISION, driven, result, task

try:
    import orjson

    dumps, loads = orjson.dumps, orjson.loads
except ImportError:  # the gate runs without a download
    import msgspec

    dumps, loads = msgspec.json.encode, msgspec.json.decode


def request(ident: int, method: str, params: dict[str, Any]) -> bytes:
    params["_meta"] = META
    return dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})


class Child(asyncio.SubprocessProtocol):
    """A server as a child process: one line a message, a dictionary of futures."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last = 0
        self._unread = b""
        self._ended = asyncio.get_running_loop().create_future()

    @classmethod
    async def started(cls, argv: list[str]) -> Child:
        loop = asyncio.get_running_loop()
        transport, child = await loop.subprocess_exec(cls, *argv, stderr=asyncio.subprocess.DEVNULL)
        child.transport = transport
        child.write = transport.get_pipe_transport(0).write
        return child

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            message = loads(line)
            self._waiting.pop(message["id"]).set_result(message["result"])

    def process_exited(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    def ask(self, method: str, params: dict[str, Any]) -> asyncio.Future[Any]:
        self._last = ident = self._last + 1
        answered = self._waiting[ident] = asyncio.get_running_loop().create_future()
        self.write(request(ident, method, params) + b"\n")
        return answered

    async def close(self) -> None:
        self.transport.get_pipe_transport(0).close()
        await self._ended
        self.transport.close()


class Session:
    """A server behind a URL, through aiohttp as it comes."""

    def __init__(self, url: str) -> None:
        import aiohttp

        self._url, self._last = url, 0
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        self._last += 1
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": REVISION,
            "mcp-method": method,
        }
        if "name" in params:
            headers["mcp-name"] = params["name"]
        body = request(self._last, method, params)
        async with self._session.post(self._url, data=body, headers=headers) as response:
            return loads(await response.read())["result"]

    async def close(self) -> None:
        await self._session.close()


async def main() -> None:
    given = task()
    target = given["target"]
    server = Session(target) if given["transport"] == "http" else await Child.started(target)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(server.close)
        await server.ask("server/discover", {})
        await server.ask("tools/list", {})

        async def call(number: int) -> None:
            arguments = {"text": "hello", "n": number}
            answer = await server.ask("tools/call", {"name": "t0", "arguments": arguments})
            assert answer["content"]

        result(await driven(given, call))


if __name__ == "__main__":
    asyncio.run(main())
