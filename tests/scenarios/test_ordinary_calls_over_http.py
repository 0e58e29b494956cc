"""Ordinary calls over HTTP are the same, told in one go or step by step (see `two_ways`)."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.peers.input_handlers import InputHandlers
from tests.scenarios.two_ways import same_by_both_ways

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.two_ways import Run

MIRRORING = json.dumps(
    {
        "name": "zoned",
        "inputSchema": {
            "type": "object",
            "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}},
        },
    }
)


async def answer(_request: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"name": "Ada"}}


@pytest.mark.parametrize("answers", ["json", "sse"])
async def test_whatever_a_server_answers(tmp_path: Path, answers: str) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "a % d \u2028"})
        await run.call("echo", {"text": "x"}, principal="ada")
        await run.call("fail")
        await run.call("rpc_error", {"code": -32011})
        await run.call("odd")
        await run.call("ask", handlers=InputHandlers(answer))
        await run.call("ask", inputs="hand_up")
        await run.call("big", {"bytes": 300_000})
        await run.call("echo", {"text": "y"})

    options = {"answers": answers, "tools": "echo,fail,rpc_error,odd,ask,big", "era": "modern"}
    await same_by_both_ways(story, tmp_path, options=options, over="http", in_one_go=4)


async def test_calls_that_are_lost_on_the_way(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        await run.call("drop")
        await run.call("applied")
        await run.call("applied", principal="ada")
        await run.call("count")
        await run.call("mute")
        await run.call("echo", {"text": "y"})

    options = {"tools": "echo,drop,applied,count,mute", "era": "modern"}
    more: dict[str, Any] = {"call_timeout_s": 1.0}
    await same_by_both_ways(story, tmp_path, options=options, over="http", in_one_go=3, **more)


@pytest.mark.parametrize("fault", ["400", "404", "429", "503", "reset"])
async def test_calls_that_are_refused(tmp_path: Path, fault: str) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "first"}, deadline_s=5)
        await run.call("echo", {"text": "x"})
        await run.call("echo", {"text": "y"}, principal="ada")

    options = {"tools": "echo", "era": "modern", "call_status": fault, "fail_first": 2}
    more: dict[str, Any] = {"call_timeout_s": 5.0}
    await same_by_both_ways(story, tmp_path, options=options, over="http", **more)


async def test_arguments_that_are_said_in_headers(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("zoned", {"zone": "north"})
        await run.call("zoned", {"zone": "n\u00f6rd\nlich"})
        await run.call("zoned", {"zone": 5})
        await run.call("zoned", {"zone": {"a": 1}})
        await run.call("zoned")
        await run.call("echo", {"text": "x"})

    options = {"tools": "echo", "tool_json": MIRRORING, "era": "modern"}
    await same_by_both_ways(story, tmp_path, options=options, over="http")


async def test_a_call_that_its_caller_leaves(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        task = run.begin("mute")
        await run.reached("mute")
        run.look()
        task.cancel()
        await asyncio.wait([task])
        other = run.begin("mute", principal="ada")
        await run.reached("mute", 2)
        await run.host.cancel_call(run.host.calls_in_flight()[0].id)
        await asyncio.wait([other])
        await run.call("echo", {"text": "x"})

    options = {"tools": "echo,mute", "era": "modern"}
    await same_by_both_ways(story, tmp_path, options=options, over="http", in_one_go=1)


async def test_a_legacy_server_with_sessions(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        await run.call("expire")
        await run.call("echo", {"text": "y"})
        await run.call("fail")

    options = {"tools": "echo,fail,expire", "era": "legacy", "sessions": True}
    more: dict[str, Any] = {"allow_legacy": True}
    await same_by_both_ways(story, tmp_path, options=options, over="http", in_one_go=0, **more)


async def test_a_server_of_the_first_transport_over_http(tmp_path: Path) -> None:
    async def story(run: Run) -> None:
        await run.call("echo", {"text": "x"})
        await run.call("fail")
        await run.call("echo", {"text": "y"}, principal="ada")
        task = run.begin("mute")
        await run.reached("mute")
        task.cancel()
        await asyncio.wait([task])

    options = {"tools": "echo,fail,mute", "era": "legacy", "old_sse": True}
    more: dict[str, Any] = {"allow_legacy": True}
    await same_by_both_ways(story, tmp_path, options=options, over="http", in_one_go=2, **more)
