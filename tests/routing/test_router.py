"""A call goes to the one owner of its name, once, or its caller hears why it went nowhere."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec import Raw

from observant_host.decisions.budget import RETRIES
from observant_host.decisions.catalogue import ListedTool
from observant_host.decisions.names import Grant, Grants
from observant_host.decisions.peer_states import PeerStatus
from observant_host.decisions.retry_safety import AGAIN_S, PAUSE_S
from observant_host.decisions.terms import Cause, PeerState
from observant_host.errors import (
    CallError,
    CallTimeout,
    InvalidCall,
    InvalidResult,
    NotAnswering,
    RateLimited,
    RpcError,
    Unavailable,
)
from observant_host.routing.catalogue_store import CatalogueStore
from observant_host.routing.router import Router
from observant_host.telemetry.propagation import TraceContext
from observant_host.telemetry.setup import capturing
from observant_host.telemetry.vocabulary import (
    DeadlineExpired,
    RetryDenied,
    RetryScheduled,
    RoutedCall,
)
from tests.decisions.catalogues import refused, starting, up
from tests.routing.peers import InLine, Lookup, ScriptedPeer, reply
from tests.support.clock import START_WALL_NS, ManualClock

if TYPE_CHECKING:
    from observant_host.telemetry.finished import Finished


class Bench:
    """A router over scripted peers, and everything it told."""

    def __init__(self, *peers: ScriptedPeer, views: Any = None, granted: Any = None) -> None:
        telemetry, self.told = capturing()
        self.clock = ManualClock()
        self.peers = Lookup(*peers)
        self.store = CatalogueStore(
            policy="prefix",
            rename_grace_s=300,
            telemetry=telemetry,
            clock=self.clock,
            granted=granted,
        )
        self.store.publish(
            views if views is not None else [up(name, "search") for name in self.peers]
        )
        self.told.clear()
        self.router = Router(self.store, self.peers, telemetry=telemetry, clock=self.clock)

    def routed(self) -> Finished:
        (done,) = [d for d in self.told if isinstance(d.fact, RoutedCall)]
        return done

    def facts(self, kind: type) -> list[Any]:
        return [d.fact for d in self.told if isinstance(d.fact, kind)]


def lost(delivery: Any = "not_sent", fault: Any = "peer") -> Unavailable:
    return Unavailable("the life ended", delivery=delivery, fault=fault)


def limited(retry_after_s: float | None = 3.0, delivery: Any = "replied") -> RateLimited:
    return RateLimited("it is busy", retry_after_s=retry_after_s, delivery=delivery)


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


# further attempts


async def ended(bench: Bench, call: Any, *, after_s: float = 1.0) -> Any:
    """The result of a call that may have to wait before its next attempt."""
    task = asyncio.create_task(call)
    await bench.clock.advance(after_s)
    return await task


def _falling(peer: ScriptedPeer, error: Any = None) -> Any:
    async def fall() -> Any:
        peer.fall()
        raise error or lost()

    return fall


async def test_a_call_wakes_its_server_and_waits_for_it_within_its_deadline() -> None:
    a = ScriptedPeer("a", reply({"content": [], "n": 1}))
    bench = Bench(a)
    a.fall()
    result = await bench.router.call_tool("search", deadline_s=60)
    assert (result.data["n"], result.attempts) == (1, 1)
    assert a.waited_until == bench.clock.monotonic() + 60
    assert [(f.reason, f.attempt) for f in bench.facts(RetryScheduled)] == [("not_sent", 1)]


async def test_what_was_never_sent_is_sent_once_more_when_the_server_is_back() -> None:
    a = ScriptedPeer("a")
    a.answers = [_falling(a), reply({"content": [], "n": 2})]
    bench = Bench(a)
    result = await bench.router.call_tool("search", deadline_s=60)
    assert result.data["n"] == 2
    assert result.attempts == 2
    assert a.calls[1]["attempt"] == 2
    assert a.waited_until == bench.clock.monotonic() + 60
    (scheduled,) = bench.facts(RetryScheduled)
    assert (scheduled.peer, scheduled.reason, scheduled.attempt) == ("a", "not_sent", 2)
    assert bench.routed().outcome == "ok"


async def test_a_server_that_does_not_come_back_is_not_tried_again() -> None:
    a = ScriptedPeer("a")
    a.answers = [_falling(a)]
    a.comes_back = False
    bench = Bench(a)
    with pytest.raises(Unavailable, match="nothing was executed"):
        await bench.router.call_tool("search")
    assert [f.reason for f in bench.facts(RetryDenied)] == ["unavailable"]


async def test_a_deadline_that_passes_while_the_server_is_waited_for_is_one_of_connecting() -> None:
    a = ScriptedPeer("a")
    a.answers = [_falling(a)]
    bench = Bench(a)

    async def late(expires: float) -> bool:
        await bench.clock.sleep(expires - bench.clock.monotonic())
        return False

    a.wake = late  # type: ignore[method-assign] # this one comes too late
    with pytest.raises(CallTimeout, match=r"not back within the call's 3 s.*nothing was") as caught:
        await ended(bench, bench.router.call_tool("search", deadline_s=3), after_s=3)
    error = caught.value
    assert (error.scope, error.delivery, error.fault) == ("connect", "not_sent", "peer")
    (expired,) = bench.facts(DeadlineExpired)
    assert (expired.scope, expired.budget_ms, expired.elapsed_ms) == ("connect", 3000, 3000)
    assert [f.reason for f in bench.facts(RetryDenied)] == ["deadline"]
    done = bench.routed()
    assert isinstance(done.fact, RoutedCall)
    assert (done.outcome, done.fact.era, done.fact.attempts) == ("timeout", "modern", 1)


async def test_a_server_that_seems_to_be_there_is_tried_again_after_a_moment() -> None:
    a = ScriptedPeer("a", lost(), reply())
    bench = Bench(a)
    task = asyncio.create_task(bench.router.call_tool("search"))
    await bench.clock.advance(AGAIN_S - 0.01)
    assert len(a.calls) == 1
    await bench.clock.advance(0.02)
    assert (await task).attempts == 2


async def test_there_is_one_more_attempt_and_not_two() -> None:
    a = ScriptedPeer("a", lost(), lost(), reply())
    bench = Bench(a)
    with pytest.raises(Unavailable) as caught:
        await ended(bench, bench.router.call_tool("search"))
    assert len(a.calls) == 2
    assert caught.value.call is not None
    assert (caught.value.call.attempts, caught.value.call.era) == (2, "modern")
    assert [f.reason for f in bench.facts(RetryDenied)] == ["budget"]


async def test_what_was_still_in_line_when_its_server_fell_is_no_attempt_and_needs_no_budget() -> (
    None
):
    a = ScriptedPeer("a", InLine(lost()), InLine(lost()), InLine(lost()), reply())
    a.server = msgspec.structs.replace(a.server, retry_calls="never")
    bench = Bench(a)
    while a.retries.take(bench.clock.monotonic()):
        pass
    result = await ended(bench, bench.router.call_tool("search"))
    assert result.attempts == 1
    assert [call["attempt"] for call in a.calls] == [1, 1, 1, 1]


async def test_the_budget_of_one_server_stops_a_storm_of_retries() -> None:
    """Over an hour's outage the retries stay at the budget's rate, whatever the callers do."""
    a, b = ScriptedPeer("a"), ScriptedPeer("b")
    bench = Bench(a, b)
    calls = 0
    for _ in range(60):
        a.answers = [lost()] * 100
        tasks = [asyncio.create_task(bench.router.call_tool("search")) for _ in range(50)]
        await bench.clock.advance(60)
        failed = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(error, Unavailable) for error in failed)
        calls += len(tasks)
    again = len(a.calls) - calls
    assert again == RETRIES.burst * 60, "all of the budget, and none above it"
    assert again <= RETRIES.burst + 3600 / RETRIES.every_s
    denied = [f.reason for f in bench.facts(RetryDenied)]
    assert denied == ["budget"] * calls
    assert b.retries.wait_s(bench.clock.monotonic()) == 0, "another server's budget is its own"


@pytest.mark.parametrize(
    ("error", "config", "denied"),
    [
        (lost("sent_no_reply"), {}, ["not_idempotent"]),
        (lost("sent_no_reply"), {"retry_calls": "idempotent"}, ["not_idempotent"]),
        (lost("sent_no_reply"), {"idempotent_tools": ("search",)}, ["not_idempotent"]),
        (lost(), {"retry_calls": "never"}, ["budget"]),
        (lost(fault="host"), {}, []),
        (RpcError(-32603, "x"), {}, []),
        (NotAnswering("silent"), {}, []),
    ],
)
async def test_what_may_not_be_sent_again_is_said_and_not_sent(
    error: Any, config: dict[str, Any], denied: list[str]
) -> None:
    a = ScriptedPeer("a", error, reply(), **config)
    bench = Bench(a)
    with pytest.raises(type(error)):
        await bench.router.call_tool("search")
    assert len(a.calls) == 1
    assert [f.reason for f in bench.facts(RetryDenied)] == denied


async def test_a_call_that_its_server_began_to_work_on_does_not_begin_anew() -> None:
    """Not even a read: somebody was asked for input, and would be asked again."""
    for error in (lost("sent_no_reply"), lost(), RateLimited("wait", retry_after_s=1)):
        error.begun = True
        a = ScriptedPeer("a", error, reply())
        bench = Bench(a, views=[up("a", prompts=("ask",))])
        with pytest.raises(Unavailable):
            await bench.router.get_prompt("ask")
        assert len(a.calls) == 1


async def test_a_read_that_was_lost_is_read_once_more() -> None:
    a = ScriptedPeer("a")
    a.answers = [_falling(a, lost("sent_no_reply")), reply(), lost("sent_no_reply"), reply()]
    bench = Bench(a, views=[up("a", prompts=("ask",), resources=("u",))])
    assert (await ended(bench, bench.router.read_resource("u"))).attempts == 2
    assert (await ended(bench, bench.router.get_prompt("ask"))).attempts == 2
    assert [f.reason for f in bench.facts(RetryScheduled)] == ["lost", "lost"]


async def test_a_read_is_not_repeated_where_nothing_may_be() -> None:
    a = ScriptedPeer("a", lost("sent_no_reply"), retry_calls="never")
    bench = Bench(a, views=[up("a", resources=("u",))])
    with pytest.raises(Unavailable):
        await bench.router.read_resource("u")
    assert [f.reason for f in bench.facts(RetryDenied)] == ["budget"]


IDEMPOTENT = {"retry_calls": "idempotent", "idempotent_tools": ("search",)}


async def test_a_tool_that_is_declared_idempotent_is_called_once_more() -> None:
    a = ScriptedPeer("a", lost("sent_no_reply"), reply(), **IDEMPOTENT)
    assert (await ended(bench := Bench(a), bench.router.call_tool("search"))).attempts == 2
    assert [f.reason for f in bench.facts(RetryScheduled)] == ["lost"]


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_servers_own_word_counts_only_where_it_is_trusted(*, trusted: bool) -> None:
    a = ScriptedPeer(
        "a", lost("sent_no_reply"), reply(), retry_calls="idempotent", trust_annotations=trusted
    )
    bench = Bench(a, views=[up("a", ListedTool("search", Raw(b"{}"), idempotent=True))])
    if trusted:
        assert (await ended(bench, bench.router.call_tool("search"))).attempts == 2
        return
    with pytest.raises(Unavailable, match="do not simply repeat it"):
        await ended(bench, bench.router.call_tool("search"))


@pytest.mark.parametrize(
    "second",
    [lost(), InLine(lost()), limited(1.0), CallTimeout("q", scope="queue", delivery="not_sent")],
)
async def test_what_may_have_been_executed_once_stays_so_whatever_becomes_of_the_retry(
    second: Any,
) -> None:
    a = ScriptedPeer("a", lost("sent_no_reply"), second, *[lost()] * 3, **IDEMPOTENT)
    bench = Bench(a)
    with pytest.raises(CallError, match="it may have been executed") as caught:
        await ended(bench, bench.router.call_tool("search"))
    assert "nothing was executed" not in str(caught.value)
    done = bench.routed()
    assert isinstance(done.fact, RoutedCall)
    assert done.fact.delivery != "not_sent"


async def test_a_call_that_is_cancelled_while_its_server_is_waited_for_tells_how_far_it_got() -> (
    None
):
    for error, delivery in ((lost(), "not_sent"), (lost("sent_no_reply"), "sent_no_reply")):
        a = ScriptedPeer("a", error, **IDEMPOTENT)
        bench = Bench(a)
        task = asyncio.create_task(bench.router.call_tool("search"))
        await bench.clock.settle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        done = bench.routed()
        assert isinstance(done.fact, RoutedCall)
        assert (done.outcome, done.fact.delivery, done.fact.attempts) == ("cancelled", delivery, 1)


# a server that limits its rate


@pytest.mark.parametrize(("retry_after_s", "waited_s"), [(3.0, 3.0), (None, PAUSE_S)])
async def test_a_refusal_for_rate_is_sent_again_after_the_pause_it_asks_for(
    retry_after_s: float | None, waited_s: float
) -> None:
    a = ScriptedPeer("a", limited(retry_after_s), reply())
    bench = Bench(a)
    task = asyncio.create_task(bench.router.call_tool("search", deadline_s=5))
    await bench.clock.advance(waited_s - 0.1)
    assert len(a.calls) == 1
    await bench.clock.advance(0.2)
    assert (await task).attempts == 2
    (scheduled,) = bench.facts(RetryScheduled)
    assert (scheduled.reason, scheduled.delay_ms) == ("rate_limited", waited_s * 1e3)


async def test_a_pause_that_the_deadline_does_not_allow_is_not_waited_for() -> None:
    a = ScriptedPeer("a", limited(6.0), reply())
    bench = Bench(a)
    with pytest.raises(RateLimited, match="nothing was executed"):
        await bench.router.call_tool("search", deadline_s=5)
    assert [f.reason for f in bench.facts(RetryDenied)] == ["deadline"]


async def test_a_pause_that_is_not_waited_for_is_no_timeout_though_time_passes_while_it_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(ScriptedPeer("a", limited(3600.0), reply()))
    now = itertools.count(1000.0, 1e-6)
    monkeypatch.setattr(bench.clock, "monotonic", lambda: next(now))
    with pytest.raises(RateLimited, match="nothing was executed"):
        await bench.router.call_tool("search", deadline_s=5)
    assert bench.facts(DeadlineExpired) == []


async def test_a_call_that_is_held_back_for_a_pause_is_not_tried_again() -> None:
    bench = Bench(ScriptedPeer("a", InLine(limited(40.0, "not_sent")), reply()))
    with pytest.raises(RateLimited, match="nothing was executed"):
        await bench.router.call_tool("search", deadline_s=60)
    assert bench.facts(RetryScheduled) == []


# what a caller is told of the effects


@pytest.mark.parametrize(
    ("error", "config", "said"),
    [
        (lost(fault="host"), {}, "; nothing was executed"),
        (CallTimeout("slow", scope="queue", delivery="not_sent"), {}, "; nothing was executed"),
        (lost("sent_no_reply"), {}, "; it may have been executed; do not simply repeat it"),
        (
            CallTimeout("slow", scope="attempt"),
            {},
            "; it may have been executed; do not simply repeat it",
        ),
        (InvalidResult("broken"), {}, "; it may have been executed; do not simply repeat it"),
        (
            CallTimeout("slow", scope="attempt"),
            {"idempotent_tools": ("search",)},
            "; it may have been executed; it is declared idempotent, so it may be repeated",
        ),
        (RpcError(-1, "no"), {}, "the server answered with error -1: no"),
        (InvalidCall("odd"), {}, "odd"),
    ],
)
async def test_an_error_says_in_words_whether_the_tool_may_have_been_executed(
    error: Any, config: dict[str, Any], said: str
) -> None:
    bench = Bench(ScriptedPeer("a", error, **config))
    with pytest.raises(type(error)) as caught:
        await bench.router.call_tool("search")
    assert str(caught.value).endswith(said)
    assert str(caught.value).count("executed") <= 1


async def test_of_a_read_that_failed_nothing_is_feared() -> None:
    a = ScriptedPeer("a", CallTimeout("slow", scope="attempt"))
    bench = Bench(a, views=[up("a", resources=("u",))])
    with pytest.raises(CallTimeout) as caught:
        await bench.router.read_resource("u")
    assert str(caught.value) == "slow"


async def test_one_deadline_covers_a_retry_too() -> None:
    a = ScriptedPeer("a", lost(), reply())
    bench = Bench(a)
    began = bench.clock.monotonic()
    await ended(bench, bench.router.call_tool("search", deadline_s=5, principal="me"))
    assert [call["expires"] for call in a.calls] == [began + 5, began + 5]
    a.answers = [lost(), reply()]
    began = bench.clock.monotonic()
    await ended(bench, bench.router.call_tool("search"))
    assert [call["expires"] for call in a.calls[2:]] == [None, None]
    assert [call["began"] for call in a.calls[2:]] == [began, began]
    assert [call["principal"] for call in a.calls] == ["me", "me", None, None]


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
