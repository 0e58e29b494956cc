"""What a legacy client is told beside its answers: progress, changes, logs, questions."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.service.mcp.stage import heard, make_host, staged
from tests.support.hosts import add
from tests.support.legacy_agent import LegacyAgent
from tests.support.processes import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.service.mcp.stage import Stage

TOOLS = "echo,progress,slow,add_tool,updated,log,ask,request,mute"


@contextlib.asynccontextmanager
async def stage(tmp_path: Path, *, allow: bool = False, **options: Any) -> AsyncIterator[Stage]:
    host = make_host(tmp_path, relay_input=True)
    options = {"tools": TOOLS, "log": str(tmp_path / "log"), **options}
    add(host, "files", options, allow_legacy=allow)
    async with staged(host, tmp_path) as one:
        yield one


async def agent(one: Stage, revision: str = "2025-11-25", capabilities: Any = None) -> LegacyAgent:
    old = LegacyAgent(one._session, one.url, revision)
    await old.begin(capabilities)
    return old


def call(tool: str, token: Any = None, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return params if token is None else {**params, "_meta": {"progressToken": token}}


async def test_progress_comes_on_the_stream_of_its_request(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        old = await agent(one)
        said = await old.ask("tools/call", call("progress", "tok", n=3, s=0))
        notes = [note["params"] for note in said[:-1]]
        assert {note["progressToken"] for note in notes} == {"tok"}
        assert [note["progress"] for note in notes] == sorted(note["progress"] for note in notes)
        assert said[-1]["result"]["content"]


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
async def test_a_changed_list_is_told_on_the_get_stream(tmp_path: Path, revision: str) -> None:
    async with stage(tmp_path) as one:
        old = await agent(one, revision)
        async with old.listen() as answer:
            assert answer.status == 200
            if revision == "2025-11-25":
                block = await old.block(answer)
                assert block is not None
                assert b"retry: " in block
                assert b"id: 0-0" in block
            await old.ask("tools/call", call("add_tool", name="more"))
            event = await old.next(answer)
            assert event.message["method"] == "notifications/tools/list_changed"
            assert event.id.startswith("0-")
        assert "more" in [tool["name"] for tool in (await old.result("tools/list"))["tools"]]


async def test_what_changed_while_nobody_listened_is_told_to_who_comes_next(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as one:
        old = await agent(one)
        await old.ask("tools/call", call("add_tool", name="more"))
        await eventually(lambda: one.host.catalogue.lookup.get("more") is not None)
        async with old.listen() as answer:
            event = await old.next(answer)
            assert event.message["method"] == "notifications/tools/list_changed"
        async with old.listen(after="0-0") as answer:
            assert (await old.next(answer)).id == event.id


async def test_a_second_stream_takes_over_from_the_first(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        old = await agent(one, "2025-06-18")
        async with old.listen() as first, old.listen() as second:
            assert await old.block(first) is None
            assert await old.end() == 204
            assert await old.block(second) is None


async def test_a_followed_resource_is_told(tmp_path: Path) -> None:
    async with stage(tmp_path, resources="x://r") as one:
        old = await agent(one)
        assert await old.result("resources/subscribe", {"uri": "x://r"}) == {}
        assert await old.result("resources/subscribe", {"uri": "x://r"}) == {}
        async with old.listen() as answer:
            await eventually(lambda: heard(tmp_path / "log"))
            await old.ask("tools/call", call("updated", uri="x://r"))
            message = (await old.next(answer)).message
            assert message["method"] == "notifications/resources/updated"
            assert message["params"]["uri"] == "x://r"
        assert await old.result("resources/unsubscribe", {"uri": "x://r"}) == {}
        assert await old.result("resources/subscribe", {"uri": "x://r"}) == {}


async def test_only_the_clients_word_cancels_and_not_its_going(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        old = await agent(one)

        def cancelled() -> bool:
            methods = [line["msg"].get("method") for line in heard(tmp_path / "log")]
            return "notifications/cancelled" in methods

        sent = old.request("tools/call", call("progress", 1, n=1, s=0.2), "gone")
        async with old.post(sent) as answer:
            event = await old.next(answer)
        stream = event.id.partition("-")[0]
        async with old.listen(after=event.id) as answer:
            found = [one async for one in old.events(answer)]
        assert found[-1].message["id"] == "gone"
        assert found[-1].id.startswith(f"{stream}-")
        assert not cancelled()

        async def ask() -> int:
            async with old.post(old.request("tools/call", call("mute"), "mute")) as answer:
                assert not await answer.read()
                return int(answer.status)

        waiting = asyncio.create_task(ask())
        await eventually(lambda: any(c.name == "mute" for c in one.host.calls_in_flight()))
        assert await old.tell("notifications/cancelled", {"requestId": "other"}) == 202
        assert await old.tell("notifications/cancelled", []) == 202
        assert await old.tell("notifications/cancelled", {"requestId": "mute"}) == 202
        assert await waiting == 202
        await eventually(cancelled)


async def test_log_messages_come_from_the_level_on_that_the_session_set(tmp_path: Path) -> None:
    async with stage(tmp_path, allow=True, era="legacy") as one:
        old = await agent(one)
        said = await old.ask("tools/call", call("log", level="warning"))
        assert [note["method"] for note in said[:-1]] == ["notifications/message"]
        assert said[0]["params"]["logger"].startswith("files")
        assert await old.result("logging/setLevel", {"level": "error"}) == {}
        assert len(await old.ask("tools/call", call("log", level="warning"))) == 1


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_server_asks_the_client_of_the_call_it_serves(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, allow=True, era=era) as one:
        old = await agent(one, "2025-06-18", {"elicitation": {}})
        asks = {"method": "elicitation/create", "params": FORM}
        tool = "ask" if era == "modern" else "request"
        params = call(tool, **asks, **({"key": "k"} if era == "modern" else {}))
        async with old.post(old.request("tools/call", params, "c")) as answer:
            question = (await old.next(answer)).message
            assert question["method"] == "elicitation/create"
            reply = {"action": "accept", "content": {"name": "ann"}}
            assert await old.reply(question["id"], reply) == 202
            assert await old.reply(question["id"], reply) == 202
            said = (await old.next(answer)).message
        assert said["id"] == "c"
        assert "ann" in str(said["result"])


FORM = {
    "message": "who?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}


async def test_a_client_that_declared_nothing_is_asked_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        old = await agent(one)
        params = call("ask", key="k", method="elicitation/create", params=FORM)
        said = await old.ask("tools/call", params)
        assert len(said) == 1
