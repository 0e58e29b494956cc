"""A stream of changes is watched: what keeps it alive is told, and the kernel probes it."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import Unavailable
from observant_host.peers.subscriptions import timed_out
from observant_host.transports.web import connections
from tests.support.http_peer import Exchange, HttpPeer
from tests.transports.http_subjects import Making, modern
from tests.transports.suite import FAR, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LISTEN = "subscriptions/listen"


@pytest.fixture
async def making() -> AsyncIterator[Making]:
    making = Making()
    yield making
    for transport in making.made:
        await transport.close()


async def chatter(exchange: Exchange) -> None:
    """Comments and a nameless event, a message in two pieces, and another name's event."""
    await exchange.stream()
    await exchange.chunk(b": alive\n\n")
    await exchange.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    await exchange.chunk(b'data: {"jsonrpc":"2.0",')
    await exchange.chunk(b'"method":"notifications/prompts/list_changed"}\n\n')
    await exchange.chunk(b"event: ping\ndata: {}\n\n")
    await exchange.gone()


async def test_what_is_no_message_on_a_stream_of_changes_is_told_as_a_sign_of_life(
    making: Making,
) -> None:
    async with HttpPeer(chatter) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(7, LISTEN), expires=FAR)
        await recorder.until(lambda recorder: recorder.heard)
        await recorder.frame_count(2)
        assert set(recorder.heard) == {7}
        assert len(recorder.frames) == 2


async def test_of_other_streams_nothing_is_told(making: Making) -> None:
    async with HttpPeer(chatter) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(7), expires=FAR)
        await recorder.frame_count(2)
        assert recorder.heard == []


async def test_only_connections_of_streams_are_probed(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    probed: list[socket.socket] = []
    real = connections.probe

    def probe(transport: Any) -> None:
        real(transport)
        probed.append(transport.get_extra_info("socket"))

    monkeypatch.setattr(connections, "probe", probe)

    async def behave(exchange: Exchange) -> None:
        if exchange.seen.method == LISTEN:
            await chatter(exchange)
        else:
            await exchange.result()

    async with HttpPeer(behave) as peer:
        transport = making.http(url=peer.url)
        recorder = await opened(transport)
        transport.send(modern(1), expires=FAR)
        await recorder.answer_to(1)
        assert probed == []
        transport.send(modern(7, LISTEN), expires=FAR)
        await recorder.until(lambda recorder: recorder.heard)
        (sock,) = probed
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_KEEPIDLE"):
            tcp = socket.IPPROTO_TCP
            idle = sock.getsockopt(tcp, socket.TCP_KEEPIDLE)
            more = sock.getsockopt(tcp, socket.TCP_KEEPINTVL) * sock.getsockopt(
                tcp, socket.TCP_KEEPCNT
            )
            assert idle + more == 60


def test_a_connection_that_is_no_socket_is_left_alone() -> None:
    connections.probe(None)
    connections.probe(asyncio.Transport())


def test_a_path_that_the_kernel_found_dead_is_told_from_a_connection_that_ended() -> None:
    def caused(by: BaseException | None) -> Unavailable:
        error, middle = Unavailable("gone"), ConnectionError("broke")
        error.__cause__, middle.__cause__ = middle, by
        return error

    assert timed_out(caused(OSError(errno.ETIMEDOUT, "timed out")))
    assert timed_out(caused(TimeoutError(errno.ETIMEDOUT, "timed out")))
    assert timed_out(caused(OSError(errno.EHOSTUNREACH, "no route")))
    assert not timed_out(caused(ConnectionResetError(errno.ECONNRESET, "reset")))
    assert not timed_out(caused(None))
    assert not timed_out(None)
