"""What could be held for ever is not, and a mistake of our own costs one request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from observant_host.errors import HttpFailure, QueueFull, TransportClosed, TransportError
from observant_host.transports.web.exchanges import MAX_EXCHANGES
from tests.support.http_peer import Exchange, HttpPeer
from tests.support.receivers import Recorder
from tests.transports.http_subjects import Fixed, Making, modern, note
from tests.transports.suite import FAR, opened


async def silent(exchange: Exchange) -> None:
    await exchange.gone()


async def test_a_notification_that_is_never_acknowledged_keeps_no_connection(
    making: Making,
) -> None:
    async with HttpPeer(silent) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(note(modern=True), expires=making.clock.monotonic() + 0.1)
        await peer.until(lambda peer: peer.gone and peer.gone[1].is_set())
        assert recorder.lost == []


async def test_an_unanswered_post_of_http_sse_keeps_no_connection(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.seen.verb == "GET":
            await exchange.stream()
            await exchange.event(b"/messages", event="endpoint")
        await exchange.gone()

    async with HttpPeer(behave) as peer:
        transport = making.sse(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=making.clock.monotonic() + 0.1)
        transport.send(modern(2), expires=FAR)
        await peer.until(lambda peer: len(peer.gone) == 3)
        assert transport.cancel(2) is False
        await peer.until(lambda peer: peer.gone[2].is_set() and peer.gone[3].is_set())
        assert recorder.lost == []


async def test_messages_under_way_are_bounded_in_number(making: Making) -> None:
    async with HttpPeer(silent) as peer:
        transport = making.http(url=peer.url, call_connections=1)
        await opened(transport)
        for number in range(MAX_EXCHANGES):
            transport.send(modern(number), expires=FAR)
        with pytest.raises(QueueFull, match="nothing was sent"):
            transport.send(modern(5000), expires=FAR)


async def test_messages_that_wait_are_bounded_in_bytes(making: Making) -> None:
    async with HttpPeer(silent) as peer:
        transport = making.http(url=peer.url, call_connections=1, max_message_bytes=10_000)
        await opened(transport)
        transport.send(modern(0, params={"text": "x" * 50_000}), expires=FAR)
        await peer.until(lambda peer: peer.seen)
        for number in range(1, 3):
            transport.send(modern(number, params={"text": "x" * 8_000}), expires=FAR)
        with pytest.raises(QueueFull):
            transport.send(modern(4, params={"text": "x" * 8_000}), expires=FAR)
        transport.send(modern(5, params={"text": "x" * 100}), expires=FAR)


async def test_a_mistake_of_ours_costs_one_request_and_is_reported(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def behave(exchange: Exchange) -> None:
        await exchange.result()

    class Broken(Fixed):
        async def headers(self) -> Any:
            raise KeyError("s3cret")

    async with HttpPeer(behave) as peer:
        credentials = Broken()
        transport = making.http(url=peer.url, credentials=credentials)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await recorder.loss_of(1)
        credentials.__class__ = Fixed  # type: ignore[assignment] # mended
        transport.send(modern(2), expires=FAR)
        await recorder.answer_to(2)
    assert isinstance(failure, HttpFailure)
    assert "mistake in this host (KeyError)" in str(failure)
    assert (failure.sent, "s3cret" in str(failure)) == (False, False)
    assert [type(context["exception"]) for context in reported] == [KeyError]


async def test_credentials_that_cannot_be_had_are_no_request(making: Making) -> None:
    class Lacking(Fixed):
        async def headers(self) -> Any:
            raise TransportError("servers.sample.headers_command ended with 1")

        async def rejected(self, used: Any) -> bool:
            raise TransportError("no others")

    async with HttpPeer(silent) as peer:
        transport = making.http(url=peer.url, credentials=Lacking())
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await recorder.loss_of(1)
        assert peer.seen == []
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.sent) == ("credentials", False)
    assert "headers_command ended with 1" in str(failure)


async def test_credentials_that_cannot_be_renewed_leave_the_refusal(making: Making) -> None:
    class Once(Fixed):
        async def rejected(self, used: Any) -> bool:
            raise TransportError("no others")

    async with HttpPeer(lambda e: e.empty(401)) as peer:
        transport = making.http(url=peer.url, credentials=Once())
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await recorder.loss_of(1)
    assert isinstance(failure, HttpFailure)
    assert failure.status == 401


async def test_closing_while_it_opens_ends_both(making: Making, certificate: Any) -> None:
    transport = making.http(url="https://127.0.0.1:9/", ca_bundle=str(certificate))
    opening = asyncio.ensure_future(transport.open(Recorder()))
    await asyncio.sleep(0)
    assert (await transport.close()).kind == "closed"
    with pytest.raises(TransportClosed):
        await opening


async def test_bytes_that_are_no_text_in_headers_stay_harmless(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.raw(
            b"HTTP/1.1 401 Bad\xff\r\nContent-Type: text/\xffplain\r\n"
            b"WWW-Authenticate: Bearer \xfe\r\nContent-Length: 0\r\n\r\n"
        )

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await recorder.loss_of(1)
    assert isinstance(failure, HttpFailure)
    assert failure.content_type == "text/?plain"
    assert failure.www_authenticate is not None
    f"{failure}{failure.www_authenticate}".encode()


async def test_a_name_with_several_addresses_is_tried_at_each(making: Making) -> None:
    """`localhost` is often ::1 first, where nobody listens."""

    async def behave(exchange: Exchange) -> None:
        await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=f"http://localhost:{peer.port}/mcp")
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await recorder.answer_to(1)
