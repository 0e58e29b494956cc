"""`Host.reload` in a program: what each kind of change does to real servers."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from observant_host import Host, HttpServer, StdioServer
from observant_host.config import HostConfig, HostSettings, ServerConfig, ServiceSettings
from observant_host.errors import ConfigError, InvalidCall, Unavailable
from observant_host.supervision.declared import declare
from observant_host.telemetry.vocabulary import ConfigLoaded, EraDecide, OperatorAct, PeerRestart
from tests.support.hosts import QUICK, add, facts, quick_host, reach, until
from tests.support.peers import scripted
from tests.support.processes import alive
from tests.support.running import config_of
from tests.support.serving import serving

NONE: dict = {}


def server(name: str, options: dict | None = None, *, allow: bool = False, **keys) -> ServerConfig:
    launch = keys.pop("launch", None) or StdioServer(scripted(**(options or {})))
    return declare(name, launch, allow_legacy=allow, keys={**QUICK, **keys})


def config(*servers: ServerConfig, drain_s: float = 15, **tables) -> HostConfig:
    host = HostSettings(startup_deadline_s=15)
    service = ServiceSettings(drain_timeout_s=drain_s)
    return HostConfig(servers, **{"host": host, "service": service, **tables})


async def test_an_allowance_is_judged_at_once_and_a_modern_server_does_not_care() -> None:
    old = {"era": "legacy"}
    host, told = quick_host(config=config(server("new"), server("old", old)))
    async with host:
        assert host.servers["old"].state == "unavailable"
        modern = host.servers["new"].pid
        await host.reload(config(server("new", allow=True), server("old", old, allow=True)))
        view = await reach(host, "old", "ready")
        assert view.era == "legacy"
        decided = [one for one in facts(told, EraDecide) if one.peer == "old"]
        assert decided[-1].trigger == "reload"
        await host.reload(config(server("new"), server("old", old)))
        await reach(host, "old", "unavailable")
        assert host.servers["new"].pid == modern


async def test_an_allowance_that_still_covers_what_is_spoken_ends_nothing() -> None:
    old = {"era": "legacy"}
    host, _ = quick_host(config=config(server("old", old, allow=True)))
    async with host:
        before = host.servers["old"]
        changed = server("old", old, allow=True)
        era = msgspec.structs.replace(changed.era, legacy_expires=None, expect_era="legacy")
        done = await host.reload(config(msgspec.structs.replace(changed, era=era)))
        assert done.plan.named("update") == ("old",)
        view = await reach(host, "old", "ready")
        assert (view.pid, view.generation) == (before.pid, before.generation)


async def test_a_changed_filter_reads_the_lists_again_in_the_same_process() -> None:
    host, _ = quick_host(config=config(server("a", {"tools": "echo,add"})))
    async with host:
        before = host.servers["a"]
        await host.reload(config(server("a", {"tools": "echo,add"}, tools={"deny": ["add"]})))
        await until(host, "a", lambda view: view.tools == 1)
        assert host.servers["a"].pid == before.pid


async def test_a_server_that_could_not_start_begins_with_its_new_command() -> None:
    broken = server("a", launch=StdioServer(["/no/such/program"]))
    host, told = quick_host(config=config(broken))
    async with host:
        assert host.servers["a"].reason == "spawn_failed"
        await host.reload(config(server("a")))
        await reach(host, "a", "ready")
        assert facts(told, PeerRestart) == [], "nothing ran that could be restarted"


async def test_a_server_in_the_middle_of_its_first_round_takes_the_change_at_once() -> None:
    host, _ = quick_host(config=config(server("a", {"discover": "silent"})), startup_deadline_s=0)
    async with host:
        assert host.servers["a"].state == "starting"
        await host.reload(config(server("a")))
        assert (await reach(host, "a", "ready")).generation <= 2


async def test_a_call_that_outlasts_the_drain_ends_with_its_true_delivery() -> None:
    host, told = quick_host(config=config(server("a", {"tools": "mute"}), drain_s=1))
    async with host:
        call = asyncio.create_task(host.call_tool("mute"))
        await _in_flight(host, "a")
        await host.reload(config(server("a", {"tools": "mute,echo"}), drain_s=1))
        view = host.servers["a"]
        assert (view.state, view.cause) == ("backoff", "process")
        assert "1 open calls" in view.detail
        with pytest.raises(Unavailable) as lost:
            await call
        assert lost.value.delivery == "sent_no_reply"
        assert (await reach(host, "a", "ready")).generation == 2
        (restart,) = facts(told, PeerRestart)
        assert (restart.reason, restart.backoff_ms) == ("reload", 0)


async def test_calls_that_come_meanwhile_wait_for_the_new_life() -> None:
    host, _ = quick_host(config=config(server("a", {"tools": "slow"}, max_in_flight=1)))
    async with host:
        first = asyncio.create_task(host.call_tool("slow", {"s": 0.5}))
        await _in_flight(host, "a")
        in_line = asyncio.create_task(host.call_tool("slow", {"s": 0}))
        await asyncio.sleep(0)
        await host.reload(config(server("a", {"tools": "slow,echo"}, max_in_flight=1)))
        late = await host.call_tool("slow", {"s": 0})
        assert not late.is_error
        assert not (await in_line).is_error
        assert not (await first).is_error
        assert host.servers["a"].generation == 2


async def _in_flight(host: Host, name: str) -> None:
    async with asyncio.timeout(30):
        while not host.core.fleet.get(name).peer.gate.in_flight:  # type: ignore[union-attr]  # it is there
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["removed", "switched off"])
async def test_a_server_that_goes_lets_its_open_call_end(how: str) -> None:
    host, _ = quick_host(config=config(server("a", {"tools": "slow"})))
    async with host:
        call = asyncio.create_task(host.call_tool("slow", {"s": 0.5}))
        await _in_flight(host, "a")
        pid = host.servers["a"].pid
        off = (server("a", {"tools": "slow"}, enabled=False),) if how == "switched off" else ()
        await host.reload(config(*off))
        with pytest.raises((Unavailable, InvalidCall)):
            await host.call_tool("slow", {"s": 0})
        assert not (await call).is_error
        async with asyncio.timeout(30):
            while alive(pid or 0):
                await asyncio.sleep(0.02)


async def test_servers_of_the_program_stay_and_their_names_are_taken() -> None:
    host, told = quick_host(config=config(server("a")))
    add(host, "own")
    async with host:
        pids = {name: view.pid for name, view in host.servers.items()}
        with pytest.raises(ConfigError, match="own"):
            await host.reload(config(server("own")))
        assert {name: view.pid for name, view in host.servers.items()} == pids
        (failed,) = facts(told, ConfigLoaded)
        assert not failed.successful
        await host.reload(config(server("b"), server("a")))
        assert list(host.servers) == ["b", "a", "own"]
        assert host.servers["own"].pid == pids["own"]


async def test_of_two_requests_at_once_the_second_plans_after_the_first() -> None:
    host, told = quick_host(config=config(server("a")))
    async with host:
        both = config(server("a"), server("b"))
        first, second = await asyncio.gather(host.reload(both), host.reload(both, reason="again"))
        assert first.plan.named("add") == ("b",)
        assert second.plan.named("keep") == ("a", "b")
        acts = [(one.verb, one.reason) for one in facts(told, OperatorAct)]
        assert acts == [("reload", ""), ("reload", "again")]


async def test_settings_of_the_host_take_effect_or_are_named_as_waiting() -> None:
    host, _ = quick_host(config=config(server("a"), server("b")))
    async with host:
        assert {tool.name for tool in host.catalogue.tools} == {"echo", "b/echo"}
        settings = HostSettings(collision_policy="qualified", max_message_bytes=2**21)
        done = await host.reload(config(server("a"), server("b"), host=settings))
        assert [change.key for change in done.plan.waiting] == ["host.max_message_bytes"]
        assert host.config.host.max_message_bytes != 2**21
        async with asyncio.timeout(30):
            while {tool.name for tool in host.catalogue.tools} != {"a/echo", "b/echo"}:
                await asyncio.sleep(0.01)


async def test_who_cannot_be_reloaded_says_why() -> None:
    host, _ = quick_host(config=config(server("a")))
    with pytest.raises(Unavailable, match="does not run"):
        await host.reload(config())
    async with host:
        with pytest.raises(ConfigError, match="by a program"):
            await host.reload()
        host.refuse_calls()
        with pytest.raises(Unavailable, match="draining"):
            await host.reload(config())


async def test_a_host_by_a_file_reads_it_again_with_its_variables_file(tmp_path) -> None:
    file = tmp_path / "observant-host.toml"
    mcp = tmp_path / ".mcp.json"
    command, *arguments = scripted(tools="env")
    imported = {"command": command, "args": arguments, "envFile": "one.env"}
    mcp.write_bytes(msgspec.json.encode({"mcpServers": {"a": imported}}))
    (tmp_path / "one.env").write_text("NAME=first-value\n")
    file.write_text(config_of(tmp_path, {}).replace("[host]", '[host]\nimport = [".mcp.json"]'))
    async with Host.from_config(file, record=False) as host:
        assert set(host.files) == {file, mcp, tmp_path / "one.env"}
        assert not (await host.reload(dry_run=True)).plan.changes_something
        (tmp_path / "one.env").write_text("NAME=second-value\n")
        done = await host.reload()
        (changed,) = done.plan.servers[0].changes
        assert (changed.key, changed.after) == ("env.NAME", "***")
        await reach(host, "a", "ready")
        assert b"second-value" in (await host.call_tool("env")).raw
        assert host.servers["a"].generation == 2


async def test_another_endpoint_and_another_transport_are_new_lives_of_the_same_server() -> None:
    async with serving(name="first") as first, serving(name="second") as second:
        host, told = quick_host(config=config(server("a", launch=HttpServer(first.url))))
        async with host:
            await host.reload(config(server("a", launch=HttpServer(second.url))))
            view = await reach(host, "a", "ready")
            assert (view.server_info or {})["name"] == "second"
            assert view.generation == 2
            await host.reload(config(server("a")))
            view = await reach(host, "a", "ready")
            assert (view.transport, view.generation) == ("stdio", 3)
            assert [one.reason for one in facts(told, PeerRestart)] == ["reload", "reload"]
            assert not (await host.call_tool("echo", {"text": "x"})).is_error


async def test_a_change_that_comes_while_its_server_is_on_its_way_out_is_not_lost() -> None:
    slow = {"tools": "slow"}
    host, told = quick_host(config=config(server("a", slow)))
    async with host:
        call = asyncio.create_task(host.call_tool("slow", {"s": 0.4}))
        await _in_flight(host, "a")
        await host.reload(config(server("a", {"tools": "slow,echo"})))
        done = await host.reload(config(server("a", {"tools": "slow,echo"}, required=True)))
        assert done.plan.named("update") == ("a",)
        assert not (await call).is_error
        view = await reach(host, "a", "ready")
        assert (view.tools, view.generation) == (2, 2)
        assert host.core.fleet.get("a").server.required  # type: ignore[union-attr]  # it is there
        assert len(facts(told, PeerRestart)) == 1
