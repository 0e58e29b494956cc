"""What is sent again, when, how often, and in what words its caller hears of it."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from observant_host.decisions.budget import RETRIES
from observant_host.decisions.catalogue import ListedTool
from observant_host.decisions.retry_safety import AGAIN_S, PAUSE_S
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
from observant_host.telemetry.vocabulary import (
    DeadlineExpired,
    RetryDenied,
    RetryScheduled,
    RoutedCall,
)
from tests.decisions.catalogues import up
from tests.routing.bench import Bench, limited, lost
from tests.routing.peers import InLine, ScriptedPeer, reply


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
    assert [call.get("principal") for call in a.calls] == ["me", "me", None, None]
