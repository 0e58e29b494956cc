"""A caller whose profile searches: two tools, everything behind them, and nothing of what is not
its part."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.config import HostConfig, Profile, ToolFilter
from observant_host.telemetry.vocabulary import NorthboundRequest, RoutedCall
from observant_host.wire.revisions import LEGACY
from tests.service.mcp.stage import LOCAL, Stage, heard, staged
from tests.service.mcp.test_parts import WHOLE, token
from tests.support.hosts import PATIENCE_S, add, facts, quick_host, reach
from tests.support.legacy_agent import LegacyAgent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host.telemetry.facade import Finished

FINDER: dict[str, str | None] = {"Authorization": "Bearer finder"}
PART: dict[str, str | None] = {"Authorization": "Bearer part"}

WEATHER = {
    "name": "get_weather",
    "title": "Weather",
    "description": "Temperature and rain in a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


class Searched(Stage):
    told: list[Finished]
    log: Path

    async def find(
        self, query: str, headers: dict[str, str | None] = FINDER, **more: Any
    ) -> dict[str, Any]:
        params = {"name": "find_tools", "arguments": {"query": query, **more}}
        answer = await self.ask("tools/call", params, headers=headers)
        found: dict[str, Any] = answer.result["structuredContent"]
        assert found["tools"] == [] or json.loads(answer.text) == found
        return found

    async def call(
        self, name: str, headers: dict[str, str | None] = FINDER, **arguments: Any
    ) -> Any:
        inner = {"name": name, "arguments": arguments}
        params = {"name": "call_tool", "arguments": inner}
        return await self.ask("tools/call", params, headers=headers)


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Searched]:
    config = HostConfig(
        service=LOCAL,
        tokens={
            "finder": token("finder", profile="all"),
            "part": token("part", profile="a"),
            "whole": token("whole"),
        },
        profiles={
            "all": Profile(mode="search"),
            "a": Profile(mode="search", servers=("a",), tools=ToolFilter(deny=("secret",))),
        },
    )
    host, told = quick_host(state_dir=tmp_path, config=config)
    log = tmp_path / "a.log"
    tools = "add,echo,secret,fail,progress,mute,ask"
    add(host, "a", {"tools": tools, "tool-json": json.dumps(WEATHER), "log": str(log)})
    add(host, "b", {"tools": "find_tools,call_tool,hidden", "ttl": "60000", "scope": "public"})
    async with staged(host, tmp_path) as stage:
        stage.__class__ = Searched
        assert isinstance(stage, Searched)
        stage.told, stage.log = told, log
        yield stage


async def test_two_tools_are_listed_and_may_not_be_kept_for_others(agent: Searched) -> None:
    for headers in (FINDER, PART):
        result = (await agent.ask("tools/list", headers=headers)).result
        assert [tool["name"] for tool in result["tools"]] == ["find_tools", "call_tool"]
        assert result["cacheScope"] == "private"
    listed = (await agent.ask("tools/list", headers=WHOLE)).result["tools"]
    assert len(listed) == 11


async def test_what_is_found_comes_with_its_schema_and_can_be_called(agent: Searched) -> None:
    found = await agent.find("how warm is it: temperature in a city")
    assert found["total"] == 11
    first = found["tools"][0]
    assert first == {
        "name": "get_weather",
        "title": "Weather",
        "description": "Temperature and rain in a city.",
        "inputSchema": WEATHER["inputSchema"],
        "available": True,
    }
    assert (await agent.call("get_weather", city="Paris")).text == "get_weather"
    assert (await agent.call("add", a=1, b=2)).text == "3"


async def test_schemas_are_left_out_on_request_and_the_limit_holds(agent: Searched) -> None:
    found = await agent.find("tool", limit=3, schemas=False)
    assert len(found["tools"]) == 3
    assert not any("inputSchema" in one for one in found["tools"])
    assert await agent.find("tool", limit=3, schemas=False) == found
    assert len((await agent.find("", limit=9999))["tools"]) == 11
    assert (await agent.find("zeppelin"))["tools"] == []


async def test_schemas_beyond_a_bound_are_left_out_and_had_by_name(agent: Searched) -> None:
    wide = [
        {
            "name": f"wide_{n}",
            "description": "A zeppelin.",
            "inputSchema": {"type": "object", "description": "x" * 100_000},
        }
        for n in range(3)
    ]
    add(agent.host, "w", {"tools": "echo", "tool-json": [json.dumps(one) for one in wide]})
    await reach(agent.host, "w", "ready")
    found = (await agent.find("zeppelin"))["tools"]
    assert ["inputSchema" in one for one in found] == [True, True, False]
    last = (await agent.find("wide_2", limit=1))["tools"]
    assert [one["name"] for one in last] == ["wide_2"]
    assert last[0]["inputSchema"] == wide[2]["inputSchema"]


async def test_a_server_that_is_away_is_found_as_unavailable(agent: Searched) -> None:
    await agent.host.act("a", "disable", reason="a test")
    await reach(agent.host, "a", "disabled")
    found = (await agent.find("temperature"))["tools"]
    assert [(one["name"], one["available"]) for one in found] in ([], [("get_weather", False)])
    answer = await agent.call("get_weather")
    assert "error" in answer.messages[-1] or answer.result["isError"]


async def test_a_withheld_tool_is_neither_found_nor_called(agent: Searched) -> None:
    everything = await agent.find("", PART, limit=50)
    names = {one["name"] for one in everything["tools"]}
    assert names == {"add", "echo", "fail", "progress", "mute", "ask", "get_weather"}
    for query in ("secret", "hidden", "b/hidden", "find_tools"):
        found = await agent.find(query, PART)
        assert not {"secret", "hidden", "find_tools"} & {one["name"] for one in found["tools"]}
    for name in ("secret", "a/secret", "hidden", "b/hidden", "find_tools", "call_tool"):
        answer = await agent.call(name, PART)
        assert "error" in answer.messages[-1] or answer.result["isError"], name
        assert "server b" not in str(answer.messages[-1])


async def test_a_servers_own_tools_of_these_names_are_called_through_ours(agent: Searched) -> None:
    found = await agent.find("find_tools")
    assert found["tools"][0]["name"] == "find_tools"
    assert found["tools"][0]["description"] == "the tool find_tools"
    assert (await agent.call("find_tools")).text == "find_tools"
    assert (await agent.call("call_tool")).text == "call_tool"
    assert (await agent.call("b/call_tool")).text == "call_tool"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("find_tools", {}),
        ("find_tools", {"query": 3}),
        ("find_tools", {"query": "x", "limit": "many"}),
        ("call_tool", {}),
        ("call_tool", {"name": None}),
        ("call_tool", []),
    ],
)
async def test_wrong_arguments_are_a_result_that_a_model_can_mend(
    agent: Searched, name: str, arguments: Any
) -> None:
    answer = await agent.ask("tools/call", {"name": name, "arguments": arguments}, headers=FINDER)
    assert answer.result["isError"]
    assert name in answer.text


async def test_errors_and_unknown_names_are_those_of_the_tool(agent: Searched) -> None:
    assert (await agent.call("fail")).result["isError"] is True
    unknown = await agent.call("nope")
    assert unknown.error["code"] == -32602
    assert "nope" in unknown.error["message"]


async def test_progress_and_rounds_of_input_are_those_of_the_tool(agent: Searched) -> None:
    params = {"name": "call_tool", "arguments": {"name": "progress", "arguments": {"n": 3}}}
    answer = await agent.ask("tools/call", params, meta={"progressToken": "p"}, headers=FINDER)
    notes = [one["params"] for one in answer.messages if "method" in one]
    assert {note["progressToken"] for note in notes} == {"p"}
    assert len(notes) == 3
    asked = {"name": "ask", "arguments": {"key": "k", "method": "roots/list", "params": {}}}
    params = {"name": "call_tool", "arguments": asked}
    can = {"io.modelcontextprotocol/clientCapabilities": {"roots": {}}}
    first = (await agent.ask("tools/call", params, meta=can, headers=FINDER)).result
    assert first["resultType"] == "input_required"
    again = {
        **params,
        "inputResponses": {key: {"roots": []} for key in first["inputRequests"]},
        "requestState": first["requestState"],
    }
    second = (await agent.ask("tools/call", again, meta=can, headers=FINDER)).result
    assert second["resultType"] == "complete"
    moved = {**again, "arguments": {"name": "echo", "arguments": {"text": "x"}}}
    refused = await agent.ask("tools/call", moved, meta=can, headers=FINDER)
    assert refused.error["code"] == -32602


async def test_a_caller_that_leaves_cancels_the_tool(agent: Searched) -> None:
    params = {"name": "call_tool", "arguments": {"name": "mute"}}
    asking = asyncio.create_task(agent.ask("tools/call", params, headers=FINDER))
    async with asyncio.timeout(PATIENCE_S):
        while not agent.host.calls_in_flight():
            await asyncio.sleep(0.01)
        asking.cancel()
        while agent.host.calls_in_flight():
            await asyncio.sleep(0.01)
        while not any("cancelled" in str(one) for one in heard(agent.log)):
            await asyncio.sleep(0.01)


async def test_what_is_told_names_the_tool_and_not_its_wrapping(agent: Searched) -> None:
    await agent.find("echo")
    await agent.call("echo", text="x")
    asked = [one.target for one in facts(agent.told, NorthboundRequest)]
    assert asked[-2:] == ["find_tools", "echo"]
    assert facts(agent.told, RoutedCall)[-1].name == "echo"


class OldFinder(LegacyAgent):
    def headers(self, **more: str | None) -> dict[str, str]:
        return {**super().headers(**more), "Authorization": "Bearer finder"}


@pytest.mark.parametrize("revision", LEGACY)
async def test_older_clients_find_and_call_in_their_shapes(agent: Searched, revision: str) -> None:
    old = OldFinder(agent._session, agent.url, revision)
    await old.begin()
    listed = (await old.result("tools/list"))["tools"]
    assert [tool["name"] for tool in listed] == ["find_tools", "call_tool"]
    params = {"name": "find_tools", "arguments": {"query": "temperature"}}
    found = await old.result("tools/call", params)
    assert json.loads(found["content"][0]["text"])["tools"][0]["name"] == "get_weather"
    asked = {"name": "call_tool", "arguments": {"name": "echo", "arguments": {"text": "hi"}}}
    assert (await old.result("tools/call", asked))["content"][0]["text"] == "hi"


async def test_changes_of_tools_are_not_told_to_who_sees_the_same_two(agent: Searched) -> None:
    wanted = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    async with agent.stream("subscriptions/listen", wanted, headers=FINDER) as stream:
        await stream.next()
        add(agent.host, "c", {"tools": "fly", "prompts": "p"})
        told = await stream.next()
        assert told["method"] == "notifications/prompts/list_changed"


async def test_many_who_ask_at_once_get_the_same(agent: Searched) -> None:
    found = await asyncio.gather(*(agent.find("send a message") for _ in range(20)))
    assert all(one == found[0] for one in found)


async def test_what_is_added_later_is_found(agent: Searched) -> None:
    assert (await agent.find("zeppelin"))["total"] == 11
    add(agent.host, "c", {"tools": "fly_zeppelin"})
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await agent.find("zeppelin"))["tools"]:
            await asyncio.sleep(0.01)
    assert found["tools"][0]["name"] == "fly_zeppelin"
    assert (await agent.find("zeppelin", PART))["tools"] == []
