"""What comes over one life beside answers: progress, messages of the server, floods; and what is
told of a request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from observant_host.errors import (
    CallTimeout,
    RpcError,
    Unavailable,
)
from observant_host.peers.endings import last_words
from observant_host.telemetry.vocabulary import (
    FrameDropped,
    Request,
    ServerMessage,
)
from observant_host.transports.base import End
from tests.peers.desk import Desk, call

# progress


def progress(token: Any, value: float, **more: Any) -> dict[str, Any]:
    params = {"progressToken": token, "progress": value, **more}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


async def test_progress_reaches_its_call_by_exact_token_and_only_rising() -> None:
    desk = await Desk().modern()
    seen: list[tuple[float, float | None, str | None]] = []
    task = call(desk, on_progress=lambda *told: seen.append(told))
    await desk.settle()
    token = desk.sent[0]["params"]["_meta"]["progressToken"]
    for note in (
        progress(token, 1, total=3, message="m"),
        progress(str(token), 2),
        progress(99, 2),
        progress(token, 1),
        progress(token, "2"),
        progress(token, 2.5),
    ):
        desk.say(note)
    desk.result(desk.sent[0], {})
    await task
    desk.say(progress(token, 9))
    await desk.settle()
    assert seen == [(1, 3, "m"), (2.5, None, None)]
    assert desk.drops().count("progress_unexpected") == 5


async def test_progress_renews_the_attempt_but_never_past_the_hard_maximum() -> None:
    desk = await Desk().modern()
    task = call(desk, expires=desk.soon(10), latest=desk.soon(25), renew_s=10.0)
    await desk.settle()
    token = desk.sent[0]["params"]["_meta"]["progressToken"]
    for step in range(1, 4):
        await desk.clock.advance(8)
        assert not task.done()
        desk.say(progress(token, step))
        await desk.settle()
    await desk.clock.advance(2)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert caught.value.scope == "call"


async def test_a_failing_or_asynchronous_callback_does_not_end_the_reader() -> None:
    desk = await Desk().modern()
    told: list[float] = []

    async def later(value: float, _total: float | None, _message: str | None) -> None:
        told.append(value)

    def broken(*_told: object) -> None:
        raise RuntimeError("caller's bug")

    tasks = [call(desk, on_progress=broken), call(desk, on_progress=later)]
    await desk.settle()
    desk.say(progress(1, 1))
    desk.say(progress(2, 1))
    await desk.settle()
    for message in list(desk.sent):
        desk.result(message, {})
    await asyncio.gather(*tasks)
    assert told == [1]
    assert "progress_callback_failed" in desk.drops()


# what servers say by themselves


async def test_a_modern_servers_request_is_dropped_and_never_answered() -> None:
    desk = await Desk().modern()
    desk.say({"jsonrpc": "2.0", "id": 9, "method": "ping"})
    await desk.settle()
    assert desk.sent == []
    assert desk.drops() == ["request_from_modern_server"]


async def test_notifications_are_dispatched_or_counted_and_a_flood_stays_bounded() -> None:
    desk = await Desk().legacy("2025-11-25")
    for kind in ("tools", "prompts", "resources"):
        desk.say({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"})
    desk.say({"jsonrpc": "2.0", "method": "window/logMessage", "params": {"x": 1}})
    for _ in range(200):
        desk.say({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    await desk.settle()
    assert desk.listener.changed == ["tools", "prompts", "resources"]
    assert desk.drops().count("notification_unknown") == 1
    assert desk.drops().count("message_flood") == 190
    assert len(desk.facts(ServerMessage)) == 13
    assert desk.listener.traffic == 204


async def test_a_storm_of_changes_is_told_a_few_times_and_has_its_effect_each_time() -> None:
    desk = await Desk().legacy()
    storm = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    for _ in range(500):
        desk.say(storm)
    desk.say({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
    await desk.settle()
    told = [fact.method for fact in desk.facts(ServerMessage)]
    assert told == [storm["method"]] * 10 + ["notifications/message"]
    assert desk.drops() == ["message_flood"] * 490
    assert desk.listener.changed == ["tools"] * 500
    await desk.clock.advance(1.0)
    desk.say(storm)
    await desk.settle()
    assert len(desk.facts(ServerMessage)) == 12


async def test_each_request_is_one_operation_with_its_end() -> None:
    desk = await Desk().modern()
    task = call(desk, target="echo", purpose="call", attempt=2, round=1)
    await desk.settle()
    desk.error(desk.sent[0], -32602)
    with pytest.raises(RpcError):
        await task
    (done,) = [one for one in desk.told if isinstance(one.fact, Request)]
    assert (done.outcome, done.fact.rpc_code, done.fact.request_id) == ("rpc_error", -32602, 1)
    assert (done.fact.target, done.fact.attempt, done.fact.round) == ("echo", 2, 1)


async def test_excerpts_are_masked_before_they_are_cut() -> None:
    desk = await Desk(secrets=("s3cr3t-value",)).modern()
    desk.say(b"x" * 505 + b"s3cr3t-value and more")
    await desk.settle()
    (dropped,) = desk.facts(FrameDropped)
    assert "s3c" not in dropped.excerpt


async def test_a_request_that_its_transport_lost_fails_alone() -> None:
    desk = await Desk().modern()
    lost, other = call(desk), call(desk)
    await desk.settle()
    desk.life.inbox.request_lost(1, OSError("the stream ended"))
    desk.life.inbox.request_lost(77, OSError("nobody's"))
    with pytest.raises(Unavailable, match="the stream ended") as caught:
        await lost
    assert caught.value.delivery == "sent_no_reply"
    desk.result(desk.sent[1], {})
    await other


async def test_a_full_write_queue_is_the_hosts_fault_and_nothing_was_sent() -> None:
    desk = await Desk().modern()
    desk.transport.link.hold()
    big = {"name": "echo", "arguments": {"x": "y" * (20 << 20)}}
    first = call(desk, big)
    await desk.settle()
    with pytest.raises(Unavailable) as caught:
        await call(desk, big)
    assert (caught.value.delivery, caught.value.fault) == ("not_sent", "host")
    assert desk.life.open_requests == 1
    desk.life.notify("notifications/x", {"x": "y" * (20 << 20)})
    assert desk.drops() == ["write_queue_full"]
    first.cancel()


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (End(kind="exit", detail="it ended", exit_code=3), "it ended (exit status 3)"),
        (End(kind="exit", detail="it ended", exit_code=-9), "it ended (signal 9)"),
        (End(kind="exit", detail="status 3", exit_code=3), "status 3"),
        (
            End(kind="eof", detail="it closed its output", stderr_tail="fatal: no cheese\n"),
            "it closed its output; stderr ends with: fatal: no cheese",
        ),
    ],
)
def test_last_words_are_a_sentence(end: End, words: str) -> None:
    assert last_words(end) == words


@pytest.mark.parametrize("params", [None, [], {"progress": 1}, {"progressToken": 1}])
async def test_a_malformed_notification_is_dropped(params: Any) -> None:
    desk = await Desk().legacy()
    for method in ("notifications/progress", "notifications/cancelled"):
        desk.say({"jsonrpc": "2.0", "method": method, "params": params})
    await desk.settle()
    assert desk.drops() == ["progress_unexpected", "cancelled_unknown_request"]
