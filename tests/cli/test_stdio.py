"""`stdio`: alone, joining a running host, and what survives that host."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

from tests.support.line_client import STAMP, line_client
from tests.support.running import config_of, file_in, running

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = "echo,mute,progress,add_tool,slow"


def configured(tmp_path: Path, **servers: Any) -> Path:
    path = file_in(tmp_path)
    path.write_text(config_of(tmp_path, servers or {"files": {"tools": TOOLS}}))
    return path


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


async def test_an_old_client_is_served_alone(tmp_path: Path) -> None:
    async with line_client(configured(tmp_path)) as client:
        assert (await client.initialize())["protocolVersion"] == "2025-11-25"
        tools = (await client.ask("tools/list"))["result"]["tools"]
        assert "echo" in [tool["name"] for tool in tools]
        said = await client.ask("tools/call", call("echo", text="hi"))
        assert "hi" in said["result"]["content"][0]["text"]
        assert (await client.ask("initialize", {}))["error"]["code"] == -32600
        assert await client.end() == 0


async def test_a_modern_client_is_served_alone(tmp_path: Path) -> None:
    async with line_client(configured(tmp_path)) as client:
        said = await client.modern("server/discover")
        assert said["result"]["supportedVersions"] == ["2026-07-28"]
        tools = (await client.modern("tools/list"))["result"]
        assert tools["resultType"] == "complete"
        listening = client.begin(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": STAMP}
        )
        await client.until(method="notifications/subscriptions/acknowledged")
        params = call("add_tool")
        params["arguments"]["name"] = "more"
        await client.modern("tools/call", **params)
        await client.until(method="notifications/tools/list_changed")
        cancelled = {"requestId": listening}
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        assert "error" in await client.ask("tools/list")
        assert await client.end() == 0


def with_a_slow_server(tmp_path: Path, *, startup_deadline_s: float) -> Path:
    path = configured(tmp_path, slow={"start_delay": 600, "max_life": 30})
    deadline = f"[host]\nstartup_deadline_s = {startup_deadline_s}"
    path.write_text(path.read_text().replace("[host]", deadline))
    return path


async def test_the_first_answer_does_not_wait_for_slow_servers(tmp_path: Path) -> None:
    async with line_client(with_a_slow_server(tmp_path, startup_deadline_s=600)) as client:
        assert "instructions" not in await client.initialize()
        assert await client.end() == 0


async def test_a_list_waits_for_slow_servers_as_long_as_a_start_may_take(tmp_path: Path) -> None:
    async with line_client(with_a_slow_server(tmp_path, startup_deadline_s=0.5)) as client:
        await client.initialize()
        assert (await client.ask("tools/list"))["result"]["tools"] == []
        assert await client.end() == 0


async def test_progress_cancellation_and_what_is_no_message(tmp_path: Path) -> None:
    async with line_client(configured(tmp_path)) as client:
        await client.initialize("2025-03-26")
        params = {**call("progress", n=2, s=0), "_meta": {"progressToken": "t"}}
        await client.ask("tools/call", params)
        assert (await client.until(method="notifications/progress"))["params"]["progress"] >= 0
        number = client.begin("tools/call", call("mute"))
        cancelled = {"requestId": number}
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
        client.send(5)
        nobodys = await client.heard_where(
            lambda one: isinstance(one, dict) and "error" in one and one.get("id") is None
        )
        assert nobodys["error"]["code"] == -32600
        client.send([{"jsonrpc": "2.0", "id": "b", "method": "ping"}])
        array = await client.heard_where(lambda one: isinstance(one, list))
        assert array == [{"jsonrpc": "2.0", "id": "b", "result": {}}]
        assert not [
            one for one in client.heard if isinstance(one, dict) and one.get("id") == number
        ]


async def test_it_joins_the_host_that_runs(tmp_path: Path) -> None:
    path = configured(tmp_path)
    async with running(tmp_path) as host, line_client(path) as client:
        pid = (await host.servers())["files"]["pid"]
        await client.initialize()
        await client.ask("tools/call", call("echo", text="hi"))
        assert (await host.servers())["files"]["pid"] == pid
        async with line_client(path) as other:
            assert "result" in await other.modern("tools/call", **call("echo", text="ho"))
            assert await other.end() == 0
        assert await client.end() == 0


async def test_a_restart_of_the_host_is_survived_with_clear_errors(tmp_path: Path) -> None:
    path = configured(tmp_path)
    async with running(tmp_path) as host, line_client(path) as client:
        await client.initialize()
        await client.ask("tools/list")
        open_call = client.begin("tools/call", call("mute"))
        await client.ask("ping")
        host.process.send_signal(signal.SIGKILL)
        await host.process.wait()
        said = await client.until(id=open_call)
        assert "not known whether" in said["error"]["message"]
        assert "nothing was executed" in (await client.ask("ping"))["error"]["message"]
        async with running(tmp_path):
            await client.until(method="notifications/tools/list_changed")
            said = await client.ask("tools/call", call("echo", text="again"))
            assert "again" in said["result"]["content"][0]["text"]
            assert await client.end() == 0


async def test_whoever_is_left_takes_over_from_a_client_that_ended(tmp_path: Path) -> None:
    path = configured(tmp_path)
    async with line_client(path) as first:
        await first.initialize()
        async with line_client(path) as second:
            await second.initialize()
            await second.ask("tools/call", call("echo", text="one"))
            assert await first.end() == 0
            await second.until(method="notifications/tools/list_changed")
            said = await second.ask("tools/call", call("echo", text="two"))
            assert "two" in said["result"]["content"][0]["text"]
            assert await second.end() == 0


async def test_a_termination_ends_it_within_bounds(tmp_path: Path) -> None:
    async with line_client(configured(tmp_path)) as client:
        await client.initialize()
        client.process.terminate()
        assert await asyncio.wait_for(client.process.wait(), 30) == 0
