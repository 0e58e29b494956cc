"""One budget of time for a call: in line, on the wire, with progress and rounds of input."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from observant_host.config import Timing
from observant_host.errors import CallError, CallTimeout, RateLimited, RpcError, Unavailable
from observant_host.peers.errand import Witness
from observant_host.peers.peer import Peer
from observant_host.telemetry.vocabulary import DeadlineExpired
from observant_host.wire.revisions import HEADER_MISMATCH
from tests.peers.desk import Desk, server
from tests.peers.test_peer import call, peer_of, wants
from tests.peers.test_tasks_extension import worker
from tests.peers.web_desk import Posted, WebDesk

TIMES = Timing(call_timeout_s=10, call_max_s=25)


async def busy(**keys: Any) -> tuple[Desk, Peer, asyncio.Task[Any]]:
    """A peer with one place, which another call holds."""
    desk = await Desk(server(max_in_flight=1, **keys)).modern()
    peer = peer_of(desk)
    first = call(peer, expires=desk.soon(100))
    await desk.settle()
    return desk, peer, first


def scopes(desk: Any) -> list[str]:
    return [done.fact.scope for done in desk.told if isinstance(done.fact, DeadlineExpired)]


@pytest.mark.parametrize("own", [True, False])
async def test_time_in_line_and_on_the_wire_is_one_budget(*, own: bool) -> None:
    desk, peer, first = await busy(timing=TIMES)
    waiting = call(peer, expires=desk.soon(10) if own else None)
    await desk.clock.advance(6)
    desk.result(desk.sent[0], {})
    await first
    await desk.clock.advance(3.9)
    assert not waiting.done()
    await desk.clock.advance(0.2)
    with pytest.raises(CallTimeout) as caught:
        await waiting
    assert (caught.value.scope, caught.value.fault) == ("call" if own else "attempt", "peer")
    assert scopes(desk) == [caught.value.scope]


@pytest.mark.parametrize("own", [True, False])
async def test_a_budget_that_is_spent_in_line_is_the_hosts_and_sends_nothing(*, own: bool) -> None:
    desk, peer, first = await busy(timing=TIMES)
    waiting = call(peer, expires=desk.soon(10) if own else None)
    await desk.clock.advance(10.1)
    with pytest.raises(CallTimeout) as caught:
        await waiting
    error = caught.value
    assert (error.scope, error.delivery, error.fault) == ("queue", "not_sent", "host")
    assert scopes(desk) == ["queue"]
    assert len(desk.sent) == 1
    first.cancel()


async def test_a_further_attempt_has_what_the_first_one_left() -> None:
    desk = await Desk(server(timing=TIMES)).modern()
    peer, began = peer_of(desk), desk.clock.monotonic()
    await desk.clock.advance(7)
    again = call(peer, began=began, attempt=2)
    await desk.clock.advance(2.9)
    assert not again.done()
    await desk.clock.advance(0.2)
    with pytest.raises(CallTimeout):
        await again


async def test_a_call_whose_time_is_over_sends_nothing() -> None:
    desk = await Desk(server(timing=TIMES)).modern()
    peer, began = peer_of(desk), desk.clock.monotonic()
    await desk.clock.advance(11)
    witness = Witness()
    for late in ({"began": began}, {"expires": began + 10}):
        with pytest.raises(CallTimeout) as caught:
            await peer.call("tools/call", {"name": "t"}, witness=witness, **late)  # type: ignore[arg-type] # one option of two
        assert caught.value.delivery == "not_sent"
    assert desk.sent == []
    assert (witness.attempts, witness.delivery, witness.era) == (0, "not_sent", "modern")


async def test_progress_gives_the_full_time_again_also_after_a_wait_in_line() -> None:
    desk, peer, first = await busy(timing=TIMES)
    waiting = call(peer)
    await desk.clock.advance(8)
    desk.result(desk.sent[0], {})
    await first
    await desk.settle()
    await desk.clock.advance(1)
    params = {"progressToken": desk.sent[1]["id"], "progress": 1}
    desk.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    await desk.clock.advance(9.5)
    assert not waiting.done()
    await desk.clock.advance(1)
    with pytest.raises(CallTimeout):
        await waiting


async def test_a_round_of_input_has_its_full_time_and_all_rounds_the_maximum() -> None:
    """Each wish of the server is a sign of life; the whole is still bounded by call_max_s."""
    desk = await Desk(server(timing=TIMES)).modern()
    task = call(peer_of(desk))
    for number in range(2):
        await desk.clock.advance(9)
        desk.result(desk.sent[number], wants("more"))
        await desk.clock.advance(1)
    assert len(desk.sent) == 3
    await desk.clock.advance(4.9)
    assert not task.done()
    await desk.clock.advance(0.2)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert caught.value.scope == "call"
    assert caught.value.begun


async def test_a_caller_that_goes_leaves_no_place_taken_and_its_witness_knows() -> None:
    desk, peer, first = await busy()
    in_line, sent = Witness(), Witness()
    waiting = call(peer, witness=in_line)
    await desk.settle()
    waiting.cancel()
    first.cancel()
    running = call(peer, witness=sent)
    await desk.settle()
    running.cancel()
    await asyncio.gather(first, waiting, running, return_exceptions=True)
    assert (in_line.attempts, in_line.delivery) == (0, "not_sent")
    assert (sent.attempts, sent.delivery, sent.era) == (1, "sent_no_reply", "modern")
    assert (peer.gate.in_flight, peer.gate.queued) == (0, 0)


async def test_a_frame_that_never_left_is_known_to_its_witness() -> None:
    desk = await Desk().modern()
    desk.transport.link.hold()
    witness = Witness()
    stuck = call(peer_of(desk), witness=witness)
    await desk.settle()
    stuck.cancel()
    await asyncio.gather(stuck, return_exceptions=True)
    assert (witness.attempts, witness.delivery) == (1, "not_sent")


# over HTTP


class Unconnected(Posted):
    started = False

    def withdraw(self) -> bool:
        return True


async def test_time_that_is_over_before_there_is_a_connection_is_one_of_connecting() -> None:
    desk = await WebDesk().modern()
    desk.transport.send = lambda _out, _expires: Unconnected()  # type: ignore[method-assign,assignment]
    task = asyncio.create_task(desk.life.request("tools/call", {}, expires=desk.soon(5)))
    await desk.clock.advance(5.1)
    with pytest.raises(CallTimeout, match="could not be connected within 5 s") as caught:
        await task
    error = caught.value
    assert (error.scope, error.delivery, error.fault) == ("connect", "not_sent", "peer")
    assert scopes(desk) == ["connect"]


async def test_a_refusal_for_rate_holds_the_next_calls_back() -> None:
    desk = await WebDesk().modern()
    peer = Peer(desk.life.server, telemetry=desk.telemetry, clock=desk.clock)
    peer.attach(desk.life)
    first = call(peer)
    await desk.clock.settle()
    desk.lose(desk.sent(), kind="status", status=429, retry_after_s=7.0)
    with pytest.raises(RateLimited) as caught:
        await first
    assert (caught.value.retry_after_s, caught.value.delivery) == (7.0, "replied")
    with pytest.raises(RateLimited, match="another 7 s") as held:
        await call(peer, expires=desk.soon(5))
    assert held.value.delivery == "not_sent"
    second = call(peer)
    await desk.clock.advance(6.9)
    assert len(desk.transport.sent) == 1
    await desk.clock.advance(0.2)
    assert len(desk.transport.sent) == 2
    second.cancel()


# calls that a server has begun to work on


async def begun(task: asyncio.Task[Any], kind: type[CallError]) -> CallError:
    with pytest.raises(kind) as caught:
        await task
    assert caught.value.begun
    return caught.value


async def test_a_call_that_became_a_task_is_not_one_that_was_never_sent() -> None:
    """The server works on it, whatever became of what asks after it."""
    one = await worker()
    running = one.call()
    await one.desk.clock.advance(1)
    one.peer.detach("it went")
    await one.desk.clock.advance(600)
    assert (await begun(running, Unavailable)).delivery == "sent_no_reply"


async def test_a_refusal_of_what_asks_after_a_task_is_none_of_the_call_itself() -> None:
    one = await worker()
    one.polls = [HEADER_MISMATCH]
    running = one.call()
    await one.desk.clock.advance(3)
    error = await begun(running, RpcError)
    assert isinstance(error, RpcError)
    assert error.code == HEADER_MISMATCH


async def test_a_second_round_that_finds_no_server_is_no_call_that_was_never_sent() -> None:
    desk = await Desk().modern()
    peer = peer_of(desk)
    desk.answer = lambda message: desk.result(message, wants("later"))
    task = call(peer)
    await desk.settle()
    peer.detach("it went")
    await desk.clock.advance(1)
    assert (await begun(task, Unavailable)).delivery == "sent_no_reply"
