"""A call over one life: ids, deadlines, cancellation, late answers, and the end."""

from __future__ import annotations

import asyncio
import json

import pytest

from observant_host.errors import (
    CallTimeout,
    InvalidCall,
    InvalidResult,
    RpcError,
    Unavailable,
)
from observant_host.peers.eras import LegacyEra
from observant_host.telemetry.vocabulary import (
    DeadlineExpired,
)
from tests.peers.desk import META, MODERN, Desk, call, server


async def test_a_modern_request_is_stamped_and_its_result_passes_untouched() -> None:
    desk = await Desk().modern()
    task = call(desk, {"name": "echo", "_meta": {"mine": 1}})
    await desk.settle()
    (sent,) = desk.sent
    meta = sent["params"]["_meta"]
    assert meta["mine"] == 1
    assert meta[META + "protocolVersion"] == MODERN
    assert meta[META + "clientInfo"] == {"name": "tested-host", "version": "1"}
    assert meta[META + "clientCapabilities"] == {}
    assert meta["traceparent"].startswith("00-")
    desk.say(b'{"jsonrpc":"2.0","id":1,"result":{ "n": 18446744073709551616, "x" :1.0}}')
    assert bytes(await task) == b'{ "n": 18446744073709551616, "x" :1.0}'


async def test_a_legacy_request_carries_no_modern_key() -> None:
    desk = await Desk().legacy()
    task = call(desk, on_progress=lambda *_: None)
    await desk.settle()
    assert desk.sent[0]["params"]["_meta"] == {"progressToken": 1}
    desk.result(desk.sent[0], {})
    await task


async def test_no_trace_leaves_where_propagate_is_none() -> None:
    desk = Desk(server(propagate="none"))
    await desk.life.open()
    desk.life.send_discover(MODERN, trace=None)
    await desk.settle()
    assert "traceparent" not in desk.sent[0]["params"]["_meta"]


async def test_ids_count_upwards_and_parallel_answers_find_their_callers() -> None:
    desk = await Desk().modern()
    tasks = [call(desk) for _ in range(3)]
    await desk.settle()
    assert [message["id"] for message in desk.sent] == [1, 2, 3]
    for message in reversed(desk.sent):
        desk.result(message, {"mine": message["id"]})
    answers = [json.loads(bytes(await task)) for task in tasks]
    assert answers == [{"mine": 1}, {"mine": 2}, {"mine": 3}]


async def test_an_error_keeps_code_message_and_data() -> None:
    desk = await Desk(secrets=("hunter22",)).modern()
    task = call(desk)
    await desk.settle()
    desk.error(desk.sent[0], -32000, {"why": "token hunter22"})
    with pytest.raises(RpcError) as caught:
        await task
    assert (caught.value.code, caught.value.delivery) == (-32000, "replied")
    assert caught.value.data == {"why": "token ***"}


async def test_a_timeout_cancels_once_and_the_late_answer_is_dropped_by_its_id() -> None:
    desk = await Desk().modern()
    task = call(desk, expires=desk.soon(5))
    await desk.settle()
    await desk.clock.advance(5.1)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert (caught.value.scope, caught.value.delivery) == ("attempt", "sent_no_reply")
    await desk.settle()
    assert desk.methods() == ["tools/call", "notifications/cancelled"]
    assert desk.sent[1]["params"] == {"requestId": 1}
    (expired,) = desk.facts(DeadlineExpired)
    assert (expired.scope, expired.budget_ms) == ("attempt", 5000)
    desk.result(desk.sent[0], {"late": True})
    again = call(desk)
    await desk.settle()
    assert desk.drops() == ["late_reply"]
    desk.result(desk.sent[2], {"mine": True})
    assert json.loads(bytes(await again)) == {"mine": True}
    assert desk.life.open_requests == 0


async def test_a_cancelled_caller_sends_one_cancellation() -> None:
    desk = await Desk().modern()
    task = call(desk)
    await desk.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await desk.settle()
    assert desk.methods() == ["tools/call", "notifications/cancelled"]


async def test_a_call_whose_time_is_over_already_is_not_sent() -> None:
    desk = await Desk().modern()
    with pytest.raises(CallTimeout) as caught:
        await call(desk, expires=desk.soon(0))
    assert (caught.value.delivery, caught.value.fault) == ("not_sent", "host")
    assert desk.methods() == []
    (expired,) = desk.facts(DeadlineExpired)
    assert (expired.scope, expired.method) == ("attempt", "tools/call")


async def test_what_never_left_is_withdrawn_and_not_cancelled() -> None:
    desk = await Desk().modern()
    desk.transport.link.hold()
    filler = call(desk)
    await desk.settle()
    task = call(desk, expires=desk.soon(1))
    await desk.settle()
    await desk.clock.advance(1.5)
    with pytest.raises(CallTimeout) as caught:
        await task
    assert caught.value.delivery == "not_sent"
    desk.transport.link.resume()
    await desk.settle()
    assert desk.methods() == ["tools/call"]
    filler.cancel()


