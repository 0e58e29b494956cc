"""A load generator for `POST /mcp` that costs little itself: keep-alive sockets and prebuilt bytes.

python -m tests.bench.load URL --tool t0 --closed 16 --calls 4000
python -m tests.bench.load URL --tool t0 --rate 500 --calls 2000

Prints one line of JSON: calls/s, and the latency in ms from a call's turn to its whole answer. A
call that finds every connection busy waits, and that is part of its latency.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import time
from collections import deque
from typing import Any, cast
from urllib.parse import urlsplit

CONNECTIONS = 16
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request_of(url: str, tool: str, *, token: str | None = None) -> bytes:
    """One tools/call as the bytes of a whole HTTP request."""
    parts = urlsplit(url)
    params = {"name": tool, "arguments": {"text": "hello", "n": 1}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = [
        f"POST {parts.path} HTTP/1.1",
        f"Host: {parts.netloc}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {tool}",
        f"Content-Length: {len(body)}",
    ]
    head += [f"Authorization: Bearer {token}"] if token else []
    return "\r\n".join([*head, "", body]).encode()


class Connection(asyncio.Protocol):
    """One call at a time. `answered(self)` is told once the whole answer is here."""

    def __init__(self, request: bytes, load: Load) -> None:
        self._request = request
        self._load = load
        self._got = b""
        self._whole = 0
        self._transport: asyncio.WriteTransport | None = None
        self.began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def call(self, began: float) -> None:
        self.began = began
        assert self._transport is not None
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        got = self._got = self._got + data if self._got else data
        if not self._whole:
            end = got.find(b"\r\n\r\n")
            if end < 0:
                return
            head = got[:end].lower()
            if not head.startswith(b"http/1.1 200") and not self._load.refuse(got):
                return
            length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
            self._whole = end + 4 + int(length)
        if len(got) >= self._whole:
            self._got, self._whole = b"", 0
            refused = b'"error":{' in got or b'"isError":true' in got
            if refused and not self._load.refuse(got):
                return
            self._load.answered(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._load.fail(b"the connection was lost")


class Load:
    def __init__(self, calls: int, *, over_limit: bool = False) -> None:
        self._over_limit = over_limit
        self.refused = 0
        self._left = calls
        self._calls = calls
        self._free: list[Connection] = []
        self._due: deque[float] = deque()
        self._closed = False
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.latencies: list[float] = []

    async def run(self, url: str, request: bytes, *, connections: int, rate: float) -> float:
        """Seconds from the first call to the last answer."""
        parts, loop = urlsplit(url), asyncio.get_running_loop()
        host, port = parts.hostname or "", parts.port or 80
        self._closed = rate <= 0
        for _ in range(connections):
            _, made = await loop.create_connection(lambda: Connection(request, self), host, port)
            self._free.append(made)
        began = time.perf_counter()
        if self._closed:
            free, self._free = self._free, []
            for one in free:
                self._left -= 1
                one.call(time.perf_counter())
        else:
            for number in range(self._calls):
                loop.call_at(loop.time() + number / rate, self._turn)
        await self._done
        return time.perf_counter() - began

    def _turn(self) -> None:
        now = time.perf_counter()
        if self._free:
            self._free.pop().call(now)
        else:
            self._due.append(now)

    def answered(self, by: Connection) -> None:
        now = time.perf_counter()
        self.latencies.append(now - by.began)
        if len(self.latencies) == self._calls and not self._done.done():
            self._done.set_result(None)
        elif self._closed:
            if self._left > 0:
                self._left -= 1
                by.call(now)
        elif self._due:
            by.call(self._due.popleft())
        else:
            self._free.append(by)

    def refuse(self, what: bytes) -> bool:
        """Whether to go on after an answer that is no result."""
        self.refused += 1
        if not self._over_limit:
            self.fail(what)
        return self._over_limit

    def fail(self, what: bytes) -> None:
        if not self._done.done():
            self._done.set_exception(RuntimeError(what[:2000].decode(errors="replace")))


async def loaded(given: argparse.Namespace) -> Any:
    request = request_of(given.url, given.tool, token=given.token)
    calls, load = given.calls, Load(given.calls, over_limit=given.over_limit)
    at = given.connections if given.rate > 0 else given.closed
    seconds = await load.run(given.url, request, connections=at, rate=given.rate)
    taken = sorted(load.latencies)
    return {
        "calls": calls,
        "refused": load.refused,
        "calls_per_s": round(calls / seconds, 1),
        "p50_ms": round(taken[len(taken) // 2] * 1e3, 3),
        "p99_ms": round(taken[min(len(taken) - 1, len(taken) * 99 // 100)] * 1e3, 3),
        "max_ms": round(taken[-1] * 1e3, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--tool", required=True)
    parser.add_argument("--token")
    parser.add_argument("--closed", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="with --rate")
    parser.add_argument("--over-limit", action="store_true", help="count refusals and go on")
    given = parser.parse_args()
    with contextlib.suppress(ImportError):  # not what is measured: as light as it can be
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    gc.disable()
    print(json.dumps(asyncio.run(loaded(given))))


if __name__ == "__main__":
    main()
