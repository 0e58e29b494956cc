"""Agents of both eras at a running host, well and badly behaved, until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import aiohttp

from tests.support.agent import Agent
from tests.support.legacy_agent import LegacyAgent

if TYPE_CHECKING:
    import threading

EVERY_S = 0.3


async def asking(address: str, stop: threading.Event) -> None:
    """Lists, calls, a request that is refused by its method, and one that a page elsewhere sent."""
    url = f"http://{address}/mcp"
    async with aiohttp.ClientSession() as session:
        agent, old = Agent(session, url), LegacyAgent(session, url, "2025-06-18")
        while not stop.is_set():
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, AssertionError):
                await _round(session, agent, old)
            await asyncio.sleep(EVERY_S)


async def _round(session: aiohttp.ClientSession, agent: Agent, old: LegacyAgent) -> None:
    if not old.key:
        await old.begin()
    await old.result("tools/list")
    tools = (await agent.ask("tools/list")).result["tools"]
    echo = next((one["name"] for one in tools if "echo" in one["name"]), None)
    if echo is not None:
        await agent.ask("tools/call", {"name": echo, "arguments": {"text": "x"}})
    body, headers = agent.request("no/such")
    await agent.post(body, headers)
    body, headers = agent.request("tools/list", headers={"Origin": "http://elsewhere.example"})
    async with session.post(agent.url, data=body, headers=headers) as answer:
        await answer.read()
