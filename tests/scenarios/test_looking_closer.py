"""Frames of one server in a private file, one tool off, another log level: for a time, recorded."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from observant_host.errors import InvalidCall, Unavailable
from observant_host.telemetry import setup
from observant_host.telemetry.vocabulary import OperatorAct
from tests.support.hosts import PATIENCE_S, add, quick_host
from tests.support.processes import eventually

if TYPE_CHECKING:
    from observant_host.telemetry.facade import Finished

pytestmark = pytest.mark.timeout(120)


def acts(told: list[Finished]) -> list[tuple[str, str, str]]:
    facts = [one.fact for one in told if isinstance(one.fact, OperatorAct)]
    return [(fact.verb, fact.peer, fact.principal) for fact in facts]


async def captured(folder: Path, *, arguments: bool) -> tuple[list[dict[str, Any]], str]:
    """The lines of a capture of a call, over a restart of the server; and the file's text."""
    host, told = quick_host(state_dir=folder, secrets=["s3cret-value"])
    add(host, "s", {"tools": "echo"})
    async with host:
        begun = await host.capture("s", for_s=600, arguments=arguments, principal="ann")
        with pytest.raises(InvalidCall, match="already"):
            await host.capture("s", for_s=600)
        await host.call_tool("echo", {"text": "confidential s3cret-value"})
        await host.act("s", "restart")
        await host.call_tool("echo", {"text": "again"})
    assert ("capture", "s", "ann") in acts(told)
    file = Path(begun.file)
    assert file.parent == folder / "capture"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    text = file.read_text()
    return [json.loads(line) for line in text.splitlines()], text


async def test_frames_are_captured_from_the_next_one_on_and_over_a_restart(tmp_path: Path) -> None:
    lines, text = await captured(tmp_path, arguments=False)
    told = [(one["direction"], one["method"]) for one in lines[:-1]]
    assert told[:2] == [("out", "tools/call"), ("in", "tools/call")]
    assert ("out", "server/discover") in told  # the new life's negotiation
    assert told.count(("in", "tools/call")) == 2
    assert lines[0]["message"]["params"]["arguments"] == "(redacted: object of 1)"
    assert lines[0]["message"]["params"]["name"] == "echo"
    assert (lines[0]["id"], lines[0]["size"] > 100) == (lines[1]["id"], True)
    assert lines[-1]["end"] == "the host ended"
    assert "confidential" not in text
    assert "s3cret" not in text


async def test_contents_are_kept_where_asked_for_and_secrets_never(tmp_path: Path) -> None:
    lines, text = await captured(tmp_path, arguments=True)
    assert lines[0]["message"]["params"]["arguments"] == {"text": "confidential ***"}
    assert "confidential" in json.dumps(lines[1]["message"]["result"])
    assert "s3cret" not in text


async def test_a_capture_ends_by_itself_and_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    host, _ = quick_host(state_dir=tmp_path)
    add(host, "s", {"tools": "echo"})
    async with host:
        begun = await host.capture("s", for_s=0.05)
        await eventually(lambda: "its time is over" in Path(begun.file).read_text())
        peer = host.core.fleet.get("s")
        assert peer is not None
        assert peer.peer.life is not None
        assert "send" not in vars(peer.peer.life.transport)
        assert "frame_received" not in vars(peer.peer.life.inbox)
        await host.call_tool("echo", {"text": "x"})
        assert len(Path(begun.file).read_text().splitlines()) == 1
        again = await host.capture("s", for_s=60)
        assert again.file != begun.file


@pytest.mark.parametrize("for_s", [0, -1, 1e9, float("nan")])
async def test_captures_and_log_levels_are_bounded(tmp_path: Path, for_s: float) -> None:
    host, _ = quick_host(state_dir=tmp_path, telemetry=None)
    add(host, "s")
    async with host:
        with pytest.raises(InvalidCall, match="at most"):
            await host.capture("s", for_s=for_s)
        with pytest.raises(InvalidCall, match="at most"):
            host.set_log_level("debug", for_s=for_s)
        with pytest.raises(InvalidCall, match="there is no level"):
            host.set_log_level("loud", for_s=1)


