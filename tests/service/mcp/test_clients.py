"""How many clients of each era a scrape tells of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp

from observant_host.service.app import Service
from observant_host.service.mcp.clients import HEARD_S, MAX_HEARD, Clients
from tests.service.mcp.stage import make_host, staged
from tests.support.agent import KEY, Agent
from tests.support.clock import ManualClock
from tests.support.hosts import add
from tests.support.legacy_agent import LegacyAgent

if TYPE_CHECKING:
    from pathlib import Path

    from tests.service.mcp.stage import Stage


async def test_a_modern_client_counts_for_a_while_after_its_last_request() -> None:
    clock = ManualClock()
    clients = Clients(clock)
    clients.heard("a", "cli", "1")
    await clock.advance(HEARD_S - 1)
    clients.heard("b", "cli", "1")
    clients.heard("b", "cli", "1")
    assert clients.count() == {"modern": 2, "legacy": 0}
    await clock.advance(2)
    assert clients.count() == {"modern": 1, "legacy": 0}
    await clock.advance(HEARD_S)
    assert clients.count() == {"modern": 0, "legacy": 0}


def test_whatever_clients_call_themselves_few_are_kept() -> None:
    clients = Clients(ManualClock())
    for number in range(MAX_HEARD + 50):
        clients.heard("local", f"client {number}", None)
    assert clients.count()["modern"] == MAX_HEARD


def counted(text: str) -> dict[str, float]:
    name = 'observant_host_clients{era="'
    lines = [line.removeprefix(name) for line in text.splitlines() if line.startswith(name)]
    return {line.partition('"')[0]: float(line.rpartition(" ")[2]) for line in lines}


async def scraped(agent: Stage, session: aiohttp.ClientSession) -> dict[str, float]:
    async with session.get(f"{agent.base}/metrics") as answer:
        return counted(await answer.text())


async def test_clients_of_both_eras_are_counted_and_legacy_ones_until_their_end(
    tmp_path: Path,
) -> None:
    async with (
        staged(make_host(tmp_path, telemetry=None), tmp_path) as agent,
        aiohttp.ClientSession() as session,
    ):
        for name in ("one", "two", "two"):
            meta = {f"{KEY}clientInfo": {"name": name, "version": "1"}}
            await agent.ask("tools/list", meta=meta)
        old = [LegacyAgent(session, agent.url, "2025-06-18") for _ in range(3)]
        for each in old:
            await each.begin()
            await each.result("tools/list")
        assert await old[0].end() == 204
        assert await scraped(agent, session) == {"modern": 2, "legacy": 2}


async def test_agents_that_come_before_the_host_is_open_are_served_a_little_later(
    tmp_path: Path,
) -> None:
    host = make_host(tmp_path)
    add(host, "s", {"tools": "echo"})
    service = Service(host)
    await service.listen(opens_later=True)
    url = service.addresses["admin"] + "/mcp"
    try:
        async with aiohttp.ClientSession() as session:
            old = LegacyAgent(session, url, "2025-06-18")
            early = asyncio.ensure_future(Agent(session, url).ask("tools/list"))
            begun = asyncio.ensure_future(old.begin())
            async with session.get(service.addresses["admin"] + "/healthz") as answer:
                assert answer.status == 200
            assert not early.done()
            assert not begun.done()
            async with host:
                service.opened()
                assert (await early).result["tools"]
                await begun
                assert (await old.result("tools/list"))["tools"]
                service.desk.close()
    finally:
        await service.close()
