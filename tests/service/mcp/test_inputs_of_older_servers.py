"""Input through two hops from an older server, whose call waits here until its caller is back."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from observant_host import HttpServer
from tests.service.mcp.asking import (
    ACCEPTED,
    FORM,
    REFUSED,
    ROOTS,
    SAMPLED,
    THINK,
    an_agent,
    build,
    call,
    sent_south,
)
from tests.service.mcp.stage import Stage, heard, make_host, staged
from tests.support.hosts import PATIENCE_S, QUICK
from tests.support.processes import eventually
from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with an_agent(tmp_path_factory.mktemp("state")) as stage:
        yield stage


@pytest.mark.parametrize(
    ("method", "params", "answer"),
    [
        ("elicitation/create", FORM, ACCEPTED),
        ("elicitation/create", FORM, {"action": "decline"}),
        ("sampling/createMessage", THINK, SAMPLED),
        ("roots/list", {}, ROOTS),
    ],
)
async def test_an_older_servers_question_is_answered_by_coming_back(
    agent: Stage, method: str, params: dict[str, Any], answer: dict[str, Any]
) -> None:
    arguments = {"method": method, "params": params}
    first = await call(agent, "request", arguments)
    ((key, asked),) = first.result["inputRequests"].items()
    assert asked == {"method": method, "params": params}
    state = first.result["requestState"]
    second = await call(
        agent, "request", arguments, inputResponses={key: answer}, requestState=state
    )
    assert json.loads(second.text)["result"] == answer
    assert sent_south(agent, "old") > 0
    again = await call(
        agent, "request", arguments, inputResponses={key: answer}, requestState=state
    )
    assert again.result["isError"] is True
    assert "may have been executed" in again.text


@pytest.mark.parametrize(
    ("able", "method", "params"),
    [
        ({}, "elicitation/create", FORM),
        ({"sampling": {}}, "elicitation/create", FORM),
        ({"elicitation": {}}, "sampling/createMessage", THINK),
        ({"elicitation": {}}, "roots/list", {}),
    ],
)
async def test_an_older_server_is_refused_what_this_caller_cannot(
    agent: Stage, able: dict[str, Any], method: str, params: dict[str, Any]
) -> None:
    answer = await call(agent, "request", {"method": method, "params": params}, able=able)
    assert json.loads(answer.text)["error"]["code"] == -32601


async def test_what_was_left_out_is_asked_again(agent: Stage) -> None:
    arguments = {"method": "elicitation/create", "params": FORM}
    first = await call(agent, "request", arguments)
    carried: dict[str, Any] = {"requestState": first.result["requestState"]}
    second = await call(agent, "request", arguments, inputResponses={}, **carried)
    assert second.result["inputRequests"] == first.result["inputRequests"]
    stale = await call(agent, "request", arguments, inputResponses={}, **carried)
    assert stale.error["code"] == REFUSED
    assert "already" in stale.error["message"]
    (key,) = second.result["inputRequests"]
    third = await call(
        agent,
        "request",
        arguments,
        inputResponses={key: ACCEPTED},
        requestState=second.result["requestState"],
    )
    assert json.loads(third.text)["result"] == ACCEPTED


async def test_an_address_that_an_older_server_needs_opened_is_shown_to_its_caller(
    agent: Stage,
) -> None:
    able: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
    first = await call(agent, "connect", able=able)
    ((key, asked),) = first.result["inputRequests"].items()
    assert asked["params"]["url"] == "https://example.com/connect"
    carried: dict[str, Any] = {"inputResponses": {key: {"action": "accept"}}}
    state = first.result["requestState"]
    second = await call(agent, "connect", able=able, requestState=state, **carried)
    assert second.text == "connected"


async def test_over_http_an_older_servers_questions_are_told_apart_by_their_call(
    tmp_path: Path,
) -> None:
    arguments = {"method": "elicitation/create", "params": FORM}
    host = make_host(tmp_path, relay_input=True)
    async with serving(era="legacy", tools="request", answers="sse") as web:
        host.add_server("web", HttpServer(web.url), allow_legacy=True, **QUICK)
        async with staged(host, tmp_path) as agent:
            asked = [await call(agent, "request", arguments) for _ in range(3)]
            assert all(len(one.result["inputRequests"]) == 1 for one in asked)
            for number, one in enumerate(asked):
                (key,) = one.result["inputRequests"]
                answer = {"action": "accept", "content": {"n": number}}
                carried: dict[str, Any] = {
                    "inputResponses": {key: answer},
                    "requestState": one.result["requestState"],
                }
                done = await call(agent, "request", arguments, **carried)
                assert json.loads(done.text)["result"] == answer


async def test_a_server_that_goes_while_its_call_waits_is_told_when_the_caller_is_back(
    tmp_path: Path,
) -> None:
    arguments = {"method": "elicitation/create", "params": FORM}
    async with staged(build(tmp_path), tmp_path) as agent:
        first = await call(agent, "request", arguments)
        (key,) = first.result["inputRequests"]
        async with asyncio.timeout(PATIENCE_S):
            await agent.host.act("old", "restart")
        carried: dict[str, Any] = {"inputResponses": {key: ACCEPTED}}
        state = first.result["requestState"]
        second = await call(agent, "request", arguments, requestState=state, **carried)
        assert second.result["isError"] is True
        assert "may have been executed" in second.text


async def test_a_caller_that_leaves_while_it_waits_ends_the_call(agent: Stage) -> None:
    folder: Path = agent.folder  # type: ignore[attr-defined]
    before = sent_south(agent, "old")
    leaving = asyncio.ensure_future(call(agent, "mute"))
    await eventually(lambda: sent_south(agent, "old") > before)
    leaving.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await leaving
    await eventually(
        lambda: any(
            line["msg"].get("method") == "notifications/cancelled"
            for line in heard(folder / "old.log")
        )
    )
