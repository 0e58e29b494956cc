"""The archive crash: an era ends with its life, and whoever comes back is asked anew, in an order
that the record shows; over stdio and over HTTP."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import Host, StdioServer, errors
from observant_host.incidents.record import read_decisions, read_timeline
from observant_host.telemetry.vocabulary import EraDecide, EraDropped, PeerRestart
from tests.scenarios.http import UNTOLD, add_url
from tests.support.hosts import QUICK, facts, quick_host, reach, until
from tests.support.peers import received, scripted
from tests.support.serving import serving

if TYPE_CHECKING:
    from pathlib import Path


def switching(marker: Path, before: list[str], after: list[str]) -> StdioServer:
    """`before`, and once `marker` is there `after`: a command whose program was exchanged."""
    test = f"if [ -e {shlex.quote(str(marker))} ]; then exec {shlex.join(after)}; "
    return StdioServer(["/bin/sh", "-c", f"{test}else exec {shlex.join(before)}; fi"])


def story(told: list[Any]) -> list[str]:
    """What was told of its eras and lives, in order."""
    kinds = EraDropped | PeerRestart | EraDecide
    names = [
        one.fact.reason if isinstance(one.fact, EraDecide) else type(one.fact).__name__
        for one in told
        if isinstance(one.fact, kinds)
    ]
    return [name for name in names if name]  # a round that the end of the host cut has no reason


async def crash(host: Host) -> None:
    with pytest.raises(errors.CallError):
        await host.call_tool("kill", {})


async def test_an_archive_that_comes_back_modern_after_its_crash_is_modern(tmp_path: Path) -> None:
    marker, log, later = tmp_path / "upgraded", tmp_path / "log", tmp_path / "later"
    old = scripted(era="legacy", tools="echo,kill", log=log)
    new = scripted(era="modern", tools="echo,kill", log=later)
    host, told = quick_host()
    host.add_server("archive", switching(marker, old, new), allow_legacy=True, **QUICK)
    async with host:
        assert host.servers["archive"].era == "legacy"
        marker.touch()
        await crash(host)
        view = await until(host, "archive", lambda view: view.state == "ready")
        assert (view.era, view.generation) == ("modern", 2)
    assert story(told)[:4] == ["initialize_ok", "EraDropped", "PeerRestart", "discover_ok"]
    assert [one.direction for one in facts(told, EraDecide)][-1] == "upgrade"
    assert received(later, "initialize") == []


async def test_an_archive_that_proved_modern_and_comes_back_old_is_refused_in_the_same_run(
    tmp_path: Path,
) -> None:
    marker, log, later = tmp_path / "rolled-back", tmp_path / "log", tmp_path / "later"
    new = scripted(era="modern", tools="echo,kill", log=log)
    old = scripted(era="legacy", tools="echo,kill", log=later)
    host, told = quick_host()
    host.add_server("archive", switching(marker, new, old), allow_legacy=True, **QUICK)
    async with host:
        assert host.servers["archive"].era == "modern"
        marker.touch()
        await crash(host)
        view = await reach(host, "archive", "unavailable")
        assert (view.cause, view.reason, view.era) == ("policy", "was_modern", "unknown")
        for _ in range(3):
            assert (await host.act("archive", "retry")).since == view.since
    assert story(told)[:4] == ["discover_ok", "EraDropped", "PeerRestart", "was_modern"]
    assert set(story(told)[4:]) <= {"was_modern"}
    assert received(later, "initialize") == []
    assert len(received(later, "server/discover")) >= 4


async def test_the_same_over_http_in_the_same_recorded_order(tmp_path: Path) -> None:
    later = tmp_path / "later"
    host, told = quick_host()
    async with serving(capabilities=UNTOLD) as web:
        add_url(host, "archive", web.url, allow_legacy=True)
        async with host:
            assert host.servers["archive"].era == "modern"
            await web.kill()
            async with serving(era="legacy", port=web.port, log=later):
                with pytest.raises(errors.CallError):
                    await host.call_tool("echo", {"text": "x"})
                view = await until(host, "archive", lambda view: view.reason == "was_modern")
                assert (view.state, view.cause) == ("unavailable", "policy")
    order = [one for one in story(told) if one != "unreachable"]
    assert order[:4] == ["discover_ok", "EraDropped", "PeerRestart", "was_modern"]
    assert received(later, "initialize") == []


async def test_the_record_on_disk_has_the_story_in_its_order(tmp_path: Path) -> None:
    marker, state = tmp_path / "rolled-back", tmp_path / "state"
    new = scripted(era="modern", tools="echo,kill")
    old = scripted(era="legacy", tools="echo,kill")
    host, _ = quick_host(telemetry=None, state_dir=state, record=True)
    host.add_server("archive", switching(marker, new, old), allow_legacy=True, **QUICK)
    async with host:
        marker.touch()
        await crash(host)
        await reach(host, "archive", "unavailable")
    decided = [one["reason"] for one in read_decisions([state], server="archive")]
    assert decided[:2] == ["discover_ok", "was_modern"]
    kinds = [str(one) for one in read_timeline([state], server="archive")]
    assert any("restart" in one for one in kinds)
