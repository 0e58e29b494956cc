"""A host as a program uses it: many servers, one catalogue, crashes, closing; real processes."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

import pytest

from observant_host import Host, HttpServer, StdioServer, errors
from observant_host.telemetry.vocabulary import OperatorAct, PeerRestart
from tests.support.hosts import PATIENCE_S, QUICK, add, add_late, facts, quick_host, reach, until
from tests.support.peers import scripted
from tests.support.processes import alive, eventually

if TYPE_CHECKING:
    from pathlib import Path


def names(host: Host) -> dict[str, str]:
    return {tool.name: tool.server for tool in host.catalogue.tools}


async def test_one_bad_server_delays_nobody() -> None:
    host, _ = quick_host(startup_deadline_s=0.5)
    add(host, "mute", {"discover": "silent"})
    add(host, "good", {"tools": "echo"})
    host.add_server("missing", StdioServer(["/nowhere/at/all"]), **QUICK)
    add(host, "dead", {"exit_at_start": 3})
    async with host:
        await reach(host, "good", "ready")
        assert (await host.call_tool("good/echo", {"text": "x"}, deadline_s=5)).outcome == "ok"
        missing = await reach(host, "missing", "unavailable")
        assert (missing.cause, missing.reason, missing.generation) == ("process", "spawn_failed", 1)
        dead = await reach(host, "dead", "unavailable")
        assert (dead.cause, dead.reason) == ("process", "ambiguous_closed")
        assert host.servers["mute"].state == "starting"


async def test_a_command_that_does_not_exist_is_tried_again_only_for_a_person(
    tmp_path: Path,
) -> None:
    program = tmp_path / "program"
    host, _ = quick_host()
    host.add_server("late", StdioServer([str(program)]), **QUICK)
    async with host:
        assert host.servers["late"].reason == "spawn_failed"
        program.write_text(f"#!/bin/sh\nexec {shlex.join(scripted())}\n")
        program.chmod(0o755)
        view = await host.probe("late")
        assert (view.state, view.generation) == ("ready", 2)


async def test_a_crash_fails_open_calls_at_once_and_the_server_comes_back() -> None:
    host, told = quick_host()
    add(host, "s", {"tools": "echo,mute,kill"})
    async with host:
        before = host.servers["s"]
        waiting = asyncio.create_task(host.call_tool("mute", {}))
        await eventually(lambda: host.core.fleet.get("s").peer.gate.in_flight == 1)
        with pytest.raises(errors.Unavailable):
            await host.call_tool("kill", {})
        with pytest.raises(errors.Unavailable) as failed:
            await waiting
        assert failed.value.delivery == "sent_no_reply"
        await until(host, "s", lambda view: view.generation == 2)
        after = await reach(host, "s", "ready")
        assert after.pid != before.pid
        assert (await host.call_tool("echo", {"text": "x"})).outcome == "ok"
        restarts = facts(told, PeerRestart)
        assert [(one.reason, one.attempt) for one in restarts] == [("signal", 1)]


async def test_a_peer_that_is_down_keeps_its_listing_unroutable_until_a_call_wakes_it() -> None:
    host, _ = quick_host()
    add(host, "s", {"tools": "echo,kill"}, restart_initial_s=600, restart_max_s=600)
    async with host:
        with pytest.raises(errors.Unavailable):
            await host.call_tool("kill", {})
        view = await reach(host, "s", "backoff")
        assert (view.cause, view.era, view.tools) == ("process", "unknown", 2)
        assert [(tool.name, tool.routable) for tool in host.catalogue.tools] == [
            ("echo", False),
            ("kill", False),
        ]
        result = await host.call_tool("echo", {"text": "x"})
        assert (result.text, result.attempts) == ("x", 1)
        assert host.servers["s"].generation == view.generation + 1


async def test_colliding_names_are_given_by_config_order_and_stick_across_a_restart(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    host, _ = quick_host(state_dir=state)
    add(host, "a", {"tools": "echo", "start_delay": 0.3})
    add(host, "b", {"tools": "echo"})
    async with host:
        assert names(host) == {"echo": "a", "b/echo": "b"}

    host, _ = quick_host(state_dir=state)
    add(host, "b", {"tools": "echo"})
    add(host, "a", {"tools": "echo"})
    async with host:
        assert names(host) == {"echo": "a", "b/echo": "b"}


async def test_servers_added_to_a_running_host_are_named_by_their_order_not_by_their_speed(
    tmp_path: Path,
) -> None:
    there = tmp_path / "there"
    host, _ = quick_host()
    async with host:
        add_late(host, "slow", there, {"tools": "echo"})
        add(host, "quick", {"tools": "echo"})
        await reach(host, "quick", "ready")
        assert names(host) == {"quick/echo": "quick"}
        there.touch()
        await reach(host, "slow", "ready")
        assert names(host) == {"echo": "slow", "quick/echo": "quick"}


async def test_colliding_names_refuse_the_start_where_that_is_the_policy() -> None:
    host, _ = quick_host(collision_policy="reject")
    add(host, "a", {"tools": "echo"})
    add(host, "b", {"tools": "echo"})
    with pytest.raises(errors.NameCollision) as refused:
        await host.__aenter__()
    assert "echo" in str(refused.value)
    assert all(view.state == "stopped" for view in host.servers.values())


async def test_servers_come_and_go_while_the_host_runs() -> None:
    host, _ = quick_host()
    async with host:
        assert host.catalogue.tools == ()
        add(host, "s", {"tools": "echo"})
        view = await reach(host, "s", "ready")
        assert names(host) == {"echo": "s"}
        with pytest.raises(errors.ConfigError):
            add(host, "s")
        await host.remove_server("s")
        assert view.pid is not None
        assert not alive(view.pid)
        assert "s" not in host.servers
        with pytest.raises(errors.InvalidCall):
            host.remove_server("s")


async def test_a_host_may_be_closed_twice_from_other_tasks_while_calls_are_open() -> None:
    host, _ = quick_host()
    add(host, "s", {"tools": "mute"})
    await host.__aenter__()
    pid = host.servers["s"].pid
    call = asyncio.create_task(host.call_tool("mute", {}))
    await eventually(lambda: host.core.fleet.get("s").peer.gate.in_flight == 1)
    await asyncio.gather(asyncio.create_task(host.close()), asyncio.create_task(host.close()))
    with pytest.raises(errors.Unavailable):
        await call
    assert pid is not None
    assert not alive(pid)
    assert host.servers["s"].state == "stopped"
    await host.close()
    with pytest.raises(errors.Unavailable):
        await host.call_tool("mute", {})


async def test_a_start_that_is_cancelled_leaves_nothing_behind() -> None:
    host, _ = quick_host()
    add(host, "s", {"discover": "silent"})
    entering = asyncio.create_task(host.__aenter__())
    await eventually(lambda: host.servers["s"].pid is not None)
    pid = host.servers["s"].pid
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert not alive(pid or 0)


async def test_two_hosts_never_share_a_state_folder(tmp_path: Path) -> None:
    host, _ = quick_host(state_dir=tmp_path)
    async with host:
        other, _ = quick_host(state_dir=tmp_path)
        with pytest.raises(errors.InstanceLocked):
            await other.__aenter__()
    again, _ = quick_host(state_dir=tmp_path)
    async with again:
        assert again.published


async def test_a_library_host_without_a_state_folder_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    host, _ = quick_host()
    add(host, "s")
    async with host:
        await host.call_tool("echo", {"text": "x"})
    assert list(tmp_path.rglob("*")) == []


async def test_a_url_where_nobody_listens_is_an_outage_that_disturbs_nobody() -> None:
    host, _ = quick_host()
    host.add_server("web", HttpServer("http://127.0.0.1:1/mcp"), **QUICK)
    add(host, "s")
    async with host:
        view = host.servers["web"]
        assert (view.state, view.cause, view.reason, view.transport) == (
            "unavailable",
            "network",
            "unreachable",
            "http",
        )
        assert view.generation == 1
        assert "cannot be reached" in view.detail
        assert (await host.probe("web")).state == "unavailable"
        assert host.servers["s"].state == "ready"


async def test_a_changed_list_is_read_again() -> None:
    host, _ = quick_host()
    add(host, "s", {"tools": "echo,add_tool"})
    async with host:
        await host.call_tool("add_tool", {"name": "fresh"})
        async with asyncio.timeout(PATIENCE_S):
            while "fresh" not in names(host):
                host.core.refreshed.clear()
                await host.core.refreshed.wait()


async def test_prompts_resources_and_completions_are_routed_like_tools() -> None:
    host, _ = quick_host()
    add(host, "a", {"prompts": "greet", "resources": "file:///a"})
    add(host, "b", {"prompts": "greet", "resources": "file:///a"})
    async with host:
        assert (await host.get_prompt("greet")).server == "a"
        assert (await host.get_prompt("b/greet")).server == "b"
        assert (await host.read_resource("file:///a")).server == "a"
        assert (await host.read_resource("file:///a", server="b")).server == "b"
        ref = {"type": "ref/prompt", "name": "b/greet"}
        assert (await host.complete(ref, {"name": "x", "value": ""})).server == "b"


async def test_draining_refuses_new_calls_and_waits_for_open_ones() -> None:
    host, _ = quick_host()
    add(host, "s", {"tools": "slow,mute"})
    async with host:
        call = asyncio.create_task(host.call_tool("slow", {"s": 0.3}))
        await eventually(lambda: host.core.fleet.get("s").peer.gate.in_flight == 1)
        assert await host.drain(PATIENCE_S)
        assert (await call).outcome == "ok"
        with pytest.raises(errors.Unavailable) as refused:
            await host.call_tool("slow", {"s": 0})
        assert refused.value.fault == "host"


async def test_an_examination_finds_an_old_server_and_suggests_the_lines_to_add() -> None:
    host, told = quick_host()
    add(host, "old", {"era": "legacy"})
    add(host, "new", {"era": "modern"})
    async with host:
        served = host.servers["old"]
        found = await host.examine("old", principal="ann")
        assert found.legacy_revision == "2025-11-25"
        assert found.suggestion is not None
        assert list(found.suggestion.keys) == [
            "allow_legacy",
            "legacy_reason",
            "legacy_expires",
            "legacy_fingerprint",
        ]
        assert found.view.tools == 1
        after = host.servers["old"]
        assert (after.state, after.pid, after.generation) == ("unavailable", served.pid, 1)
        modern = await host.examine("new")
        assert (modern.view.era, modern.suggestion) == ("modern", None)
        acts = [(one.verb, one.peer, one.principal) for one in facts(told, OperatorAct)]
        assert acts == [("examine", "old", "ann"), ("examine", "new", "library")]


async def test_an_examination_never_downgrades_a_server_remembered_as_modern(
    tmp_path: Path,
) -> None:
    gone_old = tmp_path / "old"
    log = tmp_path / "log"
    old, new = (shlex.join(scripted(era=era, log=log)) for era in ("legacy", "modern"))
    launch = ["/bin/sh", "-c", f"if [ -e {gone_old} ]; then exec {old}; else exec {new}; fi"]
    host, _ = quick_host()
    host.add_server("s", StdioServer(launch), **QUICK)
    async with host:
        assert host.servers["s"].era == "modern"
        gone_old.touch()
        found = await host.examine("s")
        assert (found.view.reason, found.suggestion) == ("was_modern", None)
    assert b'"initialize"' not in log.read_bytes()
