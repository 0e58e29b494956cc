"""Whoever operates a host sees the calls that are open, may end one, and sees how they ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.errors import CallCancelled, InvalidCall, RpcError
from observant_host.peers.notices import ProgressNote
from observant_host.routing.open_calls import RECENT, EndedCall
from tests.routing.bench import Bench
from tests.routing.peers import ScriptedPeer, reply
from tests.support.clock import START_WALL_NS

if TYPE_CHECKING:
    from observant_host.routing.call_result import CallResult


class Pending:
    """A call that a peer has and does not answer."""

    def __init__(self, *, sent: bool = True) -> None:
        self.sent = sent
        self.there = asyncio.Event()
        self.ended: BaseException | None = None
        self.witness: Any = None

    def peer(self, name: str = "a") -> ScriptedPeer:
        peer = ScriptedPeer(name)
        peer.call = self.call  # type: ignore[method-assign, assignment]  # a peer that never answers
        return peer

    def ordinary(self, _kept: object, _call: object) -> None:
        """Its calls are looked at one by one."""

    async def call(self, _method: str, _params: Any, **options: Any) -> Any:
        self.witness = options["witness"]
        if self.sent:
            self.witness.asked()
        self.there.set()
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            self.ended = error
            raise


def begin(bench: Bench, **options: Any) -> asyncio.Task[CallResult]:
    return asyncio.ensure_future(bench.router.call_tool("a/search", {}, **options))


async def test_an_open_call_is_shown_with_who_asked_and_how_long_it_may_take() -> None:
    pending = Pending()
    bench = Bench(pending.peer())
    task = begin(bench, principal="alice", deadline_s=30)
    await pending.there.wait()
    await bench.clock.advance(2)
    pending.witness.progress = ProgressNote(1, 3.0, 10.0, "x" * 500)
    (call,) = bench.router.calls.in_flight()
    assert (call.id, call.name, call.method, call.server) == ("1", "a/search", "tools/call", "a")
    assert (call.principal, call.state, call.attempts) == ("alice", "sent", 1)
    assert call.since == iso(0)
    assert call.deadline == iso(30)
    assert call.progress is not None
    assert (call.progress.progress, call.progress.total) == (3.0, 10.0)
    assert call.progress.message == "x" * 200
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.router.calls.in_flight() == []


def iso(seconds: float) -> str:
    from observant_host.supervision.peer_state import iso as written

    return written(START_WALL_NS + round(seconds * 1e9))


async def test_a_call_of_which_nothing_has_left_is_queued() -> None:
    pending = Pending(sent=False)
    bench = Bench(pending.peer())
    task = begin(bench)
    await pending.there.wait()
    (call,) = bench.router.calls.in_flight()
    assert (call.state, call.attempts, call.deadline, call.principal) == ("queued", 0, None, None)
    bench.router.calls.cancel(call.id, "cancelled by bob")
    with pytest.raises(CallCancelled, match="nothing was executed"):
        await task


async def test_an_operator_ends_a_call_and_its_caller_hears_who_and_what_is_certain() -> None:
    pending = Pending()
    bench = Bench(pending.peer())
    task = begin(bench)
    await pending.there.wait()
    shown = bench.router.calls.cancel("1", "cancelled by bob: it hangs")
    assert shown.name == "a/search"
    with pytest.raises(CallCancelled) as caught:
        await task
    assert str(caught.value) == (
        "cancelled by bob: it hangs; it may have been executed; do not simply repeat it"
    )
    assert isinstance(pending.ended, asyncio.CancelledError)
    assert (caught.value.outcome, caught.value.delivery) == ("cancelled", "sent_no_reply")
    assert caught.value.call is not None
    assert caught.value.call.server == "a"
    done = bench.routed()
    assert (done.outcome, done.error_type) == ("cancelled", "cancelled")


async def test_a_caller_goes_on_as_if_its_task_had_never_been_cancelled() -> None:
    pending = Pending()
    bench = Bench(pending.peer())

    async def caller() -> int:
        with pytest.raises(CallCancelled):
            await bench.router.call_tool("a/search", {})
        async with asyncio.timeout(30):  # counts cancellations of its task
            await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        return task.cancelling()

    task = asyncio.ensure_future(caller())
    await pending.there.wait()
    bench.router.calls.cancel("1", "by bob")
    assert await task == 0


async def test_a_caller_that_goes_away_in_the_same_instant_is_cancelled() -> None:
    pending = Pending()
    bench = Bench(pending.peer())
    task = begin(bench)
    await pending.there.wait()
    bench.router.calls.cancel("1", "by bob")
    bench.router.calls.cancel("1", "twice changes nothing")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.parametrize("unknown", ["2", "0", "-1", "x", "", "१", "9" * 400])
async def test_what_is_not_open_cannot_be_cancelled(unknown: str) -> None:
    bench = Bench(ScriptedPeer("a"))
    await bench.router.call_tool("a/search", {})
    with pytest.raises(InvalidCall, match="calls") as caught:
        bench.router.calls.cancel(unknown, "why")
    assert caught.value.unknown


async def test_ended_calls_are_remembered_newest_first_with_their_outcome() -> None:
    bench = Bench(ScriptedPeer("a", reply(), reply(is_error=True), RpcError(-32602, "no")))
    await bench.router.call_tool("a/search", {}, principal="alice")
    await bench.router.call_tool("a/search", {})
    with pytest.raises(RpcError):
        await bench.router.call_tool("a/search", {})
    with pytest.raises(InvalidCall):
        await bench.router.call_tool("nobody", {})
    recent = bench.router.calls.recent()
    assert [(call.id, call.outcome, call.fault, call.delivery) for call in recent] == [
        ("4", "invalid", "caller", "not_sent"),
        ("3", "rpc_error", "caller", "replied"),
        ("2", "tool_error", "none", "replied"),
        ("1", "ok", "none", "replied"),
    ]
    assert recent[-1].principal == "alice"
    assert recent[0].server == ""
    assert all(len(call.trace_id) == 32 for call in recent)


async def test_only_so_many_are_remembered() -> None:
    bench = Bench(ScriptedPeer("a"))
    for _ in range(RECENT + 3):
        await bench.router.call_tool("a/search", {})
    recent = bench.router.calls.recent()
    assert len(recent) == RECENT
    assert recent[-1].id == "4"


async def test_followers_hear_of_calls_that_did_not_end_ok() -> None:
    bench = Bench(ScriptedPeer("a", reply(), reply(is_error=True)))
    told: list[EndedCall] = []
    bench.router.calls.followers.add(told.append)
    await bench.router.call_tool("a/search", {})
    await bench.router.call_tool("a/search", {})
    assert [call.outcome for call in told] == ["tool_error"]


async def test_a_resource_is_shown_without_its_uri_which_may_hold_a_secret() -> None:
    bench = Bench(ScriptedPeer("a"))
    await bench.router.read_resource("db://user:secret@x", server="a")
    (call,) = bench.router.calls.recent()
    assert (call.name, call.method, call.server) == ("", "resources/read", "a")
