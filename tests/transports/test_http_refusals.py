"""Answers over HTTP that refuse: kept with status and body, asked once more, without secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from observant_host.errors import HttpFailure
from tests.support.http_peer import JSON, Exchange, HttpPeer
from tests.transports.http_asking import asked, failure_of
from tests.transports.http_subjects import Fixed, Making, modern
from tests.transports.suite import FAR, opened


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
