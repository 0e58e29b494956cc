"""Answers over HTTP as streams of events: they end, break, stay open, and are given up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from observant_host.errors import HttpFailure
from observant_host.transports.base import Answering
from tests.support.http_peer import Exchange, HttpPeer, answer
from tests.transports.http_asking import GOOD, MAX, asked, failure_of
from tests.transports.http_subjects import Making, modern
from tests.transports.suite import FAR, opened


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
