"""Requests over HTTP: what they carry, how long they wait, which connections they do not take."""

from __future__ import annotations

import asyncio
import json

from tests.support.http_peer import Exchange, HttpPeer, answer, refusing_port
from tests.support.processes import eventually
from tests.transports.http_asking import lost, ok
from tests.transports.http_subjects import MODERN, Making, legacy, modern, note
from tests.transports.suite import FAR, opened


async def test_a_modern_request_carries_its_metadata_and_nothing_legacy(making: Making) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        mirrored = (("Mcp-Param-Region", "=?base64?w7Y=?="),)
        transport.send(modern(1, name="search", mirrored=mirrored), expires=FAR)
        await recorder.answer_to(1)
    (seen,) = peer.seen
    headers = seen.headers
    assert (seen.verb, headers["content-type"]) == ("POST", "application/json")
    assert headers["accept"] == "application/json, text/event-stream"
    assert headers["mcp-protocol-version"] == MODERN
    assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "search")
    assert headers["mcp-param-region"] == "=?base64?w7Y=?="
    assert headers["accept-encoding"] == "identity"
    assert headers["user-agent"].startswith("observant-host/")
    assert "mcp-session-id" not in headers
    assert "cookie" not in headers


async def test_long_lists_may_come_compressed(making: Making) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1, "tools/list"), expires=FAR)
        await recorder.answer_to(1)
    assert peer.seen[0].headers["accept-encoding"] == "gzip, deflate"


async def test_a_legacy_life_sends_its_session_and_version_and_nothing_modern(
    making: Making,
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.seen.method == "initialize":
            await exchange.result(Mcp_Session_Id="s-1")
        else:
            await ok(exchange)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(legacy(1, "initialize"), expires=FAR)
        await recorder.answer_to(1)
        transport.send(note(version="2025-11-25"), expires=FAR)
        transport.send(legacy(2, name="search", version="2025-11-25"), expires=FAR)
        await recorder.answer_to(2)
        await peer.until(lambda peer: len(peer.seen) == 3)
        await transport.close()
    first, *others, last = peer.seen
    assert "mcp-session-id" not in first.headers
    assert "mcp-protocol-version" not in first.headers
    for seen in (*others, last):
        assert seen.headers["mcp-session-id"] == "s-1"
        assert seen.headers["mcp-protocol-version"] == "2025-11-25"
        assert not {"mcp-method", "mcp-name"} & set(seen.headers)
    assert last.verb == "DELETE"


async def test_requests_do_not_wait_for_each_other(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.seen.message["params"].get("slow"):
            await peer.until(lambda peer: len(peer.seen) == 11)
        await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(10):
            transport.send(modern(number, params={"slow": True}), expires=FAR)
        transport.send(modern(10), expires=FAR)
        await recorder.frame_count(11)
    assert recorder.messages[0]["id"] == 10
    assert peer.connections == 11


async def test_a_refused_connection_costs_one_request_and_proves_that_nothing_was_sent(
    making: Making,
) -> None:
    async with refusing_port() as port:
        transport = making.http(url=f"http://127.0.0.1:{port}/mcp?key=s3cret")
        recorder = await opened(transport)
        sent = transport.send(modern(1), expires=FAR)
        failure = await lost(recorder, 1)
    assert (failure.kind, failure.sent, failure.status) == ("refused", False, None)
    assert not sent.started
    assert "cannot be reached" in str(failure)
    assert "s3cret" not in f"{failure} {failure.url}"


async def test_a_host_name_that_nobody_knows_is_said_to_be_one(making: Making) -> None:
    transport = making.http(url="http://no-such-host.invalid/mcp")
    recorder = await opened(transport)
    transport.send(modern(1), expires=FAR)
    failure = await lost(recorder, 1)
    assert (failure.kind, failure.sent) == ("dns", False)


async def test_connecting_is_bounded_and_its_deadline_observed(making: Making) -> None:
    """A listener whose queue is full: the connection is neither made nor refused."""
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        await asyncio.sleep(0.05)
        port = listener.getsockname()[1]
        transport = making.http(url=f"http://127.0.0.1:{port}/mcp", connect_timeout_s=0.3)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await lost(recorder, 1)
        for filler in fillers:
            filler.close()
    assert (failure.kind, failure.sent) == ("timeout", False)
    (expired,) = [f for f in making.told if type(f.fact).__name__ == "DeadlineExpired"]
    assert expired.fact.scope == "connect"


async def test_a_request_waits_as_long_as_its_caller_does(making: Making) -> None:
    """No timeout of the transport's own: a silent server is the caller's to give up."""
    async with HttpPeer(lambda exchange: exchange.gone()) as peer:
        transport = making.http(url=peer.url, connect_timeout_s=1.0)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await peer.until(lambda peer: peer.seen)
        await asyncio.sleep(1.2)
        assert recorder.lost == []
        assert transport.cancel(1)
        await peer.until(lambda peer: peer.gone[1].is_set())
    assert recorder.frames == []
    assert recorder.lost == []


async def test_a_large_message_goes_out_whole(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.json(answer(exchange.id, len(exchange.seen.body)))

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        out = modern(1, params={"text": "x" * (3 << 20)})
        transport.send(out, expires=FAR)
        assert (await recorder.answer_to(1))["result"] == len(out.frame)
        assert json.loads(peer.seen[0].body) == json.loads(out.frame)


async def test_long_streams_and_notifications_take_no_connection_from_calls(
    making: Making,
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.seen.method in ("subscriptions/listen", "hold"):
            await exchange.gone()
        else:
            await ok(exchange)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, call_connections=1)
        recorder = await opened(transport)
        for number in range(5):
            transport.send(modern(number, "subscriptions/listen"), expires=FAR)
        await peer.until(lambda peer: len(peer.seen) == 5)
        transport.send(modern(10), expires=FAR)
        await recorder.answer_to(10)
        transport.send(modern(11, "hold"), expires=FAR)
        await peer.until(lambda peer: "hold" in peer.methods)
        transport.send(note("notifications/cancelled"), expires=FAR)
        await peer.until(lambda peer: "notifications/cancelled" in peer.methods)


async def test_a_message_whose_time_is_over_before_it_got_a_connection_is_never_sent(
    making: Making,
) -> None:
    release = asyncio.Event()

    async def behave(exchange: Exchange) -> None:
        await release.wait()
        await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, call_connections=1)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await peer.until(lambda peer: peer.seen)
        waiting = transport.send(modern(2), expires=making.clock.monotonic() + 60)
        making.clock.skipped += 61
        transport.send(modern(3), expires=FAR)
        release.set()
        await recorder.answer_to(3)
        assert not waiting.started
        assert waiting.withdraw()
    assert [seen.message["id"] for seen in peer.seen] == [1, 3]
    assert recorder.lost == []


async def test_the_descriptors_of_a_life_are_given_back(making: Making) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await recorder.answer_to(1)
        await transport.close()
        await eventually(lambda: all(gone.is_set() for gone in peer.gone.values()))
