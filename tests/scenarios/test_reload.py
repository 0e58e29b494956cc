"""A changed configuration on a real `observant-host run`: only what changed is touched."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

from tests.support.processes import alive
from tests.support.running import command_line, config_of, file_in, running

SLOW = {"tools": "slow,held"}
TEN = {f"s{number}": SLOW for number in range(10)}


async def test_one_of_ten_servers_changed_and_no_call_of_the_other_nine_fails(tmp_path) -> None:
    file = file_in(tmp_path)
    file.write_text(config_of(tmp_path, TEN))
    async with running(tmp_path) as host:
        before = await host.servers()
        over = asyncio.Event()

        async def caller(name: str) -> list[str]:
            outcomes = []
            while not over.is_set():
                outcomes.append((await host.call(f"{name}/slow", s=0.1))["outcome"])
            return outcomes

        others = [name for name in TEN if name != "s4"]
        callers = [asyncio.create_task(caller(name)) for name in others]
        let_go = tmp_path / "let go"
        open_call = asyncio.create_task(host.call("s4/held", file=str(let_go)))
        await host.open_calls("s4", count=1)
        file.write_text(config_of(tmp_path, TEN, keys={"s4": 'env = { NEW = "value" }'}))
        async with host.client() as client:
            done = json.loads(await client.reload(dry_run=False))
        waiting = asyncio.create_task(host.call("s4/slow", s=0))
        await host.open_calls("s4", count=2)
        let_go.touch()
        after = await host.ready("s4", generation=2)
        over.set()
        outcomes = [one for each in await asyncio.gather(*callers) for one in each]
        assert set(outcomes) == {"ok"}
        assert len(outcomes) >= len(others)
        assert (await open_call)["outcome"] == "ok", "it was open when its server was to go"
        assert (await waiting)["outcome"] == "ok", "it came while its server was on its way"
        now = await host.servers()
        assert [now[name]["pid"] for name in others] == [before[name]["pid"] for name in others]
        assert after["pid"] != before["s4"]["pid"]
        assert not alive(before["s4"]["pid"])
        acts = {one["name"]: one["act"] for one in done["plan"]["servers"]}
        assert acts == {**dict.fromkeys(others, "keep"), "s4": "restart"}
        decided = await host.until("era_decided", peer="s4", trigger="reload")
        assert decided["generation"] == 2
        restarts = 'observant_host_restarts_by_reason_total{reason="reload"}'
        await host.shows(restarts, "1.0")


async def test_servers_come_and_go_and_take_new_values_without_a_new_process(tmp_path) -> None:
    file = file_in(tmp_path)
    file.write_text(config_of(tmp_path, {"a": {}, "b": {}, "c": {}}))
    async with running(tmp_path) as host:
        before = await host.servers()
        keys = {"c": "max_in_flight = 2\nrequired = true", "a": "enabled = false"}
        file.write_text(config_of(tmp_path, {"c": {}, "a": {}, "d": {}}, keys=keys))
        host.signal(signal.SIGHUP)
        await host.until("config_loaded", after=len(host.events), successful=True)
        await host.ready("d", generation=1)
        now = await host.servers()
        assert list(now) == ["c", "a", "d"]
        assert now["c"]["pid"] == before["c"]["pid"]
        assert now["a"]["state"] == "disabled"
        assert now["a"]["pid"] is None
        await host.shows('observant_host_peer_required{peer="c"}', "1.0")
        await host.shows('observant_host_peer_state{peer="b",state="ready"}', "")
        await host.shows('observant_host_peer_restarts_total{peer="b"}', "")
        file.write_text(config_of(tmp_path, {"c": {}, "a": {}, "d": {}}))
        async with host.client() as client:
            await client.reload(dry_run=False)
        assert (await host.ready("a", generation=2))["pid"] != before["a"]["pid"]


async def test_a_file_that_cannot_be_used_changes_nothing_and_says_so(tmp_path) -> None:
    file = file_in(tmp_path)
    good = config_of(tmp_path, {"a": {}})
    file.write_text(good)
    successful = "observant_host_config_last_reload_successful"
    async with running(tmp_path) as host:
        before = await host.servers()
        await host.shows(successful, "1.0")
        file.write_text(good.replace("[servers.a]", "[servers.a]\ncomand = 'x'"))
        host.signal(signal.SIGHUP)
        told = await host.until("config_loaded", successful=False)
        assert str(file) in told["detail"]
        assert "servers.a.comand" in told["detail"]
        assert told["level"] == "warning"
        await host.shows(successful, "0.0")
        code, out, err = await command_line("reload", "-c", str(file))
        assert (code, out) == (2, "")
        assert "servers.a.comand" in err
        assert "did you mean" in err.lower()
        assert await host.servers() == before
        file.write_text(good)
        seen = len(host.events)
        host.signal(signal.SIGHUP)
        await host.until("config_loaded", after=seen, successful=True)
        await host.shows(successful, "1.0")
        assert (await host.servers())["a"]["pid"] == before["a"]["pid"]


async def test_a_dry_run_shows_the_plan_with_masked_values_and_changes_nothing(tmp_path) -> None:
    file = file_in(tmp_path)
    file.write_text(config_of(tmp_path, {"a": {}, "b": {}}))
    async with running(tmp_path) as host:
        before = await host.servers()
        changed = config_of(tmp_path, {"a": {}, "b": {}}, keys={"b": 'env = { T = "hunter2" }'})
        file.write_text(changed.replace("127.0.0.1:0", "127.0.0.1:1") + "[servers.c]\ncommand='c'")
        code, out, err = await command_line("reload", "-c", str(file), "--dry-run", "--json")
        assert code == 0, err
        assert "hunter2" not in out
        found = json.loads(out)
        assert not found["applied"]
        acts = {one["name"]: one["act"] for one in found["plan"]["servers"]}
        assert acts == {"a": "keep", "b": "restart", "c": "add"}
        why = {one["key"]: one for one in found["plan"]["servers"][1]["changes"]}
        assert why["env.T"] == {
            "key": "env.T",
            "before": None,
            "after": "***",
            "effect": "new_life",
        }
        assert [one["key"] for one in found["plan"]["waiting"]] == ["service.listen"]
        code, out, err = await command_line("reload", "-c", str(file), "--dry-run")
        assert "b is started again" in out
        assert "needs a restart of the host" in out
        assert await host.servers() == before


@pytest.mark.parametrize("how", ["swapped links", "renamed file"])
async def test_a_changed_file_is_found_by_its_content(tmp_path, how) -> None:
    first, second = config_of(tmp_path, {"a": {}}), config_of(tmp_path, {"a": {}, "b": {}})
    file = file_in(tmp_path)
    if how == "renamed file":
        file.write_text(first)
    else:  # as a ConfigMap is mounted
        for version, text in (("..1", first), ("..2", second)):
            (file.parent / version).mkdir()
            (file.parent / version / file.name).write_text(text)
        (file.parent / "..data").symlink_to("..1")
        file.symlink_to(f"..data/{file.name}")
    async with running(tmp_path, watched=True) as host:
        if how == "renamed file":
            (tmp_path / "new").write_text(second)
            (tmp_path / "new").rename(file)
        else:
            (file.parent / "..tmp").symlink_to("..2")
            (file.parent / "..tmp").rename(file.parent / "..data")
        told = await host.until("operator_act", verb="reload")
        assert told["principal"] == "file"
        assert "add b" in told["detail"]
        await host.ready("b", generation=1)


async def test_without_a_running_host_there_is_nothing_to_reload(tmp_path) -> None:
    file = file_in(tmp_path)
    file.write_text(config_of(tmp_path, {"a": {}}))
    code, out, err = await command_line("reload", "-c", str(file))
    assert (code, out) == (3, "")
    assert "no host is running" in err
