"""Calls that find no room at once wait, and end, the same: told in one go or step by step.

Each story is told twice, with a server of its own each time (see `tests.scenarios.two_ways`).
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.telemetry.vocabulary import RoutedCall
from tests.scenarios.two_ways import same_by_both_ways
from tests.support.hosts import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.two_ways import Run

TOOLS = "echo,held,slow,mute,fail,rpc_error,kill,progress"
OPTIONS: dict[str, Any] = {"era": "modern", "tools": TOOLS}
ONE_AT_A_TIME: dict[str, Any] = {"max_in_flight": 1, "queue_max": 8, "queue_timeout_s": 10.0}
ERAS = pytest.mark.parametrize("era", ["modern", "legacy"])


async def in_line(run: Run, count: int) -> None:
    """Until so many wait: a task begins with the next turn of the loop."""
    async with asyncio.timeout(PATIENCE_S):
        while run.supervisor.peer.gate.queued < count:
            await asyncio.sleep(0)


@ERAS
async def test_whoever_waits_has_its_turn_however_it_ends_then(tmp_path: Path, era: str) -> None:
    async def story(run: Run) -> None:
        held = await run.hold()
        calls: list[tuple[str, Any]] = [
            ("echo", {"text": "x"}),
            ("fail", {}),
            ("rpc_error", {"code": -32011}),
            ("progress", {"n": 3, "s": 0.01}),
            ("echo", {"text": "y"}),
            ("mute", {}),
        ]
        waiting = [run.begin(*call) for call in calls]
        await in_line(run, len(waiting))
        run.look()
        run.go.touch()
        await asyncio.wait([held, *waiting])
        await run.call("echo", {"text": "z"})

    more: dict[str, Any] = {**ONE_AT_A_TIME, "call_timeout_s": 3.0, "allow_legacy": True}
    await same_by_both_ways(story, tmp_path, options={**OPTIONS, "era": era}, in_one_go=5, **more)


async def test_principals_take_turns(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        held = await run.hold()
        names = ["busy", "busy", "busy", "busy", "quiet", None]
        waiting = [
            run.begin("echo", {"text": f"{at} {name}"}, principal=name)
            for at, name in enumerate(names)
        ]
        await in_line(run, len(waiting))
        run.go.touch()
        await asyncio.wait([held, *waiting])
        sent = [one["params"]["arguments"].get("text") for one in run._calls()]
        assert sent[1:] == ["0 busy", "4 quiet", "5 None", "1 busy", "2 busy", "3 busy"]

    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=7, **ONE_AT_A_TIME)


async def test_many_wait_for_few_places(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        tasks = [run.begin("echo", {"text": str(number)}) for number in range(60)]
        await asyncio.wait(tasks)

    places: dict[str, Any] = {"max_in_flight": 4, "queue_max": 100}
    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=60, **places)


async def test_time_that_is_over_in_line(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        held = await run.hold()
        waiting = [run.begin("echo", {"text": "x"}, principal=name) for name in (None, "ada")]
        await asyncio.wait(waiting)
        run.go.touch()
        await asyncio.wait([held])
        await run.call("echo", {"text": "y"})

    more: dict[str, Any] = {**ONE_AT_A_TIME, "queue_timeout_s": 0.3}
    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=2, **more)


async def test_a_line_that_is_full_and_places_that_give_way(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        held = await run.hold()
        waiting = [run.begin("echo", {"text": f"busy {at}"}, principal="busy") for at in range(3)]
        await in_line(run, 3)
        refused = run.begin("echo", {"text": "one too many"}, principal="busy")
        await asyncio.wait([refused])
        quiet = run.begin("echo", {"text": "quiet"}, principal="quiet")
        await asyncio.wait([waiting[2]])
        run.look()
        run.go.touch()
        await asyncio.wait([held, quiet, *waiting])

    more: dict[str, Any] = {**ONE_AT_A_TIME, "queue_max": 3}
    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=4, **more)


async def test_a_server_that_dies_before_they_have_their_turn(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        held = await run.hold()
        kill = run.begin("kill")
        waiting = run.begin("echo", {"text": "in line"})
        await in_line(run, 2)
        run.go.touch()
        await asyncio.wait([held, kill, waiting])
        await run.host.wait_for("s", "ready")
        await run.call("echo", {"text": "y"})

    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=3, **ONE_AT_A_TIME)


@pytest.mark.parametrize("by", ["caller", "operator", "nobody", "throw"])
async def test_a_call_that_is_left_while_it_waits(tmp_path: Path, by: str) -> None:
    async def story(run: Run) -> None:
        held = await run.hold()
        if by in ("caller", "operator"):
            left = run.begin("echo", {"text": "left"}, principal="ada")
            await in_line(run, 1)
            run.look()
            if by == "caller":
                left.cancel()
            else:
                await run.host.cancel_call(run.host.calls_in_flight()[-1].id, principal="bob")
            await asyncio.wait([left])
        else:
            begun = run.host.core.router.call_tool("echo", {"text": "left"})
            begun.send(None)
            assert run.supervisor.peer.gate.queued == 1
            if by == "nobody":
                begun.close()
            else:
                with pytest.raises(KeyError):
                    begun.throw(KeyError("not ours"))
        assert run.supervisor.peer.gate.queued == 0
        other = run.begin("echo", {"text": "x"})
        await in_line(run, 1)
        run.go.touch()
        await asyncio.wait([held, other])

    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=2, **ONE_AT_A_TIME)


async def test_a_call_that_is_left_once_it_had_its_turn(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        held = await run.hold()
        left = run.begin("mute")
        await in_line(run, 1)
        run.go.touch()
        await asyncio.wait([held])
        await run.reached("mute")
        left.cancel()
        await asyncio.wait([left])
        await run.got("notifications/cancelled")

    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=1, **ONE_AT_A_TIME)


async def test_what_changes_while_they_wait_holds_for_them(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        slow = run.begin("slow", {"s": 1})
        waiting = [run.begin("echo", {"text": str(number)}) for number in range(2)]
        await in_line(run, 2)
        run.supervisor.peer.tasks.enabled = True
        await asyncio.wait([slow, *waiting])
        told = [one.fact for one in run.watching.all]
        queued_ms = [fact.queued_ms for fact in told if isinstance(fact, RoutedCall)]
        assert len([one for one in queued_ms if one > 100]) == 2

    await same_by_both_ways(story, tmp_path, options=OPTIONS, in_one_go=1, **ONE_AT_A_TIME)


async def test_a_promise_about_structured_content_is_looked_at(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"value": {"type": "integer"}}}
    tool = {"name": "structured", "inputSchema": {"type": "object"}, "outputSchema": schema}

    async def story(run: Run) -> None:
        held = await run.hold()
        waiting = [run.begin("structured", {"value": value}) for value in (1, "one")]
        await in_line(run, 2)
        run.go.touch()
        await asyncio.wait([held, *waiting])

    options = {**OPTIONS, "tool_json": json.dumps(tool)}
    await same_by_both_ways(story, tmp_path, options=options, in_one_go=1, **ONE_AT_A_TIME)


@pytest.mark.parametrize("pause_s", [1, 60])
async def test_a_server_that_wants_to_be_left_alone_meanwhile(tmp_path: Path, pause_s: int) -> None:
    """For a moment, which all wait for; or for longer than they can wait."""

    async def story(run: Run) -> None:
        first = run.begin("echo", {"text": "refused"})
        waiting = [run.begin("echo", {"text": str(number)}) for number in range(3)]
        await asyncio.wait([first, *waiting])
        await run.call("echo", {"text": "later"})

    options = {**OPTIONS, "call_status": "429", "fail_first": 1, "retry_after": str(pause_s)}
    more: dict[str, Any] = {**ONE_AT_A_TIME, "queue_timeout_s": 2.0}
    in_one_go = 4 if pause_s == 1 else 0
    await same_by_both_ways(
        story, tmp_path, options=options, over="http", in_one_go=in_one_go, **more
    )
