"""Agents of 2026-07-28 over a real socket: every answer is judged by the published schema."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import pytest_asyncio

from tests.service.mcp.stage import CANONICAL, Stage, make_host, staged
from tests.support.agent import KEY, MODERN
from tests.support.hosts import PATIENCE_S, add

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio(loop_scope="module")

ODD = {
    "name": "odd",
    "description": "d",
    "inputSchema": {
        "type": "object",
        "properties": {"r": {"type": "number", "x-mcp-header": "R"}},
    },
}
MIRRORING = {
    "name": "place",
    "description": "d",
    "inputSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
    "outputSchema": {"type": "object"},
    "_meta": {"com.example/kept": 1},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("state")
    host = make_host(folder)
    tools = "echo,fail,rpc_error,progress,big,mute"
    options = {"prompts": "greet", "resources": "file:///a", "templates": "file:///t/{x}"}
    odd = {"tool-json": [json.dumps(ODD), json.dumps(MIRRORING)]}
    add(host, "new", {"tools": tools, **options, **odd})
    add(host, "other", {"tools": "echo"})
    add(host, "old", {"era": "legacy", "tools": "echo,add"}, allow_legacy=True)
    add(host, "gone", {"era": "legacy"})
    async with staged(host, folder) as stage:
        yield stage


async def test_discover_says_what_there_is_and_what_is_missing(agent: Stage) -> None:
    answer = await agent.ask("server/discover")
    assert answer.status == 200
    assert answer.kind == "application/json"
    result = answer.result
    assert result["supportedVersions"] == [MODERN]
    announced = {"tools", "prompts", "resources", "completions", "logging"}
    assert set(result["capabilities"]) == announced
    assert result["_meta"][f"{KEY}serverInfo"]["name"] == "observant-host"
    assert "- gone is unavailable (policy)" in result["instructions"]
    assert "allow_legacy" in result["instructions"]


async def test_lists_show_the_merged_catalogue_under_api_names(agent: Stage) -> None:
    tools = {tool["name"]: tool for tool in (await agent.ask("tools/list")).result["tools"]}
    echoes = [name for name in tools if "echo" in name]
    assert len(echoes) == 3
    assert all(len(name) <= 64 and "/" not in name for name in tools)
    assert tools["place"] == MIRRORING
    assert "x-mcp-header" not in json.dumps(tools["odd"])
    for name in echoes:
        answer = await agent.ask("tools/call", {"name": name, "arguments": {"text": name}})
        assert answer.text == name
    for method, member in (
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ):
        answer = await agent.ask(method)
        assert len(answer.result[member]) == 1
        assert (answer.result["ttlMs"], answer.result["cacheScope"]) == (0, "private")


async def test_a_legacy_servers_result_becomes_a_complete_one_without_being_written_anew(
    agent: Stage,
) -> None:
    answer = await agent.ask("tools/call", {"name": "old/echo", "arguments": {"text": "x"}})
    assert answer.result == {
        "resultType": "complete",
        "content": [{"type": "text", "text": "x"}],
    }
    assert b'"result":{"resultType":"complete","content": [{"type": "text"' in answer.raw


async def test_prompts_resources_and_completion_are_served(agent: Stage) -> None:
    assert (await agent.ask("prompts/get", {"name": "greet"})).result["messages"]
    read = (await agent.ask("resources/read", {"uri": "file:///a"})).result
    assert read["contents"][0]["uri"] == "file:///a"
    assert (read["ttlMs"], read["cacheScope"]) == (0, "private")
    ref = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "a", "value": ""}}
    answer = await agent.ask("completion/complete", ref)
    assert "values" in answer.result["completion"]


@pytest.mark.parametrize(
    ("method", "params", "code", "status"),
    [
        ("tools/call", {"name": "nope"}, -32602, 200),
        ("tools/call", {"name": 7}, -32602, 200),
        ("tools/call", {}, -32602, 200),
        ("prompts/get", {"name": "nope"}, -32602, 200),
        ("prompts/get", {}, -32602, 200),
        ("resources/read", {"uri": "file:///nope"}, -32602, 200),
        ("resources/read", {}, -32602, 200),
        ("completion/complete", {}, -32602, 200),
        ("tools/list", {"cursor": "x"}, -32602, 200),
        ("subscriptions/listen", {}, -32602, 400),
        ("ping", {}, -32601, 404),
        ("initialize", {}, -32601, 404),
        ("logging/setLevel", {}, -32601, 404),
        ("resources/subscribe", {}, -32601, 404),
        ("x/y", {}, -32601, 404),
    ],
)
async def test_what_cannot_be_served_has_its_code_and_status(
    agent: Stage, method: str, params: dict[str, Any], code: int, status: int
) -> None:
    headers: dict[str, str | None] = {"Mcp-Name": None} if params.get("name") == 7 else {}
    answer = await agent.ask(method, params, headers=headers)
    assert (answer.error["code"], answer.status) == (code, status)


async def test_a_resource_that_is_not_there_is_named(agent: Stage) -> None:
    answer = await agent.ask("resources/read", {"uri": "file:///nope"})
    assert answer.error["data"] == {"uri": "file:///nope"}


async def test_a_tools_failing_is_a_result_and_its_servers_error_an_error(agent: Stage) -> None:
    failed = await agent.ask("tools/call", {"name": "fail"})
    assert failed.result["isError"] is True
    arguments = {"code": -32000, "message": "no", "data": {"why": 1}}
    error = (await agent.ask("tools/call", {"name": "rpc_error", "arguments": arguments})).error
    assert error == {"code": -32000, "message": "no", "data": {"why": 1}}
    arguments = {"code": -32042, "message": "no", "data": 1}
    error = (await agent.ask("tools/call", {"name": "rpc_error", "arguments": arguments})).error
    assert error == {"code": -32603, "message": "no", "data": {"code": -32042, "data": 1}}


async def test_a_tool_that_is_not_routable_says_so_in_words_and_that_nothing_was_done(
    agent: Stage,
) -> None:
    result = (await agent.ask("tools/call", {"name": "gone/echo"})).result
    assert result["isError"] is True
    text = result["content"][0]["text"]
    assert "server gone is unavailable (policy" in text
    assert "nothing was executed" in text
    assert result["_meta"]["observant-host/error"]["delivery"] == "not_sent"


async def test_progress_comes_under_the_callers_token_before_the_result(agent: Stage) -> None:
    params = {"name": "progress", "arguments": {"n": 2}}
    answer = await agent.ask("tools/call", params, meta={"progressToken": "mine"})
    assert answer.kind == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    told = [message["params"] for message in answer.messages[:-1]]
    assert [(one["progressToken"], one["progress"]) for one in told] == [("mine", 1), ("mine", 2)]
    quiet = await agent.ask("tools/call", params)
    assert quiet.kind == "application/json"


async def test_a_client_that_reads_only_one_kind_gets_that(agent: Stage) -> None:
    params = {"name": "progress", "arguments": {"n": 2}}
    only: dict[str, str | None] = {"Accept": "application/json"}
    answer = await agent.ask("tools/call", params, meta={"progressToken": 1}, headers=only)
    assert answer.kind == "application/json"
    answer = await agent.ask("tools/list", headers={"Accept": "text/event-stream"})
    assert answer.kind == "text/event-stream"
    answer = await agent.ask("tools/list", headers={"Accept": "text/html"})
    assert answer.status == 406


@pytest.mark.parametrize(
    ("meta", "headers", "code"),
    [
        ({f"{KEY}protocolVersion": 1}, {}, -32602),
        ({f"{KEY}clientCapabilities": None}, {}, -32602),
        ({f"{KEY}protocolVersion": "2099-01-01"}, {"MCP-Protocol-Version": "2099-01-01"}, -32022),
        ({}, {"MCP-Protocol-Version": None}, -32020),
        ({}, {"MCP-Protocol-Version": "2025-06-18"}, -32020),
        ({}, {"Mcp-Method": None}, -32020),
        ({}, {"Mcp-Method": "tools/call"}, -32020),
    ],
)
async def test_what_a_request_must_say_is_checked(
    agent: Stage, meta: dict[str, Any], headers: dict[str, str | None], code: int
) -> None:
    answer = await agent.ask("tools/list", meta=meta, headers=headers)
    assert (answer.error["code"], answer.status) == (code, 400)


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("us", None),
        ("=?base64?dXM=?=", None),
        ("  us  ", None),
        ("eu", -32020),
        (None, -32020),
        ("=?base64?!?=", -32020),
    ],
)
async def test_mirrored_arguments_are_checked_by_the_schema_that_we_list(
    agent: Stage, header: str | None, code: int | None
) -> None:
    params = {"name": "place", "arguments": {"region": "us"}}
    answer = await agent.ask("tools/call", params, headers={"Mcp-Param-Region": header})
    assert answer.messages[-1].get("error", {}).get("code") == code


@pytest.mark.parametrize(
    ("body", "headers", "code", "status"),
    [
        (b"{", {}, -32700, 400),
        (b"[]", {}, -32600, 400),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', {}, -32600, 400),
        (b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', {}, -32600, 400),
        (b'{"id":1,"method":"tools/list"}', {}, -32600, 400),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', {}, -32600, 400),
        (b"{}", {"Content-Type": "text/plain"}, -32600, 415),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', {}, -32602, 400),
    ],
)
async def test_what_is_no_request_is_refused_with_a_body_that_says_why(
    agent: Stage, body: bytes, headers: dict[str, str], code: int, status: int
) -> None:
    answer = await agent.post(body, {"Content-Type": "application/json", **headers})
    assert (answer.status, answer.error["code"]) == (status, code)
    assert answer.error["message"]


async def test_a_notification_is_accepted_without_a_body(agent: Stage) -> None:
    note = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    answer = await agent.post(note, {"Content-Type": "application/json"})
    assert (answer.status, answer.raw) == (202, b"")


async def test_other_verbs_are_not_served_and_old_headers_mean_nothing(agent: Stage) -> None:
    async with aiohttp.ClientSession() as session:
        for verb in ("GET", "DELETE", "PUT"):
            async with session.request(verb, agent.url) as response:
                assert (response.status, response.headers["Allow"]) == (405, "POST")
    answer = await agent.ask("tools/list", headers={"Mcp-Session-Id": "x", "Last-Event-ID": "7"})
    assert answer.status == 200


async def test_a_body_over_the_bound_is_refused(agent: Stage) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"x" * (17 << 20) + b'"}}'
    answer = await agent.post(body, {"Content-Type": "application/json"})
    assert (answer.status, answer.error["code"]) == (413, -32600)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
    ],
)
async def test_pages_of_others_cannot_reach_us(
    agent: Stage, headers: dict[str, str | None], status: int
) -> None:
    body, own = agent.request("tools/list", headers=headers)
    async with (
        aiohttp.ClientSession() as session,
        session.post(agent.url, data=body, headers=own) as response,
    ):
        assert response.status == status


async def test_ids_come_back_as_they_were(agent: Stage) -> None:
    for request_id in (0, -7, 2**53, "x", "7", "\u2028"):
        answer = await agent.ask("tools/list", request_id=request_id)
        assert answer.messages[-1]["id"] == request_id


async def test_sixty_four_at_once_get_their_own_answers(agent: Stage) -> None:
    async def one(i: int) -> None:
        answer = await agent.ask("tools/call", {"name": "echo", "arguments": {"text": str(i)}})
        assert answer.text == str(i)

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(one(i) for i in range(64)))


async def test_a_large_result_goes_through_byte_for_byte(agent: Stage) -> None:
    size = (16 << 20) - 200
    params = {"name": "big", "arguments": {"bytes": size}}
    body, headers = agent.request("tools/call", params, request_id=1)
    answer = await agent.post(body, headers)
    result = b'{"resultType": "complete", "content": [{"type": "text", "text": "%b"}]}'
    assert answer.raw == b'{"jsonrpc":"2.0","id":1,"result":' + result % (b"x" * size) + b"}"
    assert answer.headers["Content-Length"] == str(len(answer.raw))


async def test_canonical_names_are_shown_where_the_configuration_says_so(tmp_path: Path) -> None:
    host = make_host(tmp_path, CANONICAL)
    add(host, "a", {"tools": "echo"})
    add(host, "b", {"tools": "echo"})
    async with staged(host, tmp_path) as agent:
        tools = (await agent.ask("tools/list")).result["tools"]
        assert [tool["name"] for tool in tools] == ["echo", "b/echo"]


async def test_hints_of_lists_are_the_least_of_their_servers(tmp_path: Path) -> None:
    host = make_host(tmp_path)
    add(host, "a", {"tools": "echo", "ttl": "600000", "scope": "public"})
    add(host, "b", {"tools": "add", "ttl": "60000", "scope": "public"})
    async with staged(host, tmp_path) as agent:
        result = (await agent.ask("tools/list")).result
        assert 0 < result["ttlMs"] <= 60_000
        assert result["cacheScope"] == "public"


async def test_a_walk_over_pages_gives_every_tool_once_and_starts_again_after_a_change(
    tmp_path: Path,
) -> None:
    host = make_host(tmp_path)
    add(host, "a", {"tools": "add_tool", "many": "2500"})
    async with staged(host, tmp_path) as agent:
        names: list[str] = []
        cursor: dict[str, Any] = {}
        while True:
            result = (await agent.ask("tools/list", cursor)).result
            names += [tool["name"] for tool in result["tools"]]
            if "nextCursor" not in result:
                break
            cursor = {"cursor": result["nextCursor"]}
        assert len(names) == len(set(names)) == 2501
        before = host.catalogue.version
        await agent.ask("tools/call", {"name": "add_tool", "arguments": {"name": "later"}})
        async with asyncio.timeout(PATIENCE_S):
            while host.catalogue.version == before:
                await host.fresh_catalogue()
        assert (await agent.ask("tools/list", cursor)).error["code"] == -32602


async def test_every_request_is_told_as_a_server_span_in_the_callers_trace(tmp_path: Path) -> None:
    from observant_host.telemetry import setup
    from observant_host.telemetry.vocabulary import NorthboundRequest, RoutedCall

    telemetry, told = setup.capturing()
    host = make_host(tmp_path, telemetry=telemetry)
    add(host, "a", {"tools": "echo"})
    async with staged(host, tmp_path) as agent:
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        await agent.ask("tools/call", {"name": "echo"}, meta={"traceparent": trace})
        await agent.ask("tools/call", {"name": "nope"})
    served = [one for one in told if isinstance(one.fact, NorthboundRequest)]
    call = next(one for one in told if isinstance(one.fact, RoutedCall))
    assert f"{served[0].context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert served[0].parent is not None
    assert call.parent is not None
    assert call.parent.span_id == served[0].context.span_id
    assert served[0].name == "tools/call echo"
    assert (served[1].outcome, served[1].error_type) == ("rpc_error", "-32602")
