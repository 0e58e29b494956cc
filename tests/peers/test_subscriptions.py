"""What comes on a stream of changes counts only where it was asked for, and each end is noticed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from observant_host.decisions.subscription import Filter, Loss
from observant_host.errors import RpcError, Unavailable
from observant_host.telemetry.vocabulary import HostLifecycle, ServerMessage
from tests.peers.desk import META, Desk

TOOLS = Filter(("tools",))


async def standing(asked: Filter = TOOLS) -> tuple[Desk, Any]:
    desk = await Desk().modern()
    return desk, await desk.following(asked)


async def test_the_request_has_the_filter_and_waits_without_a_deadline() -> None:
    desk, stream = await standing(Filter(("tools", "prompts"), ("a:",)))
    (sent,) = desk.sent
    assert sent["method"] == "subscriptions/listen"
    assert sent["params"]["notifications"] == {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourceSubscriptions": ["a:"],
    }
    assert META + "protocolVersion" in sent["params"]["_meta"]
    await desk.clock.advance(1_000_000)
    assert stream.acked.value == stream.asked
    assert not stream.lost.is_set()
    assert desk.life.open_requests == 0


async def test_events_count_by_the_id_of_a_stream_that_asked_for_them() -> None:
    desk, stream = await standing()
    desk.in_stream(stream.id, "tools/list_changed")
    await desk.settle()
    assert desk.listener.changed == ["tools"]
    assert stream.messages == 1
    told = next(one for one in desk.told if isinstance(one.fact, ServerMessage))
    assert [(link.type, link.context) for link in told.links] == [
        ("delivered_on", stream.call.context)
    ]


@pytest.mark.parametrize("wrong", [99, None, "1", 1.0, True, {"id": 1}])
async def test_a_foreign_id_and_one_of_another_type_are_dropped(wrong: object) -> None:
    desk, stream = await standing()
    assert stream.id == 1
    desk.in_stream(wrong, "tools/list_changed")
    desk.in_stream(wrong, "resources/updated", uri="a:")
    await desk.settle()
    assert desk.listener.changed == []
    assert desk.drops() == ["subscription_foreign"] * 2


@pytest.mark.parametrize("params", [None, {}, {"_meta": {}}, {"_meta": 1}, {"_meta": None}])
async def test_an_event_without_an_id_is_dropped(params: Any) -> None:
    desk, _ = await standing()
    note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    desk.say(note if params is None else {**note, "params": params})
    await desk.settle()
    assert desk.listener.changed == []
    assert desk.drops() == ["subscription_foreign"]


async def test_what_was_not_asked_for_or_not_granted_is_dropped() -> None:
    desk = await Desk().modern()
    stream = await desk.following(
        Filter(("tools", "prompts")), {"toolsListChanged": True, "resourcesListChanged": True}
    )
    assert stream.acked.value == TOOLS
    for kind in ("prompts", "resources", "tools"):
        desk.in_stream(stream.id, f"{kind}/list_changed")
    desk.in_stream(stream.id, "resources/updated", uri="a:")
    desk.in_stream(stream.id, "subscriptions/acknowledged", notifications={})
    await desk.settle()
    assert desk.listener.changed == ["tools"]
    assert desk.drops() == ["subscription_unasked"] * 4


async def test_an_event_before_the_acknowledgment_is_dropped() -> None:
    desk = await Desk().modern()
    trace = desk.telemetry.count(HostLifecycle(what="test"))
    stream = desk.life.subscriptions.open(TOOLS, expires=2000, trace=trace)
    desk.in_stream(stream.id, "tools/list_changed")
    await desk.settle()
    assert desk.listener.changed == []
    assert desk.drops() == ["subscription_early"]


async def test_two_streams_are_told_apart() -> None:
    desk, first = await standing()
    second = await desk.following(Filter(("prompts",)))
    desk.in_stream(first.id, "prompts/list_changed")
    desk.in_stream(second.id, "prompts/list_changed")
    await desk.settle()
    assert desk.listener.changed == ["prompts"]
    assert desk.drops() == ["subscription_unasked"]


async def test_its_result_is_a_graceful_end() -> None:
    desk, stream = await standing()
    desk.result(desk.sent[0], {"resultType": "complete", "_meta": {META + "subscriptionId": 1}})
    await desk.settle()
    assert stream.lost.value is Loss.GRACEFUL
    desk.in_stream(stream.id, "tools/list_changed")
    await desk.settle()
    assert desk.listener.changed == []


@pytest.mark.parametrize("result_first", [True, False])
async def test_a_result_and_a_cancellation_are_one_end_in_either_order(result_first: bool) -> None:
    desk, stream = await standing()
    cancelled = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": stream.id},
    }
    if not result_first:
        desk.say(cancelled)
    desk.result(desk.sent[0], {"resultType": "complete"})
    if result_first:
        desk.say(cancelled)
    await desk.settle()
    assert stream.lost.value is (Loss.GRACEFUL if result_first else Loss.CANCELLED)
    assert desk.methods() == ["subscriptions/listen"]


@pytest.mark.parametrize("named", ["1", 1.0, True, None, 2])
async def test_a_cancellation_of_something_else_ends_nothing(named: object) -> None:
    desk, stream = await standing()
    params = {"requestId": named}
    desk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    await desk.settle()
    assert not stream.lost.is_set()
    assert desk.drops() == ["cancelled_unknown_request"]


@pytest.mark.parametrize(
    ("code", "loss"), [(-32601, Loss.UNKNOWN_METHOD), (-32602, Loss.REFUSED), (-1, Loss.REFUSED)]
)
async def test_an_error_instead_of_an_acknowledgment(code: int, loss: Loss) -> None:
    desk = await Desk().modern()
    trace = desk.telemetry.count(HostLifecycle(what="test"))
    stream = desk.life.subscriptions.open(TOOLS, expires=2000, trace=trace)
    await desk.settle()
    desk.error(desk.sent[0], code)
    await desk.settle()
    assert stream.lost.value is loss
    assert isinstance(stream.error, RpcError)


async def test_the_end_of_the_life_ends_its_streams_and_is_no_fault_of_theirs() -> None:
    desk, stream = await standing()
    desk.transport.link.end("lost")
    await desk.settle()
    assert stream.lost.value is Loss.TRANSPORT
    assert desk.life.inbox.cut_off is None
    with pytest.raises(Unavailable):
        desk.life.subscriptions.open(TOOLS, expires=2000, trace=stream.call.context)


async def test_closing_the_life_ends_its_streams_first() -> None:
    desk, stream = await standing()
    await desk.life.close()
    await desk.settle()
    assert desk.sent[-1]["method"] == "notifications/cancelled"
    assert desk.sent[-1]["params"] == {"requestId": stream.id}


async def test_an_error_without_an_id_is_still_paired_with_the_only_call_beside_a_stream() -> None:
    desk, stream = await standing()
    task = asyncio.create_task(desk.life.request("tools/call", {"name": "x"}, expires=2000))
    await desk.settle()
    desk.say({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}})
    with pytest.raises(RpcError):
        await task
    assert not stream.lost.is_set()
