"""A caller whose token has a profile: what is outside its part is not there, by no spelling."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.config import HostConfig, Profile, Token, ToolFilter
from tests.service.mcp.stage import LOCAL, Stage, staged
from tests.support.hosts import add, quick_host

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PART: dict[str, str | None] = {"Authorization": "Bearer part"}
WHOLE: dict[str, str | None] = {"Authorization": "Bearer whole"}


def token(secret: str, **keys: Any) -> Token:
    return Token(sha256=hashlib.sha256(secret.encode()).hexdigest(), scopes=("mcp",), **keys)


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[Stage]:
    config = HostConfig(
        service=LOCAL,
        tokens={"part": token("part", profile="a"), "whole": token("whole")},
        profiles={"a": Profile(servers=("a",), tools=ToolFilter(deny=("secret",)))},
    )
    host = quick_host(state_dir=tmp_path, config=config)[0]
    common = {"ttl": "60000", "scope": "public"}
    add(
        host,
        "a",
        {**common, "tools": "add,echo,secret", "templates": "file:///t/{x}"},
        tools=ToolFilter(deny=("echo",)),
    )
    add(host, "b", {**common, "tools": "echo,secret", "prompts": "p", "resources": "file:///t/1"})
    async with staged(host, tmp_path) as stage:
        yield stage


async def names(agent: Stage, headers: dict[str, str | None]) -> list[str]:
    result = (await agent.ask("tools/list", headers=headers)).result
    return [tool["name"] for tool in result["tools"]]


async def test_a_part_is_listed_and_called_and_nothing_else(agent: Stage) -> None:
    assert await names(agent, PART) == ["add"]
    assert len(await names(agent, WHOLE)) == 4
    add_one = {"name": "add", "arguments": {"a": 1, "b": 2}}
    assert (await agent.ask("tools/call", add_one, headers=PART)).text == "3"
    for name in ("echo", "b/echo", "a/echo", "secret", "a/secret", "b/secret", "nope"):
        answer = await agent.ask("tools/call", {"name": name}, headers=PART)
        text = str(answer.messages[-1])
        assert "error" in answer.messages[-1] or answer.result["isError"], name
        assert "'b'" not in text
        assert "server b" not in text


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "p"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": ""}},
        ),
        ("resources/read", {"uri": "file:///nobody"}),
    ],
)
async def test_prompts_and_resources_outside_are_unknown(
    agent: Stage, method: str, params: dict[str, Any]
) -> None:
    assert (await agent.ask(method, params, headers=PART)).error["code"] == -32602
    if method == "prompts/get":
        assert (await agent.ask(method, params, headers=WHOLE)).result


async def test_a_uri_is_read_at_the_owner_inside_the_part(agent: Stage) -> None:
    calls = []
    read = agent.host.read_resource

    async def spied(uri: str, **keys: Any) -> Any:
        result = await read(uri, **keys)
        calls.append(result.server)
        return result

    agent.host.read_resource = spied  # type: ignore[method-assign]
    for headers, scope in ((PART, "private"), (WHOLE, "public")):
        answer = await agent.ask("resources/read", {"uri": "file:///t/1"}, headers=headers)
        assert answer.result["cacheScope"] == scope
    assert calls == ["a", "b"]


async def test_a_part_is_private_and_tells_nothing_of_the_rest(agent: Stage) -> None:
    hints = (await agent.ask("tools/list", headers=PART)).result
    assert hints["cacheScope"] == "private"
    assert (await agent.ask("tools/list", headers=WHOLE)).result["cacheScope"] == "public"
    wanted = {"notifications": {"resourceSubscriptions": ["file:///nobody"]}}
    async with agent.stream("subscriptions/listen", wanted, headers=PART) as stream:
        first = await stream.next()
        assert first is not None
        assert first["params"]["notifications"] == {}


async def test_every_part_is_served_by_the_same_processes(agent: Stage) -> None:
    pids = {name: view.pid for name, view in agent.host.servers.items()}
    for headers, name in ((PART, "add"), (WHOLE, "add"), (PART, "add"), (WHOLE, "echo")):
        params = {"name": name, "arguments": {"a": 1, "b": 2, "text": "x"}}
        assert "error" not in (await agent.ask("tools/call", params, headers=headers)).messages[-1]
    assert {name: view.pid for name, view in agent.host.servers.items()} == pids
    assert {view.generation for view in agent.host.servers.values()} == {1}


async def test_without_a_token_nobody_is_served(agent: Stage) -> None:
    body, headers = agent.request("tools/list")
    assert (await agent.post(body, headers)).status == 401
