"""Input through two hops from a modern server: what goes up, what comes back, what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests.service.mcp.asking import (
    ACCEPTED,
    ALL,
    REFUSED,
    THINK,
    WHO,
    an_agent,
    call,
    can,
    first_state,
    sent_south,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.service.mcp.stage import Stage


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with an_agent(tmp_path_factory.mktemp("state")) as stage:
        yield stage


@pytest.mark.parametrize("state", ["", "plain", 'q"\\u', "é\U0001f600", "x" * 5000])
async def test_the_servers_state_comes_back_exactly_and_the_answers_go_down(
    agent: Stage, state: str
) -> None:
    arguments = {"state": state, "requests": WHO}
    first = await call(agent, "dialogue", arguments)
    assert first.result["inputRequests"] == WHO
    assert state == "" or state not in first.result["requestState"]
    second = await call(
        agent,
        "dialogue",
        arguments,
        inputResponses={"who": ACCEPTED},
        requestState=first.result["requestState"],
    )
    said = json.loads(second.text)
    assert said["requestState"] == state
    assert said["inputResponses"] == {"who": ACCEPTED}
    assert said["capabilities"] == ALL


async def test_a_state_that_the_server_did_not_give_is_not_sent_to_it(agent: Stage) -> None:
    first = await call(agent, "dialogue", {"requests": WHO})
    for carried in ({"requestState": first.result["requestState"]}, {}):
        answers: dict[str, Any] = {"inputResponses": {"who": ACCEPTED}, **carried}
        second = await call(agent, "dialogue", {"requests": WHO}, **answers)
        assert "requestState" not in json.loads(second.text)


async def test_a_server_that_wants_only_to_be_asked_again_is(agent: Stage) -> None:
    first = await call(agent, "state")
    assert "inputRequests" not in first.result
    second = await call(agent, "state", requestState=first.result["requestState"])
    assert second.text == "later"


async def test_a_server_hears_what_its_caller_can_and_nothing_else(agent: Stage) -> None:
    able: dict[str, Any] = {
        "elicitation": {"url": {}},
        "experimental": {"x": {}},
        "tasks": {"list": {}},
        "extensions": {"com.example/x": {"a": 1}, "io.modelcontextprotocol/tasks": {}},
    }
    first = await call(agent, "dialogue", {"state": "s"}, able=able)
    second = await call(
        agent, "dialogue", {"state": "s"}, able={}, requestState=first.result["requestState"]
    )
    assert json.loads(second.text)["capabilities"] == {}
    third = await call(agent, "dialogue", able=able, inputResponses={})
    told = json.loads(third.text)["capabilities"]
    assert told == {
        "elicitation": {"url": {}},
        "experimental": {"x": {}},
        "extensions": {"com.example/x": {"a": 1}},
    }


@pytest.mark.parametrize(
    ("able", "request_", "why"),
    [
        ({}, WHO["who"], "did not declare"),
        ({"sampling": {}}, WHO["who"], "did not declare"),
        ({"elicitation": {}}, {"method": "sampling/createMessage", "params": THINK}, "declare"),
        ({"elicitation": {}}, {"method": "roots/list"}, "did not declare"),
        (ALL, {"method": "tools/list"}, "did not declare"),
        (
            ALL,
            {
                "method": "elicitation/create",
                "params": {"mode": "url", "url": "https://a.example/"},
            },
            "'url', which was not declared",
        ),
        (
            {"elicitation": {"url": {}}},
            {"method": "elicitation/create", "params": {"mode": "url", "url": "javascript:x"}},
            "not http",
        ),
        (
            ALL,
            {"method": "sampling/createMessage", "params": {**THINK, "tools": []}},
            "with tools, which was not declared",
        ),
    ],
)
async def test_what_the_caller_did_not_declare_ends_the_call_and_nobody_is_asked(
    agent: Stage, able: dict[str, Any], request_: Any, why: str
) -> None:
    answer = await call(agent, "dialogue", {"requests": {"a": request_}}, able=able)
    assert answer.result["isError"] is True
    assert why in answer.text
    assert "inputRequests" not in answer.result


async def test_what_the_caller_declared_goes_through(agent: Stage) -> None:
    url = {
        "method": "elicitation/create",
        "params": {"mode": "url", "url": "https://a.example/x", "message": "m"},
    }
    tools = {"method": "sampling/createMessage", "params": {**THINK, "tools": []}}
    able: dict[str, Any] = {"elicitation": {"url": {}}, "sampling": {"tools": {}}}
    answer = await call(agent, "dialogue", {"requests": {"a": url, "b": tools}}, able=able)
    assert answer.result["inputRequests"] == {"a": url, "b": tools}


ASKING: dict[str, dict[str, Any]] = {
    "prompts/get": {"name": "ask", "arguments": {}},
    "resources/read": {"uri": "file:///ask"},
}


@pytest.mark.parametrize(("method", "params"), ASKING.items())
async def test_prompts_and_resources_may_ask_no_less(
    agent: Stage, method: str, params: dict[str, Any]
) -> None:
    first = await agent.ask(method, params, meta=can(ALL))
    assert set(first.result["inputRequests"]) == {"who"}
    state = first.result["requestState"]
    again = {**params, "inputResponses": {"who": ACCEPTED}, "requestState": state}
    second = await agent.ask(method, again, meta=can(ALL))
    assert "messages" in second.result or "contents" in second.result
    unable = await agent.ask(method, params, meta=can({}))
    assert unable.error["code"] == -32603
    for other, elsewhere in ASKING.items():
        if other != method:
            refused = await agent.ask(other, {**elsewhere, "requestState": state}, meta=can(ALL))
            assert refused.error["code"] == REFUSED


@pytest.mark.parametrize("change", ["tampered", "longer", "number", "foreign", "arguments", "tool"])
async def test_a_state_that_is_not_for_this_is_refused_and_nothing_is_sent(
    agent: Stage, change: str
) -> None:
    arguments: dict[str, Any] = {"state": "s", "requests": WHO}
    state: Any = await first_state(agent, arguments)
    name, before = "dialogue", sent_south(agent)
    match change:
        case "tampered":
            state = state[:-8] + ("A" if state[-8] != "A" else "B") + state[-7:]
        case "longer":
            state += "-TAMPERED"
        case "number":
            state = 7
        case "foreign":
            state = "s"
        case "arguments":
            arguments = {**arguments, "more": 1}
        case _:
            name = "ask"
    answer = await call(
        agent, name, arguments, inputResponses={"who": ACCEPTED}, requestState=state
    )
    assert answer.error["code"] == REFUSED
    assert "requestState" in answer.error["message"]
    assert sent_south(agent) == before


async def test_answers_that_are_no_object_are_refused(agent: Stage) -> None:
    state = await first_state(agent, {"state": "s"})
    answer = await call(agent, "dialogue", {"state": "s"}, inputResponses=[], requestState=state)
    assert answer.error["code"] == REFUSED


async def test_a_dialogue_without_end_is_ended(agent: Stage) -> None:
    carried: dict[str, Any] = {}
    for _ in range(8):
        answer = await call(agent, "ask_forever", **carried)
        carried = {
            "inputResponses": {"who": ACCEPTED},
            "requestState": answer.result["requestState"],
        }
    last = await call(agent, "ask_forever", **carried)
    assert last.result["isError"] is True
    assert "8 rounds" in last.text


async def test_each_round_has_its_own_progress_token(agent: Stage) -> None:
    meta = {"progressToken": "mine"}
    first = await call(agent, "dialogue", {"state": "s"}, meta=meta)
    tokens = []
    for _ in range(2):
        carried: dict[str, Any] = {"requestState": first.result["requestState"]}
        second = await call(agent, "dialogue", {"state": "s"}, meta=meta, **carried)
        tokens.append(json.loads(second.text)["progressToken"])
    assert len(set(tokens)) == 2
    assert "mine" not in tokens
