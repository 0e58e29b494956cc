"""How what was written at once ends: cancelled, broken, closed, or answered by whatever a server
likes to say."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import HttpFailure
from observant_host.transports.web.connections import KEEPALIVE_S, Connector
from observant_host.transports.web.exchanges import Exchanges
from observant_host.transports.web.inlet import Inlet
from tests.support.http_peer import JSON, Exchange, HttpPeer, answer
from tests.transports.at_once import DATES, OK, Waiting, asked, result, whole
from tests.transports.http_subjects import Fixed, Making, modern, settled
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from tests.support.receivers import Recorder


async def hangs_from_the_second_on(exchange: Exchange) -> None:
    if exchange.id > 1:
        await exchange.gone()
    else:
        await result(exchange)


async def test_cancelling_closes_the_stream_of_what_was_written_at_once(making: Making) -> None:
    async with HttpPeer(hangs_from_the_second_on) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        await asked(transport, recorder, 1)
        sent: Any = transport.send(modern(2), expires=FAR)
        assert (sent.started, sent.withdraw(), sent.task) == (True, False, None)
        await peer.until(lambda peer: len(peer.seen) == 2)
        assert transport.cancel(2)
        await peer.until(lambda peer: peer.gone[1].is_set())
        assert transport.cancel(2)  # nothing is left to close
    assert recorder.lost == []


@pytest.mark.parametrize("turns", range(4))
async def test_cancelling_while_an_unusual_answer_comes_leaves_no_connection(
    making: Making, turns: int
) -> None:
    """Whether its task has begun or not."""

    async def behave(exchange: Exchange) -> None:
        if exchange.id > 1:
            await exchange.stream()
            await exchange.gone()
        else:
            await result(exchange)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        await asked(transport, recorder, 1)
        sent: Any = transport.send(modern(2), expires=FAR)
        while sent.task is None:
            await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        transport.cancel(2)
        await peer.until(lambda peer: peer.gone[1].is_set())
    assert recorder.lost == []


async def test_cancelling_before_its_task_has_begun_leaves_no_connection(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Exchanges.go_on

    def stopped(exchanges: Exchanges, exchange: Any) -> None:
        real(exchanges, exchange)
        if exchange.line is not None:
            exchange.stop()

    monkeypatch.setattr(Exchanges, "go_on", stopped)

    async def behave(exchange: Exchange) -> None:
        if exchange.id > 1:
            await exchange.empty(500)
        else:
            await result(exchange)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        await asked(transport, recorder, 1)
        transport.send(modern(2), expires=FAR)
        await peer.until(lambda peer: peer.gone[1].is_set())
    assert recorder.lost == []


async def test_a_mistake_of_ours_costs_what_was_written_at_once_only(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with HttpPeer(result) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        await asked(transport, recorder, 1)
        with monkeypatch.context() as patch:
            patch.setattr(Inlet, "message", None)
            transport.send(modern(2), expires=FAR)
            failure = await recorder.loss_of(2)
        assert await asked(transport, recorder, 3)
    assert "mistake in this host (TypeError)" in str(failure)
    assert [type(context["exception"]) for context in reported] == [TypeError]


async def test_closing_ends_what_was_written_at_once(making: Making) -> None:
    async with HttpPeer(hangs_from_the_second_on) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        await asked(transport, recorder, 1)
        transport.send(modern(2), expires=FAR)
        await peer.until(lambda peer: len(peer.seen) == 2)
        await transport.close()
        await peer.until(lambda peer: peer.gone[1].is_set())
    assert recorder.lost == []
    assert [end.kind for end in recorder.ends] == ["closed"]


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("said", [b"", OK + b"Content-", OK + b"Content-Length: 9\r\n\r\n{"])
async def test_a_connection_that_breaks_under_it_is_told_in_the_same_words(
    making: Making, said: bytes, reset: bool
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.id == 1:
            await whole(exchange, answer(1, "ok"))
        else:
            if said:
                await exchange.raw(said)
                await asyncio.sleep(0.05)  # so that a reset does not take it back
            exchange.cut(reset=reset)

    told = []
    async with HttpPeer(behave) as peer:
        for credentials in (Fixed(), Waiting()):
            transport = making.http(url=peer.url, credentials=credentials)
            recorder = await opened(transport)
            await asked(transport, recorder, 1)
            transport.send(modern(2), expires=FAR)
            failure = await recorder.loss_of(2)
            assert isinstance(failure, HttpFailure)
            told.append((str(failure), failure.kind, failure.sent))
    assert told[0] == told[1]
    assert told[0][1:] == ("reset", True)


async def test_an_idle_connection_is_closed_before_a_server_would(making: Making) -> None:
    async with HttpPeer(result) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        await asked(transport, recorder, 1)
        making.clock.skipped += KEEPALIVE_S + 1
        assert not await asked(transport, recorder, 2)
        await peer.until(lambda peer: peer.gone[1].is_set())
    assert [seen.connection for seen in peer.seen] == [1, 2]


async def test_a_server_that_closes_an_idle_connection_costs_nothing(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await result(exchange)
        if exchange.id % 2 == 0:
            exchange.cut()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(1, 9):
            await asked(transport, recorder, number)
            if number % 2 == 0:
                await peer.until(lambda peer, n=number: peer.gone[n // 2].is_set())
    assert [seen.connection for seen in peer.seen] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert recorder.lost == []


async def test_whoever_waits_for_a_connection_has_the_next_that_is_idle(making: Making) -> None:
    async with HttpPeer(result) as peer:
        transport = making.http(url=peer.url, call_connections=2)
        recorder = await opened(transport)
        for number in range(1, 13):
            transport.send(modern(number), expires=FAR)
        for number in range(1, 13):
            await recorder.answer_to(number)
        assert peer.connections == 2
        await asked(transport, recorder, 13)
        assert await asked(transport, recorder, 14)
        assert peer.connections == 2


PIECES = (
    OK,
    b"HTTP/1.1 200 OK\n",
    b"HTTP/1.0 200 OK\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    f"Content-Type: {JSON}\r\n".encode(),
    b"Content-Length: %d\r\n",
    b"content-length: %d\r\n",
    b"Content-Length: 0%d\r\n",
    b"Content-Length: 1%d\r\n",
    b"Transfer-Encoding: chunked\r\n",
    f"Date: {DATES[0]}\r\n".encode(),
    f"Date: {DATES[1]}\r\n".encode(),
    b"Connection: close\r\n",
    b" folded\r\n",
    b"X: y\n\n",
)
USUAL = (0, 4, 5, 10)


def said(dice: random.Random, body: bytes) -> bytes:
    """An answer, now and then with something wrong in it."""
    chosen = [PIECES[n] for n in USUAL]
    if dice.random() < 0.4:
        for _ in range(dice.choice([1, 1, 2])):
            at = dice.randrange(len(chosen) + 1)
            if dice.random() < 0.3 and at < len(chosen):
                del chosen[at]
            else:
                chosen.insert(at, dice.choice(PIECES))
    data = b"".join(piece.replace(b"%d", b"%d" % len(body)) for piece in chosen) + b"\r\n" + body
    if dice.random() < 0.15:
        at = dice.randrange(len(data))
        data = data[:at] + bytes([dice.randrange(256)]) + data[at + 1 :]
    if dice.random() < 0.1:
        data += dice.choice([b"\r\n", b"x", data])
    return data


def told(recorder: Recorder) -> set[int | None]:
    """The requests whose outcome is known."""
    return {each.request_id for each in recorder.answering if each} | dict(recorder.lost).keys()


async def outcomes(making: Making, seed: int, credentials: Fixed) -> tuple[list[Any], int]:
    """What becomes of forty requests to a server that is not always right, and how many of them
    took no task."""
    written, known = asyncio.Event(), asyncio.Event()

    async def behave(exchange: Exchange) -> None:
        dice = random.Random(f"{seed}/{exchange.id}")
        body = json.dumps(answer(exchange.id, "x" * dice.choice([0, 3, 40]))).encode()
        data = said(dice, body)
        at = dice.choice([len(data), len(data) - len(body), dice.randrange(len(data))])
        try:
            await exchange.raw(data[:at])
            if data[at:]:
                await settled()
                await exchange.raw(data[at:])
        finally:
            written.set()
        for _ in range(100):
            if known.is_set():
                return
            await asyncio.sleep(0)
        exchange.cut()  # more is waited for, which does not come

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, credentials=credentials)
        recorder = await opened(transport)
        straight = 0
        for number in range(40):
            written.clear(), known.clear()
            sent: Any = transport.send(modern(number), expires=FAR)
            await recorder.until(lambda r, n=number: n in told(r))
            await written.wait()
            known.set()
            await settled()
            straight += sent.task is None
        lost = [(n, str(error).replace(str(peer.port), "")) for n, error in recorder.lost]
    return [recorder.frames, recorder.answering, recorder.noise, lost], straight


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_a_server_says_comes_to_the_same_with_a_task_and_without(
    making: Making, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connector, "distrust", lambda _: None)  # or soon none would be used again
    at_once, straight = await outcomes(making, seed, Fixed())
    by_task, none = await outcomes(making, seed, Waiting())
    for one, other in zip(at_once, by_task, strict=True):
        assert one == other
    assert straight > 2
    assert none == 0
