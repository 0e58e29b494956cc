"""Answers over HTTP as whole bodies: read whatever they are called, decoded, and bounded."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib

import pytest

from observant_host.errors import HttpFailure
from observant_host.transports.base import Answering
from tests.support.http_peer import JSON, Exchange, HttpPeer, answer
from tests.transports.http_asking import GOOD, MAX, asked, failure_of
from tests.transports.http_subjects import Making, note
from tests.transports.suite import FAR, opened


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
