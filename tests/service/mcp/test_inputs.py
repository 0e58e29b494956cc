"""Input through two hops: a modern agent, real servers of both eras, real sockets."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import secrets
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from observant_host import HttpServer
from observant_host.config import ServiceSettings
from tests.service.mcp.stage import Stage, heard, make_host, staged
from tests.support.agent import KEY
from tests.support.hosts import PATIENCE_S, QUICK, add
from tests.support.processes import eventually
from tests.support.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.agent import Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
WHO = {"who": {"method": "elicitation/create", "params": FORM}}
THINK = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 5,
}
ACCEPTED = {"action": "accept", "content": {"name": "Ann"}}
SAMPLED = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "yes"}}
ROOTS = {"roots": [{"uri": "file:///home/ann"}]}
REFUSED = -32602


def can(capabilities: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {f"{KEY}clientCapabilities": capabilities, **meta}


async def call(
    agent: Stage,
    name: str,
    arguments: dict[str, Any] | None = None,
    *,
    able: dict[str, Any] = ALL,
    method: str = "tools/call",
    meta: dict[str, Any] | None = None,
    **again: Any,
) -> Answer:
    params: dict[str, Any] = {"name": name, "arguments": arguments or {}, **again}
    return await agent.ask(method, params, meta=can(able, **(meta or {})))


def build(folder: Path, settings: ServiceSettings | None = None) -> Any:
    local = settings or ServiceSettings(listen="127.0.0.1:0", drain_timeout_s=5)
    host = make_host(folder, local, relay_input=True)
    log = {"log": str(folder / "new.log")}
    asking = {"prompts": "ask", "resources": "file:///ask", "ttl": 60000}
    add(host, "new", {"tools": "dialogue,ask,ask_forever,state,echo", **asking, **log})
    options = {"era": "legacy", "tools": "request,connect,mute", "log": str(folder / "old.log")}
    add(host, "old", options, allow_legacy=True)
    return host


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agent(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("state")
    async with staged(build(folder), folder) as stage:
        stage.folder = folder  # type: ignore[attr-defined]
        yield stage


def sent_south(agent: Stage, server: str = "new") -> int:
    folder: Path = agent.folder  # type: ignore[attr-defined]
    messages = [line["msg"] for line in heard(folder / f"{server}.log")]
    return sum(one.get("method") == "tools/call" for one in messages)


# A modern server


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


async def first_state(agent: Stage, arguments: dict[str, Any]) -> str:
    answer = await call(agent, "dialogue", arguments)
    state: str = answer.result["requestState"]
    return state


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


# A legacy server: its call waits


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


# More than one host


@contextlib.asynccontextmanager
async def replicas(tmp_path: Path, *, keys: bool = True) -> AsyncIterator[tuple[Stage, Stage]]:
    path = tmp_path / "key"
    path.write_text(base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
    shared = ServiceSettings(
        listen="127.0.0.1:0", drain_timeout_s=5, state_key_file=str(path) if keys else None
    )
    async with contextlib.AsyncExitStack() as stack:
        stages = []
        for name in ("a", "b"):
            folder = tmp_path / name
            folder.mkdir()
            stages.append(await stack.enter_async_context(staged(build(folder, shared), folder)))
        yield stages[0], stages[1]


async def test_another_replica_with_the_same_key_serves_the_retry(tmp_path: Path) -> None:
    arguments = {"state": "theirs", "requests": WHO}
    async with replicas(tmp_path) as (one, other):
        state = await first_state(one, arguments)
        carried: dict[str, Any] = {"inputResponses": {"who": ACCEPTED}, "requestState": state}
        answer = await call(other, "dialogue", arguments, **carried)
        assert json.loads(answer.text)["requestState"] == "theirs"
        waiting = {"method": "elicitation/create", "params": FORM}
        parked = await call(one, "request", waiting)
        (key,) = parked.result["inputRequests"]
        carried = {
            "inputResponses": {key: ACCEPTED},
            "requestState": parked.result["requestState"],
        }
        elsewhere = await call(other, "request", waiting, **carried)
        assert elsewhere.result["isError"] is True
        assert "another instance" in elsewhere.text
        assert "may have been executed" in elsewhere.text
        assert json.loads((await call(one, "request", waiting, **carried)).text)["result"]


async def test_a_replica_with_another_key_refuses_it(tmp_path: Path) -> None:
    async with replicas(tmp_path, keys=False) as (one, other):
        state = await first_state(one, {"state": "s"})
        answer = await call(other, "dialogue", {"state": "s"}, requestState=state)
        assert answer.error["code"] == REFUSED
        parked = await call(one, "request", {"method": "elicitation/create", "params": FORM})
        assert "inputRequests" in parked.result
        async with asyncio.timeout(PATIENCE_S):  # a host that ends waits for nobody who is away
            one.running.stop.set()
            await eventually(lambda: not one.host.open_calls)
