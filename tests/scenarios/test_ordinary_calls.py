"""Whichever way a call goes, in one go or step by step, the same is told, given and sent.

Each story is told twice, with a server of its own each time (see `tests.scenarios.two_ways`).
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Raw

from observant_host.peers.input_handlers import InputHandlers
from observant_host.telemetry.propagation import TraceContext
from observant_host.wire.tasks import EXTENSION
from tests.scenarios.two_ways import same_by_both_ways

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.two_ways import Run

ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])
OLD: dict[str, Any] = {"allow_legacy": True}


async def answer(_request: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Ada"}}


@ERAS
async def test_calls_that_end_well(tmp_path: Path, era: str) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "a % d %% \u2028 \n \U0001f600"})
        await run.call("s/echo", Raw(b'{ "text":\n "raw %b" }'))
        await run.call("add", {"a": 1, "b": 2})
        await run.call("echo")
        await run.call("echo", {})

    options: dict[str, Any] = {"era": era, "tools": "echo,add"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=5, **OLD)


@ERAS
async def test_failures_that_the_server_names(tmp_path: Path, era: str) -> None:
    async def story(run: Run) -> None:
        await run.call("fail")
        await run.call("rpc_error", {"code": -32011, "message": "no %s", "data": {"a": 1}})
        await run.call("echo", {"text": "x"})
        await run.call("rpc_error", {"code": -32601})
        await run.call("fail", principal="ada")

    options: dict[str, Any] = {"era": era, "tools": "echo,fail,rpc_error"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1, **OLD)


@ERAS
async def test_results_that_no_revision_knows(tmp_path: Path, era: str) -> None:
    async def story(run: Run) -> None:
        await run.call("odd", {"type": "surprise"})
        await run.call("odd", {"type": 5})
        await run.call("odd", {"type": "task"})
        await run.call("odd", {"type": "input_required"})
        await run.call("dup")
        await run.call("noise")
        await run.call("orphan")

    options: dict[str, Any] = {"era": era, "tools": "odd,dup,noise,orphan"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=3, **OLD)


@ERAS
async def test_a_server_that_asks_for_what_nobody_gives(tmp_path: Path, era: str) -> None:
    async def story(run: Run) -> None:
        await run.call("ask")
        await run.call("state")
        await run.call("echo", {"text": "x"})

    options: dict[str, Any] = {"era": era, "tools": "ask,state,echo"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1, **OLD)


async def test_a_server_that_asks_and_is_answered(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("ask")
        await run.call("ask", handlers=InputHandlers(answer), principal="ada")
        await run.call("ask", handlers=InputHandlers())
        await run.call("ask_forever")
        for _ in range(3):
            await run.call("echo", {"text": "x"}, handlers=InputHandlers(answer))
        own = InputHandlers(answer)
        for _ in range(3):  # whose handlers come again goes the short way from then on
            await run.call("echo", {"text": "x"}, handlers=own)
        await run.call("ask", inputs="hand_up", principal="ada")
        await run.call("echo", {"text": "y"}, inputs="hand_up", principal="ada")
        await run.call("state", inputs="hand_up")

    options: dict[str, Any] = {"era": "modern", "tools": "ask,ask_forever,echo,state"}
    of_host: dict[str, Any] = {"on_elicitation": answer}
    await same_by_both_ways(story, tmp_path, options=options, of_host=of_host, in_one_go=3)


@ERAS
async def test_calls_whose_time_is_over(tmp_path: Path, era: str) -> None:
    async def story(run: Run) -> None:
        await run.call("mute")
        await run.call("echo", {"text": "x"})
        await run.call("mute", principal="ada")
        await run.call("mute", deadline_s=0.2)

    options: dict[str, Any] = {"era": era, "tools": "echo,mute"}
    times: dict[str, Any] = {"call_timeout_s": 0.5}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1, **times, **OLD)


@pytest.mark.parametrize(("era", "latest"), [("modern", 600.0), ("legacy", 600.0), ("modern", 1.0)])
async def test_progress_gives_a_call_time_again_until_all_of_it_is_over(
    tmp_path: Path, era: str, latest: float
) -> None:
    async def story(run: Run) -> None:
        task = run.begin("progress", {"n": 7, "s": 0.2})
        await run.reached("progress")
        await task

    options: dict[str, Any] = {"era": era, "tools": "progress"}
    times: dict[str, Any] = {"call_timeout_s": 1.0 if latest < 600 else 2.0, "call_max_s": latest}
    in_one_go = 1 if latest > 1.0 else 0
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=in_one_go, **times, **OLD)


@ERAS
@pytest.mark.parametrize("by", ["caller", "operator", "both"])
async def test_a_call_that_is_cancelled_once_it_was_sent(tmp_path: Path, era: str, by: str) -> None:
    async def story(run: Run) -> None:
        task = run.begin("mute", {"a": 1})
        await run.reached("mute")
        other = await run.hold(principal="ada")
        run.look()
        if by != "caller":
            await run.host.cancel_call(run.host.calls_in_flight()[0].id, principal="bob")
        if by != "operator":
            task.cancel()
        await asyncio.wait([task])
        run.look()
        run.go.touch()
        await other
        await run.call("echo", {"text": "x"})
        await run.got("notifications/cancelled")

    options: dict[str, Any] = {"era": era, "tools": "mute,echo,held"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=2, **OLD)


@ERAS
async def test_calls_that_wait_in_a_pipe_that_is_full(tmp_path: Path, era: str) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        await run.call("stall")
        large = run.begin("echo", {"text": "x" * 1_000_000})
        await asyncio.sleep(0)
        behind = [run.begin("echo", {"text": str(number)}) for number in range(3)]
        await asyncio.sleep(0)
        run.look()
        behind[0].cancel()
        await asyncio.wait(behind[:1])
        await run.host.cancel_call(run.host.calls_in_flight()[-1].id)
        await asyncio.wait([behind[2]])
        large.cancel()
        await asyncio.wait([large])
        await asyncio.wait([behind[1]])

    options: dict[str, Any] = {"era": era, "tools": "stall,echo"}
    more: dict[str, Any] = {"call_timeout_s": 2.0, "probe_timeout_s": 10.0}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=2, **more, **OLD)


@ERAS
@pytest.mark.parametrize("how", ["die", "kill", "close"])
async def test_a_server_that_dies_in_a_call(tmp_path: Path, era: str, how: str) -> None:
    async def story(run: Run) -> None:
        others = [run.begin("mute", principal=name) for name in (None, "ada")]
        await run.reached("mute", 2)
        await run.call(how)
        await asyncio.wait(others)
        await run.host.wait_for("s", "ready")
        await run.call("echo", {"text": "x"})

    options: dict[str, Any] = {"era": era, "tools": "mute,echo,die,kill,close"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1, **OLD)


async def test_a_call_that_may_be_repeated_is(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        await run.call("kill")
        await run.host.wait_for("s", "ready")
        task = run.begin("mute")
        await run.reached("mute")
        await run.call("die", principal="ada")
        await run.reached("mute", 2)
        run.look()
        task.cancel()
        await asyncio.wait([task])

    more: dict[str, Any] = {"retry_calls": "idempotent", "idempotent_tools": ("kill", "mute")}
    options: dict[str, Any] = {"era": "modern", "tools": "mute,echo,kill,die"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1, **more)


async def test_a_host_that_closes_during_a_call(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        tasks = [run.begin("mute"), run.begin("mute", principal="ada")]
        await run.reached("mute", 2)
        run.look()
        await run.host.drain(0.01)
        closing = asyncio.ensure_future(run.host.close())
        await asyncio.wait(tasks)
        await closing

    options: dict[str, Any] = {"era": "modern", "tools": "mute"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=0)


async def test_arguments_that_cannot_be_sent(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": object()})
        await run.call("echo", {"text": object()}, principal="ada")
        await run.call("echo", Raw(b"[1]"))
        await run.call("echo", Raw(b'{"a":\n'), principal="ada")
        await run.call("echo", {}, handlers=InputHandlers(offered={"x": object()}))
        assert run.results[-1]["type"] == "InvalidCall"
        await run.call("nowhere", {"text": "x"})
        await run.call("echo", {"text": "x"}, deadline_s=-1)
        await run.call("echo", {"text": "x"}, log_level="loud")
        await run.call("echo", {"text": "x"})

    await same_by_both_ways(story, tmp_path, options={"tools": "echo"}, in_one_go=1)


@ERAS
async def test_a_promise_about_structured_content(tmp_path: Path, era: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"value": {"type": "integer"}}}
    tool: dict[str, Any] = {
        "name": "structured",
        "inputSchema": {"type": "object"},
        "outputSchema": schema,
    }

    async def story(run: Run) -> None:
        await run.call("structured", {"value": 1})
        await run.call("structured", {"value": "one"})
        await run.call("structured", {"value": "one"}, principal="ada")
        await run.call("echo", {"text": "x"})

    options: dict[str, Any] = {"era": era, "tools": "echo", "tool_json": json.dumps(tool)}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1, **OLD)


@ERAS
async def test_a_host_that_asks_for_log_messages(tmp_path: Path, era: str) -> None:
    async def story(run: Run) -> None:
        await run.call("log")
        await run.call("echo", {"text": "x"}, log_level="debug")

    options: dict[str, Any] = {
        "era": era,
        "tools": "echo,log",
        "capabilities": '{"tools":{},"logging":{}}',
    }
    of_host: dict[str, Any] = {"log_level": "info"}
    await same_by_both_ways(story, tmp_path, options=options, of_host=of_host, in_one_go=0, **OLD)


async def test_a_server_that_may_have_tasks(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("task", {"polls": 2, "ms": 10})
        await run.call("echo", {"text": "x"})

    options: dict[str, Any] = {"era": "modern", "tools": "echo,task"}
    more: dict[str, Any] = {"extensions": (EXTENSION,)}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=0, **more)


async def test_a_task_that_nobody_declared(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("task", {"polls": 2, "ms": 10})
        await run.call("echo", {"text": "x"})

    options: dict[str, Any] = {"era": "modern", "tools": "echo,task"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1)


async def test_more_calls_than_there_are_places(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        first = await run.hold()
        second = run.begin("echo", {"text": "in line"})
        await asyncio.sleep(0)
        run.look()
        await run.call("echo", {"text": "none left"})
        run.go.touch()
        await asyncio.wait([first, second])
        await run.call("echo", {"text": "again"})

    options: dict[str, Any] = {"era": "modern", "tools": "echo,held"}
    more: dict[str, Any] = {"max_in_flight": 1, "queue_max": 1, "queue_timeout_s": 10.0}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=3, **more)


@pytest.mark.parametrize(("state", "told"), [("", "trace"), ("vendor=%d", "full"), ("", "none")])
async def test_callers_with_a_trace_of_their_own(tmp_path: Path, state: str, told: str) -> None:
    async def story(run: Run) -> None:
        for sampled in (True, False):
            parent = TraceContext(7, 11, sampled, state)
            await run.call("echo", {"text": "x"}, parent=parent)
            await run.call("echo", {"text": "x"}, parent=parent, principal="ada")
            await run.call("fail", {}, parent=parent, principal="ada")
            await run.call("echo", {"text": "x"}, principal="a % b")

    options: dict[str, Any] = {"era": "modern", "tools": "echo,fail"}
    in_one_go = 2 if state else 6
    more: dict[str, Any] = {"propagate": told}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=in_one_go, **more)


async def test_many_callers_of_which_one_goes_away(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        tasks = [await run.hold(number + 1, principal=f"p{number}") for number in range(4)]
        tasks[1].cancel()
        await asyncio.wait(tasks[1:2])
        run.go.touch()
        for task in tasks:
            await asyncio.wait([task])
        for number in range(200):
            await run.call("echo", {"text": "x"}, principal=f"p{number}")

    options: dict[str, Any] = {"era": "modern", "tools": "echo,held"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=203)


async def test_coroutines_that_are_closed_or_never_awaited(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        router = run.host.core.router
        router.call_tool("echo", {"text": "x"}).close()
        begun = router.call_tool("mute", {})
        begun.send(None)
        run.look()
        await run.reached("mute")
        begun.close()
        await run.got("notifications/cancelled")
        thrown = router.call_tool("mute", {})
        thrown.send(None)
        await run.reached("mute", 2)
        with pytest.raises(KeyError):
            thrown.throw(KeyError("not ours"))
        await run.got("notifications/cancelled", 2)
        await run.call("echo", {"text": "x"})

    options: dict[str, Any] = {"era": "modern", "tools": "echo,mute"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1)


async def test_an_address_that_a_person_is_to_open(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("connect")
        await run.call("connect", handlers=InputHandlers(answer, elicitation_modes=("url",)))

    options: dict[str, Any] = {"era": "legacy", "tools": "connect"}
    of_host: dict[str, Any] = {"on_elicitation": answer, "elicitation_modes": ("form", "url")}
    await same_by_both_ways(story, tmp_path, options=options, of_host=of_host, in_one_go=0, **OLD)


async def test_a_server_that_asks_nobody_during_an_old_call(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("request", {"method": "ping"})
        await run.call("request", {"method": "roots/list"})
        await run.call("flood", {"n": 50})
        await run.call("connect")

    options: dict[str, Any] = {"era": "legacy", "tools": "request,flood,connect"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=3, **OLD)
