"""The library's front door: what it promises before, beside and after a running host."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import TYPE_CHECKING

import msgspec
import pytest

import observant_host
from observant_host import Host, HttpServer, StdioServer, errors
from observant_host.config import HostConfig
from observant_host.host import Examiner
from observant_host.supervision.declared import declare
from tests.support.hosts import PATIENCE_S, QUICK, add, quick_host
from tests.support.peers import scripted

if TYPE_CHECKING:
    from pathlib import Path


def test_the_public_api_is_small_and_lazy() -> None:
    assert set(observant_host.__all__) == {
        *("Host", "HttpServer", "StdioServer", "errors"),
        *("InputDeclined", "InputHandlers", "InputRequest", "LogMessage"),
        *("AgentCall", "AgentEvent", "AgentRun", "run_agent"),
    }
    assert all(getattr(observant_host, name) for name in observant_host.__all__)
    assert observant_host.Host is Host
    with pytest.raises(AttributeError, match="nothing"):
        _ = observant_host.nothing


def test_settings_of_the_host_table_are_keywords_and_unknown_ones_are_named() -> None:
    assert Host(collision_policy="qualified").config.host.collision_policy == "qualified"
    with pytest.raises(TypeError, match="colision_policy"):
        Host(colision_policy="prefix")


def test_values_of_the_host_table_are_judged_as_in_the_file() -> None:
    with pytest.raises(errors.ConfigError, match=r'host\.collision_policy expects one of "prefix"'):
        Host(collision_policy="overwrite")
    with pytest.raises(errors.ConfigError, match=r"host\.startup_deadline_s expects seconds"):
        Host(startup_deadline_s=-1)
    settings = Host(startup_deadline_s="500ms", cache_dir=None).config.host
    assert (settings.startup_deadline_s, settings.cache_dir) == (0.5, None)


async def test_before_the_start_servers_are_shown_and_nothing_can_be_called() -> None:
    host, _ = quick_host()
    add(host, "s")
    add(host, "off", enabled=False)
    assert {name: view.state for name, view in host.servers.items()} == {
        "s": "stopped",
        "off": "disabled",
    }
    assert (host.catalogue.version, host.published) == (0, False)
    with pytest.raises(errors.Unavailable):
        await host.call_tool("echo")
    await host.remove_server("s")
    assert list(host.servers) == ["off"]
    await host.close()


async def test_a_host_is_entered_once() -> None:
    host, _ = quick_host()
    async with host:
        with pytest.raises(RuntimeError, match="once"):
            await host.open()


async def test_a_file_says_where_the_record_goes(tmp_path: Path) -> None:
    state = tmp_path / "state"
    command = json.dumps(list(scripted(era="legacy")))
    (tmp_path / "observant-host.toml").write_text(
        f'version = 1\n[host]\nstate_dir = "{state}"\n'
        f"[servers.old]\ncommand = {json.dumps(scripted()[0])}\n"
        f"args = {json.dumps(json.loads(command)[1:])}\n"
        "restart_initial_s = 600\nreprobe_max_s = 600\n"
    )
    async with Host.from_config(tmp_path / "observant-host.toml") as host:
        assert host.servers["old"].reason == "ambiguous_error"
        (explained,) = await host.explain("old")
        assert explained["reason"] == "ambiguous_error"
        assert explained["evidence"][0]["rpc_code"] == -32601
        assert explained["trace_id"] == host.servers["old"].trace_id
    assert (state / "memory.json").exists()
    assert any((state / "decisions").iterdir())


async def test_decisions_are_explained_from_memory_where_nothing_is_recorded() -> None:
    host, _ = quick_host()
    add(host, "old", {"era": "legacy"}, reprobe_max_s=60, restart_initial_s=60)
    async with host:
        (first,) = await host.explain("old")
        assert set(first) == {
            *("time", "direction", "expected", "from", "to", "version", "reason", "generation"),
            *("evidence", "trace_id"),
        }
        assert (first["from"], first["to"], first["direction"]) == ("unknown", "unknown", "none")
        assert await host.explain("old", since_ns=2**62) == []


async def test_waiting_for_a_server_ends_with_the_host() -> None:
    host, _ = quick_host()
    add(host, "old", {"era": "legacy"})
    async with host:
        with pytest.raises(errors.InvalidCall):
            await host.wait_for("nobody", "ready")
        waiting = asyncio.create_task(host.wait_for("old", "ready"))
        await asyncio.sleep(0)
    with pytest.raises(errors.Unavailable):
        await waiting


async def test_whoever_sees_a_server_ready_finds_its_tools_at_once() -> None:
    host, _ = quick_host()
    add(host, "first")
    async with host:
        for name in ("second", "third", "fourth"):
            add(host, name)
            async with asyncio.timeout(PATIENCE_S):
                while host.servers[name].state != "ready":
                    await asyncio.sleep(0)
            called = await host.call_tool(f"{name}/echo", {"text": name})
            assert called.server == name
            assert name in {tool.server for tool in host.catalogue.tools}


async def test_a_look_at_the_catalogue_shows_what_a_ready_server_lists() -> None:
    host, _ = quick_host()
    async with host:
        add(host, "late")
        async with asyncio.timeout(PATIENCE_S):
            while host.servers["late"].state != "ready":
                await asyncio.sleep(0)
        assert {tool.server for tool in host.catalogue.tools} == {"late"}


async def test_a_copy_beside_a_running_host_heeds_its_memory_and_writes_nothing(
    tmp_path: Path,
) -> None:
    rolled_back, state = tmp_path / "old", tmp_path / "state"
    old, new = (shlex.join(scripted(era=era)) for era in ("legacy", "modern"))
    launch = StdioServer(
        ["/bin/sh", "-c", f"if [ -e {rolled_back} ]; then exec {old}; else exec {new}; fi"]
    )
    host, _ = quick_host(state_dir=state)
    host.add_server("s", launch, allow_legacy=True, **QUICK)
    async with host:
        assert host.servers["s"].era == "modern"
    before = (state / "memory.json").read_bytes()
    rolled_back.touch()
    copy, _ = quick_host(recall_from=state)
    copy.add_server("s", launch, allow_legacy=True, **QUICK)
    async with copy:
        assert copy.servers["s"].reason == "was_modern"
    assert (state / "memory.json").read_bytes() == before


@pytest.mark.parametrize("folder", ["held", "a file"])
async def test_an_examiner_looks_where_its_state_folder_cannot_be_written_too(
    tmp_path: Path, folder: str
) -> None:
    state = tmp_path / "state"
    server = declare(
        "old", StdioServer(list(scripted(era="legacy"))), allow_legacy=False, keys=QUICK
    )
    if folder == "a file":
        state.touch()
        async with Examiner(HostConfig(), state_dir=state) as examiner:
            found = await examiner.examine(server)
    else:
        async with Host(state_dir=state), Examiner(HostConfig(), state_dir=state) as examiner:
            found = await examiner.examine(server)
    assert found.legacy_revision == "2025-11-25"


async def test_an_examiner_looks_at_servers_without_serving_them() -> None:
    def server(name: str, *command: str):  # type: ignore[no-untyped-def]  # a test's shorthand
        return declare(name, StdioServer(list(command)), allow_legacy=False, keys=QUICK)

    async with Examiner(HostConfig()) as examiner:
        old, missing, web, off = await asyncio.gather(
            examiner.examine(server("old", *scripted(era="legacy", tools="a,b"))),
            examiner.examine(server("missing", "/nowhere/at/all")),
            examiner.examine(
                declare("web", HttpServer("http://127.0.0.1:1"), allow_legacy=False, keys=QUICK)
            ),
            examiner.examine(msgspec.structs.replace(server("off", *scripted()), enabled=False)),
        )
    assert (old.legacy_revision, old.view.tools, old.view.state) == ("2025-11-25", 2, "ready")
    assert (missing.view.cause, missing.view.reason) == ("process", "spawn_failed")
    assert missing.view.evidence[0]["step"] == "spawn"
    assert (web.view.cause, off.view.cause) == ("network", "config")
    assert "disabled" in off.sentence
