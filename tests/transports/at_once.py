"""What the tests share of requests that are written at once, and answered without a task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.http_peer import JSON, Exchange, answer
from tests.transports.http_subjects import Fixed, modern
from tests.transports.suite import FAR

if TYPE_CHECKING:
    from collections.abc import Mapping

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
