"""A stream of changes whose connection is dead without having ended: found by its silence, by what
else failed, or in the end by its age; and what was said on it is found by reading anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import HttpServer, errors
from observant_host.decisions.silence import Patience
from observant_host.supervision import serving as serving_room
from observant_host.telemetry.vocabulary import GapHealed, SubscriptionLost, WatchdogCheck
from tests.support.half_open import HalfOpen
from tests.support.hosts import QUICK, facts, quick_host
from tests.support.peers import received
from tests.support.processes import eventually
from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host
    from observant_host.telemetry.facade import Finished

LISTEN = b"subscriptions/listen"
META = "io.modelcontextprotocol/"


class Line:
    """A host, its server, and the proxy between them."""

    def __init__(self, host: Host, told: list[Finished], proxy: HalfOpen, direct: str) -> None:
        self.host = host
        self.told = told
        self.proxy = proxy
        self._direct = direct

    async def change(self) -> None:
        """Add a tool, past the proxy: the server says so on its stream."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {
                "name": "add_tool",
                "arguments": {"name": "later"},
                "_meta": {
                    META + "protocolVersion": "2026-07-28",
                    META + "clientInfo": {"name": "t", "version": "1"},
                    META + "clientCapabilities": {},
                },
            },
        }
        request = urllib.request.Request(
            self._direct,
            json.dumps(message).encode(),
            {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
        )
        await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=30).read())

    @property
    def found(self) -> bool:
        return any(tool.name == "later" for tool in self.host.catalogue.tools)

    def verdicts(self) -> list[str]:
        return [one.verdict for one in facts(self.told, WatchdogCheck)]


@contextlib.asynccontextmanager
async def line(
    log: Path, monkeypatch: pytest.MonkeyPatch, patience: Patience, **options: Any
) -> AsyncIterator[Line]:
    monkeypatch.setattr(serving_room, "PATIENCE", patience)
    host, told = quick_host()
    given = {
        "era": "modern",
        "log": log,
        "tools": "echo,add_tool,mute",
        "lenient_headers": True,
        **options,
    }
    async with serving(**given) as served, HalfOpen(served.port) as proxy:
        host.add_server("s", HttpServer(proxy.url), **{**QUICK, "ack_timeout_s": 2})
        async with host:
            await eventually(lambda: host.servers["s"].layers.listen == "ok")
            yield Line(host, told, proxy, served.url)


async def test_keep_alives_that_stay_away_are_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    patience = Patience(max_quiet_s=600, missed=4, least_silence_s=3.0, least_gap_s=0.05)
    async with line(log, monkeypatch, patience) as here:
        await habit(here)
        assert here.proxy.forget(LISTEN) == 1
        await here.change()
        assert not here.found
        await eventually(lambda: here.found)
        await eventually(lambda: bool(facts(here.told, GapHealed)))
    (lost,) = facts(here.told, SubscriptionLost)
    assert lost.reason == "watchdog_silent"
    (gap,) = facts(here.told, GapHealed)
    assert (gap.reason, gap.added) == ("watchdog_silent", ("tool later",))
    assert gap.gap_s >= 3.0
    assert here.verdicts() == ["silent"]
    ids = [message["id"] for message in received(log, "subscriptions/listen")]
    assert len(ids) == len(set(ids)) == 2


async def habit(here: Line) -> None:
    """Until the stream was kept alive often enough to have a habit of it."""
    record = here.host.core.fleet.get("s").record  # type: ignore[union-attr]
    streams = record.life.subscriptions  # type: ignore[union-attr]
    await eventually(lambda: any(one.pulse.interval_s for one in streams._open.values()))


async def test_a_stream_on_which_nothing_is_ever_heard_is_replaced_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = Patience(max_quiet_s=3.0)
    async with line(tmp_path / "log", monkeypatch, patience, comments="no") as here:
        assert here.proxy.forget(LISTEN) >= 1
        await here.change()
        await eventually(lambda: here.found)
        await eventually(lambda: bool(facts(here.told, GapHealed)))
    gap = facts(here.told, GapHealed)[0]
    assert (gap.reason, gap.added) == ("watchdog_silent", ("tool later",))
    assert set(here.verdicts()) == {"quiet"}
    assert facts(here.told, SubscriptionLost) == []


async def test_a_call_that_gets_no_answer_has_the_stream_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = Patience(max_quiet_s=600)
    async with line(tmp_path / "log", monkeypatch, patience, comments="no") as here:
        assert here.proxy.forget(LISTEN) == 1
        await here.change()
        with pytest.raises(errors.CallTimeout):
            await here.host.call_tool("mute", {}, deadline_s=0.2)
        await eventually(lambda: here.found)
        await eventually(lambda: bool(facts(here.told, GapHealed)))
    assert here.verdicts()[0] == "doubtful"
    assert facts(here.told, GapHealed)[0].added == ("tool later",)
