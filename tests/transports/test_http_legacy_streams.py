"""Legacy Streamable HTTP: the GET stream, and what goes on there after a loss."""

from __future__ import annotations

import pytest

from observant_host.errors import HttpFailure
from tests.support.http_peer import Exchange, HttpPeer, answer
from tests.transports.http_subjects import Making, legacy, note, settled
from tests.transports.legacy_http import CHANGED, VERSION, QuickClock, Server, begun, verbs
from tests.transports.suite import FAR


async def test_what_the_server_says_unasked_comes_on_the_get_stream(making: Making) -> None:
    server = Server()
    async with HttpPeer(server) as peer:
        transport, recorder = await begun(making, peer)
        transport.listen()
        transport.listen()
        await peer.until(lambda peer: server.streams)
        await server.streams[0].event(CHANGED)
        await recorder.frame_count(2)
        assert recorder.answering[-1] is None
    assert verbs(peer).count("GET") == 1
    headers = server.streams[0].seen.headers
    assert headers["accept"] == "text/event-stream"
    assert headers["accept-encoding"] == "identity"
    assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("s-1", VERSION)
    assert "last-event-id" not in headers


@pytest.mark.parametrize("how", [405, 404, 406, 400, 401, 501, "text/plain", "text/html", ""])
async def test_a_server_without_a_stream_is_asked_once(making: Making, how: int | str) -> None:
    async def get(exchange: Exchange) -> None:
        if isinstance(how, int):
            await exchange.empty(how)
        else:
            await exchange.whole(200, how, b"MCP endpoint, use POST")

    async with HttpPeer(Server(GET=get)) as peer:
        making.clock = clock = QuickClock()
        transport, recorder = await begun(making, peer)
        transport.listen()
        await peer.until(lambda peer: "GET" in verbs(peer))
        transport.send(legacy(2), expires=FAR)
        await recorder.answer_to(2)
        await settled()
    assert verbs(peer).count("GET") == 1
    assert clock.slept == []
    assert recorder.lost == []


async def test_a_stream_that_broke_is_gone_on_with_after_the_pause_the_server_asked_for(
    making: Making,
) -> None:
    turns: list[str | None] = []

    async def get(exchange: Exchange) -> None:
        turns.append(exchange.seen.headers.get("last-event-id"))
        await exchange.stream()
        if len(turns) == 1:
            await exchange.chunk(b"id: 7\nretry: 500\ndata:\n\n")
            await exchange.event(CHANGED)
            exchange.cut()
        else:
            await exchange.event(CHANGED, id="8")
            await exchange.gone()

    async with HttpPeer(Server(GET=get)) as peer:
        making.clock = clock = QuickClock()
        transport, recorder = await begun(making, peer)
        transport.listen()
        await recorder.frame_count(3)
        assert turns == [None, "7"]
        assert clock.slept == [0.5]


async def test_a_stream_that_is_closed_again_and_again_is_given_up(making: Making) -> None:
    async def get(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.chunk(b"id: 9\nretry: 100\ndata:\n\n")
        await exchange.end()

    async with HttpPeer(Server(GET=get)) as peer:
        making.clock = clock = QuickClock()
        transport, recorder = await begun(making, peer)
        transport.listen()
        await peer.until(lambda peer: verbs(peer).count("GET") == 12)
        await settled()
        transport.send(legacy(2), expires=FAR)
        await recorder.answer_to(2)
    assert clock.slept == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0]
    assert verbs(peer).count("GET") == 12


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_an_outage_of_the_stream_is_waited_out(making: Making, status: int) -> None:
    turns: list[Exchange] = []

    async def get(exchange: Exchange) -> None:
        turns.append(exchange)
        if len(turns) < 3:
            await exchange.empty(status, Retry_After="7")
        else:
            await exchange.stream()
            await exchange.event(CHANGED)
            await exchange.gone()

    async with HttpPeer(Server(GET=get)) as peer:
        making.clock = clock = QuickClock()
        transport, recorder = await begun(making, peer)
        transport.listen()
        await recorder.frame_count(2)
        assert clock.slept == [7.0, 7.0]


# Resumption of a call's stream


async def test_a_response_that_was_broken_off_is_taken_from_the_stream_that_goes_on(
    making: Making,
) -> None:
    async def call(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.chunk(b"id: 7\nretry: 500\ndata:\n\n")
        await exchange.end()

    async def get(exchange: Exchange) -> None:
        gets.append(exchange.seen.headers.get("last-event-id"))
        await exchange.stream()
        if len(gets) == 1:
            await exchange.event(CHANGED, id="8")
            await exchange.end()
        else:
            await exchange.event(answer(2, "at last"), id="9")
            await exchange.gone()

    gets: list[str | None] = []
    async with HttpPeer(Server(GET=get, **{"tools/call": call})) as peer:
        making.clock = clock = QuickClock()
        transport, recorder = await begun(making, peer)
        transport.send(legacy(2, version=VERSION), expires=FAR)
        assert (await recorder.answer_to(2))["result"] == "at last"
        await peer.until(lambda peer: sum(gone.is_set() for gone in peer.gone.values()))
    assert gets == ["7", "8"]
    assert clock.slept == [0.5, 0.5]
    assert recorder.lost == []
    assert peer.methods.count("tools/call") == 1


@pytest.mark.parametrize("how", [404, 405, "loop"])
async def test_a_call_whose_stream_cannot_be_gone_on_with_is_lost(
    making: Making, how: int | str
) -> None:
    async def call(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.chunk(b"id: 7\ndata:\n\n")
        exchange.cut()

    async def get(exchange: Exchange) -> None:
        if isinstance(how, int):
            await exchange.empty(how)
        else:
            await exchange.stream()
            await exchange.end()

    async with HttpPeer(Server(GET=get, **{"tools/call": call})) as peer:
        making.clock = QuickClock()
        transport, recorder = await begun(making, peer)
        transport.send(legacy(2, version=VERSION), expires=FAR)
        failure = await recorder.loss_of(2)
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.sent) == ("no_response", True)
    assert "could not go on with it" in str(failure)
    assert verbs(peer).count("GET") == (1 if isinstance(how, int) else 12)


async def test_a_broken_stream_without_event_ids_is_not_asked_for_again(making: Making) -> None:
    async def call(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.event(CHANGED)
        await exchange.end()

    async with HttpPeer(Server(**{"tools/call": call})) as peer:
        transport, recorder = await begun(making, peer)
        transport.send(legacy(2, version=VERSION), expires=FAR)
        failure = await recorder.loss_of(2)
    assert isinstance(failure, HttpFailure)
    assert failure.kind == "no_response"
    assert "GET" not in verbs(peer)


async def test_cancelling_a_legacy_request_is_the_callers_notification(making: Making) -> None:
    async def call(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.gone()

    async with HttpPeer(Server(**{"tools/call": call})) as peer:
        transport, _ = await begun(making, peer)
        transport.send(legacy(2), expires=FAR)
        await peer.until(lambda peer: "tools/call" in peer.methods)
        assert transport.cancel(2) is False
        transport.send(note("notifications/cancelled"), expires=FAR)
        await peer.until(lambda peer: "notifications/cancelled" in peer.methods)
