"""The end of a real `observant-host run`: calls that are open, the socket, and what was adopted."""

from __future__ import annotations

import asyncio
import json
import signal
import sys

from tests.support.processes import alive, eventually, state_of
from tests.support.running import config_of, file_in, running

SUBREAPER = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
"""Becomes the program after it, to which orphans below it are given (prctl(2))."""


async def test_no_call_is_lost_while_the_host_drains(tmp_path) -> None:
    file = file_in(tmp_path)
    file.write_text(config_of(tmp_path, {"a": {"tools": "held"}, "b": {"tools": "held"}}))
    let_go = tmp_path / "let go"
    async with running(tmp_path) as host:
        async with host.client() as client:
            calls = [
                asyncio.create_task(host.call(f"{name}/held", file=str(let_go)))
                for name in ("a", "b")
                for _ in range(10)
            ]
            await host.open_calls("a", "b", count=20)
            host.signal(signal.SIGTERM)
            await host.until("host_lifecycle", what="draining")
            refused = await client.call("a/held", b"{}", deadline_s=None)
            assert b'"unavailable"' in refused
            assert b'"not_sent"' in refused
            let_go.touch()
            assert {(await call)["outcome"] for call in calls} == {"ok"}
        assert await host.ended() == 0
        assert not (tmp_path / "state" / "host.sock").exists()


async def test_calls_that_outlast_the_drain_end_with_their_true_delivery(tmp_path) -> None:
    file = file_in(tmp_path)
    file.write_text(config_of(tmp_path, {"a": {"tools": "mute"}}, drain_s=0.2))
    async with running(tmp_path) as host:
        call = asyncio.create_task(host.call("a/mute"))
        await host.open_calls("a", count=1)
        host.signal(signal.SIGTERM)
        ended = await call
        assert (ended["outcome"], ended["delivery"]) == ("unavailable", "sent_no_reply")
        assert ended["fault"] == "host"
        assert await host.ended() == 0


async def test_a_second_signal_ends_the_drain_and_the_servers_at_once(tmp_path) -> None:
    file = file_in(tmp_path)
    stubborn = {"tools": "mute", "ignore_eof": "yes", "ignore_term": "yes"}
    text = config_of(tmp_path, {"a": stubborn}, drain_s=600)
    file.write_text(text.replace("shutdown_timeout_s = 2", "shutdown_timeout_s = 600"))
    async with running(tmp_path) as host:
        call = asyncio.create_task(host.call("a/mute"))
        await host.open_calls("a", count=1)
        pid = (await host.servers())["a"]["pid"]
        host.signal(signal.SIGTERM)
        await host.until("host_lifecycle", what="draining")
        host.signal(signal.SIGTERM)
        assert (await call)["outcome"] == "unavailable"
        assert await host.ended() == 0
        assert not alive(pid)


async def test_orphans_given_to_the_host_are_reaped_and_its_own_children_are_not(tmp_path) -> None:
    file = file_in(tmp_path)
    leaver = (
        "import os, subprocess, sys; "
        "child = subprocess.Popen(['sleep', '0.2'], start_new_session=True); "
        f"open({str(tmp_path / 'orphans')!r}, 'a').write(f'{{child.pid}}\\n'); "
        "sys.exit(3)"
    )
    text = config_of(tmp_path, {"a": {}})
    argv = json.dumps(["-c", leaver])
    text += f"[servers.leaver]\ncommand = {json.dumps(sys.executable)}\nargs = {argv}\n"
    file.write_text(text)
    async with running(tmp_path, before=(sys.executable, "-c", SUBREAPER)) as host:
        told = await host.until("host_lifecycle", what="orphans_reaped")
        orphans = [int(line) for line in (tmp_path / "orphans").read_text().splitlines()]
        assert any(str(orphan) in told["detail"] for orphan in orphans)
        view = (await host.servers())["leaver"]
        exits = [one for one in view["evidence"] if one["outcome"] == "closed"]
        assert exits, "the exit of the host's own child was seen by its owner"
        await eventually(lambda: not any(state_of(orphan) for orphan in orphans))
        assert (await host.call("a/echo", text="x"))["outcome"] == "ok"
