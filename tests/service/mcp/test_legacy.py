"""Clients that begin with `initialize`, over real sockets; every answer judged by their schema."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.wire.revisions import LEGACY
from tests.service.mcp.stage import make_host, staged
from tests.support.hosts import add
from tests.support.legacy_agent import LegacyAgent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.service.mcp.stage import Stage

FULL = {"mode": "modern", "full": True}


@contextlib.asynccontextmanager
async def stage(tmp_path: Path, **options: Any) -> AsyncIterator[Stage]:
    host = make_host(tmp_path)
    add(host, "files", options or None)
    async with staged(host, tmp_path) as one:
        yield one


def agent(one: Stage, revision: str = "2025-11-25") -> LegacyAgent:
    return LegacyAgent(one._session, one.url, revision)


@pytest.mark.parametrize("revision", LEGACY)
async def test_a_client_of_each_revision_begins_lists_and_calls(
    tmp_path: Path, revision: str
) -> None:
    async with stage(tmp_path) as one:
        old = agent(one, revision)
        welcome = await old.begin()
        assert welcome["protocolVersion"] == revision
        assert ("completions" in welcome["capabilities"]) == (revision != "2024-11-05")
        assert len(old.key) >= 32
        tools = (await old.result("tools/list"))["tools"]
        assert "echo" in [tool["name"] for tool in tools]
        said = await old.result("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        assert "hi" in said["content"][0]["text"]
        assert await old.result("ping") == {}
        assert "prompts" in await old.result("prompts/list")
        assert "resources" in await old.result("resources/list")
        assert "resourceTemplates" in await old.result("resources/templates/list")


async def test_a_revision_that_nobody_has_is_answered_with_our_latest(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        assert (await agent(one, "2031-01-01").begin())["protocolVersion"] == "2025-11-25"


async def test_a_session_that_is_unknown_lost_or_not_named_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        old = agent(one)
        await old.begin()
        key = old.key
        async with old.post(old.request("ping"), Mcp_Session_Id="guess") as answer:
            assert answer.status == 404
        async with old.post(old.request("ping"), Mcp_Session_Id=None) as answer:
            assert answer.status == 400
            assert "Mcp-Session-Id" in (await answer.json())["error"]["message"]
        assert await old.end() == 204
        assert await old.end() == 404
        async with old.post(old.request("ping")) as answer:
            assert answer.status == 404
        async with old.listen() as answer:
            assert answer.status == 404
        await old.begin(Mcp_Session_Id=key)
        assert old.key != key


@pytest.mark.parametrize(("version", "status"), [(None, 200), ("2024-11-05", 200), ("x", 400)])
async def test_the_version_header_may_be_absent_or_known(
    tmp_path: Path, version: str | None, status: int
) -> None:
    async with stage(tmp_path) as one:
        old = agent(one)
        await old.begin()
        async with old.post(old.request("ping"), MCP_Protocol_Version=version) as answer:
            assert answer.status == status


async def test_errors_are_in_legacy_words_with_status_200(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        old = agent(one)
        await old.begin()
        assert (await old.error("resources/read", {"uri": "x://none"}))["code"] == -32002
        assert (await old.error("no/such"))["code"] == -32601
        assert (await old.error("server/discover"))["code"] == -32601
        assert (await old.error("tools/call", {"name": "none"}))["code"] == -32602
        assert (await old.error("tools/call"))["code"] == -32602
        assert (await old.error("logging/setLevel", {"level": "loud"}))["code"] == -32602
        assert (await old.error("resources/subscribe", {"uri": "x://none"}))["code"] == -32602
        assert (await old.error("resources/subscribe"))["code"] == -32602
        assert (await old.error("resources/unsubscribe"))["code"] == -32602
        assert await old.result("resources/unsubscribe", {"uri": "x://none"}) == {}
        assert await old.result("logging/setLevel", {"level": "error"}) == {}


async def test_what_is_no_message_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        old = agent(one)
        await old.begin()
        for body, code in ((b"{", -32700), (b"5", -32600), (b"[]", -32600)):
            async with old.post(body) as answer:
                assert answer.status == 400
                assert (await answer.json())["error"]["code"] == code
        async with old.post(old.request("ping"), Accept="text/plain") as answer:
            assert answer.status == 406
        async with old.listen(Accept="application/json") as answer:
            assert answer.status == 406
        async with old.post(old.request("initialize", [])) as answer:
            assert (await answer.json())["error"]["code"] == -32602


async def test_clients_of_the_older_http_transport_are_told_what_is_served(tmp_path: Path) -> None:
    reads = {"Accept": "text/event-stream"}
    async with stage(tmp_path) as one, one._session.get(one.url, headers=reads) as answer:
        assert answer.status == 405
        assert "Streamable HTTP" in (await answer.json())["error"]["message"]


async def test_arrays_of_messages_belong_to_one_revision(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        old = agent(one, "2025-03-26")
        await old.begin()
        batch = [
            old.request("ping", request_id="a"),
            old.request("tools/list", request_id="b"),
            old.request("initialize", {}, request_id="c"),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        ]
        async with old.post(batch) as answer:
            found = {said["id"]: said for said in await answer.json()}
        assert found["a"]["result"] == {}
        assert found["b"]["result"]["tools"]
        assert found["c"]["error"]["code"] == -32600
        newer = agent(one, "2025-06-18")
        await newer.begin()
        async with newer.post([newer.request("ping")]) as answer:
            assert answer.status == 400


async def test_a_client_that_reads_only_streams_gets_streams(tmp_path: Path) -> None:
    async with stage(tmp_path) as one:
        old = agent(one, "2025-06-18")
        await old.begin(Accept="text/event-stream")
        async with old.post(old.request("ping"), Accept="text/event-stream") as answer:
            assert answer.content_type == "text/event-stream"
            assert (await old.messages(answer))[-1]["result"] == {}
