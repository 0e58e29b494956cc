"""A call goes to the one owner of its name, or its caller hears why it went nowhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from observant_host.decisions.names import Grant, Grants
from observant_host.decisions.peer_states import PeerStatus
from observant_host.decisions.terms import Cause, PeerState
from observant_host.errors import (
    CallError,
    CallTimeout,
    InvalidCall,
    RpcError,
    Unavailable,
)
from observant_host.telemetry.propagation import TraceContext
from observant_host.telemetry.vocabulary import (
    RetryDenied,
    RoutedCall,
)
from tests.decisions.catalogues import refused, starting, up
from tests.routing.bench import Bench, lost
from tests.routing.peers import ScriptedPeer, reply
from tests.support.clock import START_WALL_NS


async def test_a_call_goes_to_its_owner_under_the_local_name() -> None:
    a, b = ScriptedPeer("a"), ScriptedPeer("b", reply({"content": [], "n": 1}))
    bench = Bench(a, b)
    result = await bench.router.call_tool("b/search", {"q": "x"}, deadline_s=5)
    assert a.calls == []
    (call,) = b.calls
    assert call["method"] == "tools/call"
    assert call["params"] == {"name": "search", "arguments": {"q": "x"}}
    assert call["target"] == "search"
    assert call["expires"] == bench.clock.monotonic() + 5
    assert (result.name, result.server, result.local_name) == ("b/search", "b", "search")
    assert result.data["n"] == 1

    done = bench.routed()
    fact = done.fact
    assert isinstance(fact, RoutedCall)
    assert (done.outcome, fact.peer, fact.local_name, fact.era) == ("ok", "b", "search", "modern")
    assert (fact.attempts, fact.delivery, fact.fault, fact.deadline_ms) == (
        1,
        "replied",
        "none",
        5000.0,
    )
    assert result.trace_id == f"{done.context.trace_id:032x}"
    assert call["parent"] == done.context


async def test_api_names_are_accepted_and_mean_the_same_tool() -> None:
    b = ScriptedPeer("b")
    bench = Bench(ScriptedPeer("a"), b)
    await bench.router.call_tool(bench.store.current.tools[1].api_name)
    assert b.calls[0]["params"] == {"name": "search", "arguments": {}}
    assert b.calls[0]["expires"] is None


async def test_everything_a_caller_gives_is_passed_down() -> None:
    a = ScriptedPeer("a")
    bench = Bench(a)
    parent = TraceContext(7, 8, True)

    def progress(*_: object) -> None: ...

    await bench.router.call_tool(
        "search", on_progress=progress, meta={"k": 1}, parent=parent, principal="me"
    )
    assert a.calls[0]["on_progress"] is progress
    assert a.calls[0]["params"]["_meta"] == {"k": 1}
    done = bench.routed()
    assert done.parent == parent
    assert isinstance(done.fact, RoutedCall)
    assert done.fact.principal == "me"


async def test_raw_arguments_pass_through_as_they_are_but_for_line_breaks() -> None:
    a = ScriptedPeer("a")
    bench = Bench(a)
    await bench.router.call_tool("search", Raw(b'{"n":1.10}'))
    await bench.router.call_tool("search", Raw(b'{\n "n": 1.10,\r\n "s": "a b" }'))
    assert [c["params"]["arguments"] for c in a.calls] == [{"n": 1.1}, {"n": 1.1, "s": "a b"}]


@pytest.mark.parametrize(
    ("arguments", "deadline"),
    [
        ({"x": object()}, None),
        ({"x": "\ud800"}, None),
        (Raw(b"[1]"), None),
        (Raw(b'{"a":\n'), None),
        ([1], None),
        ({}, 0),
        ({}, -1),
        ({}, float("nan")),
        ({}, float("inf")),
    ],
)
async def test_a_callers_mistake_is_its_own_fault_and_is_not_sent(
    arguments: Any, deadline: Any
) -> None:
    a = ScriptedPeer("a")
    bench = Bench(a)
    with pytest.raises(InvalidCall) as caught:
        await bench.router.call_tool("search", arguments, deadline_s=deadline)
    assert a.calls == []
    assert (caught.value.delivery, caught.value.fault) == ("not_sent", "caller")
    assert not caught.value.unknown
    assert bench.routed().outcome == "invalid"


async def test_an_unknown_name_says_what_is_close_and_who_has_not_listed() -> None:
    bench = Bench(ScriptedPeer("a"), views=[up("a", "search"), starting("slow")])
    with pytest.raises(InvalidCall) as caught:
        await bench.router.call_tool("serach")
    assert caught.value.unknown
    assert '"search"' in str(caught.value)
    assert "slow (starting)" in str(caught.value)
    with pytest.raises(InvalidCall, match="observant-host tools"):
        await bench.router.call_tool("zzz" * 1000)
    told = [d.fact for d in bench.told if isinstance(d.fact, RoutedCall)]
    assert all(len(fact.name) <= 256 for fact in told)


async def test_before_any_server_has_listed_anything_an_unknown_name_is_told_so() -> None:
    bench = Bench(views=[])
    with pytest.raises(InvalidCall, match="No server has listed anything yet"):
        await bench.router.call_tool("search")


async def test_a_withheld_name_says_why() -> None:
    bench = Bench(ScriptedPeer("a"), views=[up("a", denied=("drop",))])
    with pytest.raises(InvalidCall, match=r"withheld \(denied") as caught:
        await bench.router.call_tool("drop")
    assert not caught.value.unknown


async def test_a_released_name_names_the_qualified_ones() -> None:
    held = Grants({"search": Grant("a", START_WALL_NS / 1e9 - 299)})
    peers = ScriptedPeer("a"), ScriptedPeer("b")
    bench = Bench(*peers, views=[up("a"), up("b", "search")], granted=held)
    with pytest.raises(InvalidCall, match=r'given up by server a .* "b/search"'):
        await bench.router.call_tool("search")
    await bench.router.call_tool("b/search")


async def test_a_server_that_is_down_is_refused_unsent_with_state_cause_and_sentence() -> None:
    a = ScriptedPeer("a")
    bench = Bench(a)
    a.fall(detail="it exited with status 3")
    a.comes_back = False
    with pytest.raises(Unavailable) as caught:
        await bench.router.call_tool("search")
    assert a.calls == []
    assert str(caught.value).endswith("; nothing was executed")
    assert bench.facts(RetryDenied) == [], "nothing was sent that could be repeated"
    assert (caught.value.delivery, caught.value.fault) == ("not_sent", "peer")
    said = "server a is down and waits for its next start (process): it exited with status 3"
    assert said in str(caught.value)
    done = bench.routed()
    assert isinstance(done.fact, RoutedCall)
    assert (done.outcome, done.fact.cause, done.fact.fault) == ("unavailable", "process", "peer")
    assert caught.value.call is not None
    assert (caught.value.call.server, caught.value.call.attempts) == ("a", 0)


@pytest.mark.parametrize("state", [PeerState.READY, PeerState.DEGRADED])
async def test_a_server_whose_life_has_just_ended_is_not_called_ready(state: PeerState) -> None:
    a = ScriptedPeer("a")
    bench = Bench(a)
    a.status = PeerStatus(state, 0, None, "discover_ok", "modern 2026-07-28, 1 tool")
    a.routable = a.comes_back = False
    with pytest.raises(Unavailable, match="has just lost its process or connection") as caught:
        await bench.router.call_tool("search")
    assert "ready" not in str(caught.value)
    assert (caught.value.delivery, caught.value.fault) == ("not_sent", "peer")


async def test_a_name_of_a_server_that_has_not_listed_is_unavailable_by_policy() -> None:
    c = ScriptedPeer("c")
    c.status = PeerStatus(PeerState.UNAVAILABLE, 0, Cause.POLICY, "ambiguous_timeout", "allow it")
    c.routable = False
    bench = Bench(c, views=[refused("c")])
    with pytest.raises(Unavailable, match=r"policy, ambiguous_timeout\): allow it") as caught:
        await bench.router.call_tool("c/search")
    assert caught.value.fault == "policy"


async def test_a_call_that_ends_at_the_door_says_at_whose() -> None:
    c = ScriptedPeer("c")
    c.status = PeerStatus(PeerState.UNAVAILABLE, 0, Cause.PROCESS, "ambiguous_closed", "it ended")
    c.routable = False
    bench = Bench(c, ScriptedPeer("a"), views=[refused("c"), up("a", "search", denied=("drop",))])
    calls: list[tuple[str, Any, type[CallError], tuple[str, str]]] = [
        ("c/search", {}, Unavailable, ("c", "search")),
        ("a/drop", {}, InvalidCall, ("a", "drop")),
        ("search", [1], InvalidCall, ("a", "search")),
        ("nobody", {}, InvalidCall, ("", "")),
    ]
    for name, arguments, kind, owner in calls:
        bench.told.clear()
        with pytest.raises(kind) as caught:
            await bench.router.call_tool(name, arguments)
        call = caught.value.call
        assert call is not None
        assert (call.name, call.server, call.local_name) == (name, *owner)
        fact = bench.routed().fact
        assert isinstance(fact, RoutedCall)
        assert (fact.peer, fact.local_name) == (owner[0], ""), "no series for what nobody lists"


async def test_a_server_that_left_the_configuration_under_the_call_is_unavailable() -> None:
    bench = Bench(ScriptedPeer("a"))
    bench.peers.clear()
    with pytest.raises(Unavailable, match="not configured"):
        await bench.router.call_tool("search")


async def test_a_tools_own_error_is_a_result() -> None:
    bench = Bench(ScriptedPeer("a", reply(is_error=True)))
    result = await bench.router.call_tool("search")
    assert result.is_error
    assert bench.routed().outcome == "tool_error"


@pytest.mark.parametrize(
    "error", [RpcError(-32603, "x"), CallTimeout("slow", scope="call"), lost("sent_no_reply")]
)
async def test_the_peers_error_is_passed_on_with_where_it_came_from(error: Any) -> None:
    a = ScriptedPeer("a", error)
    bench = Bench(a)
    with pytest.raises(type(error)) as caught:
        await bench.router.call_tool("search")
    assert caught.value is error
    assert len(a.calls) == 1
    assert error.call.server == "a"
    assert error.call.attempts == 1
    assert bench.routed().outcome == error.outcome


async def test_a_cancelled_call_is_an_outcome_and_passes_on() -> None:
    a = ScriptedPeer("a", asyncio.CancelledError())
    bench = Bench(a)
    with pytest.raises(asyncio.CancelledError):
        await bench.router.call_tool("search")
    done = bench.routed()
    assert isinstance(done.fact, RoutedCall)
    assert (done.outcome, done.fact.delivery, done.fact.fault) == (
        "cancelled",
        "sent_no_reply",
        "caller",
    )


async def test_parallel_calls_do_not_wait_for_each_other() -> None:
    release = asyncio.Event()

    async def slow() -> Any:
        await release.wait()
        return reply()

    a, b = ScriptedPeer("a", slow), ScriptedPeer("b")
    bench = Bench(a, b)
    waiting = asyncio.create_task(bench.router.call_tool("search"))
    await bench.router.call_tool("b/search")
    assert not waiting.done()
    release.set()
    assert (await waiting).server == "a"


async def test_a_prompt_is_asked_of_its_owner() -> None:
    a = ScriptedPeer("a")
    bench = Bench(a, views=[up("a", prompts=("ask",))])
    await bench.router.get_prompt("a/ask", {"x": "1"})
    assert a.calls[0]["method"] == "prompts/get"
    assert a.calls[0]["params"] == {"name": "ask", "arguments": {"x": "1"}}
    with pytest.raises(InvalidCall, match="no prompt"):
        await bench.router.get_prompt("nothing")


async def test_a_resource_is_read_at_its_owner_or_where_the_caller_says() -> None:
    a, b = ScriptedPeer("a"), ScriptedPeer("b")
    uri = "file:///x?token=s3cret"
    bench = Bench(a, b, views=[up("a", resources=(uri,)), up("b", resources=(uri,))])
    result = await bench.router.read_resource(uri)
    assert (result.server, result.local_name) == ("a", uri)
    assert a.calls[0]["params"] == {"uri": uri}
    assert (a.calls[0]["uri"], a.calls[0]["target"]) == (uri, None)
    await bench.router.read_resource("file:///unlisted", server="b")
    assert b.calls[0]["params"] == {"uri": "file:///unlisted"}
    assert all("s3cret" not in str(done.fact) for done in bench.told)

    with pytest.raises(InvalidCall, match="server="):
        await bench.router.read_resource("file:///unlisted")
    with pytest.raises(InvalidCall, match='"nobody" is configured'):
        await bench.router.read_resource(uri, server="nobody")


async def test_a_completion_goes_to_the_owner_of_its_reference() -> None:
    a, b = ScriptedPeer("a"), ScriptedPeer("b")
    views = [up("a", prompts=("ask",)), up("b", prompts=("ask",), templates=("db://{t}",))]
    bench = Bench(a, b, views=views)
    argument = {"name": "x", "value": "y"}
    await bench.router.complete(
        {"type": "ref/prompt", "name": "b/ask"}, argument, context={"arguments": {}}
    )
    template = {"type": "ref/resource", "uri": "db://{t}"}
    await bench.router.complete(template, argument)
    assert [c["params"] for c in b.calls] == [
        {
            "ref": {"type": "ref/prompt", "name": "ask"},
            "argument": argument,
            "context": {"arguments": {}},
        },
        {"ref": template, "argument": argument},
    ]
    await bench.router.complete(template, argument, server="a")
    assert len(a.calls) == 1
    for ref in ({"type": "ref/other"}, {"type": "ref/prompt", "name": "none"}, {}):
        with pytest.raises(InvalidCall):
            await bench.router.complete(ref, argument)
    with pytest.raises(InvalidCall):
        await bench.router.complete({"type": "ref/resource", "uri": "no://"}, argument)


async def test_input_rounds_count_as_attempts() -> None:
    bench = Bench(ScriptedPeer("a", reply(attempts=3)))
    assert (await bench.router.call_tool("search")).attempts == 3