async def test_a_host_without_a_folder_captures_nothing() -> None:
    host, _ = quick_host()
    add(host, "s")
    async with host:
        with pytest.raises(Unavailable, match="state_dir"):
            await host.capture("s", for_s=1)
        with pytest.raises(Unavailable, match="no log"):
            host.set_log_level("debug", for_s=1)


class Log:
    def __init__(self) -> None:
        self.levels: list[str] = []

    def set_level(self, level: str) -> None:
        self.levels.append(level)


async def test_a_log_level_reverts_by_itself_and_both_are_recorded() -> None:
    telemetry, told = setup.capturing()
    log = telemetry.log = Log()
    host, _ = quick_host(telemetry=telemetry)
    async with host:
        host.set_log_level("warning", for_s=600, principal="ann")
        done = host.set_log_level("debug", for_s=0.05, principal="ann", reason="a look")
        assert (done.level, done.configured) == ("debug", "info")
        await eventually(lambda: len(log.levels) == 3)
    assert log.levels == ["warning", "debug", "info"]
    assert acts(told) == [
        ("log-level", "", "ann"),
        ("log-level", "", "ann"),
        ("log-level", "", "host"),
    ]


async def test_a_log_level_of_the_file_holds_at_once_but_not_before_one_that_a_person_set() -> None:
    telemetry, _ = setup.capturing()
    log = telemetry.log = Log()
    host, _ = quick_host(telemetry=telemetry)

    async def reloaded(level: str) -> tuple[str, ...]:
        said = msgspec.structs.replace(host.config.telemetry, log_level=level)
        done = await host.reload(msgspec.structs.replace(host.config, telemetry=said))
        return tuple(change.key for change in done.plan.host)

    async with host:
        assert await reloaded("debug") == ("telemetry.log_level",)
        assert log.levels == ["debug"]
        assert host.set_log_level("error", for_s=600).configured == "debug"
        await reloaded("warning")
        assert log.levels == ["debug", "error"]
        host.set_log_level("error", for_s=0.05)
        await eventually(lambda: len(log.levels) == 4)
        await reloaded("info")
    assert log.levels == ["debug", "error", "error", "warning", "info"]


async def test_one_tool_is_off_for_a_time_and_the_others_go_on(tmp_path: Path) -> None:
    host, told = quick_host(state_dir=tmp_path)
    add(host, "s", {"tools": "echo,fail"})
    async with host, asyncio.timeout(PATIENCE_S):
        with pytest.raises(InvalidCall, match="did you mean fail"):
            await host.switch_tool("s", "fial", on=False)
        with pytest.raises(InvalidCall, match="over already"):
            await host.switch_tool("s", "fail", on=False, for_s=-1)
        off = {"on": False, "principal": "ann", "reason": "it fails"}
        assert (await host.switch_tool("s", "fail", for_s=600, **off)).tools == 1
        await eventually(lambda: [e.local_name for e in host.catalogue.tools] == ["echo"])
        with pytest.raises(InvalidCall, match=r"withheld \(denied: disabled by ann"):
            await host.call_tool("fail")
        await host.call_tool("echo", {"text": "x"})
        await host.switch_tool("s", "fail", for_s=0.3, **off)
        await eventually(lambda: len(host.catalogue.tools) == 2)
        assert (await host.call_tool("fail")).is_error
    assert acts(told) == [("disable", "s", "ann")] * 2 + [("enable", "s", "host")]


async def test_a_tool_that_is_off_stays_off_over_a_restart(tmp_path: Path) -> None:
    first, _ = quick_host(state_dir=tmp_path)
    add(first, "s", {"tools": "echo,fail"})
    async with first:
        await first.switch_tool("s", "fail", on=False, reason="it fails")
    second, _ = quick_host(state_dir=tmp_path)
    add(second, "s", {"tools": "echo,fail"})
    async with second, asyncio.timeout(PATIENCE_S):
        assert [entry.local_name for entry in second.catalogue.tools] == ["echo"]
        (gone,) = second.catalogue.excluded
        assert gone.detail == (
            "disabled by library: it fails; `observant-host enable s/fail` offers it again"
        )
        await second.switch_tool("s", "fail", on=True)
        await second.switch_tool("s", "fail", on=True)
        await eventually(lambda: len(second.catalogue.tools) == 2)
