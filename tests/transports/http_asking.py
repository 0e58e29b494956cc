"""One request over HTTP, and what comes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from observant_host.errors import HttpFailure
from tests.support.http_peer import Exchange, HttpPeer, answer
from tests.transports.http_subjects import Making, modern
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.support.receivers import Recorder


MAX = 1 << 20
GOOD = json.dumps(answer(1, {"text": "ä\u2028"}), ensure_ascii=False).encode()


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


async def lost(recorder: Any, request_id: int) -> HttpFailure:
    error = await recorder.loss_of(request_id)
    assert isinstance(error, HttpFailure)
    return error


async def ok(exchange: Exchange) -> None:
    if exchange.seen.verb != "POST":
        await exchange.empty(405)
    elif "id" in exchange.seen.message:
        await exchange.result()
    else:
        await exchange.empty(202)
