"""Streams of answers, subscriptions, and what a client's going away ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from msgspec import Raw

from observant_host.peers.told import LogMessage
from observant_host.service.app import Service
from observant_host.service.mcp import listening
from tests.service.mcp.stage import Stage, heard, make_host, staged
from tests.service.test_service import Running
from tests.support.agent import KEY, Agent
from tests.support.hosts import PATIENCE_S, add, add_late
from tests.support.processes import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ALL = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
SUBSCRIBABLE = (
    '{"logging":{},"tools":{"listChanged":true},"prompts":{"listChanged":true},'
    '"resources":{"subscribe":true,"listChanged":true}}'
)


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Stage]:
    host = make_host(tmp_path)
    tools = "mute,echo,add_tool,changed,updated,progress,log"
    options = {"tools": tools, "resources": "file:///a,file:///b", "capabilities": SUBSCRIBABLE}
    add(host, "s", {**options, "log": str(tmp_path / "log")})
    async with staged(host, tmp_path) as stage:
        yield stage


def cancels(folder: Path) -> list[Any]:
    messages = [line["msg"] for line in heard(folder / "log")]
    return [one for one in messages if one.get("method") == "notifications/cancelled"]


def called(folder: Path) -> bool:
    return any(line["msg"].get("method") == "tools/call" for line in heard(folder / "log"))


async def test_a_client_that_goes_away_cancels_what_it_asked_for(
    agent: Stage, tmp_path: Path
) -> None:
    asking = asyncio.ensure_future(agent.ask("tools/call", {"name": "mute"}))
    await eventually(lambda: called(tmp_path))
    assert agent.host.open_calls == 1
    asking.cancel()
    await eventually(lambda: bool(cancels(tmp_path)))
    await eventually(lambda: agent.host.open_calls == 0)


async def test_a_client_that_leaves_its_stream_cancels_too(agent: Stage, tmp_path: Path) -> None:
    params = {"name": "progress", "arguments": {"n": 1000, "s": 0.02}}
    async with agent.stream("tools/call", params, meta={"progressToken": 1}) as stream:
        assert (await stream.next() or {})["params"]["progress"] == 1
    await eventually(lambda: bool(cancels(tmp_path)))


async def test_a_subscription_is_acknowledged_first_with_what_was_accepted(agent: Stage) -> None:
    wanted = {"toolsListChanged": True, "promptsListChanged": False, "unknown": True}
    wanted["resourceSubscriptions"] = ["file:///a", "file:///nobody"]  # type: ignore[assignment]
    params = {"notifications": wanted}
    async with agent.stream("subscriptions/listen", params, request_id="sub") as stream:
        first = await stream.next()
        assert first is not None
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["file:///a"],
        }
        assert first["params"]["_meta"] == {f"{KEY}subscriptionId": "sub"}
        assert stream.response.headers["X-Accel-Buffering"] == "no"


async def test_only_what_was_asked_for_is_told_and_all_of_it_is_tagged(agent: Stage) -> None:
    only_prompts = {"notifications": {"promptsListChanged": True}}
    async with (
        agent.stream("subscriptions/listen", {"notifications": ALL}, request_id=7) as every,
        agent.stream("subscriptions/listen", only_prompts) as other,
    ):
        await every.next()
        await other.next()
        await agent.ask("tools/call", {"name": "add_tool", "arguments": {"name": "later"}})
        async with asyncio.timeout(PATIENCE_S):
            told = await every.next()
        assert told == {
            "jsonrpc": "2.0",
            "method": "notifications/tools/list_changed",
            "params": {"_meta": {f"{KEY}subscriptionId": 7}},
        }
        tools = (await agent.ask("tools/list")).result["tools"]
        assert "later" in [tool["name"] for tool in tools]
        agent.running.stop.set()
        last = await other.next()
        assert last is not None
        assert last["result"]["resultType"] == "complete"


async def test_a_followed_resource_is_told_of_until_the_stream_is_left(
    agent: Stage, tmp_path: Path
) -> None:
    params = {"notifications": {"resourceSubscriptions": ["file:///a"]}}
    peer = agent.host.core.fleet.get("s")
    assert peer is not None
    async with agent.stream("subscriptions/listen", params) as stream:
        await stream.next()
        listens = "subscriptions/listen"
        await eventually(
            lambda: any(
                "file:///a" in str(line["msg"])
                for line in heard(tmp_path / "log")
                if line["msg"].get("method") == listens
            )
        )
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await agent.ask(
                    "tools/call", {"name": "updated", "arguments": {"uri": "file:///a"}}
                )
                told = await stream.next()
                assert told is not None
                assert told["params"]["uri"] == "file:///a"
                break
    await eventually(lambda: not peer.peer.wishes.uris)


async def test_a_subscription_ends_with_a_result_when_the_host_does(agent: Stage) -> None:
    async with agent.stream("subscriptions/listen", {"notifications": ALL}, request_id=9) as stream:
        await stream.next()
        agent.running.stop.set()
        async with asyncio.timeout(PATIENCE_S):
            last = await stream.next()
            assert last is not None
            assert last["id"] == 9
            assert last["result"]["_meta"][f"{KEY}subscriptionId"] == 9
            assert await stream.next() is None


async def test_subscriptions_are_bounded(agent: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MAX_OF_ONE", 1)
    async with agent.stream("subscriptions/listen", {"notifications": ALL}) as stream:
        await stream.next()
        refused = await agent.ask("subscriptions/listen", {"notifications": ALL})
        assert (refused.status, refused.error["code"]) == (503, -32603)

    async def again() -> bool:
        async with agent.stream("subscriptions/listen", {"notifications": ALL}) as stream:
            return (await stream.next() or {}).get("method") is not None

    async with asyncio.timeout(PATIENCE_S):
        while not await again():
            pass


@pytest.mark.parametrize(
    "wanted", [None, [], {"resourceSubscriptions": "x"}, {"resourceSubscriptions": [1]}]
)
async def test_a_filter_that_is_none_is_refused(agent: Stage, wanted: Any) -> None:
    body, headers = agent.request("subscriptions/listen", {"notifications": wanted})
    answer = await agent.post(body, headers)
    assert (answer.status, answer.error["code"]) == (400, -32602)


async def test_a_servers_own_word_is_passed_on_though_its_list_is_the_same(agent: Stage) -> None:
    async with agent.stream("subscriptions/listen", {"notifications": ALL}) as stream:
        await stream.next()
        await agent.ask("tools/call", {"name": "changed", "arguments": {"kind": "prompts"}})
        async with asyncio.timeout(PATIENCE_S):
            told = await stream.next()
        assert told is not None
        assert told["method"] == "notifications/prompts/list_changed"


async def test_log_messages_come_where_they_were_asked_for_from_that_level_on(
    agent: Stage,
) -> None:
    async def told(level: str | None) -> list[Any]:
        params = {"name": "log", "arguments": {"level": "warning"}}
        meta = {} if level is None else {f"{KEY}logLevel": level}
        answer = await agent.ask("tools/call", params, meta=meta)
        return [message["params"] for message in answer.messages[:-1]]

    assert await told("info") == [{"level": "warning", "logger": "scripted", "data": "logged"}]
    assert await told("error") == []
    assert await told(None) == []


async def test_nobody_reads_the_log_of_anothers_call(agent: Stage) -> None:
    meta = {f"{KEY}logLevel": "debug", "progressToken": 1}
    params = {"name": "progress", "arguments": {"n": 1000, "s": 5}}
    message = LogMessage(server="s", level="error", logger=None, data=Raw(b'"secret"'))
    async with agent.stream("tools/call", params, meta=meta) as stream:
        await stream.next()
        other = asyncio.ensure_future(agent.host.call_tool("mute", principal="another"))
        await eventually(lambda: len(agent.host.calls_in_flight()) == 2)
        agent.host.core.logs.tell(message)
        other.cancel()
        await eventually(lambda: len(agent.host.calls_in_flight()) == 1)
        own = LogMessage(server="s", level="error", logger=None, data=Raw(b'"own"'))
        agent.host.core.logs.tell(own)
        told = await stream.next()
        assert told is not None
        assert told["params"]["data"] == "own"


async def test_who_comes_before_start_up_is_over_gets_the_whole_catalogue_a_little_later(
    tmp_path: Path,
) -> None:
    host = make_host(tmp_path)
    add_late(host, "late", tmp_path / "there", {"tools": "echo"})
    one = Running(host, tmp_path)
    serving = asyncio.ensure_future(one.serve())
    try:
        async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as session:
            base = (await one.listening)["admin"]
            early = Stage(session, base, host, one)
            assert not host.published
            asking = asyncio.ensure_future(early.ask("tools/list"))
            await asyncio.sleep(0)
            (tmp_path / "there").touch()
            result = (await asking).result
            assert [tool["name"] for tool in result["tools"]] == ["echo"]
    finally:
        one.stop.set()
        await serving


async def test_before_the_host_is_open_an_agent_is_told_to_come_again(tmp_path: Path) -> None:
    service = Service(make_host(tmp_path))
    await service.listen()
    try:
        async with aiohttp.ClientSession() as session:
            early = Agent(session, service.addresses["admin"] + "/mcp")
            answer = await early.ask("tools/list")
            assert (answer.status, answer.error["code"]) == (503, -32603)
    finally:
        await service.close()
