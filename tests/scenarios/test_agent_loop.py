"""The agent loop with real servers and a model whose every turn a test has written, in the formats
of both APIs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host import AgentEvent, run_agent
from tests.support.clock import ManualClock
from tests.support.hosts import NEVER_AGAIN, PATIENCE_S, add, quick_host, reach

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from observant_host import Host
    from observant_host.decisions.model_formats import Format

Wanted = tuple[str, dict[str, Any]]
BOTH = pytest.mark.parametrize("shape", ["anthropic", "openai"])


class Script:
    """A model: each turn is a list of calls, or the words it ends with."""

    def __init__(self, shape: Format, *turns: list[Wanted] | str) -> None:
        self.shape = shape
        self.turns = list(turns)
        self.seen: list[list[dict[str, Any]]] = []
        self.tools: list[list[dict[str, Any]]] = []

    async def __call__(self, messages: list[Any], tools: list[dict[str, Any]]) -> Any:
        self.seen.append(messages)
        self.tools.append(tools)
        turn = self.turns.pop(0)
        return self.said(turn) if isinstance(turn, str) else self.calling(turn)

    def said(self, text: str) -> dict[str, Any]:
        if self.shape == "openai":
            return {"role": "assistant", "content": text}
        return {"role": "assistant", "content": [{"type": "text", "text": text}]}

    def calling(self, wanted: list[Wanted]) -> dict[str, Any]:
        calls = [(f"c{at}", name, given) for at, (name, given) in enumerate(wanted)]
        if self.shape == "openai":
            made = [
                {
                    "id": one,
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(given)},
                }
                for one, name, given in calls
            ]
            return {"role": "assistant", "content": None, "tool_calls": made}
        uses = [
            {"type": "tool_use", "id": one, "name": name, "input": given}
            for one, name, given in calls
        ]
        return {"role": "assistant", "content": uses}

    def results(self, turn: int) -> list[tuple[str, str, bool]]:
        """(id, text, is an error) of each result that it was given before that turn."""
        given = self.seen[turn]
        if self.shape == "openai":
            last = max(at for at, one in enumerate(given) if one["role"] == "assistant")
            tools = [one for one in given[last + 1 :] if one["role"] == "tool"]
            found = [(one["tool_call_id"], one["content"]) for one in tools]
            return [
                (one, text.removeprefix("Error:\n"), text.startswith("Error:\n"))
                for one, text in found
            ]
        return [
            (
                one["tool_use_id"],
                "\n".join(part.get("text", "") for part in one["content"]),
                one.get("is_error", False),
            )
            for one in given[-1]["content"]
        ]


HELLO = [{"role": "user", "content": "hello"}]


def other_echo(host: Host) -> str:
    """What a model API calls the second server's echo."""
    return host.catalogue.lookup["b/echo"].api_name


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    made, _ = quick_host()
    add(made, "a", {"tools": "add,echo,fail,rpc_error,mute,slow"})
    add(made, "b", {"tools": "echo,kill,pid"}, **NEVER_AGAIN)
    async with made:
        yield made


@BOTH
async def test_calls_are_made_and_answered_until_the_model_answers(
    host: Host, shape: Format
) -> None:
    model = Script(
        shape,
        [("add", {"a": 1, "b": 2}), ("echo", {"text": "x"}), (other_echo(host), {"text": "y"})],
        [("add", {"a": 3, "b": 4})],
        "seven",
    )
    run = await run_agent(host, model, HELLO, format=shape)
    assert (run.text, run.stop, run.turns) == ("seven", "answered", 3)
    assert model.results(1) == [("c0", "3", False), ("c1", "x", False), ("c2", "y", False)]
    assert model.results(2) == [("c0", "7", False)]
    assert [one.server for one in sorted(run.calls, key=lambda one: (one.turn, one.id))] == [
        "a",
        "a",
        "b",
        "a",
    ]
    assert all(one.outcome == "ok" and one.trace_id for one in run.calls)
    assert run.messages[0] == HELLO[0]
    assert run.messages[-1] == model.said("seven")
    assert len(model.tools[0]) == 9
    assert json.dumps(run.messages)


@BOTH
async def test_what_fails_is_told_to_the_model_which_goes_on(host: Host, shape: Format) -> None:
    model = Script(
        shape,
        [
            ("fail", {}),
            ("rpc_error", {"code": -32000, "message": "no luck", "data": None}),
            ("nonsense", {}),
            ("add", {"a": 1, "b": 1}),
        ],
        "done",
    )
    run = await run_agent(host, model, HELLO, format=shape)
    first, second, third, fourth = model.results(1)
    assert first[2]
    assert second[2]
    assert "no luck" in second[1]
    assert third[2]
    assert 'no tool is called "nonsense"' in third[1]
    assert fourth == ("c3", "2", False)
    outcomes = {one.name: one.outcome for one in run.calls}
    assert outcomes == {
        "fail": "tool_error",
        "rpc_error": "rpc_error",
        "nonsense": "invalid",
        "add": "ok",
    }
    assert run.stop == "answered"


@BOTH
async def test_a_server_that_is_killed_is_told_with_what_is_certain(
    host: Host, shape: Format
) -> None:
    model = Script(shape, [("kill", {}), ("add", {"a": 1, "b": 1})], [("pid", {})], "done")
    run = await run_agent(host, model, HELLO, format=shape)
    killed, added = model.results(1)
    assert killed[2]
    assert "may have been executed" in killed[1]
    assert added == ("c1", "2", False)
    _, pid, is_error = model.results(2)[0]  # the call has it started again
    assert not is_error, pid
    assert pid.isdecimal()
    assert [one.delivery for one in run.calls if one.name == "kill"] == ["sent_no_reply"]
    assert run.text == "done"


