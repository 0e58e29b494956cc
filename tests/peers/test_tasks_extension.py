"""A tool call that becomes a task: polled as its server wishes, answered, withdrawn, bounded."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.config import Timing
from observant_host.errors import (
    CallTimeout,
    InputRefused,
    InvalidResult,
    RpcError,
    Unavailable,
)
from observant_host.peers.input_handlers import InputHandlers, InputRequest
from observant_host.peers.peer import Peer
from observant_host.peers.tasks import MAX_FOLLOWED
from observant_host.peers.tasks_extension import MAX_LOST
from observant_host.telemetry.vocabulary import Request
from observant_host.wire.tasks import EXTENSION
from tests.peers.desk import META, Desk, server

if TYPE_CHECKING:
    from observant_host.peers.peer import CallReply

FORM = {"method": "elicitation/create", "params": {"message": "?"}}
DONE = {"content": [{"type": "text", "text": "done"}]}


def task(status: str = "working", task_id: Any = "t-1", **more: Any) -> dict[str, Any]:
    stamps = {"createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z"}
    return {"taskId": task_id, "status": status, "ttlMs": None, **stamps, **more}


class Worker:
    """A server that answers tools/call with a task, and tasks/get from `polls`."""

    def __init__(self, desk: Desk, peer: Peer) -> None:
        self.desk = desk
        self.peer = peer
        self.first: Any = {"resultType": "task", **task(pollIntervalMs=2000)}
        self.polls: list[Any] = []
        desk.answer = self.answer

    def answer(self, message: dict[str, Any]) -> None:
        match message["method"]:
            case "tools/call":
                self.desk.result(message, self.first)
            case "tasks/get":
                now = self.polls.pop(0) if self.polls else task()
                if isinstance(now, int):
                    self.desk.error(message, now)
                elif now is not None:
                    self.desk.result(message, {"resultType": "complete", **now})
            case "tasks/update" | "tasks/cancel":
                self.desk.result(message, {"resultType": "complete"})

    def call(self, **options: Any) -> asyncio.Task[CallReply]:
        return asyncio.create_task(self.peer.call("tools/call", {"name": "slow"}, **options))

    def sent(self, method: str) -> list[dict[str, Any]]:
        return [one["params"] for one in self.desk.sent if one.get("method") == method]


async def worker(
    *, handlers: InputHandlers | None = None, extensions: Any = (EXTENSION,), **timing: Any
) -> Worker:
    handlers = handlers or InputHandlers()
    config = server(timing=Timing(**timing), extensions=extensions, max_in_flight=1)
    desk = await Desk(config, handlers=handlers).modern(tools={})
    peer = Peer(config, telemetry=desk.telemetry, clock=desk.clock, handlers=handlers)
    peer.attach(desk.life)
    return Worker(desk, peer)


def declared(params: dict[str, Any]) -> Any:
    return params["_meta"][META + "clientCapabilities"].get("extensions")


async def test_a_task_is_polled_at_its_servers_pace_until_its_result_is_there() -> None:
    one = await worker()
    one.polls = [
        task(pollIntervalMs=5000),
        task(pollIntervalMs=100),
        task("completed", result=DONE),
    ]
    running = one.call()
    await one.desk.clock.advance(1.9)
    assert one.sent("tasks/get") == []
    await one.desk.clock.advance(0.2)
    assert len(one.sent("tasks/get")) == 1
    await one.desk.clock.advance(4.8)
    assert len(one.sent("tasks/get")) == 1
    await one.desk.clock.advance(0.4)
    reply = await running
    assert json.loads(bytes(reply.raw)) == DONE
    assert [one["taskId"] for one in one.sent("tasks/get")] == ["t-1"] * 3
    assert one.sent("tasks/cancel") == []


async def test_the_extension_is_declared_in_tool_calls_and_what_follows_only() -> None:
    one = await worker()
    one.polls = [task("completed", result=DONE)]
    running = one.call()
    await one.desk.clock.advance(3)
    await running
    assert declared(one.sent("tools/call")[0]) == {EXTENSION: {}}
    assert declared(one.sent("tasks/get")[0]) == {EXTENSION: {}}
    one.desk.answer = lambda message: one.desk.result(message, {})
    await one.peer.call("prompts/get", {"name": "p"})
    assert declared(one.sent("prompts/get")[0]) is None


async def test_a_task_nobody_declared_is_invalid() -> None:
    plain = await worker(extensions=())
    with pytest.raises(InvalidResult, match="not declared"):
        await plain.call()
    assert declared(plain.sent("tools/call")[0]) is None
    opted = await worker()
    opted.desk.answer = lambda message: opted.desk.result(message, opted.first)
    with pytest.raises(InvalidResult, match="not declared"):
        await opted.peer.call("prompts/get", {"name": "p"})


async def test_a_legacy_server_is_told_nothing_and_may_send_no_task() -> None:
    config = server(extensions=(EXTENSION,))
    desk = await Desk(config).legacy(tools={})
    peer = Peer(config, telemetry=desk.telemetry, clock=desk.clock)
    peer.attach(desk.life)
    desk.answer = lambda message: desk.result(message, {"resultType": "task", **task()})
    with pytest.raises(InvalidResult, match="not declared"):
        await peer.call("tools/call", {"name": "t"})
    assert EXTENSION not in json.dumps(desk.sent)


async def test_a_tools_own_error_ends_a_task_like_any_call() -> None:
    one = await worker()
    one.polls = [task("completed", result={**DONE, "isError": True})]
    running = one.call()
    await one.desk.clock.advance(3)
    assert (await running).is_error


async def test_a_task_that_is_over_at_once_is_not_polled() -> None:
    one = await worker()
    one.first = {"resultType": "task", **task("completed", result=DONE)}
    assert json.loads(bytes((await one.call()).raw)) == DONE
    assert one.desk.methods() == ["tools/call"]


@pytest.mark.parametrize(
    ("last", "expected", "says"),
    [
        (task("failed", error={"code": -32050, "message": "no"}), RpcError, "-32050: no"),
        (task("failed", statusMessage="broke"), RpcError, "broke"),
        (task("failed", error={"code": "x"}), RpcError, "failed"),
        (task("cancelled", statusMessage="by admin"), Unavailable, "by admin"),
        (task("completed", result={"resultType": "input_required"}), InvalidResult, "ended with"),
        (task("completed"), InvalidResult, "without a `result`"),
        (task("completed", result=[]), InvalidResult, "without a `result`"),
        (task("paused"), InvalidResult, "status"),
        (task("completed", "other", result=DONE), InvalidResult, "another task"),
        ({"resultType": "task"}, InvalidResult, "taskId"),
    ],
)
async def test_how_a_task_ends_badly_is_what_its_call_ends_with(
    last: Any, expected: type[Exception], says: str
) -> None:
    one = await worker()
    one.polls = [last]
    running = one.call()
    await one.desk.clock.advance(3)
    with pytest.raises(expected, match=says):
        await running


@pytest.mark.parametrize("task_id", ["", "x" * 1025, 5, None, ["a"]])
async def test_an_id_is_a_bounded_string(task_id: Any) -> None:
    one = await worker()
    one.first = {"resultType": "task", **task(task_id=task_id)}
    with pytest.raises(InvalidResult, match="taskId"):
        await one.call()


async def test_a_forgotten_task_is_not_withdrawn() -> None:
    one = await worker()
    one.polls = [-32602]
    running = one.call()
    await one.desk.clock.advance(3)
    with pytest.raises(RpcError):
        await running
    await one.desk.settle()
    assert one.sent("tasks/cancel") == []


# input


async def test_input_is_asked_for_once_and_told_by_an_update() -> None:
    asked: list[InputRequest] = []

    async def answer(request: InputRequest) -> dict[str, Any]:
        asked.append(request)
        return {"action": "accept", "content": {"n": len(asked)}}

    one = await worker(handlers=InputHandlers(elicitation=answer))
    one.polls = [
        task("input_required", inputRequests={"a": FORM}),
        task("input_required", inputRequests={"a": FORM, "b": FORM}),
        task("working"),
        task("completed", result=DONE),
    ]
    running = one.call()
    await one.desk.clock.advance(10)
    await running
    assert len(asked) == 2
    assert [sorted(one["inputResponses"]) for one in one.sent("tasks/update")] == [["a"], ["b"]]
    assert one.sent("tasks/update")[0]["taskId"] == "t-1"
    assert one.sent("tasks/update")[0]["inputResponses"]["a"] == {
        "action": "accept",
        "content": {"n": 1},
    }
    (call,) = one.sent("tools/call")
    assert not {"inputResponses", "requestState"} & call.keys()


async def test_input_that_nobody_can_give_ends_the_call_and_withdraws_the_task() -> None:
    one = await worker()
    one.polls = [task("input_required", inputRequests={"a": FORM})]
    running = one.call()
    await one.desk.clock.advance(3)
    with pytest.raises(InputRefused):
        await running
    await one.desk.settle()
    assert [sent["taskId"] for sent in one.sent("tasks/cancel")] == ["t-1"]


# time and cancellation


async def test_a_cancelled_call_withdraws_its_task_by_a_request_and_no_notification() -> None:
    one = await worker()
    running = one.call()
    await one.desk.clock.advance(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await one.desk.settle()
    assert one.desk.methods() == ["tools/call", "tasks/cancel"]


async def test_a_deadline_ends_the_waiting_and_withdraws_the_task() -> None:
    one = await worker()
    running = one.call(expires=one.desk.soon(7))
    await one.desk.clock.advance(7.1)
    with pytest.raises(CallTimeout) as caught:
        await running
    assert caught.value.scope == "call"
    assert len(one.sent("tasks/get")) >= 3
    assert len(one.sent("tasks/cancel")) == 1


async def test_without_a_deadline_the_servers_maximum_ends_the_waiting() -> None:
    one = await worker(call_timeout_s=10, call_max_s=45)
    running = one.call()
    await one.desk.clock.advance(44)
    assert not running.done()
    await one.desk.clock.advance(2)
    with pytest.raises(CallTimeout):
        await running


async def test_polls_that_get_no_answer_are_forgiven_a_few_times() -> None:
    one = await worker(call_timeout_s=1, call_max_s=100)
    one.polls = [None, None, task("completed", result=DONE)]
    running = one.call()
    await one.desk.clock.advance(20)
    await running
    lost = await worker(call_timeout_s=1, call_max_s=100)
    lost.polls = [None] * 50
    running = lost.call()
    await lost.desk.clock.advance(40)
    with pytest.raises(CallTimeout):
        await running
    assert len(lost.sent("tasks/get")) == MAX_LOST + 1


async def test_a_waiting_task_holds_no_place_and_outlives_a_life_of_its_era() -> None:
    one = await worker()
    running = one.call()
    await one.desk.settle()
    assert one.peer.gate.in_flight == 0
    one.peer.detach("it is being restarted")
    await one.desk.clock.advance(3)
    fresh = await Desk(one.peer.server, clock=one.desk.clock).modern(tools={})
    fresh.answer = lambda message: fresh.result(message, task("completed", result=DONE))
    one.peer.attach(fresh.life)
    await one.desk.clock.advance(3)
    await running
    assert fresh.methods() == ["tasks/get"]


async def test_a_server_that_wishes_no_pause_is_polled_twenty_times_a_second() -> None:
    one = await worker()
    one.first = {"resultType": "task", **task(pollIntervalMs=0)}
    one.polls = [task(pollIntervalMs=0) for _ in range(1000)]
    running = one.call()
    await one.desk.clock.advance(1.01)
    assert 15 <= len(one.sent("tasks/get")) <= 21
    running.cancel()


async def test_so_many_tasks_are_followed_and_no_more_are_asked_for() -> None:
    one = await worker()
    running = []
    for _ in range(MAX_FOLLOWED):
        running.append(one.call())
        await one.desk.settle()
    one.desk.answer = lambda message: one.desk.result(message, DONE)
    await one.call()
    assert declared(one.sent("tools/call")[-1]) is None
    for each in running:
        each.cancel()
    await one.desk.settle()


async def test_no_id_of_a_task_is_in_the_name_of_a_span() -> None:
    one = await worker()
    one.polls = [task("completed", result=DONE)]
    running = one.call()
    await one.desk.clock.advance(3)
    await running
    told = [fact for fact in one.desk.facts(Request) if fact.method == "tasks/get"]
    assert [(fact.target, fact.uri, fact.purpose) for fact in told] == [(None, None, "task")]
