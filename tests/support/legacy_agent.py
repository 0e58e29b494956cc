"""A legacy client as raw HTTP: everything that comes back is judged by its revision's schema."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any

from tests.support.published import result_problems, told_problems

if TYPE_CHECKING:
    import aiohttp

BOTH = "application/json, text/event-stream"
PATIENCE_S = 15.0


class Event:
    """`id` and `message` (None for an event without data)."""

    def __init__(self, block: bytes) -> None:
        fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if line[:1] != b":")
        self.id = fields.get(b"id", b"").decode()
        self.retry = fields.get(b"retry")
        data = fields.get(b"data", b"").strip()
        self.message: dict[str, Any] | None = json.loads(data) if data else None


class LegacyAgent:
    """One client; `begin` initializes. Every deviation is an argument."""

    def __init__(self, session: aiohttp.ClientSession, url: str, revision: str) -> None:
        self._session = session
        self.url = url
        self.revision = revision
        self.key = ""
        self.ids = itertools.count(1)

    def headers(self, **more: str | None) -> dict[str, str]:
        said = {
            "Accept": BOTH,
            "Content-Type": "application/json",
            "Mcp-Session-Id": self.key or None,
            "MCP-Protocol-Version": self.revision if self.key else None,
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        return {name: value for name, value in said.items() if value is not None}

    async def begin(
        self, capabilities: dict[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        params = {
            "protocolVersion": self.revision,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "old", "version": "1"},
        }
        async with self.post(self.request("initialize", params), **more) as answer:
            assert answer.status == 200, await answer.text()
            self.key = answer.headers["Mcp-Session-Id"]
            said: dict[str, Any] = (await self.messages(answer))[-1]
        self.revision = said["result"]["protocolVersion"]
        self.judge(said, "initialize")
        assert await self.tell("notifications/initialized") == 202
        result: dict[str, Any] = said["result"]
        return result

    def request(self, method: str, params: Any = None, request_id: Any = None) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": request_id or next(self.ids), "method": method}
        return body if params is None else {**body, "params": params}

    def post(self, body: Any, **headers: str | None) -> Any:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self._session.post(self.url, data=sent, headers=self.headers(**headers))

    def listen(self, after: str | None = None, **headers: str | None) -> Any:
        return self._session.get(
            self.url,
            headers=self.headers(
                **{"Accept": "text/event-stream", "Last_Event_ID": after, **headers}
            ),
        )

    async def end(self, **headers: str | None) -> int:
        async with self._session.delete(self.url, headers=self.headers(**headers)) as answer:
            return int(answer.status)

    async def tell(self, method: str, params: Any = None) -> int:
        body = {"jsonrpc": "2.0", "method": method}
        async with self.post(body if params is None else {**body, "params": params}) as answer:
            return int(answer.status)

    async def reply(self, request_id: Any, result: Any) -> int:
        async with self.post({"jsonrpc": "2.0", "id": request_id, "result": result}) as answer:
            return int(answer.status)

    async def ask(self, method: str, params: Any = None, **more: Any) -> list[dict[str, Any]]:
        """All messages of the answer, the response last, each judged."""
        async with self.post(self.request(method, params), **more) as answer:
            assert answer.status == 200, (answer.status, await answer.text())
            found = await self.messages(answer)
        for one in found:
            self.judge(one, method)
        return found

    async def result(self, method: str, params: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = (await self.ask(method, params))[-1]["result"]
        return result

    async def error(self, method: str, params: Any = None) -> dict[str, Any]:
        error: dict[str, Any] = (await self.ask(method, params))[-1]["error"]
        return error

    async def messages(self, answer: aiohttp.ClientResponse) -> list[dict[str, Any]]:
        if answer.content_type == "text/event-stream":
            events = [one async for one in self.events(answer)]
            return [one.message for one in events if one.message is not None]
        said = json.loads(await answer.read())
        return said if isinstance(said, list) else [said]

    async def events(self, answer: aiohttp.ClientResponse) -> Any:
        """Until the stream is over."""
        while (block := await self.block(answer)) is not None:
            yield Event(block)

    async def block(self, answer: aiohttp.ClientResponse) -> bytes | None:
        """The next event that is no comment; None at the end."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    block = (await answer.content.readuntil(b"\n\n")).removesuffix(b"\n\n")
                except asyncio.IncompleteReadError:
                    return None
                if not block:
                    return None
                if not block.startswith(b":"):
                    return block

    async def next(self, answer: aiohttp.ClientResponse) -> Event:
        """The next event that says something."""
        while True:
            block = await self.block(answer)
            assert block is not None, "the stream ended"
            event = Event(block)
            if event.message is not None:
                self.judge(event.message, "")
                return event

    def judge(self, message: dict[str, Any], method: str) -> None:
        if "method" in message:
            found = told_problems(message, self.revision)
        elif "error" in message:
            assert isinstance(message["error"]["code"], int)
            found = []
        else:
            assert not MODERN_WORDS & message["result"].keys(), message["result"].keys()
            found = result_problems(method, message["result"], self.revision) if method else []
        assert not found, found


MODERN_WORDS = {"resultType", "ttlMs", "cacheScope"}
