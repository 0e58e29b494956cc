"""Requests of agents that pass the router by get what all others get, and take few steps."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from observant_host.telemetry.vocabulary import AuthFailed, HttpAnswered
from tests.service.doors import TOKENS, doors, token
from tests.support.agent import STAMP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import FrameType

    from tests.service.doors import Doors

STEPS = 66
"""Entries into Python functions of the door, from the socket to the router and back: 54 when this
was written, 199 where every request was judged anew. What waits in between counts twice."""


class Here:
    """One agent on one connection."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def call(
        self, bearer: str = "agent-secret", *, arguments: Any = None, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers but for the date, and body, of a call of `echo`."""
        status, seen, body = await self.raw(bearer, arguments=arguments, **headers)
        return status, seen, json.loads(body)

    async def raw(
        self,
        bearer: str = "agent-secret",
        *,
        tool: str = "echo",
        arguments: Any = None,
        meta: Any = STAMP,
        **headers: str,
    ) -> tuple[int, dict[str, str], str]:
        """As `call`, whatever the body is."""
        params = {"name": tool, "arguments": arguments or {"text": "hi"}, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        told = {
            "Authorization": f"Bearer {bearer}",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        async with self._session.post(self._url, data=json.dumps(body), headers=told) as answer:
            seen = {name.lower(): one for name, one in answer.headers.items() if name != "Date"}
            return answer.status, seen, await answer.text()


@contextlib.asynccontextmanager
async def agent(**keys: Any) -> AsyncIterator[tuple[Here, Doors]]:
    connector = aiohttp.TCPConnector(limit=1)
    async with (
        doors(servers={"p": {"tools": "echo,big,progress,fail"}}, **keys) as here,
        aiohttp.ClientSession(connector=connector) as session,
    ):
        yield Here(session, here.service.addresses["admin"] + "/mcp"), here


async def test_both_ways_lead_to_the_same_answer() -> None:
    async with agent() as (one, here):
        ordinary = await one.call()
        short = await one.call()
        assert short == ordinary
        assert ordinary[2]["result"]["content"][0]["text"]
        assert (await one.call(Origin="http://localhost:1"))[::2] == ordinary[::2]
        told = [fact.fact for fact in here.told if isinstance(fact.fact, HttpAnswered)]
        assert [(fact.route, fact.code) for fact in told] == [("/mcp", "200")] * 3


@pytest.mark.parametrize(
    ("bearer", "headers", "status", "reason"),
    [
        ("guessed", {}, 401, "invalid"),
        ("reader-secret", {}, 403, "scope"),
        ("agent-secret", {"Origin": "http://evil.example"}, 403, "origin"),
        ("agent-secret", {"Host": "evil.example"}, 403, "host"),
        ("twice-secret", {}, 429, "rate"),
    ],
)
async def test_whoever_is_to_be_refused_finds_no_shortcut(
    bearer: str, headers: dict[str, str], status: int, reason: str
) -> None:
    tokens = {**TOKENS, "twice": token("twice-secret", "mcp", rate=0.001)}
    async with agent(tokens=tokens) as (one, here):
        assert [(await one.call())[0] for _ in range(3)] == [200] * 3
        answers = [await one.call(bearer, **headers) for _ in range(3)]
        assert {answer[0] for answer in answers[1:]} == {status}
        assert answers[-1][1]["x-content-type-options"] == "nosniff"
        reasons = {fact.fact.reason for fact in here.told if isinstance(fact.fact, AuthFailed)}
        assert reasons == {reason}


@pytest.mark.parametrize(
    ("headers", "code"),
    [({"Mcp_Name": "other"}, -32020), ({"Accept": "text/html"}, -32600)],
)
async def test_an_error_has_the_same_headers_by_either_way(
    headers: dict[str, str], code: int
) -> None:
    async with agent() as (one, _):
        ordinary = await one.call(**headers)
        await one.call()
        short = await one.call(**headers)
        assert short == ordinary
        assert ordinary[2]["error"]["code"] == code
        assert ordinary[1]["server"] == "observant-host"


async def test_a_mistake_of_ours_shows_no_more_by_either_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def mistaken(*_: Any, **__: Any) -> None:
        raise RuntimeError("with details")

    async with agent() as (one, here):
        host = "{}:{}".format(*here.at())
        ordinary, short = f"http://{host}", ""  # an origin, or none
        await one.call()
        monkeypatch.setattr(here.service.desk, "serve", mistaken)
        answers = [await one.raw(**{"Origin": way} if way else {}) for way in (ordinary, short)]
        assert answers[0] == answers[1]
        status, headers, body = answers[1]
        assert (status, headers["server"]) == (500, "observant-host")
        assert headers["x-content-type-options"] == "nosniff"
        assert "details" not in body
        told = [fact.fact.code for fact in here.told if isinstance(fact.fact, HttpAnswered)]
        assert told[-2:] == ["500", "500"]


@pytest.mark.parametrize(
    ("tool", "arguments", "small", "meta", "kind"),
    [
        ("big", {"bytes": 200_000}, {"bytes": 9}, STAMP, "application/json"),
        ("progress", {}, {}, {**STAMP, "progressToken": "t"}, "text/event-stream"),
        ("fail", {}, {}, STAMP, "application/json"),
    ],
)
async def test_more_than_one_small_body_is_the_same_by_either_way(
    tool: str, arguments: Any, small: Any, meta: Any, kind: str
) -> None:
    async with agent() as (one, here):
        ordinary = await one.raw(tool=tool, arguments=arguments, meta=meta)
        assert (await one.raw(tool=tool, arguments=small))[0] == 200
        short = await one.raw(tool=tool, arguments=arguments, meta=meta)
        assert short == ordinary
        assert (ordinary[0], ordinary[1]["content-type"]) == (200, kind)
        assert (await one.raw(tool=tool, arguments=small))[0] == 200
        assert here.service.fronts[0].server.requests_count <= 2
        told = [fact.fact.code for fact in here.told if isinstance(fact.fact, HttpAnswered)]
        assert told == ["200"] * 4


async def test_a_body_beyond_the_limit_is_refused_by_either_way() -> None:
    async with agent(max_message_bytes=4096) as (one, _):
        for _ in range(2):
            status, _, body = await one.call(arguments={"text": "x" * 5000})
            assert (status, body["error"]["code"]) == (413, -32600)
            assert (await one.call())[0] == 200


async def test_a_call_takes_few_steps_from_the_socket_to_the_router_and_back() -> None:
    steps = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal steps
        where = frame.f_code.co_filename
        door = ("/service/", "/decisions/northbound", "/decisions/http_door", "/aiohttp/web")
        steps += event == "call" and any(part in where for part in door)

    async with agent() as (one, _):
        for _ in range(3):
            await one.call()
        seen = []
        for _ in range(5):
            steps = 0
            sys.setprofile(count)
            try:
                await one.call()
            finally:
                sys.setprofile(None)
            seen.append(steps)
    assert min(seen) <= STEPS, seen
