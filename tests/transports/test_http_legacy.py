"""Legacy Streamable HTTP: sessions and their loss, the GET stream, resumption, the end."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx

from observant_host.errors import HttpFailure
from observant_host.telemetry.vocabulary import SessionNotEnded
from observant_host.timing.tasks import Signal
from tests.support.http_peer import Exchange, HttpPeer, answer
from tests.transports.http_subjects import Fixed, Making, legacy, note, settled
from tests.transports.suite import FAR, SkippingClock, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from observant_host.transports.http.transport import HttpTransport
    from tests.support.receivers import Recorder

VERSION = "2025-11-25"
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


@pytest.fixture
async def making() -> AsyncIterator[Making]:
    making = Making()
    with blockbuster_ctx("observant_host"):
        yield making
        for transport in making.made:
            await transport.close()


class QuickClock(SkippingClock):
    """Pauses are remembered and not waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        await asyncio.sleep(0)


class Server:
    """A legacy server whose parts a test replaces."""

    def __init__(self, **parts: Callable[[Exchange], Awaitable[None]]) -> None:
        self.parts = parts
        self.sessions = 0
        self.streams: list[Exchange] = []

    async def __call__(self, exchange: Exchange) -> None:
        seen = exchange.seen
        part = self.parts.get(seen.method or seen.verb)
        if part is not None:
            await part(exchange)
        elif seen.method == "initialize":
            self.sessions += 1
            await exchange.result(Mcp_Session_Id=f"s-{self.sessions}")
        elif seen.verb == "GET":
            self.streams.append(exchange)
            await exchange.stream()
            await exchange.gone()
        elif seen.verb == "DELETE":
            await exchange.empty(200)
        elif "id" in seen.message and "method" in seen.message:
            await exchange.result()
        else:
            await exchange.empty(202)


async def begun(making: Making, peer: HttpPeer, **options: Any) -> tuple[HttpTransport, Recorder]:
    """Opened, initialized with id 1, its answer among the frames."""
    transport = making.http(url=peer.url, **options)
    recorder = await opened(transport)
    transport.send(legacy(1, "initialize"), expires=FAR)
    await recorder.answer_to(1)
    transport.send(note(version=VERSION), expires=FAR)
    await peer.until(lambda peer: len(peer.seen) == 2)
    return transport, recorder


def verbs(peer: HttpPeer) -> list[str]:
    return [seen.verb for seen in peer.seen]


# Sessions


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


# The GET stream


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
