"""What a host sends is valid by the schema that was published for the revision it speaks, and every
method that a client has is among it, but for those named here."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import HttpServer, errors
from tests.scenarios.test_features_of_both_eras import EVERYTHING, HANDLERS, WISHES, options
from tests.support.hosts import PATIENCE_S, QUICK, add, quick_host
from tests.support.published import MODERN, methods
from tests.support.serving import serving
from tests.support.tap import ANSWER, Tap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN)

FOLLOWED = json.dumps({**json.loads(EVERYTHING), "resources": {"subscribe": True}})

NEVER_SENT = frozenset(
    {
        "notifications/progress",  # no handler reports any
        "notifications/roots/list_changed",  # roots are asked for, and answered anew each time
        "tasks/get",  # the tasks of 2025-11-25 were replaced; those of the extension are used
        "tasks/result",
        "tasks/cancel",
        "tasks/list",
        "notifications/tasks/status",
    }
)


@contextlib.asynccontextmanager
async def placed(host: Host, wire: str, revision: str, log: Path) -> AsyncIterator[None]:
    """The server "s", speaking exactly this revision, as long as the block."""
    modern = revision == MODERN
    tools = "echo,ask,request,task,slow,drop"
    era = "modern" if modern else "legacy"
    given = options(era, log, tools=tools, capabilities=FOLLOWED)
    keys = {**QUICK, "allow_legacy": False if modern else [revision]}
    keys["extensions"] = ["io.modelcontextprotocol/tasks"] if modern else []
    if wire == "stdio":
        add(host, "s", given, **keys)
        yield
        return
    sse = revision == "2024-11-05"
    async with serving(**given, **({"old_sse": True} if sse else {})) as served:
        host.add_server("s", HttpServer(served.url, transport="sse" if sse else "auto"), **keys)
        yield


async def use_everything(host: Host, revision: str) -> None:
    async def seen(*_: object) -> None: ...

    await host.call_tool("echo", {"text": "x"}, on_progress=seen)
    await host.get_prompt("greet", {"who": "Ada"})
    await host.read_resource("file:///a")
    await host.read_resource("file:///d/notes")
    await host.complete(
        {"type": "ref/prompt", "name": "greet"}, {"name": "who", "value": "n"}, server="s"
    )
    with pytest.raises(errors.CallTimeout):
        await host.call_tool("slow", {"s": 30}, deadline_s=0.2)
    for method, params in WISHES.items():
        wish = {"method": method, "params": params, "key": "k"}
        tool = "ask" if revision == MODERN else "request"
        await host.call_tool(tool, wish, deadline_s=PATIENCE_S)
    if revision == MODERN:
        await host.call_tool("task", {"polls": 1, "ms": 10}, deadline_s=PATIENCE_S)


async def was_sent(tap: Tap, revision: str, method: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not tap.sent[revision, method]:
            await asyncio.sleep(0.01)


async def follow_one_resource(host: Host, tap: Tap, revision: str) -> None:
    """A legacy server is asked by requests of their own, a modern one by the one stream."""
    modern = revision == MODERN
    await host.subscribe_resource("file:///a", print)
    await was_sent(tap, revision, "subscriptions/listen" if modern else "resources/subscribe")
    await host.unsubscribe_resource("file:///a")
    if not modern:
        await was_sent(tap, revision, "resources/unsubscribe")


async def lose_one_call(host: Host, tap: Tap, revision: str) -> None:
    """Over HTTP a lost call is followed by a question after the server's health."""
    with pytest.raises(errors.Unavailable):
        await host.call_tool("drop", {})
    await was_sent(tap, revision, "server/discover" if revision == MODERN else "ping")


@pytest.mark.parametrize("wire", ["stdio", "http"])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_all_that_is_sent_is_valid_and_all_methods_are_sent(
    revision: str, wire: str, tmp_path: Path, sent: Tap
) -> None:
    host, _ = quick_host(**HANDLERS, log_level="warning")
    async with placed(host, wire, revision, tmp_path / "log"), host:
        assert host.servers["s"].version == revision, host.servers["s"].detail
        await use_everything(host, revision)
        await follow_one_resource(host, sent, revision)
        if wire == "http" and revision != "2024-11-05":
            await lose_one_call(host, sent, revision)
    assert sent.wrong == []
    known = {method for spoken, method in sent.sent if spoken == revision}
    expected = methods(revision) - NEVER_SENT - _not_here(wire, revision)
    assert expected - known == set()
    assert (ANSWER in known) == (revision != MODERN)


def _not_here(wire: str, revision: str) -> set[str]:
    """What this wire has no occasion for."""
    if wire == "http" and revision == MODERN:
        return {"notifications/cancelled"}  # closing the response's stream cancels
    if wire == "stdio" or revision == "2024-11-05":
        return {"ping"}  # its process or stream says by itself that it is gone
    return set()


def test_the_exceptions_are_methods_that_exist() -> None:
    known: set[str] = set().union(*map(methods, REVISIONS))
    assert known >= NEVER_SENT


def test_a_message_that_breaks_its_schema_is_seen() -> None:
    tap: Any = Tap()
    tap.saw(None, None, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}')
    tap.saw(None, None, b'{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}')
    tap.saw(None, None, b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}')
    assert len(tap.wrong) >= 2
