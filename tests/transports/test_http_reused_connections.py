"""Connections over HTTP that served before: used again, and trusted as far as can be proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.http_peer import Exchange, HttpPeer
from tests.transports.http_asking import lost, ok
from tests.transports.http_subjects import Making, legacy, modern
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.receivers import Recorder


async def test_a_connection_is_used_again(making: Making) -> None:
    async with HttpPeer(ok) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(5):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
    assert peer.connections == 1
    assert [seen.turn for seen in peer.seen] == [1, 2, 3, 4, 5]


async def test_an_idle_connection_that_the_server_closed_is_not_used(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.result()
        exchange.cut()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(20):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
            await peer.until(lambda peer: all(gone.is_set() for gone in peer.gone.values()))
    assert recorder.lost == []
    assert peer.connections == 20


async def test_a_request_that_lost_the_race_for_a_connection_is_not_sent_again(
    making: Making,
) -> None:
    """Nobody can know whether it was executed; but the next ones no longer run the same risk."""

    async def behave(exchange: Exchange) -> None:
        if exchange.seen.turn > 1:
            exchange.cut()
        else:
            await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await recorder.answer_to(1)
        transport.send(modern(2), expires=FAR)
        failure = await lost(recorder, 2)
        assert (failure.kind, failure.sent) == ("reset", True)
        for number in range(3, 8):
            transport.send(modern(number), expires=FAR)
            await recorder.answer_to(number)
    assert [seen.message["id"] for seen in peer.seen] == [1, 2, 3, 4, 5, 6, 7]


async def only_once(exchange: Exchange) -> None:
    """Drop each connection at its second request."""
    if exchange.seen.turn > 1:
        exchange.cut()
    else:
        await ok(exchange)


def over(count: int) -> Callable[[Recorder], bool]:
    return lambda recorder: len(recorder.messages) + len(recorder.lost) == count


async def test_a_server_that_breaks_every_reused_connection_gets_new_ones_only(
    making: Making,
) -> None:
    """Whatever time passes between them: after the second break it is how the server is."""
    async with HttpPeer(only_once) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(20):
            transport.send(modern(number), expires=FAR)
            await recorder.until(over(number + 1))
            making.clock.skipped += 100 * (number % 2)  # an idle one is soon too old to be used
    assert len(recorder.lost) == 2


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "ping"])
async def test_what_changes_nothing_is_sent_again_where_a_reused_connection_broke(
    making: Making, method: str
) -> None:
    async with HttpPeer(only_once) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        for number in range(5):
            transport.send(modern(number, method), expires=FAR)
            await recorder.answer_to(number)
    assert recorder.lost == []
    assert [seen.message["id"] for seen in peer.seen] == [0, 1, 1, 2, 3, 4]


async def test_what_changes_nothing_is_sent_again_once_only(making: Making) -> None:
    async def behave(exchange: Exchange) -> None:
        if len(peer.seen) > 1:
            exchange.cut()
        else:
            await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1, "tools/list"), expires=FAR)
        await recorder.answer_to(1)
        transport.send(modern(2, "tools/list"), expires=FAR)
        assert (await lost(recorder, 2)).kind == "reset"
    assert [seen.message["id"] for seen in peer.seen] == [1, 2, 2]


async def test_initialize_is_not_risked_on_a_connection_that_served_before(
    making: Making,
) -> None:
    async with HttpPeer(only_once) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1, "server/discover"), expires=FAR)
        await recorder.answer_to(1)
        transport.send(legacy(2, "initialize"), expires=FAR)
        await recorder.answer_to(2)
    assert [(seen.method, seen.turn) for seen in peer.seen] == [
        ("server/discover", 1),
        ("initialize", 1),
    ]
