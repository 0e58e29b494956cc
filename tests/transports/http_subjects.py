"""HTTP transports as subjects of the shared suite, and defaults for tests of their own."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import msgspec

from observant_host.config import HttpServer
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.setup import capturing
from observant_host.transports.base import Outbound
from observant_host.transports.http.transport import HttpTransport
from observant_host.transports.sse_2024 import SseTransport
from tests.support.http_peer import Exchange, HttpPeer, answer
from tests.transports.suite import FAR, SkippingClock, request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.receivers import Recorder

MODERN = "2026-07-28"


class Fixed:
    """Credentials that never change."""

    def __init__(self, **headers: str) -> None:
        self.values: dict[str, str] = {k.replace("_", "-"): v for k, v in headers.items()}
        self.rejections = 0

    async def headers(self) -> Mapping[str, str]:
        return self.values

    def present(self, now: float) -> Mapping[str, str] | None:
        return self.values

    async def rejected(self, used: Mapping[str, str]) -> bool:
        self.rejections += 1
        return False


class Making:
    """Makes transports for one peer, closed at the end of the test."""

    def __init__(self, url: str = "http://127.0.0.1:9/mcp") -> None:
        self.url = url
        self.clock = SkippingClock()
        self.telemetry, self.told = capturing()
        self.made: list[HttpTransport | SseTransport] = []

    def http(self, **changes: Any) -> HttpTransport:
        transport = HttpTransport("sample", self._endpoint(changes), **self._options(changes))
        self.made.append(transport)
        return transport

    def sse(self, **changes: Any) -> SseTransport:
        transport = SseTransport("sample", self._endpoint(changes), **self._options(changes))
        self.made.append(transport)
        return transport

    def _endpoint(self, changes: dict[str, Any]) -> HttpServer:
        return HttpServer(changes.pop("url", self.url), ca_bundle=changes.pop("ca_bundle", None))

    def _options(self, changes: dict[str, Any]) -> dict[str, Any]:
        return {
            "credentials": Fixed(),
            "max_message_bytes": 16 << 20,
            "connect_timeout_s": 20,
            "shutdown_timeout_s": 2,
            "masker": Masker(changes.pop("secrets", ())),
            "telemetry": self.telemetry,
            "clock": self.clock,
            "environment": {},
            **changes,
        }


def modern(request_id: int, method: str = "tools/call", **changes: Any) -> Outbound:
    params = changes.pop("params", {})
    out = request(request_id, method, **params)
    return msgspec.structs.replace(out, version=MODERN, modern=True, **changes)


def legacy(request_id: int, method: str = "tools/call", **changes: Any) -> Outbound:
    params = changes.pop("params", {})
    return msgspec.structs.replace(request(request_id, method, **params), **changes)


def note(method: str = "notifications/initialized", **changes: Any) -> Outbound:
    return Outbound(json.dumps({"jsonrpc": "2.0", "method": method}).encode(), method, **changes)


class Dressed:
    """A transport whose messages all go out by one revision's rules."""

    def __init__(self, transport: HttpTransport, version: str | None, *, is_modern: bool) -> None:
        self._transport = transport
        self._version = version
        self._modern = is_modern

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def send(self, out: Outbound, expires: float) -> Any:
        dressed = msgspec.structs.replace(out, version=self._version, modern=self._modern)
        return self._transport.send(dressed, expires=expires)


class StreamableSubject(Making):
    """One connection at once, so that what waits for it can be seen to wait."""

    def __init__(self, version: str | None, *, is_modern: bool, streaming: bool) -> None:
        super().__init__()
        self.version, self.is_modern, self.streaming = version, is_modern, streaming
        self.peer = HttpPeer(self.behave)

    def make(self) -> Any:
        transport = self.http(url=self.peer.url, call_connections=1)
        return Dressed(transport, self.version, is_modern=self.is_modern)

    async def stuck(self, transport: Any, recorder: Recorder) -> None:
        """The one connection is taken by a request that is never answered."""
        transport.send(request(1, "hold"), expires=FAR)
        await self.peer.until(lambda peer: peer.methods.count("hold"))

    async def behave(self, exchange: Exchange) -> None:
        if exchange.seen.verb == "DELETE":
            await exchange.empty(200)
            return
        message = exchange.seen.message
        match message["method"]:
            case "echo":
                results = [message["params"]]
            case "twice":
                results = [1, 2]
            case "hold":
                await exchange.gone()
                return
            case _:
                results = ["last words"]
        headers = {} if self.is_modern else {"Mcp_Session_Id": "session-1"}
        if not self.streaming:
            await exchange.json(answer(message["id"], results[0]), **headers)
            return
        await exchange.stream(**headers)
        for result in results:
            await exchange.event(answer(message["id"], result))
        await exchange.end()


class OldSseSubject(Making):
    """HTTP+SSE: everything comes back on the one stream."""

    def __init__(self) -> None:
        super().__init__()
        self.peer = HttpPeer(self.behave)
        self.streams: list[Exchange] = []

    def make(self) -> SseTransport:
        return self.sse(url=f"{self.peer.origin}/sse", call_connections=1)

    async def stuck(self, transport: Any, recorder: Recorder) -> None:
        transport.send(request(1, "hold"), expires=FAR)
        await self.peer.until(lambda peer: peer.methods.count("hold"))

    async def behave(self, exchange: Exchange) -> None:
        if exchange.seen.verb == "GET":
            self.streams.append(exchange)
            await exchange.stream()
            await exchange.event(b"/messages?session=1", event="endpoint")
            await exchange.gone()
            return
        message, stream = exchange.seen.message, self.streams[-1]
        if message["method"] == "hold":
            await exchange.gone()
            return
        await exchange.empty(202)
        results = {"echo": [message["params"]], "twice": [1, 2]}
        for result in results.get(message["method"], ["last words"]):
            await stream.event(answer(message["id"], result))
        if message["method"] == "leave":
            await stream.end()
            stream.cut()


async def settled() -> None:
    """Let what is ready on the loop happen."""
    for _ in range(20):
        await asyncio.sleep(0)
