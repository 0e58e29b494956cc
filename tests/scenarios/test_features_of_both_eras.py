"""What servers offer beside tools, through a whole host and real processes, in both eras."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import HttpServer, InputRequest, LogMessage, errors
from observant_host.telemetry.vocabulary import ServerMessage
from tests.support.hosts import PATIENCE_S, QUICK, add, facts, quick_host
from tests.support.peers import received
from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host

ERAS = ("modern", "legacy")
WIRES = ("stdio", "http")
EVERYTHING = json.dumps(
    {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}
)
META = "io.modelcontextprotocol/"


def options(era: str, log: Path, **more: Any) -> dict[str, Any]:
    return {
        "era": era,
        "log": log,
        "tools": "echo,ask,request,log,connect,task,updated,slow",
        "prompts": "greet",
        "resources": "file:///a",
        "templates": "file:///d/{name}",
        "capabilities": EVERYTHING,
        **more,
    }


@contextlib.asynccontextmanager
async def placed(
    host: Host, wire: str, era: str, log: Path, *, keys: Any = None, **more: Any
) -> AsyncIterator[None]:
    """The server "s" of this host, as a child process or behind a URL, for as long as the block."""
    allowed = {"allow_legacy": True} if era == "legacy" else {}
    given = {**allowed, **(keys or {})}
    if wire == "stdio":
        add(host, "s", options(era, log, **more), **given)
        yield
        return
    async with serving(**options(era, log, **more)) as served:
        host.add_server("s", HttpServer(served.url), **{**QUICK, **given})
        yield


async def accept(request: InputRequest) -> dict[str, Any]:
    match request.kind:
        case "elicitation":
            return {"action": "accept", "content": {"name": "Ada"}}
        case "sampling":
            return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}
        case "roots":
            return {"roots": [{"uri": "file:///home"}]}


HANDLERS: dict[str, Any] = {
    "on_elicitation": accept,
    "on_sampling": accept,
    "on_roots": accept,
    "elicitation_modes": ("form", "url"),
}
WISHES: dict[str, dict[str, Any]] = {
    "elicitation/create": {
        "message": "?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
    "sampling/createMessage": {"messages": [], "maxTokens": 10},
    "roots/list": {},
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("era", ERAS)
async def test_prompts_resources_templates_and_completion(
    era: str, wire: str, tmp_path: Path
) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    async with placed(host, wire, era, log), host:
        prompt = await host.get_prompt("greet", {"who": "Ada"})
        assert "Ada" in prompt.data["messages"][0]["content"]["text"]
        read = await host.read_resource("file:///a")
        assert read.data["contents"][0]["text"] == "content of file:///a"
        by_template = await host.read_resource("file:///d/notes")
        assert by_template.server == "s"
        unlisted = await host.read_resource("other:///x", server="s")
        assert unlisted.data["contents"][0]["uri"] == "other:///x"
        argument = {"name": "name", "value": "n"}
        for ref in (
            {"type": "ref/prompt", "name": "greet"},
            {"type": "ref/resource", "uri": "file:///d/{name}"},
        ):
            completed = await host.complete(ref, argument, context={"arguments": {}})
            assert completed.data["completion"]["values"] == ["one", "two"]
    assert [one["params"]["ref"] for one in received(log, "completion/complete")] == [
        {"type": "ref/prompt", "name": "greet"},
        {"type": "ref/resource", "uri": "file:///d/{name}"},
    ]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("era", ERAS)
async def test_what_was_not_announced_is_not_asked_for(era: str, wire: str, tmp_path: Path) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    few = '{"tools":{},"prompts":{}}'
    async with placed(host, wire, era, log, capabilities=few), host:
        with pytest.raises(errors.InvalidCall, match="resources"):
            await host.read_resource("file:///a", server="s")
        with pytest.raises(errors.InvalidCall, match="completions"):
            await host.complete({"type": "ref/prompt", "name": "greet"}, {"name": "a", "value": ""})
    assert received(log, "resources/read") == received(log, "completion/complete") == []


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("method", sorted(WISHES))
async def test_a_server_is_answered_in_its_eras_own_shape(
    era: str, wire: str, method: str, tmp_path: Path
) -> None:
    host, _ = quick_host(**HANDLERS)
    async with placed(host, wire, era, tmp_path / "log"), host:
        wish = {"method": method, "params": WISHES[method], "key": "k"}
        if era == "modern":
            result = await host.call_tool("ask", wish, deadline_s=PATIENCE_S)
            answer = json.loads(result.text)["k"]
            assert result.attempts == 2
        else:
            result = await host.call_tool("request", wish, deadline_s=PATIENCE_S)
            answer = json.loads(result.text)["result"]
    expected = {
        "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
        "sampling/createMessage": {
            "role": "assistant",
            "model": "m",
            "content": {"type": "text", "text": "hi"},
        },
        "roots/list": {"roots": [{"uri": "file:///home"}]},
    }
    assert answer == expected[method]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_modern_request_declares_what_the_host_can_do_and_nothing_else(
    wire: str, tmp_path: Path
) -> None:
    host, _ = quick_host(on_elicitation=accept)
    log = tmp_path / "log"
    async with placed(host, wire, "modern", log), host:
        await host.call_tool("echo", {})
    for message in received(log):
        declared = message["params"]["_meta"][META + "clientCapabilities"]
        assert declared == {"elicitation": {"form": {}}}


@pytest.mark.parametrize("wire", WIRES)
async def test_an_address_is_opened_and_the_refused_call_sent_again(
    wire: str, tmp_path: Path
) -> None:
    asked: list[dict[str, Any]] = []

    async def opened(request: InputRequest) -> dict[str, Any]:
        asked.append(request.decoded())
        return {"action": "accept"}

    host, _ = quick_host(on_elicitation=opened, elicitation_modes=("url",))
    only = {"allow_legacy": ["2025-11-25"]}
    async with placed(host, wire, "legacy", tmp_path / "log", keys=only), host:
        result = await host.call_tool("connect", {}, deadline_s=PATIENCE_S)
        assert (result.text, result.attempts) == ("connected", 2)
    assert [one["url"] for one in asked] == ["https://example.com/connect"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("era", ERAS)
async def test_log_messages_are_asked_for_and_heard(era: str, wire: str, tmp_path: Path) -> None:
    heard: list[LogMessage] = []
    host, told = quick_host(log_level="warning", on_log=heard.append)
    log = tmp_path / "log"
    async with placed(host, wire, era, log), host:
        await host.call_tool("log", {"level": "error"})
        await host.call_tool("echo", {}, log_level="debug")
    (message,) = heard
    assert (message.server, message.level, message.logger) == ("s", "error", "scripted")
    assert bytes(message.data) == b'"logged"'
    messages = [fact for fact in facts(told, ServerMessage) if fact.level is not None]
    assert [(fact.peer, fact.level, fact.era) for fact in messages] == [("s", "error", era)]
    levels = [one["params"].get("level") for one in received(log, "logging/setLevel")]
    stamped = [
        one["params"].get("_meta", {}).get(META + "logLevel") for one in received(log, "tools/call")
    ]
    if era == "modern":
        assert (levels, stamped) == ([], ["warning", "debug"])
    else:
        assert (levels, stamped) == (["warning"], [None, None])


@pytest.mark.parametrize("wire", WIRES)
async def test_a_task_is_followed_to_its_end_and_withdrawn_by_who_gives_up(
    wire: str, tmp_path: Path
) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    tasks = {"extensions": [META + "tasks"]}
    async with placed(host, wire, "modern", log, keys=tasks), host:
        result = await host.call_tool("task", {"polls": 3}, deadline_s=PATIENCE_S)
        assert result.text == "done"
        assert len(received(log, "tasks/get")) == 3
        with pytest.raises(errors.CallTimeout):
            await host.call_tool("task", {"polls": 10**6}, deadline_s=2)
        async with asyncio.timeout(PATIENCE_S):
            while not received(log, "tasks/cancel"):
                await asyncio.sleep(0.01)
    calls = {one["id"] for one in received(log, "tools/call")}
    cancelled = {one["params"]["requestId"] for one in received(log, "notifications/cancelled")}
    assert calls.isdisjoint(cancelled)  # a look at the task may be under way when time is over


@pytest.mark.parametrize("wire", WIRES)
async def test_a_resource_is_kept_as_long_as_its_server_says(wire: str, tmp_path: Path) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    followed = {"capabilities": json.dumps({"tools": {}, "resources": {"subscribe": True}})}
    async with placed(host, wire, "modern", log, ttl=60_000, **followed), host:
        told: asyncio.Queue[str] = asyncio.Queue()
        await host.subscribe_resource("file:///a", told.put_nowait)
        async with asyncio.timeout(PATIENCE_S):
            while host.servers["s"].layers.listen != "ok":
                await asyncio.sleep(0.01)
        first = await host.read_resource("file:///a")
        again = await host.read_resource("file:///a")
        assert (first.attempts, again.attempts, again.data) == (1, 0, first.data)
        await host.call_tool("updated", {"uri": "file:///a"})
        async with asyncio.timeout(PATIENCE_S):
            assert await told.get() == "file:///a"
        assert (await host.read_resource("file:///a")).attempts == 1
    assert len(received(log, "resources/read")) == 2


@pytest.mark.parametrize(("scope", "fetches"), [("private", 2), ("public", 1)])
async def test_two_authorizations_at_one_server_share_only_what_is_public(
    scope: str, fetches: int, tmp_path: Path
) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    async with serving(**options("modern", log, ttl=60_000, scope=scope)) as served:
        for name in ("one", "two"):
            headers = {"Authorization": f"Bearer token-of-{name}"}
            host.add_server(name, HttpServer(served.url, headers=headers), **QUICK)
        async with host:
            reads = [await host.read_resource("file:///a", server=n) for n in ("one", "two")]
            again = [await host.read_resource("file:///a", server=n) for n in ("one", "two")]
    assert reads[0].data == reads[1].data
    assert [one.attempts for one in again] == [0, 0]
    assert len(received(log, "resources/read")) == fetches
