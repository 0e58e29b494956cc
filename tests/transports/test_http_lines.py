"""A request on an idle connection is written at once, and an ordinary answer to it taken without a
task; what a server and a caller see of it is what they would see of one that has a task."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import HttpFailure
from observant_host.transports.web import openings
from observant_host.transports.web.lines import MAX_TAKEN
from tests.support.http_peer import JSON, SSE, Exchange, HttpPeer, answer
from tests.transports.at_once import DATES, OK, Waiting, asked, result, whole
from tests.transports.http_subjects import Fixed, Making, legacy, modern, settled
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


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


async def test_a_refusal_of_what_was_written_at_once_is_of_the_session_it_had(
    making: Making,
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.id == 3:
            transport.forget_session()  # meanwhile, for the refusal of another request
            await exchange.empty(404)
            return
        given = ["Mcp-Session-Id: one"] if exchange.seen.method == "initialize" else []
        await whole(exchange, answer(exchange.id, "ok"), *given)

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number, method in enumerate(["initialize", "tools/call", "tools/call"]):
            transport.send(legacy(number, method, version="2025-11-25"), expires=FAR)
            await recorder.answer_to(number)
        transport.send(legacy(3, version="2025-11-25"), expires=FAR)
        failure = await recorder.loss_of(3)
        assert peer.seen[-1].headers["mcp-session-id"] == "one"
    assert isinstance(failure, HttpFailure)
    assert (failure.kind, failure.status) == ("session_lost", 404)


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


async def test_more_names_than_are_remembered_are_all_sent(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openings, "MAX_OPENINGS", 3)
    async with HttpPeer(result) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(20):
            assert await asked(transport, recorder, number, name=f"t{number % 5}") == (number > 0)
    assert [seen.headers["mcp-name"] for seen in peer.seen] == [f"t{n % 5}" for n in range(20)]
