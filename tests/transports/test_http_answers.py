"""What comes back over HTTP: bodies and streams, whole, broken, lying, endless."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import HttpFailure
from observant_host.transports.base import Answering
from tests.support.http_peer import JSON, Exchange, HttpPeer, answer
from tests.transports.http_subjects import Fixed, Making, modern, note
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.receivers import Recorder

MAX = 1 << 20


async def asked(
    making: Making, behave: Callable[[Exchange], Awaitable[None]], **options: Any
) -> tuple[Recorder, HttpPeer]:
    """One modern request with id 1, until it was answered or lost."""
    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, max_message_bytes=MAX, **options)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await recorder.until(lambda recorder: recorder.lost or any(recorder_answers(recorder, 1)))
    return recorder, peer


def recorder_answers(recorder: Recorder, request_id: int) -> list[Any]:
    found = []
    for frame in recorder.frames:
        try:
            message = json.loads(frame)
        except ValueError:
            continue
        if isinstance(message, dict) and message.get("id") == request_id:
            found.append(message)
    return found


async def failure_of(
    making: Making, behave: Callable[[Exchange], Awaitable[None]], **options: Any
) -> HttpFailure:
    recorder, _ = await asked(making, behave, **options)
    ((request_id, failure),) = recorder.lost
    assert request_id == 1
    assert isinstance(failure, HttpFailure)
    return failure


GOOD = json.dumps(answer(1, {"text": "ä\u2028"}), ensure_ascii=False).encode()


# Bodies


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "", "text/plain",
     "application/vnd.api+json", "garbage"],
)  # fmt: skip
async def test_a_body_that_is_a_message_is_read_whatever_its_type_is_called(
    making: Making, content_type: str
) -> None:
    recorder, _ = await asked(making, lambda e: e.whole(200, content_type, GOOD))
    assert recorder.frames == [GOOD]
    media_type = content_type.partition(";")[0].lower()
    assert recorder.answering == [Answering(1, 200, media_type)]


async def test_a_byte_order_mark_and_blanks_around_a_body_are_no_part_of_it(
    making: Making,
) -> None:
    body = b"\xef\xbb\xbf\r\n " + GOOD + b"\n\n"
    recorder, _ = await asked(making, lambda e: e.whole(200, JSON, body))
    assert recorder.frames == [GOOD]


async def test_a_page_instead_of_a_message_is_named_with_status_type_and_title(
    making: Making,
) -> None:
    page = b"<!doctype html><html><head><title>Sign\n in</title></head>" + b"<p>x</p>" * 5000
    failure = await failure_of(making, lambda e: e.whole(200, "text/html; charset=x", page))
    assert (failure.kind, failure.status, failure.content_type) == ("content", 200, "text/html")
    assert "200 OK (text/html): Sign in" in str(failure)
    assert len(str(failure)) < 200
    assert failure.body == page[: 64 << 10]


@pytest.mark.parametrize("body", [b"hello", b'"text"', b"null", b"<title></title><p>Hi &amp;</p>"])
async def test_a_body_that_is_no_message_is_a_clear_error(making: Making, body: bytes) -> None:
    failure = await failure_of(making, lambda e: e.whole(200, JSON, body))
    assert failure.kind == "content"
    assert "that is no message" in str(failure)


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_an_empty_answer_to_a_request_is_no_response(making: Making, status: int) -> None:
    failure = await failure_of(making, lambda e: e.empty(status))
    assert (failure.kind, failure.status, failure.sent) == ("no_response", status, True)


async def test_a_message_for_somebody_else_is_delivered_and_the_request_lost(
    making: Making,
) -> None:
    recorder, _ = await asked(making, lambda e: e.json(answer(987, "x")))
    assert recorder.messages == [answer(987, "x")]
    ((_, failure),) = recorder.lost
    assert isinstance(failure, HttpFailure)
    assert failure.kind == "no_response"


async def test_a_body_beyond_the_bound_is_stopped(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.head(200, JSON, Content_Length=1 << 40)
        while not exchange.peer.gone[1].is_set():
            await exchange.raw(b" " * 65536)
            await asyncio.sleep(0)

    failure = await failure_of(making, behave)
    assert (failure.kind, len(failure.body)) == ("too_large", 64 << 10)
    assert "max_message_bytes" in str(failure)


async def test_a_body_that_is_cut_short_fails_at_once(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.head(200, JSON, Content_Length=100_000)
        await exchange.raw(GOOD[:20])
        exchange.cut()

    failure = await failure_of(making, behave)
    assert (failure.kind, failure.status, failure.sent) == ("reset", 200, True)


@pytest.mark.parametrize("reset", [False, True])
async def test_a_connection_that_breaks_unanswered_leaves_delivery_unknown(
    making: Making, reset: bool
) -> None:
    async def behave(exchange: Exchange) -> None:
        exchange.cut(reset=reset)

    failure = await failure_of(making, behave)
    assert (failure.kind, failure.sent) == ("reset", True)


async def test_what_is_no_http_is_said_to_be_none(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")

    failure = await failure_of(making, behave)
    assert (failure.kind, failure.sent) == ("content", True)


# Statuses


@pytest.mark.parametrize("status", [400, 403, 404, 405, 408, 413, 429, 500, 502, 503, 599])
async def test_a_refusal_keeps_its_status_and_body_and_costs_one_request(
    making: Making, status: int
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": -32020, "message": "no"}})

    async def behave(exchange: Exchange) -> None:
        if exchange.id == 1:
            await exchange.json(body.encode(), status)
        else:
            await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        failure = await recorder.loss_of(1)
        transport.send(modern(2), expires=FAR)
        await recorder.answer_to(2)
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.status, failure.content_type) == ("status", status, JSON)
    assert (failure.body.decode(), failure.sent) == (body, True)
    assert peer.connections == 1


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("2", 2), ("0", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("soon", None), (None, None)],
)
async def test_how_long_the_server_wants_to_be_left_alone_is_read(
    making: Making, given: str | None, seconds: float | None
) -> None:
    headers = {"Retry_After": given} if given else {}
    failure = await failure_of(making, lambda e: e.empty(429, **headers))
    assert failure.retry_after_s == seconds


async def test_a_challenge_is_kept(making: Making) -> None:
    credentials = Fixed(Authorization="Bearer old")
    challenge = 'Bearer resource_metadata="http://127.0.0.1/x"'
    failure = await failure_of(
        making, lambda e: e.empty(401, WWW_Authenticate=challenge), credentials=credentials
    )
    assert (failure.status, failure.www_authenticate) == (401, challenge)
    assert credentials.rejections == 1


async def test_what_a_refusal_asks_for_is_said(making: Making) -> None:
    failure = await failure_of(making, lambda e: e.empty(429, Retry_After="3600"))
    assert str(failure).endswith("it asks for a pause of 3600 s")
    challenge = 'Bearer error="insufficient_scope", scope="admin tok-canary"'
    failure = await failure_of(
        making, lambda e: e.empty(403, WWW_Authenticate=challenge), secrets=["tok-canary"]
    )
    assert "insufficient_scope, it asks for the scope admin" in str(failure)
    assert "tok-canary" not in f"{failure} {failure.www_authenticate}"


async def test_credentials_that_can_be_renewed_are_tried_once_more(making: Making) -> None:
    class Renewing(Fixed):
        async def rejected(self, used: Any) -> bool:
            assert used == {"Authorization": "Bearer old"}
            self.values = {"Authorization": "Bearer new"}
            return True

    async def behave(exchange: Exchange) -> None:
        if exchange.seen.headers["authorization"] == "Bearer new":
            await exchange.result()
        else:
            await exchange.empty(401)

    recorder, peer = await asked(making, behave, credentials=Renewing(Authorization="Bearer old"))
    assert recorder.lost == []
    assert len(peer.seen) == 2
    assert peer.connections == 1


async def test_a_refusal_of_new_credentials_too_is_final(making: Making) -> None:
    class Hopeful(Fixed):
        async def rejected(self, used: Any) -> bool:
            return True

    failure = await failure_of(making, lambda e: e.empty(401), credentials=Hopeful())
    assert failure.status == 401


async def test_a_refusal_whose_body_never_ends_is_a_refusal(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.head(503, "text/plain", Content_Length=1000)
        await exchange.raw(b"busy")
        await exchange.gone()

    failure = await failure_of(making, behave)
    assert (failure.kind, failure.status, failure.body) == ("status", 503, b"busy")


async def test_no_secret_is_shown_whatever_the_server_echoes(making: Making) -> None:
    secret = "s3cr3t-t0ken"
    failure = await failure_of(
        making,
        lambda e: e.whole(403, "text/plain", b"token " + secret.encode() + b" is not allowed"),
        secrets=(secret,),
        credentials=Fixed(Authorization=f"Bearer {secret}"),
    )
    assert "token *** is not allowed" in str(failure)


# Streams


async def test_a_stream_ends_with_the_response(making: Making) -> None:
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}

    async def behave(exchange: Exchange) -> None:
        await exchange.stream("Text/Event-Stream; charset=utf-8")
        await exchange.chunk(b"\xef\xbb\xbf: hello\r\n\r\nid: 0\nretry: 10\ndata:\n\n")
        await exchange.chunk(b"event: ping\ndata: {}\n\nevent: done\ndata: [DONE]\n\n")
        await exchange.event(progress)
        for byte in b"data: " + GOOD + b"\r\n\r\n":
            await exchange.chunk(bytes([byte]))
        await exchange.event(answer(1, "again"))
        await exchange.end()

    recorder, _ = await asked(making, behave)
    assert recorder.frames == [json.dumps(progress).encode(), GOOD]
    assert recorder.answering == [Answering(1, 200, "text/event-stream")] * 2
    assert recorder.noise == []


async def test_a_stream_that_stays_open_after_its_response_is_closed(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.event(answer(exchange.id, "ok"))
        await exchange.gone()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, call_connections=1)
        recorder = await opened(transport)
        for number in range(3):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
        await peer.until(lambda peer: all(gone.is_set() for gone in peer.gone.values()))
    assert recorder.lost == []


async def test_a_stream_that_ends_with_its_response_leaves_a_usable_connection(
    making: Making,
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.event(answer(exchange.id, "ok"))
        await exchange.end()  # at once: how long an end is waited for is no promise

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, call_connections=1)
        recorder = await opened(transport)
        for number in range(3):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
    assert peer.connections == 1


@pytest.mark.parametrize("events", [[], [{"jsonrpc": "2.0", "method": "x"}], [answer(99, "x")]])
async def test_a_stream_that_ends_without_its_response_loses_the_request_at_once(
    making: Making, events: list[Any]
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.stream()
        for event in events:
            await exchange.event(event, id="e1", retry=1)
        await exchange.end()

    recorder, peer = await asked(making, behave)
    ((_, failure),) = recorder.lost
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.status, failure.sent) == ("no_response", 200, True)
    assert recorder.messages == events
    assert peer.methods == ["tools/call"]  # modern: nothing is resumed


@pytest.mark.parametrize("reset", [False, True])
async def test_a_stream_that_breaks_inside_an_event_loses_the_request(
    making: Making, reset: bool
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.chunk(b'data: {"jsonrpc":"2.0","id":1')
        exchange.cut(reset=reset)

    failure = await failure_of(making, behave)
    assert failure.kind == "reset"


async def test_an_event_that_is_no_message_is_noise_or_the_receivers_to_judge(
    making: Making,
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.event(b"not json, with a s3cr3t-t0ken in it")
        await exchange.event(b'{"jsonrpc": "2.0", "id": 1')
        await exchange.end()

    recorder, _ = await asked(making, behave, secrets=("s3cr3t-t0ken",))
    assert recorder.noise == [("not_json", b"not json, with a *** in it")]
    assert recorder.frames == [b'{"jsonrpc": "2.0", "id": 1']
    assert [request_id for request_id, _ in recorder.lost] == [1]


async def test_an_event_beyond_the_bound_is_dropped_alone(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.event(b'{"jsonrpc":"2.0","id":5,"result":"' + b"x" * (2 * MAX) + b'"}')
        for _ in range(50):
            await exchange.event(b'{"a":"' + b"x" * (MAX // 10) + b'"}')
        await exchange.event(answer(1, "ok"))
        await exchange.end()

    recorder, _ = await asked(making, behave)
    ((kind, excerpt),) = recorder.noise
    assert kind == "oversized"
    assert b'{"jsonrpc":"2.0","id":5' in excerpt
    assert len(recorder.frames) == 51


async def test_cancelling_a_modern_request_closes_its_stream_and_nothing_is_told(
    making: Making,
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.stream()
        await exchange.event({"jsonrpc": "2.0", "method": "x"})
        await exchange.gone()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await recorder.frame_count(1)
        assert transport.cancel(1)
        await peer.until(lambda peer: peer.gone[1].is_set())
        assert transport.cancel(1)  # nothing more to do, and no notification either
        assert recorder.lost == []
        assert peer.methods == ["tools/call"]


# Encodings


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP", "deflate", "raw deflate", "members"])
async def test_a_coded_body_is_decoded(making: Making, coding: str) -> None:
    coded = {
        "deflate": lambda: zlib.compress(GOOD),
        "raw deflate": lambda: _deflated(GOOD, -15),
        "members": lambda: gzip.compress(GOOD[:9]) + gzip.compress(GOOD[9:]) + b"\0" * 8,
    }.get(coding, lambda: gzip.compress(GOOD))()
    name = {"raw deflate": "deflate", "members": "gzip"}.get(coding, coding)

    async def behave(exchange: Exchange) -> None:
        await exchange.head(200, JSON, Content_Length=len(coded), Content_Encoding=name)
        for byte in coded:
            await exchange.raw(bytes([byte]))

    recorder, _ = await asked(making, behave)
    assert recorder.frames == [GOOD]


def _deflated(data: bytes, window: int) -> bytes:
    compress = zlib.compressobj(6, zlib.DEFLATED, window)
    return compress.compress(data) + compress.flush()


async def test_a_coded_stream_is_decoded_event_by_event(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        compress = zlib.compressobj(6, zlib.DEFLATED, 31)
        await exchange.stream(Content_Encoding="gzip")
        data = b": hi\n\ndata: " + GOOD + b"\n\n"
        await exchange.chunk(compress.compress(data) + compress.flush(zlib.Z_SYNC_FLUSH))
        await exchange.gone()

    recorder, _ = await asked(making, behave)
    assert recorder.frames == [GOOD]


@pytest.mark.parametrize(
    ("coding", "body", "said"),
    [
        ("gzip", GOOD, "says gzip, but its bytes are none"),
        ("deflate", GOOD, "says deflate, but its bytes are none"),
        ("gzip", gzip.compress(GOOD, mtime=0)[:-4], "is gzip that stops in the middle"),
        ("br", b"\x0b\x02\x80", "is coded as 'br', which was not asked for"),
        ("gzip, gzip", b"x", "is coded as 'gzip, gzip', which was not asked for"),
    ],
)
async def test_a_coding_that_is_a_lie_or_unknown_is_a_clear_error(
    making: Making, coding: str, body: bytes, said: str
) -> None:
    failure = await failure_of(making, lambda e: e.whole(200, JSON, body, Content_Encoding=coding))
    assert failure.kind == "encoding"
    assert said in str(failure)


async def test_a_bomb_is_stopped_by_the_bound_on_decoded_bytes(making: Making) -> None:
    compress = zlib.compressobj(1, zlib.DEFLATED, 31)
    bomb = b"".join(compress.compress(b"0" * MAX) for _ in range(32)) + compress.flush()
    assert len(bomb) < MAX // 4
    failure = await failure_of(making, lambda e: e.whole(200, JSON, bomb, Content_Encoding="gzip"))
    assert failure.kind == "too_large"


# Messages without an id


@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [(202, "", b""), (200, JSON, b""), (200, JSON, b"null"), (200, JSON, b"{}"), (204, "", b""),
     (202, "text/plain", b"Accepted"), (200, "text/event-stream", b": hi\n\n"), (500, JSON, b"{}"),
     (200, JSON, json.dumps(answer(1, "x")).encode())],
)  # fmt: skip
async def test_nothing_is_read_into_what_answers_a_notification(
    making: Making, status: int, content_type: str, body: bytes
) -> None:
    async with HttpPeer(lambda e: e.whole(status, content_type, body)) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for _ in range(3):
            transport.send(note(modern=True), expires=FAR)
        await peer.until(lambda peer: len(peer.seen) == 3)
        await asyncio.sleep(0.02)
    assert (recorder.frames, recorder.noise, recorder.lost) == ([], [], [])
