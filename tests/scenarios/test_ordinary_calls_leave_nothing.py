"""However ordinary calls end, and whenever: no place, entry, task or open call stays behind."""

from __future__ import annotations

import asyncio
import gc
import random
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.peers.ordinary import OrdinaryCall
from observant_host.telemetry.propagation import TraceContext
from observant_host.telemetry.vocabulary import Request, RoutedCall
from tests.scenarios.two_ways import Relaxed, Run

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS: dict[str, Any] = {"era": "modern", "tools": "echo,mute,fail,rpc_error,odd,ask"}


async def leave(run: Run, task: asyncio.Task[Any], drawn: random.Random) -> None:
    """Its caller, an operator or nobody ends it, at some moment."""
    how = drawn.choice(["caller", "caller", "later", "operator", "nobody", "pause"])
    for _ in range(drawn.randrange(6)):
        await asyncio.sleep(0)
    if how == "caller":
        task.cancel()
    elif how == "later":
        asyncio.get_running_loop().call_later(drawn.random() / 100, task.cancel)
    elif how == "operator":
        for one in run.host.calls_in_flight()[:2]:
            await run.host.cancel_call(one.id)
    elif how == "pause":
        await asyncio.sleep(drawn.random() / 200)


@pytest.mark.parametrize("seed", [1, 2])
async def test_calls_that_are_left_at_any_moment_are_told_once_and_leave_nothing(
    tmp_path: Path, seed: int
) -> None:
    drawn, tasks = random.Random(seed), []
    few: dict[str, Any] = {"max_in_flight": 3, "queue_max": 4, "queue_timeout_s": 0.3}
    run = Run(Relaxed(), tmp_path / "log", of_host={}, options=OPTIONS, call_timeout_s=0.4, **few)
    before = asyncio.all_tasks()
    async with run.host:
        await run.host.wait_for("s", "ready")
        supervisor = run.supervisor
        for number in range(300):
            options: dict[str, Any] = {"principal": f"p{drawn.randrange(90)}"}
            if drawn.random() < 0.2:
                state = drawn.choice(["", "a=b"])
                options["parent"] = TraceContext(5, 6, drawn.random() < 0.5, state)
            names = ("echo", "echo", "echo", "fail", "rpc_error", "odd", "ask", "mute")
            tasks.append(run.begin(drawn.choice(names), {"text": "x"}, **options))
            await leave(run, tasks[-1], drawn)
            if number == 150 and (life := supervisor.peer.life) is not None:
                await life.close()
        await asyncio.wait(tasks)
        run.nothing_is_left(supervisor)
    assert asyncio.all_tasks() <= before
    told = [one.context.span_id for one in run.watching.all if type(one.fact) is RoutedCall]
    sent = [one.context.span_id for one in run.watching.all if type(one.fact) is Request]
    assert len({*told, *sent}) == len(told) + len(sent), "each is told once"
    assert len(told) == len(run.results) >= 200
    assert run.watching.in_one_go > 0


async def test_a_cancelled_call_is_no_work_for_the_garbage_collector(tmp_path: Path) -> None:
    run = Run(Relaxed(), tmp_path / "log", of_host={}, options=OPTIONS)
    async with run.host:
        await run.host.wait_for("s", "ready")
        gc.collect()
        gc.disable()
        try:
            task = asyncio.ensure_future(run.host.call_tool("mute"))
            await run.reached("mute")
            task.cancel()
            await asyncio.wait([task])
            del task
            await asyncio.sleep(0)
            assert [one for one in gc.get_objects() if type(one) is OrdinaryCall] == []
        finally:
            gc.enable()
