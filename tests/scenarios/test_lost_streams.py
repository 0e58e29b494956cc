"""However a stream of changes is lost, over stdio and over HTTP, with real servers: another is
opened under a new id, and what changed in the gap is found by reading anew.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import HttpServer
from observant_host.errors import InvalidCall
from observant_host.telemetry.vocabulary import GapHealed, ListenOpen, SubscriptionLost
from tests.support.hosts import QUICK, add, facts, quick_host, reach, until
from tests.support.peers import received
from tests.support.processes import eventually
from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host

ENDS = [
    *((wire, case) for wire in ("stdio", "http") for case in ("graceful", "cancelled", "both")),
    ("stdio", "crash"),
    ("http", "cut"),
]
NEVER_BEGAN = [("stdio", "silent"), ("http", "silent"), ("stdio", "error:-32603"), ("http", "503")]


@contextlib.asynccontextmanager
async def placed(host: Host, wire: str, log: Path, listen: str, **more: Any) -> AsyncIterator[None]:
    options = {
        "era": "modern",
        "log": log,
        "tools": "echo,add_tool,updated",
        "listen": listen,
        **more,
    }
    keys = {**QUICK, **({"ack_timeout_s": 2} if listen.startswith("silent") else {})}
    if wire == "stdio":
        add(host, "s", options, **keys)
        yield
        return
    async with serving(**options) as served:
        host.add_server("s", HttpServer(served.url), **keys)
        yield


def listening(host: Host) -> str:
    return host.servers["s"].layers.listen


@pytest.mark.parametrize(("wire", "case"), ENDS)
async def test_what_changed_in_the_gap_is_found(wire: str, case: str, tmp_path: Path) -> None:
    """The tool "later" is there once the stream has ended, and nobody is told of it."""
    log, state = tmp_path / "log", tmp_path / "state"
    host, told = quick_host()
    async with placed(host, wire, log, f"{case}:0.4,ok", state=state, unseen="later"), host:
        await reach(host, "s", "ready")
        await eventually(lambda: any(tool.name == "later" for tool in host.catalogue.tools))
        await eventually(lambda: bool(facts(told, GapHealed)))
        ids = [message["id"] for message in received(log, "subscriptions/listen")]
        if case != "crash":  # its second life has the options of its first, and ids of its own
            await eventually(lambda: listening(host) == "ok")
            assert len(ids) == len(set(ids)) == 2
        assert len(received(log, "tools/list")) >= 2
    lost = facts(told, SubscriptionLost)[0]
    reasons = {"both": "cancelled", "cut": "transport", "crash": "transport"}
    assert lost.reason == reasons.get(case, case)
    gap = facts(told, GapHealed)[0]
    assert (gap.reason, gap.added, gap.changes) == (lost.reason, ("tool later",), 1)
    assert gap.gap_s > 0
    gaps = [one.gap_s for one in facts(told, ListenOpen) if one.gap_s is not None]
    assert gaps[0] == gap.gap_s


async def test_a_server_behind_a_url_that_was_restarted_has_its_gap_found_too(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, told = quick_host()
    async with serving(era="modern", log=log, tools="echo") as first:
        host.add_server("s", HttpServer(first.url), **QUICK)
        async with host:
            await eventually(lambda: listening(host) == "ok")
            await first.kill()
            await until(host, "s", lambda view: view.cause == "network")
            async with serving(era="modern", log=log, tools="echo,later", port=first.port):
                await eventually(lambda: any(t.name == "later" for t in host.catalogue.tools))
                await eventually(lambda: bool(facts(told, GapHealed)))
    assert facts(told, SubscriptionLost)[0].reason == "transport"
    (gap,) = facts(told, GapHealed)
    assert (gap.reason, gap.added, gap.generation) == ("transport", ("tool later",), 2)


@pytest.mark.parametrize(("wire", "case"), NEVER_BEGAN)
async def test_a_stream_that_was_not_acknowledged_is_asked_for_again(
    wire: str, case: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    first = "status:503" if case == "503" else case
    async with placed(host, wire, log, f"{first},ok"), host:
        await reach(host, "s", "ready")
        await eventually(lambda: listening(host) == "ok")
        assert len(received(log, "subscriptions/listen")) == 2
        await host.call_tool("add_tool", {"name": "later"})
        await eventually(lambda: any(tool.name == "later" for tool in host.catalogue.tools))
        assert host.servers["s"].generation == 1


async def test_a_server_behind_a_url_that_is_gone_is_noticed_without_a_call() -> None:
    host, _ = quick_host()
    async with serving(era="modern") as web:
        host.add_server("s", HttpServer(web.url), **QUICK)
        async with host:
            await eventually(lambda: listening(host) == "ok")
            await web.kill()
            await until(host, "s", lambda view: view.cause == "network")


async def test_streams_take_no_connection_from_calls(tmp_path: Path) -> None:
    host, _ = quick_host()
    async with placed(host, "http", tmp_path / "log", "ok"), host:
        await eventually(lambda: listening(host) == "ok")
        for number in range(20):
            assert (await host.call_tool("echo", {"text": str(number)})).outcome == "ok"
        assert listening(host) == "ok"


@pytest.mark.parametrize("wire", ["stdio", "http"])
async def test_a_followed_resource_is_told_of_over_both_wires(wire: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    told: list[str] = []

    async def note(uri: str) -> None:
        told.append(uri)

    async with placed(host, wire, log, "ok", resources="file:///d/"), host:
        await host.subscribe_resource("file:///d/", note)
        await eventually(
            lambda: any(
                message["params"]["notifications"].get("resourceSubscriptions") == ["file:///d/"]
                for message in received(log, "subscriptions/listen")
            )
        )
        await host.call_tool("updated", {"uri": "file:///d/a"})
        await eventually(lambda: told == ["file:///d/a"])
        await host.unsubscribe_resource("file:///d/")
        await eventually(lambda: len(received(log, "subscriptions/listen")) == 3)
        with pytest.raises(InvalidCall):
            await host.subscribe_resource("file:///nobody", note)


async def test_a_host_that_closes_ends_its_stream_gracefully(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, _ = quick_host()
    async with placed(host, "stdio", log, "ok"), host:
        await eventually(lambda: listening(host) == "ok")
    (listen,) = received(log, "subscriptions/listen")
    (cancelled,) = received(log, "notifications/cancelled")
    assert cancelled["params"] == {"requestId": listen["id"]}
