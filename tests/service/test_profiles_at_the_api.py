"""A profile holds at the JSON API as at /mcp: of the rest nothing is seen and nothing done."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.config import Profile, ToolFilter
from tests.service.doors import TOKENS, Doors, doors, token
from tests.support.hosts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PROFILES = {"few": Profile(servers=("one",), tools=ToolFilter(deny=("mute",)))}
ALL = ("mcp", "read", "operate")
HERE = {**TOKENS, "few": token("few-secret", *ALL, profile="few")}
SERVERS = {"one": {"tools": "echo,mute"}, "two": {"tools": "other"}}


@pytest.fixture
async def here() -> AsyncIterator[Doors]:
    async with doors(tokens=HERE, profiles=PROFILES, servers=SERVERS) as found:
        yield found


async def ask(here: Doors, method: str, path: str, body: Any = None, *, by: str = "few") -> Any:
    """(status, document)"""
    data = b"" if body is None else json.dumps(body).encode()
    answer = await here.ask(method, f"/api/v1{path}", bearer=f"{by}-secret", body=data)
    return answer.status, answer.json()


@pytest.mark.parametrize("path", ["/servers", "/tools", "/prompts", "/resources", "/calls"])
async def test_the_rest_is_in_no_answer(here: Doors, path: str) -> None:
    for name in ("echo", "other"):
        await ask(here, "POST", "/tools/call", {"name": name, "arguments": {}}, by="operator")
    await ask(here, "POST", "/servers/two/hold", {"reason": "why"}, by="operator")
    await ask(here, "POST", "/reload", {}, by="operator")
    _, whole = await ask(here, "GET", path, by="operator")
    status, found = await ask(here, "GET", path)
    assert status == 200
    for hidden in ("two", "other", "mute"):
        assert f'"{hidden}"' not in json.dumps(found), hidden
    if path not in ("/prompts", "/resources"):
        assert '"two"' in json.dumps(whole)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/servers/two", None, 404),
        ("POST", "/servers/two/restart", {}, 404),
        ("POST", "/servers/two/capture", {"for_s": 60}, 404),
        ("POST", "/servers/one/disable", {"tool": "mute"}, 404),
        ("GET", "/decisions?server=two", None, 404),
        ("POST", "/tools/call", {"name": "two/other"}, 404),
        ("POST", "/tools/call", {"name": "mute"}, 404),
        ("POST", "/record/purge", {"server": "two"}, 404),
        ("POST", "/record/purge", {"before": 1}, 400),
        ("POST", "/reload", {"dry_run": True}, 400),
        ("POST", "/log-level", {"level": "debug"}, 400),
        ("GET", "/log", None, 400),
    ],
)
async def test_nothing_is_done_to_the_rest_nor_to_all(
    here: Doors, method: str, path: str, body: Any, status: int
) -> None:
    found, document = await ask(here, method, path, body)
    assert found == status
    if status == 400:
        assert "has a profile" in document["error"]["message"]


async def test_a_call_of_a_tool_that_is_not_there_is_neither_seen_nor_ended(here: Doors) -> None:
    call = {"name": "mute", "arguments": {}, "deadline_s": 60}
    calling = asyncio.create_task(ask(here, "POST", "/tools/call", call, by="operator"))
    async with asyncio.timeout(PATIENCE_S):
        while not (found := (await ask(here, "GET", "/calls", by="operator"))[1]["in_flight"]):
            await asyncio.sleep(0.02)
    assert (await ask(here, "GET", "/calls"))[1]["in_flight"] == []
    path = f"/calls/{found[0]['id']}"
    assert (await ask(here, "DELETE", path))[0] == 404
    assert (await ask(here, "DELETE", path, by="operator"))[0] == 200
    assert (await calling)[0] == 499