@BOTH
async def test_a_server_that_stays_away_is_told_as_not_executed(host: Host, shape: Format) -> None:
    model = Script(shape, [("pid", {})], "done")

    async def asked(messages: list[Any], tools: list[Any]) -> Any:
        said = await model(messages, tools)
        if len(model.seen) == 1:
            await host.act("b", "disable", reason="a test")
        else:
            names = [one.get("name") or one["function"]["name"] for one in tools]
            assert "pid" not in names
        return said

    await run_agent(host, asked, HELLO, format=shape)
    _, text, is_error = model.results(1)[0]
    assert is_error
    assert "nothing was executed" in text


@BOTH
async def test_it_stops_after_its_turns_with_every_call_answered(host: Host, shape: Format) -> None:
    model = Script(shape, *([("add", {"a": 1, "b": 1})] for _ in range(9)))
    run = await run_agent(host, model, HELLO, format=shape, max_turns=3)
    assert (run.stop, run.turns, len(run.calls)) == ("max_turns", 3, 3)
    assert run.messages[-1]["role"] == ("tool" if shape == "openai" else "user")


async def test_calls_of_one_turn_run_side_by_side(host: Host) -> None:
    """Neither of the two on one server waits for another server's, which never answers."""
    model = Script("anthropic", [("mute", {}), (other_echo(host), {"text": "y"})], "done")
    over: list[str] = []

    def told(event: AgentEvent) -> None:
        if event.done is not None:
            over.append(event.done.name)

    await run_agent(host, model, HELLO, call_deadline_s=3, on_event=told)
    assert over == [other_echo(host), "mute"]
    mute, echo = model.results(1)
    assert "may have been executed" in mute[1]
    assert echo == ("c1", "y", False)


async def test_cancelling_it_cancels_its_open_calls(tmp_path: Path) -> None:
    host, _ = quick_host()
    log = tmp_path / "log"
    add(host, "a", {"tools": "mute", "log": str(log)})
    async with host:
        model = Script("anthropic", [("mute", {}), ("mute", {})])
        running = asyncio.create_task(run_agent(host, model, HELLO))
        async with asyncio.timeout(PATIENCE_S):
            while len(host.calls_in_flight()) < 2:
                await asyncio.sleep(0.01)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert host.calls_in_flight() == []
            while log.read_text().count("notifications/cancelled") < 2:
                await asyncio.sleep(0.01)


async def test_the_deadline_ends_a_model_that_does_not_answer() -> None:
    clock = ManualClock()
    host, _ = quick_host(clock=clock)
    asked = asyncio.Event()

    async def model(messages: list[Any], tools: list[Any]) -> Any:
        asked.set()
        await asyncio.Event().wait()

    async with host:
        running = asyncio.create_task(run_agent(host, model, HELLO, deadline_s=60))
        async with asyncio.timeout(PATIENCE_S):
            await asked.wait()
            await clock.advance(61)
            run = await running
    assert (run.stop, run.messages, run.text) == ("deadline", HELLO, "")


async def test_the_deadline_ends_calls_as_timeouts_and_then_the_loop(host: Host) -> None:
    model = Script("anthropic", [("mute", {})], "never said")
    run = await run_agent(host, model, HELLO, deadline_s=0.5)
    assert (run.stop, run.turns) == ("deadline", 1)
    assert run.calls[0].outcome == "timeout"
    assert run.messages[-1]["content"][0]["is_error"] is True
    assert len(model.turns) == 1


async def test_what_the_model_function_raises_comes_out(host: Host) -> None:
    async def model(messages: list[Any], tools: list[Any]) -> Any:
        raise ConnectionError("no such API")

    with pytest.raises(ConnectionError, match="no such API"):
        await run_agent(host, model, HELLO)
    with pytest.raises(ValueError, match="format must be one of anthropic, openai"):
        await run_agent(host, model, HELLO, format="grpc")  # type: ignore[arg-type]


async def test_broken_arguments_are_told_and_nothing_is_called(host: Host) -> None:
    function = {"name": "add", "arguments": '{"a": 1'}
    broken = {"tool_calls": [{"id": "1", "type": "function", "function": function}]}
    turns: list[Any] = [broken, {"content": "done"}]
    seen: list[Any] = []

    async def model(messages: list[Any], tools: list[Any]) -> Any:
        seen.append(messages)
        return turns.pop(0)

    run = await run_agent(host, model, HELLO, format="openai")
    assert "no JSON" in seen[1][-1]["content"]
    assert run.calls[0].outcome == "invalid"
    assert run.calls[0].server == ""


async def test_a_server_that_joins_is_offered_from_the_next_turn_on(host: Host) -> None:
    model = Script("anthropic", [("add", {"a": 1, "b": 1})], "done")

    async def joined(messages: list[Any], tools: list[Any]) -> Any:
        if len(model.seen) == 0:
            add(host, "c", {"tools": "fly"})
            await reach(host, "c", "ready")
        return await model(messages, tools)

    await run_agent(host, joined, HELLO)
    assert "fly" not in {one["name"] for one in model.tools[0]}
    assert "fly" in {one["name"] for one in model.tools[1]}
