"""HTTP+SSE of 2024-11-05: the stream is the life, and decides what became of a POST."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import HttpFailure, TransportClosed, TransportError
from tests.support.http_peer import Exchange, HttpPeer, answer, refusing_port
from tests.support.receivers import Recorder
from tests.transports.http_subjects import Fixed, Making, legacy, note
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

ENDPOINT = b"event: endpoint\ndata: /messages?session=1\n\n"


class Server:
    """`first` is the beginning of the stream; `post` answers what is posted."""

    def __init__(
        self,
        first: bytes = ENDPOINT,
        post: Callable[[Exchange], Awaitable[None]] | None = None,
    ) -> None:
        self.first = first
        self.post = post
        self.stream: Exchange | None = None

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.seen.verb == "GET":
            self.stream = exchange
            await exchange.stream()
            await exchange.chunk(self.first)
            await exchange.gone()
        elif self.post is not None:
            await self.post(exchange)
        else:
            await exchange.whole(202, "text/plain", b"Accepted")
            await self.say(answer(exchange.seen.message.get("id"), "ok"))

    async def say(self, message: Any) -> None:
        assert self.stream is not None
        await self.stream.event(message)


def url(peer: HttpPeer, path: str = "/sse") -> str:
    return peer.origin + path


async def refusal(making: Making, behave: Callable[[Exchange], Awaitable[None]], **o: Any) -> Any:
    """Why a life could not be opened."""
    async with HttpPeer(behave) as peer:
        transport = making.sse(url=url(peer), **o)
        recorder = Recorder()
        with pytest.raises(HttpFailure) as refused:
            await transport.open(recorder)
        assert (recorder.frames, recorder.ends) == ([], [])
        assert (await transport.close()).kind == "closed"
        assert recorder.ends == []
        return refused.value


@pytest.mark.parametrize(
    ("first", "path"),
    [
        (ENDPOINT, "/messages?session=1"),
        (b"event: endpoint\r\ndata: messages?session=1\r\n\r\n", "/api/messages?session=1"),
        (b": hi\n\nevent: ping\ndata: 1\n\n" + ENDPOINT, "/messages?session=1"),
        (b"event: endpoint\ndata: {origin}/m#here\n\n", "/m"),
        (b"event: endpoint\ndata:\n\n", "/api/sse"),
    ],
)
async def test_messages_go_where_the_endpoint_event_says(
    making: Making, first: bytes, path: str
) -> None:
    server = Server(first)
    async with HttpPeer(server) as peer:
        server.first = first.replace(b"{origin}", peer.origin.encode())
        transport = making.sse(
            url=url(peer, "/api/sse"), credentials=Fixed(Authorization="Bearer t")
        )
        recorder = await opened(transport)
        transport.send(legacy(1, "initialize"), expires=FAR)
        await recorder.answer_to(1)
        assert transport.cancel(1) is False
    get, post = peer.seen
    assert (get.headers["accept"], post.path) == ("text/event-stream", path)
    assert get.headers["authorization"] == post.headers["authorization"] == "Bearer t"
    assert not {"mcp-session-id", "mcp-protocol-version", "mcp-method"} & set(post.headers)


@pytest.mark.parametrize(
    ("where", "origin"),
    [
        (b"http://127.0.0.1:1/messages", "http://127.0.0.1:1"),
        (b"https://127.0.0.1/x", "https://127.0.0.1"),
        (b"http://localhost/messages", "http://localhost"),
        (b"file:///etc/passwd", "file:"),
        (b"javascript:x", "javascript:"),
    ],
)
async def test_an_endpoint_of_another_origin_is_refused_naming_both(
    making: Making, where: bytes, origin: str
) -> None:
    failure = await refusal(making, Server(b"event: endpoint\ndata: " + where + b"\n\n"))
    assert failure.kind == "redirect"
    assert origin in str(failure)
    assert "instead of http://127.0.0.1" in str(failure)


async def test_an_endpoint_that_is_no_address_is_refused(making: Making) -> None:
    failure = await refusal(making, Server(b"event: endpoint\ndata: http://[bad/\n\n"))
    assert failure.kind == "content"


async def test_a_stream_that_begins_with_a_message_is_not_this_protocol(making: Making) -> None:
    failure = await refusal(making, Server(b'data: {"jsonrpc":"2.0","method":"x"}\n\n'))
    assert failure.kind == "content"


async def test_an_endpoint_that_never_comes_is_waited_for_within_the_bound(making: Making) -> None:
    failure = await refusal(making, Server(b": warming up\n\n"), connect_timeout_s=0.2)
    assert failure.kind == "timeout"
    (expired,) = [f for f in making.told if type(f.fact).__name__ == "DeadlineExpired"]
    assert expired.fact.scope == "connect"


@pytest.mark.parametrize("status", [400, 401, 404, 405, 500])
async def test_an_address_without_a_stream_says_so(making: Making, status: int) -> None:
    failure = await refusal(making, lambda e: e.empty(status))
    assert (failure.kind, failure.status) == ("status", status)


async def test_a_page_is_no_stream(making: Making) -> None:
    failure = await refusal(making, lambda e: e.whole(200, "text/html", b"<title>Hi</title>"))
    assert (failure.kind, failure.content_type) == ("content", "text/html")
    assert "Hi" in str(failure)


async def test_a_stream_that_ends_before_its_endpoint_is_no_life(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.end()

    assert (await refusal(making, behave)).kind == "no_response"


async def test_a_server_that_is_not_there_is_said_not_to_be(making: Making) -> None:
    async with refusing_port() as port:
        with pytest.raises(HttpFailure, match="cannot be reached"):
            await opened(making.sse(url=f"http://127.0.0.1:{port}/sse"))


async def test_closing_while_it_opens_ends_both(making: Making) -> None:
    async with HttpPeer(Server(b": wait\n\n")) as peer:
        transport = making.sse(url=url(peer))
        opening = asyncio.ensure_future(transport.open(Recorder()))
        await peer.until(lambda peer: peer.seen)
        assert (await transport.close()).kind == "closed"
        with pytest.raises(TransportError):
            await opening
        await peer.until(lambda peer: peer.gone[1].is_set())


async def test_an_opening_that_is_cancelled_leaves_nothing_behind(making: Making) -> None:
    async with HttpPeer(Server(b": wait\n\n")) as peer:
        transport = making.sse(url=url(peer))
        opening = asyncio.ensure_future(transport.open(Recorder()))
        await peer.until(lambda peer: peer.seen)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await peer.until(lambda peer: peer.gone[1].is_set())


@pytest.mark.parametrize("how", ["202", "200", "204", "502", "504", "524", "fin", "reset"])
async def test_the_stream_decides_whatever_became_of_the_post(making: Making, how: str) -> None:
    async def post(exchange: Exchange) -> None:
        if how.isdigit():
            await exchange.empty(int(how))
        else:
            exchange.cut(reset=how == "reset")
        await asyncio.sleep(0.02)
        await server.say(answer(exchange.id, "done"))

    server = Server(post=post)
    async with HttpPeer(server) as peer:
        transport = making.sse(url=url(peer))
        recorder = await opened(transport)
        transport.send(legacy(1), expires=FAR)
        assert (await recorder.answer_to(1))["result"] == "done"
        assert recorder.lost == []
    assert peer.methods == ["GET", "tools/call"]


@pytest.mark.parametrize("status", [400, 401, 403, 413, 500, 503])
async def test_a_post_that_was_refused_costs_its_request(making: Making, status: int) -> None:
    async def post(exchange: Exchange) -> None:
        if exchange.id == 1:
            await exchange.empty(status)
        else:
            await exchange.empty(202)
            await server.say(answer(exchange.id, "done"))

    server = Server(post=post)
    async with HttpPeer(server) as peer:
        transport = making.sse(url=url(peer))
        recorder = await opened(transport)
        transport.send(legacy(1), expires=FAR)
        failure = await recorder.loss_of(1)
        assert isinstance(failure, HttpFailure)
        assert (failure.kind, failure.status) == ("status", status)
        transport.send(legacy(2), expires=FAR)
        await recorder.answer_to(2)
        assert recorder.ends == []


@pytest.mark.parametrize("status", [404, 410])
async def test_a_server_that_forgot_the_stream_has_ended_the_life(
    making: Making, status: int
) -> None:
    async def post(exchange: Exchange) -> None:
        await exchange.whole(status, "text/plain", b"Could not find session")

    async with HttpPeer(Server(post=post)) as peer:
        transport = making.sse(url=url(peer))
        recorder = await opened(transport)
        transport.send(legacy(1), expires=FAR)
        failure = await recorder.loss_of(1)
        end = await recorder.end()
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, end.kind) == ("session_lost", "lost")
    assert "Could not find session" in end.detail


@pytest.mark.parametrize("how", ["end", "fin", "reset"])
async def test_the_end_of_the_stream_is_the_end_of_the_life(making: Making, how: str) -> None:
    server = Server()
    async with HttpPeer(server) as peer:
        transport = making.sse(url=url(peer))
        recorder = await opened(transport)
        assert server.stream is not None
        if how == "end":
            await server.stream.end()
        else:
            server.stream.cut(reset=how == "reset")
        end = await recorder.end()
        assert end.kind == "lost"
        with pytest.raises(TransportClosed):
            transport.send(legacy(1), expires=FAR)
        assert await transport.close() == end
    assert recorder.after_end == 0


async def test_what_comes_right_behind_the_endpoint_is_not_lost(making: Making) -> None:
    server = Server(ENDPOINT + b'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n')
    async with HttpPeer(server) as peer:
        recorder = await opened(making.sse(url=url(peer)))
        await recorder.frame_count(1)
    assert recorder.messages[0]["method"] == "ping"


async def test_events_that_are_no_messages_are_left_aside(making: Making) -> None:
    server = Server()
    async with HttpPeer(server) as peer:
        transport = making.sse(url=url(peer), max_message_bytes=1000)
        recorder = await opened(transport)
        assert server.stream is not None
        await server.stream.chunk(b"event: endpoint\ndata: http://elsewhere/\n\n: hi\n\ndata:\n\n")
        await server.stream.event(b"not json")
        await server.stream.event(b"x" * 5000)
        await server.say({"jsonrpc": "2.0", "method": "x"})
        await recorder.frame_count(1)
        transport.send(note(), expires=FAR)
        await peer.until(lambda peer: len(peer.seen) == 2)
    assert [kind for kind, _ in recorder.noise] == ["not_json", "oversized"]
