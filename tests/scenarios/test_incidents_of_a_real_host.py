"""Real processes fail in real ways; the host's own record says afterwards what it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from observant_host import Host, StdioServer, errors
from observant_host.timing import lag
from tests.support.hosts import QUICK
from tests.support.peers import scripted

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_rollback_that_is_only_alerted_on_is_told_with_its_calls_and_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lag, "STALL_S", 600.0)  # a stall of this machine would be a better reason
    switch = tmp_path / "old"
    choice = f'if [ -e {switch} ]; then exec "$0" "$@" --era legacy; fi; exec "$0" "$@"'
    launch = StdioServer(("/bin/sh", "-c", choice, *scripted(tools="echo,kill")))
    host = Host(state_dir=tmp_path / "state", record=True, remember_modern=False)
    host.add_server("s", launch, allow_legacy=True, **QUICK)
    async with host:
        await host.call_tool("echo", {"text": "modern"})
        switch.touch()
        with pytest.raises(errors.CallError):
            await host.call_tool("kill")
        await _until(host, "legacy")
        for _ in range(3):
            await host.call_tool("echo", {"text": "legacy"})
        switch.unlink()
        with pytest.raises(errors.CallError):
            await host.call_tool("kill")
        await _until(host, "modern")
        document = await host.incidents()
    told = {one["kind"]: one for one in document["incidents"]}
    fall = told["downgrade"]
    assert (fall["class"], fall["confidence"]) == ("server_rollback", "low")
    assert (fall["from"], fall["to"], fall["expected"]) == ("modern", "legacy", False)
    assert fall["calls"]["ok"] == 3
    assert fall["healed_s"] > 0
    assert fall["ended_as"] == "modern"
    assert fall["evidence"][0]["rpc_code"] == -32601
    assert fall["telemetry_lost"] == 0
    assert told["outage"]["times"] >= 1


async def test_a_host_without_a_record_says_that_it_has_none() -> None:
    async with Host(state_dir=None, record=False) as host:
        with pytest.raises(errors.Unavailable, match="keeps no record"):
            await host.incidents()
        with pytest.raises(errors.Unavailable, match="keeps no record"):
            await host.purge_record(before_ns=None, server="s")


async def test_a_purge_without_anything_to_look_for_is_refused(tmp_path: Path) -> None:
    async with Host(state_dir=tmp_path, record=True) as host:
        with pytest.raises(errors.InvalidCall, match="before when"):
            await host.purge_record(before_ns=None, server=None)


async def _until(host: Host, era: str) -> None:
    """Probed until it is ready in that era: its restart has a pause of its own."""
    view: Any = host.servers["s"]
    for _ in range(20):
        view = await host.probe("s")
        if (view.state, view.era) == ("ready", era):
            return
    raise AssertionError(view)
