"""A request on an idle connection is written at once, and an ordinary answer to it taken without a
task; what a server and a caller see of it is what they would see of one that has a task."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import HttpFailure
from observant_host.transports.web.connections import KEEPALIVE_S, Connector
from observant_host.transports.web.lines import MAX_TAKEN
from tests.support.http_peer import JSON, SSE, Exchange, HttpPeer, answer
from tests.transports.http_subjects import Fixed, Making, legacy, modern, settled
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from observant_host.transports.http.transport import HttpTransport
    from tests.support.receivers import Recorder

OK = b"HTTP/1.1 200 OK\r\n"
DATES = ("Mon, 30 Nov 2026 10:11:04 GMT", "Tue, 01 Dec 2026 00:00:00 GMT")


class Waiting(Fixed):
    """Credentials that have to be waited for each time: then every request has a task."""

    def present(self, now: float) -> Mapping[str, str] | None:
        return None


async def asked(transport: HttpTransport, recorder: Recorder, number: int, **changes: Any) -> bool:
    """Send it and wait for its answer; whether that took no task."""
    sent: Any = transport.send(modern(number, **changes), expires=FAR)
    await recorder.answer_to(number)
    return sent.task is None


async def result(exchange: Exchange) -> None:
    """An ordinary answer in one piece."""
    await whole(exchange, answer(exchange.id, exchange.seen.message["params"]))


async def whole(exchange: Exchange, message: Any, *fields: str, status: bytes = OK) -> None:
    body = json.dumps(message).encode()
    lines = (f"Content-Type: {JSON}", f"Content-Length: {len(body)}", *fields)
    await exchange.raw(status + "\r\n".join([*lines, "", ""]).encode() + body)


async def test_an_ordinary_answer_takes_no_task_once_its_head_is_known(making: Making) -> None:
    async with HttpPeer(result) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        ways = [await asked(transport, recorder, n, params={"t": "x" * n}) for n in range(1, 9)]
        assert ways == [False] + [True] * 7
        assert {seen.connection for seen in peer.seen} == {1}
    assert [message["result"]["t"] for message in recorder.messages] == [
        "x" * n for n in range(1, 9)
    ]
    assert {(each.status, each.content_type) for each in recorder.answering if each} == {
        (200, JSON)
    }


async def test_its_date_may_differ_and_its_body_come_apart(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        body = json.dumps(answer(exchange.id, "x" * exchange.id)).encode()
        date = DATES[exchange.id % 2]
        await exchange.raw(OK + f"Date: {date}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        await settled()
        await exchange.raw(body)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        ways = [await asked(transport, recorder, number) for number in range(1, 5)]
    assert ways == [False, True, True, True]


async def test_it_is_the_same_over_tls(making: Making, certificate: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with HttpPeer(result, tls=tls) as peer:
        transport = making.http(url=peer.url, ca_bundle=str(certificate))
        recorder = await opened(transport)
        ways = [await asked(transport, recorder, number) for number in range(1, 9)]
        assert ways == [False] + [True] * 7
        assert {seen.connection for seen in peer.seen} == {1}
        sent: Any = transport.send(modern(9), expires=FAR)
        transport.cancel(9)
        assert sent.task is None
        await peer.until(lambda peer: peer.gone[1].is_set())


async def test_a_legacy_request_carries_its_session(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await whole(
            exchange,
            answer(exchange.id, "ok"),
            *(["Mcp-Session-Id: one"] if exchange.seen.method == "initialize" else []),
        )

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number, method in enumerate(["initialize", "tools/call", "tools/call", "initialize"]):
            transport.send(legacy(number, method, version="2025-11-25"), expires=FAR)
            await recorder.answer_to(number)
        given = [seen.headers.get("mcp-session-id") for seen in peer.seen[:4]]
    assert given == [None, "one", "one", None]


async def test_new_credentials_go_with_the_next_request(making: Making) -> None:
    async with HttpPeer(result) as peer:
        credentials = Fixed(Authorization="Bearer 0")
        transport = making.http(url=peer.url, credentials=credentials)
        recorder = await opened(transport)
        ways = []
        for number in range(6):
            credentials.values["Authorization"] = f"Bearer {number // 3}"
            ways.append(await asked(transport, recorder, number))
    assert [seen.headers["authorization"] for seen in peer.seen] == [
        f"Bearer {number // 3}" for number in range(6)
    ]
    assert ways == [False, True, True] * 2


async def test_a_refusal_of_what_was_written_at_once_is_of_the_credentials_it_had(
    making: Making,
) -> None:
    class Renewing(Fixed):
        used: Mapping[str, str] = {}

        async def rejected(self, used: Mapping[str, str]) -> bool:
            self.used = dict(used)
            self.values = {"Authorization": "Bearer new"}
            return True

    credentials = Renewing(Authorization="Bearer old")

    async def behave(exchange: Exchange) -> None:
        if exchange.id == 2 and exchange.seen.headers["authorization"] == "Bearer old":
            credentials.values = {"Authorization": "Bearer newer"}  # meanwhile
            await exchange.empty(401)
        else:
            await result(exchange)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url, credentials=credentials)
        recorder = await opened(transport)
        for number in (1, 2, 3):
            await asked(transport, recorder, number)
    assert credentials.used == {"Authorization": "Bearer old"}
    given = [seen.headers["authorization"] for seen in peer.seen]
    assert given == ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]


UNLIKE = {
    "a stream": (f"Content-Type: {SSE}",),
    "a page": ("Content-Type: text/html",),
    "closing": ("Connection: close",),
    "coded": ("Content-Encoding: identity",),
    "another status": (),
    "with a pause": ("Retry-After: 1",),
    "two dates": (f"Date: {DATES[0]}", f"Date: {DATES[0]}"),
}


@pytest.mark.parametrize("kind", UNLIKE)
async def test_what_is_more_than_its_body_always_takes_a_task(making: Making, kind: str) -> None:
    async def behave(exchange: Exchange) -> None:
        status = b"HTTP/1.1 203 OK\r\n" if kind == "another status" else OK
        message = answer(exchange.id, "ok")
        body = json.dumps(message).encode()
        if kind == "a stream":
            body = b"data: " + body + b"\n\n"
        typed = () if "Content-Type" in "".join(UNLIKE[kind]) else (f"Content-Type: {JSON}",)
        lines = (*typed, *UNLIKE[kind], f"Content-Length: {len(body)}", "", "")
        await exchange.raw(status + "\r\n".join(lines).encode() + body)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(3):
            sent: Any = transport.send(modern(number), expires=FAR)
            await recorder.until(lambda r, n=number: len(r.frames) + len(r.lost) == n + 1)
            assert sent.task is not None
    assert len(recorder.lost) == (3 if kind == "a page" else 0)


@pytest.mark.parametrize("size", [MAX_TAKEN, MAX_TAKEN + 1, 1 << 20])
async def test_a_large_answer_is_whole_however_it_comes(making: Making, size: int) -> None:
    async def behave(exchange: Exchange) -> None:
        text = "x" * (size - len(json.dumps(answer(exchange.id, ""))))
        await whole(exchange, answer(exchange.id, text if exchange.id > 1 else ""))

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in (1, 2, 3):
            await asked(transport, recorder, number)
    assert [len(frame) for frame in recorder.frames[1:]] == [size, size]


async def test_a_host_that_takes_small_messages_only_reads_with_its_bound(making: Making) -> None:
    async with HttpPeer(result) as peer:
        transport = making.http(url=peer.url, max_message_bytes=100)
        recorder = await opened(transport)
        for number in (1, 2):
            assert not await asked(transport, recorder, number)
        transport.send(modern(3, params={"t": "x" * 100}), expires=FAR)
        failure = await recorder.loss_of(3)
    assert isinstance(failure, HttpFailure)
    assert failure.kind == "too_large"


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (b"", "no_response", "with no response in it"),
        (b"sorry", "content", "sorry; that is no message"),
        (b'{"jsonrpc":"2.0","id":7,"result":1}', "no_response", "not to this request"),
    ],
)
async def test_a_body_that_is_no_answer_is_told_in_the_same_words(
    making: Making, body: bytes, kind: str, words: str
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.id == 1:
            await result(exchange)
        else:
            head = f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\n\r\n"
            await exchange.raw(OK + head.encode() + body)

    told = []
    async with HttpPeer(behave) as peer:
        for credentials in (Fixed(), Waiting()):
            transport = making.http(url=peer.url, credentials=credentials)
            recorder = await opened(transport)
            await asked(transport, recorder, 1)
            sent: Any = transport.send(modern(2), expires=FAR)
            failure = await recorder.loss_of(2)
            assert isinstance(failure, HttpFailure)
            told.append((str(failure), failure.kind, failure.status, failure.body, failure.sent))
            assert (sent.task is None) == isinstance(credentials, Fixed) ^ isinstance(
                credentials, Waiting
            )
    assert told[0] == told[1]
    assert words in told[0][0]
    assert told[0][1] == kind


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
