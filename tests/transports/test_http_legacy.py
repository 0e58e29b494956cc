"""Legacy Streamable HTTP: sessions, their loss and their end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from observant_host.errors import HttpFailure
from observant_host.telemetry.vocabulary import SessionNotEnded
from observant_host.timing.tasks import Signal
from tests.support.http_peer import Exchange, HttpPeer, answer
from tests.transports.http_subjects import Fixed, Making, legacy, note, settled
from tests.transports.legacy_http import VERSION, Server, begun, verbs
from tests.transports.suite import FAR, opened


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b""),
        (404, b"<html>Not Found</html>"),
        (404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'),
        (400, b'{"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}'),
        (400, b'{"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}'),
        (401, b"session expired"),
        (410, b""),
        (503, b"unknown session"),
    ],
)
async def test_a_lost_session_is_told_apart_from_every_other_refusal(
    making: Making, status: int, body: bytes
) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.whole(status, "application/json", body)

    async with HttpPeer(Server(**{"tools/call": refuse})) as peer:
        transport, recorder = await begun(making, peer)
        transport.send(legacy(2), expires=FAR)
        failure = await recorder.loss_of(2)
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.status, failure.body) == ("session_lost", status, body)


async def test_a_session_that_ended_with_the_old_credentials_is_a_lost_session(
    making: Making,
) -> None:
    class Renewing(Fixed):
        async def rejected(self, used: Any) -> bool:
            self.values = {"Authorization": "Bearer new"}
            return used == {"Authorization": "Bearer old"}

    async def refuse(exchange: Exchange) -> None:
        old = exchange.seen.headers["authorization"] == "Bearer old"
        await exchange.empty(401 if old else 404)

    async with HttpPeer(Server(**{"tools/call": refuse})) as peer:
        credentials = Renewing(Authorization="Bearer old")
        transport, recorder = await begun(making, peer, credentials=credentials)
        transport.send(legacy(2), expires=FAR)
        failure = await recorder.loss_of(2)
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.status) == ("session_lost", 404)


@pytest.mark.parametrize(
    ("status", "body", "headers"),
    [
        (400, b"Invalid arguments", {}),
        (401, b"session expired", {"WWW_Authenticate": "Bearer"}),
        (403, b"unknown session", {}),
        (500, b"session not found", {}),
        (503, b"overloaded", {}),
        (404, b'{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}', {}),
    ],
)
async def test_other_refusals_are_no_lost_session(
    making: Making, status: int, body: bytes, headers: dict[str, str]
) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.whole(status, "application/json", body, **headers)

    async with HttpPeer(Server(**{"tools/call": refuse})) as peer:
        transport, recorder = await begun(making, peer)
        transport.send(legacy(2), expires=FAR)
        failure = await recorder.loss_of(2)
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.status) == ("status", status)


async def test_without_a_session_of_ours_nothing_can_be_lost(making: Making) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.whole(404, "text/plain", b"Session not found")

    async def plain(exchange: Exchange) -> None:
        await exchange.result()

    async with HttpPeer(Server(**{"tools/call": refuse, "initialize": plain})) as peer:
        transport, recorder = await begun(making, peer)
        transport.send(legacy(2), expires=FAR)
        failure = await recorder.loss_of(2)
        await transport.close()
    assert isinstance(failure, HttpFailure)
    assert failure.kind == "status"
    assert "DELETE" not in verbs(peer)


async def test_a_new_initialize_goes_without_the_old_session_and_brings_a_new_one(
    making: Making,
) -> None:
    server = Server()
    async with HttpPeer(server) as peer:
        transport, recorder = await begun(making, peer)
        transport.listen()
        await peer.until(lambda peer: "GET" in verbs(peer))
        transport.forget_session()
        await peer.until(lambda peer: any(gone.is_set() for gone in peer.gone.values()))
        transport.send(legacy(2, "initialize"), expires=FAR)
        await recorder.answer_to(2)
        transport.listen()
        transport.send(legacy(3, version=VERSION), expires=FAR)
        await recorder.answer_to(3)
        await peer.until(lambda peer: verbs(peer).count("GET") == 2)
    by_method = {(seen.method or seen.verb): seen.headers for seen in peer.seen}
    assert "mcp-session-id" not in by_method["initialize"]
    assert by_method["tools/call"]["mcp-session-id"] == "s-2"
    assert by_method["GET"]["mcp-session-id"] == "s-2"


@pytest.mark.parametrize("given", ["with space", "ünicode", "x" * 5000])
async def test_a_session_id_that_cannot_be_sent_back_is_refused(making: Making, given: str) -> None:
    async def initialize(exchange: Exchange) -> None:
        await exchange.result(Mcp_Session_Id=given)

    async with HttpPeer(Server(initialize=initialize)) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(legacy(1, "initialize"), expires=FAR)
        failure = await recorder.loss_of(1)
    assert isinstance(failure, HttpFailure)
    assert failure.kind == "content"


async def test_answers_to_the_servers_requests_are_posted_without_waiting(making: Making) -> None:
    """The server asks on the stream of a call, and answers that only once it was answered."""
    asked = asyncio.Event()

    async def call(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.event({"jsonrpc": "2.0", "id": "q", "method": "ping"})
        await asked.wait()
        await exchange.event(answer(exchange.id, "thanks"))
        await exchange.end()

    async def answered(exchange: Exchange) -> None:
        asked.set()
        await exchange.empty(202)

    async with HttpPeer(Server(**{"tools/call": call, "POST": answered})) as peer:
        transport, recorder = await begun(making, peer, call_connections=1)
        transport.send(legacy(2), expires=FAR)
        await recorder.frame_count(2)
        transport.send(note("", version=VERSION), expires=FAR)
        peer.seen.clear()
        out = note("")
        reply = json.dumps(answer("q", {})).encode()
        transport.send(type(out)(reply, ""), expires=FAR)
        assert (await recorder.answer_to(2))["result"] == "thanks"


async def test_the_end_of_a_life_is_told_to_the_server_once(making: Making) -> None:
    async with HttpPeer(Server()) as peer:
        transport, recorder = await begun(making, peer)
        transport.listen()
        await peer.until(lambda peer: "GET" in verbs(peer))
        await asyncio.gather(transport.close(), transport.close())
        await transport.close()
    assert verbs(peer).count("DELETE") == 1
    assert peer.seen[-1].headers["mcp-session-id"] == "s-1"
    assert len(recorder.ends) == 1


@pytest.mark.parametrize("how", ["404", "405", "500", "reset", "hang"])
async def test_a_server_that_takes_no_delete_holds_no_shutdown_up(making: Making, how: str) -> None:
    async def delete(exchange: Exchange) -> None:
        if how == "reset":
            exchange.cut(reset=True)
        elif how == "hang":
            await exchange.gone()
        else:
            await exchange.empty(int(how))

    async with HttpPeer(Server(DELETE=delete)) as peer:
        transport, _ = await begun(making, peer, shutdown_timeout_s=0.2)
        async with asyncio.timeout(1.5):
            assert (await transport.close()).kind == "closed"
    told = [one.fact.detail for one in making.told if isinstance(one.fact, SessionNotEnded)]
    assert len(told) == (how in ("500", "reset"))
    assert how != "500" or "answered 500" in told[0]
    assert verbs(peer).count("DELETE") == (2 if how == "reset" else 1)  # safe to say twice


async def test_whoever_hurries_waits_for_no_delete(making: Making) -> None:
    async def hang(exchange: Exchange) -> None:
        await exchange.gone()

    hurry = Signal()
    async with HttpPeer(Server(DELETE=hang)) as peer:
        transport, _ = await begun(making, peer, shutdown_timeout_s=600, hurry=hurry)
        closing = asyncio.ensure_future(transport.close())
        await peer.until(lambda peer: "DELETE" in verbs(peer))
        assert not closing.done()
        hurry.set()
        async with asyncio.timeout(1.5):
            assert (await closing).kind == "closed"


async def test_open_requests_end_with_the_life_before_the_server_is_told(making: Making) -> None:
    async def hang(exchange: Exchange) -> None:
        await exchange.gone()

    async with HttpPeer(Server(DELETE=hang, **{"tools/call": hang})) as peer:
        transport, recorder = await begun(making, peer, shutdown_timeout_s=0.2)
        transport.send(legacy(2), expires=FAR)
        await peer.until(lambda peer: "tools/call" in peer.methods)
        closing = asyncio.ensure_future(transport.close())
        await settled()
        assert [end.kind for end in recorder.ends] == ["closed"]
        await closing
    assert recorder.after_end == 0
