"""What legacy servers tell of changes, over each wire with real servers: unasked, and of followed
resources in each life and session.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import HttpServer
from observant_host.telemetry.vocabulary import WishUnmet
from tests.support.hosts import QUICK, add, facts, quick_host, reach
from tests.support.peers import received
from tests.support.processes import eventually
from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host

URI = "file:///d/a"
WIRES = ["stdio", "http", "sse"]
FOLLOWED = json.dumps({"tools": {"listChanged": True}, "resources": {"subscribe": True}})


@contextlib.asynccontextmanager
async def placed(host: Host, wire: str, log: Path, **more: Any) -> AsyncIterator[None]:
    options = {
        "era": "legacy",
        "log": log,
        "tools": "echo,add_tool,updated,expire",
        "resources": URI,
        "capabilities": FOLLOWED,
        **more,
    }
    keys = {**QUICK, "allow_legacy": True}
    if wire == "stdio":
        add(host, "s", options, **keys)
        yield
        return
    if wire == "sse":
        options["old_sse"] = True
    async with serving(**options) as served:
        host.add_server("s", HttpServer(served.url, transport=wire), **keys)  # type: ignore[arg-type]
        yield


def found(host: Host, name: str) -> bool:
    return any(tool.name == name for tool in host.catalogue.tools)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_changed_list_is_told_unasked_and_read(wire: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with placed(host, wire, log), host:
        await reach(host, "s", "ready")
        await host.call_tool("add_tool", {"name": "later"})
        await eventually(lambda: found(host, "later"))
    assert received(log, "subscriptions/listen") == []


@pytest.mark.parametrize("wire", WIRES)
async def test_a_followed_resource_is_asked_for_and_told_of(wire: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    told: list[str] = []
    async with placed(host, wire, log), host:
        await reach(host, "s", "ready")
        await host.subscribe_resource(URI, told.append)
        await eventually(lambda: len(received(log, "resources/subscribe")) == 1)
        await host.call_tool("updated", {"uri": URI})
        await eventually(lambda: told == [URI])


async def test_after_a_restart_it_is_asked_for_again_and_told_to_have_changed(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    told: list[str] = []
    async with placed(host, "stdio", log), host:
        await reach(host, "s", "ready")
        await host.subscribe_resource(URI, told.append)
        await eventually(lambda: len(received(log, "resources/subscribe")) == 1)
        pid = host.servers["s"].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: len(received(log, "resources/subscribe")) == 2)
        await eventually(lambda: told == [URI])
        assert host.servers["s"].generation == 2


async def test_in_a_renewed_session_it_is_asked_for_again_and_told_to_have_changed(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    told: list[str] = []
    async with placed(host, "http", log), host:
        await reach(host, "s", "ready")
        await host.subscribe_resource(URI, told.append)
        await eventually(lambda: len(received(log, "resources/subscribe")) == 1)
        await host.call_tool("expire", {})
        await host.call_tool("echo", {"text": "in a new session"})
        await eventually(lambda: len(received(log, "resources/subscribe")) == 2)
        await eventually(lambda: told == [URI])
        assert host.servers["s"].generation == 1


async def test_what_was_said_while_the_get_stream_was_gone_is_found(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with placed(host, "http", log, get="once", unseen="later"), host:
        await reach(host, "s", "ready")
        await eventually(lambda: found(host, "later"))


async def test_a_wish_that_is_refused_is_told_to_who_made_it_and_in_the_status(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, told = quick_host()
    unmet: list[tuple[str, str]] = []
    async with placed(host, "stdio", log, subscribe="error:-32602"), host:
        await reach(host, "s", "ready")
        await host.subscribe_resource(URI, print, on_unmet=lambda *said: unmet.append(said))
        await eventually(lambda: bool(unmet))
        await eventually(lambda: URI in host.servers["s"].detail)
        assert host.servers["s"].state == "ready"
        await host.unsubscribe_resource(URI)
        await eventually(lambda: URI not in host.servers["s"].detail)
    assert len(unmet) == len(facts(told, WishUnmet)) == 1
    assert unmet[0][0] == URI
    assert "-32602" in unmet[0][1]
