"""One process, one session and one list serve every call of every caller; what is served leaves
nothing behind that goes on; and what comes back is there for those who listen already."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from observant_host import StdioServer
from observant_host.errors import CallTimeout
from tests.scenarios.http import add_url, asked
from tests.service.mcp.stage import make_host, staged
from tests.supervision.stage import DISCOVERED, Script, Stage, result
from tests.support.hosts import PATIENCE_S, QUICK, add, quick_host, reach
from tests.support.peers import events, received, scripted
from tests.support.processes import eventually
from tests.support.serving import serving

if TYPE_CHECKING:
    from pathlib import Path

CALLERS = ("ann", "bob", "eve")


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize("wire", ["stdio", "http"])
async def test_a_hundred_calls_cost_one_start_one_handshake_and_one_list(
    tmp_path: Path, wire: str, era: str
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with AsyncExitStack() as stack:
        if wire == "http":
            web = await stack.enter_async_context(serving(era=era, log=log))
            add_url(host, "s", web.url, allow_legacy=era == "legacy")
        else:
            add(host, "s", {"log": log, "era": era}, allow_legacy=era == "legacy")
        async with host:
            for caller in CALLERS * 6:
                texts = (str(n) for n in range(6))
                answers = await asyncio.gather(
                    *(host.call_tool("echo", {"text": one}, principal=caller) for one in texts)
                )
                assert [one.text for one in answers] == list("012345")
    assert len(received(log, "tools/call")) == 108
    assert len(events(log, "start")) == 1
    assert len(received(log, "server/discover")) == 1
    assert len(received(log, "initialize")) == (era == "legacy")
    assert len(received(log, "tools/list")) == 1


async def test_after_a_load_nothing_goes_on() -> None:
    script = Script(
        **{"server/discover": result(DISCOVERED), "tools/call": result({"content": []})}
    )
    async with Stage(script) as stage:
        timers = stage.clock.waiting
        peer, clock = stage.peer, stage.clock
        calls = [
            asyncio.ensure_future(peer.call("tools/call", {"name": "echo"}, target="echo"))
            for _ in range(200)
        ]
        for one in calls[::3]:
            one.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await clock.settle()
        assert not asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # nobody spins
        assert clock.waiting <= timers + 1  # of many deadlines, one timer
        assert peer.peer.gate.in_flight == 0


async def test_asking_whether_a_server_is_there_is_part_of_its_session(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with serving(era="legacy", tools="mute", log=log) as web:
        add_url(host, "s", web.url, allow_legacy=True)
        async with host:
            with pytest.raises(CallTimeout):
                await host.call_tool("mute", {}, deadline_s=0.2)
            await eventually(lambda: received(log, "ping"))
            assert host.servers["s"].state == "ready"
    begun = ("initialize", "server/discover")
    said = zip(asked(log, "POST"), received(log), strict=False)
    later = [one for one, message in said if message.get("method") not in begun]
    names = [{name.lower() for name in one["headers"]} for one in later]
    assert all("mcp-session-id" in one for one in names)


async def test_a_server_that_comes_late_is_told_to_those_who_listen_and_called_by_them(
    tmp_path: Path,
) -> None:
    there = tmp_path / "there"
    host = make_host(tmp_path)
    add(host, "s", {"capabilities": '{"tools":{"listChanged":true}}'})
    late = f"test -e {there} || exit 1; exec {shlex.join(scripted(tools='add'))}"
    host.add_server("late", StdioServer(("sh", "-c", late)), **QUICK)
    wanted = {"notifications": {"toolsListChanged": True}}
    async with staged(host, tmp_path) as agent:
        before = (await agent.ask("tools/list")).result["tools"]
        assert [tool["name"] for tool in before] == ["echo"]
        async with agent.stream("subscriptions/listen", wanted) as stream:
            await stream.next()
            there.touch()
            async with asyncio.timeout(PATIENCE_S):
                told = await stream.next()
            assert told is not None
            assert told["method"] == "notifications/tools/list_changed"
        await reach(host, "late", "ready")
        answer = await agent.ask("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert answer.text == "3"