async def test_a_life_that_ends_fails_every_open_request_at_once() -> None:
    desk = await Desk().modern()
    sent = call(desk)
    await desk.settle()
    desk.transport.link.hold()
    unsent = call(desk)
    await desk.settle()
    desk.transport.link.end("exit", "it exited")
    with pytest.raises(Unavailable, match="it exited") as lost:
        await sent
    with pytest.raises(Unavailable) as kept:
        await unsent
    assert (lost.value.delivery, kept.value.delivery) == ("sent_no_reply", "not_sent")
    with pytest.raises(Unavailable, match="not running") as after:
        await call(desk)
    assert after.value.delivery == "not_sent"
    assert desk.life.end is not None
    assert await desk.life.ended_wait() is desk.life.end
    assert await desk.life.close() is desk.life.end


async def test_nothing_is_asked_before_an_era_is_known() -> None:
    desk = Desk()
    await desk.life.open()
    with pytest.raises(Unavailable, match="no era"):
        await call(desk)


async def test_an_era_is_decided_once_in_a_life() -> None:
    desk = await Desk().modern()
    with pytest.raises(RuntimeError):
        desk.life.settle(
            LegacyEra(version="2025-11-25"), server_info=None, capabilities={}, instructions=None
        )


@pytest.mark.parametrize("wrong", ['"1"', "1.0", "true"])
async def test_an_id_of_another_type_fails_its_call_at_once(wrong: str) -> None:
    desk = await Desk().modern()
    task = call(desk)
    await desk.settle()
    desk.say(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % wrong.encode())
    with pytest.raises(InvalidResult):
        await task


async def test_an_error_without_an_id_fails_the_only_open_call_unless_we_just_notified() -> None:
    desk = await Desk().modern()
    nameless = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "what?"}}
    task = call(desk)
    await desk.settle()
    desk.say(nameless)
    with pytest.raises(RpcError) as caught:
        await task
    assert caught.value.code == -32601
    desk.life.notify("notifications/something")
    other = call(desk)
    await desk.settle()
    desk.say(nameless)
    await desk.settle()
    assert not other.done()
    desk.result(desk.sent[-1], {})
    await other


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}',
        b'{"jsonrpc":"2.0","id":1,"result":"caf\xe9 \xff"}',
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000 + b"}",
        b'{"jsonrpc":"2.0","id":1,"result":' + b"9" * 5000 + b"}",
        b'{"jsonrpc":"2.0","id":1}',
        b'[{"jsonrpc":"2.0","id":1,"result":{}}]',
    ],
)
async def test_a_broken_reply_fails_its_call_at_once_and_nothing_else(frame: bytes) -> None:
    desk = await Desk().modern()
    task = call(desk)
    await desk.settle()
    other = call(desk)
    await desk.settle()
    desk.say(frame)
    with pytest.raises(InvalidResult):
        await task
    desk.result(desk.sent[1], {})
    await other


async def test_an_oversized_reply_fails_its_call_by_the_id_in_its_excerpt() -> None:
    desk = await Desk().modern()
    task = call(desk)
    await desk.settle()
    desk.life.inbox.noise_received("oversized", b'{"jsonrpc":"2.0","id":1,"result":{"text":"xx')
    with pytest.raises(InvalidResult, match="max_message_bytes"):
        await task


async def test_orphans_duplicates_and_noise_are_counted_and_harm_nobody() -> None:
    desk = await Desk().modern()
    task = call(desk)
    await desk.settle()
    desk.say({"jsonrpc": "2.0", "id": 999999, "result": {}})
    desk.say({"jsonrpc": "2.0", "id": "ghost", "error": {"code": 1, "message": "boo"}})
    for line in (b"listening", b"42", b"null", b"[]", b"{}", b'{"level":"info","id":1}'):
        desk.say(line)
    desk.life.inbox.noise_received("not_json", b"banner")
    desk.result(desk.sent[0], {"n": 1})
    desk.result(desk.sent[0], {"n": 2})
    await desk.settle()
    assert json.loads(bytes(await task)) == {"n": 1}
    assert desk.drops().count("foreign_reply") == 2
    assert desk.drops()[-1] == "duplicate_reply"


async def test_arrays_are_read_in_the_one_revision_that_has_them() -> None:
    desk = await Desk().legacy("2025-03-26")
    task = call(desk)
    await desk.settle()
    desk.say(
        [
            {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
            {"jsonrpc": "2.0", "id": "p", "method": "ping"},
            {"jsonrpc": "2.0", "id": 1, "result": {"ok": True}},
        ]
    )
    assert json.loads(bytes(await task)) == {"ok": True}
    await desk.settle()
    assert desk.listener.changed == ["tools"]
    assert desk.sent[-1] == {"jsonrpc": "2.0", "id": "p", "result": {}}


async def test_arguments_that_are_no_json_are_the_callers_mistake() -> None:
    desk = await Desk().modern()
    with pytest.raises(InvalidCall):
        await call(desk, {"name": "echo", "arguments": {"x": object()}})
    assert desk.life.open_requests == 0
