"""What changes between calls, or during one, holds for those that come next, whichever way."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from observant_host.wire.tasks import EXTENSION
from tests.scenarios.two_ways import numbers, same_by_both_ways
from tests.support.hosts import PATIENCE_S
from tests.support.peers import received

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.two_ways import Run

OPTIONS: dict[str, Any] = {"era": "modern", "tools": "echo,held,mute,progress,kill,task"}


async def test_other_times_hold_for_the_next_call(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        before = run.supervisor.record.pid
        await run.reload(run.declared(call_timeout_s=0.4))
        await run.call("mute")
        await run.reload(run.declared(reset_timeout_on_progress=False))
        await run.call("echo", {"text": "y"})
        assert run.supervisor.record.pid == before
        (*_, last) = received(run.log, "tools/call")
        assert "progressToken" not in last["params"]["_meta"]

    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=2)


async def test_other_places_hold_for_the_next_call(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        held = await run.hold()
        await run.reload(run.declared(max_in_flight=1, queue_max=1))
        waiting = run.begin("echo", {"text": "in line"})
        await asyncio.sleep(0)
        run.look()
        await run.reload(run.declared(max_in_flight=3, queue_max=1))
        other = run.begin("echo", {"text": "at once"})
        run.go.touch()
        for task in (held, waiting, other):
            await task
        await run.call("echo", {"text": "x"})

    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=4)


async def test_an_extension_that_is_switched_on_is_declared_by_the_next_call(
    tmp_path: Path,
) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        await run.reload(run.declared(extensions=(EXTENSION,)))
        await run.host.wait_for("s", "ready")
        await run.call("task", {"polls": 1, "ms": 10})

    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=1)


async def test_a_promise_that_comes_with_another_list_is_looked_at(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"value": {"type": "integer"}}}
    tool = {"name": "structured", "inputSchema": {"type": "object"}, "outputSchema": schema}

    async def story(run: Run) -> None:
        await run.call("structured", {"value": "one"})
        promising = {"tools": "echo", "tool_json": json.dumps(tool)}
        await run.reload(run.declared(options=promising))
        await run.host.wait_for("s", "ready")
        await run.call("structured", {"value": "one"})
        await run.call("structured", {"value": 1})

    options = {**OPTIONS, "tools": "echo,structured"}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1)


async def test_a_server_that_is_renamed_during_calls_and_named_back(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        held = [await run.hold(), await run.hold(2, principal="ada")]
        renaming = asyncio.ensure_future(run.reload(run.declared("z")))
        await run.call("s/echo", {"text": "before it is known"})
        run.go.touch()
        for task in held:
            await task
        await renaming
        await run.host.wait_for("z", "ready")
        await run.call("z/echo", {"text": "x"})
        await run.call("s/echo", {"text": "x"})
        async with asyncio.timeout(PATIENCE_S):  # until nothing is known of it any more
            while any('"s"' in labels for _, labels in numbers(run.metrics)):
                await asyncio.sleep(0.01)
        await run.reload(run.declared())
        await run.host.wait_for("s", "ready")
        await run.call("s/echo", {"text": "x"})

    run = await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=5)
    counted = [key for key in numbers(run.metrics) if key[0] == "observant_host_attempts_total"]
    assert counted == [("observant_host_attempts_total", '{"peer": "s"}')]


async def test_a_life_that_comes_between_a_call_and_its_first_step(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        early = [run.host.core.router.call_tool("echo", {"text": "y"}) for _ in range(2)]
        await run.call("kill")
        await run.host.wait_for("s", "ready")
        for one in early:
            assert (await one).text == "y"
        await run.call("echo", {"text": "x"})

    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=4)


async def test_a_life_that_ends_between_a_call_and_its_first_step(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        calls = [asyncio.ensure_future(run.call("echo", {"text": "y"})) for _ in range(3)]
        life = run.supervisor.peer.life
        assert life is not None
        await life.close()
        await asyncio.wait(calls)
        await run.call("echo", {"text": "z"})

    await same_by_both_ways(story, tmp_path, options=OPTIONS)
