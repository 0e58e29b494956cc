"""What a call makes of odd answers over HTTP: for another request, without an id, about headers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import InvalidResult, RpcError, Unavailable
from observant_host.telemetry.vocabulary import PeerRestart, RetryDenied, RetryScheduled
from tests.scenarios.http import add_url
from tests.support.hosts import facts, quick_host
from tests.support.http_peer import Exchange, HttpPeer, answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}


def modern(calls: Callable[[Exchange], Awaitable[None]], **schema: Any) -> Any:
    """A modern server with one tool, whose calls the test answers."""
    listed: list[dict[str, Any]] = [{"type": "object", **schema}]

    async def behave(exchange: Exchange) -> None:
        match exchange.seen.method:
            case "server/discover":
                await exchange.result(DISCOVERED)
            case "tools/list":
                await exchange.result({"tools": [{"name": "t", "inputSchema": listed[-1]}]})
            case _:
                await calls(exchange)

    return behave, listed


async def test_an_answer_to_another_request_fails_the_call_it_came_for_at_once() -> None:
    async def calls(exchange: Exchange) -> None:
        await exchange.json(answer(4711, {"content": []}))

    host, _ = quick_host()
    async with HttpPeer(modern(calls)[0]) as peer:
        add_url(host, "s", peer.url)
        async with host:
            with pytest.raises(InvalidResult, match="4711"):
                await host.call_tool("t", {}, deadline_s=10)
            assert host.servers["s"].state == "ready"


async def test_an_error_without_an_id_belongs_to_the_post_it_answers() -> None:
    async def calls(exchange: Exchange) -> None:
        if exchange.seen.message["params"]["arguments"] == {"wait": True}:
            await exchange.gone()
        error = {"code": -32602, "message": "no such thing"}
        await exchange.json({"jsonrpc": "2.0", "id": None, "error": error}, 400)

    host, _ = quick_host()
    async with HttpPeer(modern(calls)[0]) as peer:
        add_url(host, "s", peer.url)
        async with host:
            waiting = asyncio.ensure_future(host.call_tool("t", {"wait": True}))
            await peer.until(lambda peer: "tools/call" in peer.methods)
            with pytest.raises(RpcError, match="no such thing") as refused:
                await host.call_tool("t", {}, deadline_s=10)
            assert refused.value.code == -32602
            assert not waiting.done()
            waiting.cancel()


async def test_a_call_refused_for_its_headers_is_sent_once_more_after_a_new_list() -> None:
    async def calls(exchange: Exchange) -> None:
        if exchange.seen.headers.get("mcp-param-zone") == "eu":
            await exchange.result({"content": [{"type": "text", "text": "fine"}]})
            return
        listed.append(
            {
                "type": "object",
                "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}},
            }
        )
        error = {"code": -32020, "message": "Mcp-Param-Zone is missing"}
        await exchange.json({"jsonrpc": "2.0", "id": exchange.id, "error": error}, 400)

    behave, listed = modern(calls)
    host, told = quick_host()
    async with HttpPeer(behave) as peer:
        add_url(host, "s", peer.url)
        async with host:
            result = await host.call_tool("t", {"zone": "eu"})
            assert (result.text, result.attempts) == ("fine", 2)
            with pytest.raises(RpcError, match="-32020"):
                await host.call_tool("t", {"zone": "us"})
    ids = [seen.message["id"] for seen in peer.seen if seen.method == "tools/call"]
    assert len(ids) == len(set(ids)) == 4
    assert peer.methods.count("tools/list") == 3
    assert [one.reason for one in facts(told, RetryScheduled)] == ["header_mismatch"] * 2


async def test_a_server_that_refuses_all_headers_costs_no_more_than_its_budget_of_retries() -> None:
    async def calls(exchange: Exchange) -> None:
        error = {"code": -32020, "message": "wrong again"}
        await exchange.json({"jsonrpc": "2.0", "id": exchange.id, "error": error}, 400)

    behave, _ = modern(calls)
    host, told = quick_host()
    async with HttpPeer(behave) as peer:
        add_url(host, "s", peer.url)
        async with host:
            supervisor = host.core.fleet.get("s")
            assert supervisor is not None
            while supervisor.retries.take(host.core.plan.clock.monotonic()):
                pass
            with pytest.raises(RpcError, match="-32020"):
                await host.call_tool("t", {"zone": "eu"})
    assert peer.methods.count("tools/call") == 1
    assert peer.methods.count("tools/list") == 1
    assert [one.reason for one in facts(told, RetryDenied)] == ["budget"]


async def test_a_method_that_a_modern_server_does_not_know_is_unsupported_and_no_outage() -> None:
    async def calls(exchange: Exchange) -> None:
        error = {"code": -32601, "message": "unknown method"}
        await exchange.json({"jsonrpc": "2.0", "id": exchange.id, "error": error}, 404)

    host, _ = quick_host()
    async with HttpPeer(modern(calls)[0]) as peer:
        add_url(host, "s", peer.url)
        async with host:
            with pytest.raises(RpcError, match="-32601"):
                await host.call_tool("t", {})
            view = host.servers["s"]
            assert (view.state, view.era, view.generation) == ("ready", "modern", 1)


async def test_a_server_that_only_asks_for_a_pause_is_still_there() -> None:
    async def calls(exchange: Exchange) -> None:
        limited.append(exchange.seen)
        await exchange.empty(502)

    limited: list[Any] = []
    behave, _ = modern(calls)

    async def limiting(exchange: Exchange) -> None:
        if limited and exchange.seen.method == "server/discover":
            await exchange.empty(429, Retry_After=1)
        else:
            await behave(exchange)

    host, told = quick_host()
    async with HttpPeer(limiting) as peer:
        add_url(host, "s", peer.url)
        async with host:
            with pytest.raises(Unavailable, match="502"):
                await host.call_tool("t", {})
            await peer.until(lambda peer: peer.methods.count("server/discover") == 2)
            with pytest.raises(Unavailable, match="502"):
                await host.call_tool("t", {})
            assert host.servers["s"].state == "ready"
    assert facts(told, PeerRestart) == []
