"""Agents for long runs: raw HTTP, each with connections of its own, counting what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp

from tests.support.agent import KEY, Agent
from tests.support.legacy_agent import LegacyAgent

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator

PATIENCE_S = 60.0
THINK_S = (0.2, 0.8)
LEGACY = "2025-06-18"


class Failed(NamedTuple):
    """A request that got no answer, or a wrong one. `began` is by the monotonic clock."""

    who: str
    what: str
    began: float
    why: str


class Tally:
    """Of all agents of a run."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = {}
        self.failed: list[Failed] = []
        self.listening = 0
        self.lost_sessions = 0

    def answered(self, what: str, began: float) -> None:
        self.took.setdefault(what, []).append(time.monotonic() - began)

    @property
    def answers(self) -> int:
        return sum(map(len, self.took.values()))


class Wrong(Exception):
    """An answer that is none to what was asked."""


@contextlib.asynccontextmanager
async def connected(local: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """Connections of one agent, from the address `local`."""
    connector = aiohttp.TCPConnector(limit=0, local_addr=(local, 0) if local else None)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=PATIENCE_S)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield session


class Modern:
    """Calls, and now and then lists and discovers, until `over`; `listens` beside that."""

    def __init__(self, name: str, url: str, tally: Tally, dice: random.Random) -> None:
        self.name, self._url, self._tally, self._dice = name, url, tally, dice
        self._number = 0

    async def run(self, over: asyncio.Event, tools: list[str], *, listens: bool) -> None:
        async with connected() as session:
            agent = Agent(session, self._url)
            stream = asyncio.ensure_future(self._listen(agent, over)) if listens else None
            while not over.is_set():
                await self._one(agent, tools)
                await until(over, self._dice.uniform(*THINK_S))
            if stream is not None:
                await stream

    async def _one(self, agent: Agent, tools: list[str]) -> None:
        self._number += 1
        token = f"{self.name}-{self._number}"
        dice = self._dice.random()
        method = "tools/call" if dice < 0.8 else "tools/list" if dice < 0.95 else "server/discover"
        called = {"name": self._dice.choice(tools), "arguments": {"token": token}}
        began = time.monotonic()
        try:
            status, message = await self._asked(
                agent, method, called if method == "tools/call" else {}
            )
            result = message.get("result")
            if status != 200 or result is None or result.get("isError"):
                raise Wrong(f"{status} {json.dumps(message)[:300]}")
            if method == "tools/call" and result["content"][0]["text"] != token:
                raise Wrong(f"the answer to another call: {result}")
            if method == "tools/list" and len(result["tools"]) < len(tools):
                raise Wrong(f"only {len(result['tools'])} tools")
        except (aiohttp.ClientError, TimeoutError, Wrong, ValueError) as error:
            self._tally.failed.append(Failed(self.name, method, began, repr(error)))
        else:
            self._tally.answered(method, began)

    async def _asked(
        self, agent: Agent, method: str, params: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        meta = {f"{KEY}clientInfo": {"name": self.name, "version": "1"}}
        body, headers = agent.request(method, params, meta=meta)
        answer = await agent.post(body, headers)
        return answer.status, answer.messages[-1] if answer.messages else {}

    async def _listen(self, agent: Agent, over: asyncio.Event) -> None:
        """One stream after the other; each must be acknowledged."""
        while not over.is_set():
            began = time.monotonic()
            try:
                await self._follow(agent, over)
            except (aiohttp.ClientError, TimeoutError, Wrong) as error:
                self._tally.failed.append(Failed(self.name, "listen", began, repr(error)))
                await until(over, THINK_S[0])

    async def _follow(self, agent: Agent, over: asyncio.Event) -> None:
        wanted = {"notifications": {"toolsListChanged": True}}
        async with agent.stream("subscriptions/listen", wanted) as stream:
            first = await stream.next() if stream.response.status == 200 else None
            if first is None or not first.get("method", "").endswith("/acknowledged"):
                raise Wrong(f"not acknowledged: {stream.response.status} {first}")
            self._tally.listening += 1
            ended = asyncio.ensure_future(over.wait())
            try:
                reading = asyncio.ensure_future(self._read(stream))
                await asyncio.wait({reading, ended}, return_when=asyncio.FIRST_COMPLETED)
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
            finally:
                ended.cancel()
                self._tally.listening -= 1

    @staticmethod
    async def _read(stream: Any) -> None:
        """Until it ends, however it does: the next one is opened then."""
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            while await stream.next() is not None:
                pass


class Legacy:
    """Calls within one session; where that is lost (404) it begins another, as its revision says.

    Source: MCP 2025-06-18 basic/transports › Session Management.
    """

    def __init__(self, name: str, url: str, tally: Tally, dice: random.Random) -> None:
        self.name, self._url, self._tally, self._dice = name, url, tally, dice
        self._number = 0

    async def run(self, over: asyncio.Event, tools: list[str], *, local: str) -> None:
        async with connected(local) as session:
            agent: LegacyAgent | None = None
            while not over.is_set():
                began, what = time.monotonic(), "tools/call"
                try:
                    if agent is None:
                        what, agent = "initialize", await self._begun(session)
                    elif not await self._called(agent, self._dice.choice(tools)):
                        self._tally.lost_sessions += 1
                        agent = None
                        continue
                except (aiohttp.ClientError, TimeoutError, Wrong, AssertionError) as error:
                    self._tally.failed.append(Failed(self.name, what, began, repr(error)))
                else:
                    self._tally.answered(f"legacy {what}", began)
                await until(over, self._dice.uniform(*THINK_S))

    async def _begun(self, session: aiohttp.ClientSession) -> LegacyAgent:
        agent = LegacyAgent(session, self._url, LEGACY)
        await agent.begin()
        return agent

    async def _called(self, agent: LegacyAgent, tool: str) -> bool:
        """False where the session is lost."""
        self._number += 1
        token = f"{self.name}-{self._number}"
        asked = agent.request("tools/call", {"name": tool, "arguments": {"token": token}})
        async with agent.post(asked) as answer:
            if answer.status == 404:
                return False
            if answer.status != 200:
                raise Wrong(f"{answer.status} {(await answer.text())[:300]}")
            said = (await agent.messages(answer))[-1]
        if "result" not in said or said["result"]["content"][0]["text"] != token:
            raise Wrong(json.dumps(said)[:300])
        return True


async def until(over: asyncio.Event, seconds: float) -> None:
    """Whichever comes first."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await over.wait()
