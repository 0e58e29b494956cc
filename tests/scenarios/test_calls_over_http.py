"""Calls to servers behind a URL: each concerns itself, and the server is asked only where one of
them makes that worth while."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import CallTimeout, Unavailable
from observant_host.telemetry.vocabulary import PeerRestart, Request, RetryScheduled
from tests.scenarios.http import UNTOLD, add_url, asked
from tests.support.hosts import PATIENCE_S, add, facts, quick_host, reach, until
from tests.support.http_peer import Exchange, HttpPeer
from tests.support.peers import events, received
from tests.support.serving import serving

if TYPE_CHECKING:
    from pathlib import Path


async def seen(log: Path, method: str, count: int = 1) -> list[dict[str, Any]]:
    """Wait, bounded, until the server got so many of them."""
    async with asyncio.timeout(PATIENCE_S):
        while len(found := received(log, method)) < count:
            await asyncio.sleep(0.01)
    return found


def health(told: list[Any]) -> list[Request]:
    return [one for one in facts(told, Request) if one.purpose == "health"]


async def test_two_servers_one_slow_hold_nobody_up(tmp_path: Path) -> None:
    host, _ = quick_host()
    async with serving(tools="slow") as slow, serving() as quick:
        add_url(host, "slow", slow.url)
        add_url(host, "quick", quick.url)
        add(host, "child")
        async with host:
            waiting = asyncio.ensure_future(host.call_tool("slow", {"s": 50}))
            for _ in range(20):
                await host.call_tool("quick/echo", {"text": "x"})
                await host.call_tool("child/echo", {"text": "x"})
            assert not waiting.done()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting


async def test_a_server_that_is_slow_to_answer_discover_delays_no_other(tmp_path: Path) -> None:
    host, _ = quick_host(startup_deadline_s=0.5)
    async with serving(discover="late:4") as slow, serving() as quick:
        add_url(host, "slow", slow.url)
        add_url(host, "quick", quick.url)
        async with host:
            await reach(host, "quick", "ready")
            assert host.servers["slow"].state == "starting"
            await until(host, "slow", lambda view: view.state == "ready")
            assert host.servers["slow"].era == "modern"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_failed_call_is_that_call_only_and_asks_once_whether_the_server_is_there(
    tmp_path: Path, era: str
) -> None:
    host, told = quick_host()
    log = tmp_path / "log"
    async with serving(era=era, tools="echo,applied,count", log=log) as web:
        add_url(host, "s", web.url, allow_legacy=True)
        async with host:
            with pytest.raises(Unavailable, match=r" 502 .*may have been executed") as failed:
                await host.call_tool("applied", {})
            assert (failed.value.delivery, failed.value.fault) == ("sent_no_reply", "peer")
            await seen(log, "server/discover" if era == "modern" else "ping", 2 - (era != "modern"))
            assert (await host.call_tool("count", {})).text == "1"
            view = host.servers["s"]
            assert (view.state, view.generation) == ("ready", 1)
    assert [one.method for one in health(told)] == [
        "server/discover" if era == "modern" else "ping"
    ]
    assert facts(told, PeerRestart) == []


async def test_a_dropped_connection_may_have_been_executed_and_is_not_sent_again(
    tmp_path: Path,
) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    async with serving(tools="echo,drop", log=log) as web:
        add_url(host, "s", web.url)
        async with host:
            with pytest.raises(Unavailable, match="may have been executed"):
                await host.call_tool("drop", {})
            assert (await host.call_tool("echo", {"text": "on"})).text == "on"
    assert len(received(log, "tools/call")) == 2


@pytest.mark.parametrize(
    ("status", "delivery"), [("400", "replied"), ("413", "replied"), ("500", "sent_no_reply")]
)
async def test_a_status_without_a_message_is_named(
    tmp_path: Path, status: str, delivery: str
) -> None:
    host, _ = quick_host()
    async with serving(call_status=f"{status}:html", fail_first=1) as web:
        add_url(host, "s", web.url)
        async with host:
            with pytest.raises(Unavailable, match=status) as failed:
                await host.call_tool("echo", {"text": "x"})
            assert failed.value.delivery == delivery
            assert (await host.call_tool("echo", {"text": "on"})).text == "on"


async def test_a_server_that_is_gone_ends_its_life_and_comes_back_by_itself(
    tmp_path: Path,
) -> None:
    host, told = quick_host()
    async with serving(capabilities=UNTOLD) as web:
        add_url(host, "s", web.url)
        async with host:
            await web.kill()
            with pytest.raises(Unavailable, match="sent nothing") as failed:
                await host.call_tool("echo", {"text": "x"})
            assert failed.value.delivery == "not_sent"
            await until(host, "s", lambda view: view.cause == "network")
            async with serving(port=web.port):
                view = await until(host, "s", lambda view: view.state == "ready")
                assert view.generation == 2
                assert (await host.call_tool("echo", {"text": "on"})).text == "on"
    assert {one.reason for one in facts(told, PeerRestart)} == {"connection_lost"}


async def test_parallel_calls_of_a_lost_session_share_one_new_one(tmp_path: Path) -> None:
    host, told = quick_host()
    log = tmp_path / "log"
    async with serving(era="legacy", tools="echo,expire", log=log) as web:
        add_url(host, "s", web.url, allow_legacy=True)
        async with host:
            await host.call_tool("expire", {})
            texts = await asyncio.gather(
                *(host.call_tool("echo", {"text": str(number)}) for number in range(8))
            )
            assert [one.text for one in texts] == [str(number) for number in range(8)]
            await seen(log, "tools/list", 2)
            view = host.servers["s"]
            assert (view.state, view.generation, view.era) == ("ready", 1, "legacy")
    sent = [
        {name.lower(): value for name, value in one["headers"].items()}
        for one in asked(log, "POST")
    ]
    first, second = (one for one in sent if not {"mcp-session-id", "mcp-method"} & one.keys())
    assert first == second, "initialize is all that goes without a session, and twice the same"
    assert len(received(log, "initialize")) == 2
    assert len(received(log, "server/discover")) == 1
    assert len(received(log, "notifications/initialized")) == 2
    assert {one.reason for one in facts(told, RetryScheduled)} == {"session_lost"}
    assert facts(told, PeerRestart) == []


async def test_calls_that_outnumber_what_a_session_serves_all_get_their_answers(
    tmp_path: Path,
) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    async with serving(era="legacy", session_requests="3", log=log) as web:
        add_url(host, "s", web.url, allow_legacy=True)
        async with host:
            texts = await asyncio.gather(
                *(host.call_tool("echo", {"text": str(number)}) for number in range(8))
            )
            assert [one.text for one in texts] == [str(number) for number in range(8)]
            view = host.servers["s"]
            assert (view.state, view.generation) == ("ready", 1)
    assert len(received(log, "server/discover")) == 1


async def test_a_server_that_is_lost_does_not_look_ready_while_its_connection_is_closed() -> None:
    """Its last session is deleted on the way out, and that may take a while."""
    seen: list[str] = []

    async def old(exchange: Exchange) -> None:
        method = exchange.seen.method
        if exchange.seen.verb == "DELETE":
            seen.append(host.servers["s"].state)
            await exchange.gone()
        elif exchange.seen.verb == "GET":
            await exchange.empty(405)
        elif method == "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
            await exchange.result(result, Mcp_Session_Id="s-1")
        elif method == "tools/list":
            await exchange.result({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
        elif method == "notifications/initialized":
            await exchange.empty(202)
        else:
            await exchange.empty(400 if method == "server/discover" else 500)

    host, _ = quick_host()
    async with HttpPeer(old) as peer:
        add_url(host, "s", peer.url, allow_legacy=True, shutdown_timeout_s=0.5)
        async with host:
            with pytest.raises(Unavailable, match="500"):
                await host.call_tool("t", {})
            await peer.until(lambda peer: seen)
            with pytest.raises(Unavailable):
                await host.call_tool("t", {})
    assert seen[0] == "backoff"


async def test_a_session_that_nobody_may_renew_ends_the_life_and_discover_comes_first(
    tmp_path: Path,
) -> None:
    host, told = quick_host()
    log = tmp_path / "log"
    async with serving(era="legacy", tools="echo,expire", log=log) as web:
        add_url(host, "s", web.url)
        async with host:
            for seconds in (600, 1):
                until_s = time.time() + seconds
                await host.allow("s", until=until_s, reason="for a time", principal="ann")
            assert host.servers["s"].era == "legacy"
            await until(host, "s", lambda view: view.reason == "allowance_expired")
            await host.call_tool("expire", {})
            with pytest.raises(Unavailable, match="nothing was executed"):
                await host.call_tool("echo", {"text": "x"})
            view = await until(host, "s", lambda view: view.generation == 2)
            view = await until(host, "s", lambda view: view.state == "unavailable")
            assert (view.cause, view.reason) == ("policy", "allowance_expired")
    assert len(received(log, "initialize")) == 1
    assert received(log)[-1]["method"] == "server/discover"
    assert {one.reason for one in facts(told, PeerRestart)} == {"connection_lost"}


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_call_that_nobody_waits_for_is_cancelled_as_its_era_says(
    tmp_path: Path, era: str
) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    async with serving(era=era, tools="echo,mute", answers="sse", log=log) as web:
        add_url(host, "s", web.url, allow_legacy=True)
        async with host:
            with pytest.raises(CallTimeout):
                await host.call_tool("mute", {}, deadline_s=0.3)
            if era == "legacy":
                (note,) = await seen(log, "notifications/cancelled")
                (call,) = received(log, "tools/call")
                assert note["params"]["requestId"] == call["id"]
            else:
                async with asyncio.timeout(PATIENCE_S):
                    while not events(log, "gone"):
                        await asyncio.sleep(0.01)
                assert received(log, "notifications/cancelled") == []
            assert (await host.call_tool("echo", {"text": "on"})).text == "on"


# What no well-behaved server does


async def test_an_old_server_asks_while_its_call_waits_and_is_answered(tmp_path: Path) -> None:
    async def roots(_request: Any) -> dict[str, Any]:
        return {"roots": [{"uri": "file:///here"}]}

    log = tmp_path / "log"
    for form in ("json", "sse"):
        host, _ = quick_host(on_roots=roots)
        async with serving(era="legacy", tools="request", answers=form, log=log) as web:
            add_url(host, "s", web.url, allow_legacy=True)
            async with host:
                result = await host.call_tool("request", {"method": "roots/list"})
                assert "file:///here" in result.text


async def test_an_old_server_says_on_its_stream_that_its_list_changed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(era="legacy", tools="echo,push", log=log) as web:
        add_url(host, "s", web.url, allow_legacy=True)
        async with host:
            await host.call_tool("push", {"kind": "tools"})
            await seen(log, "tools/list", 2)
