"""The one verb: what an operation, a moment and an exception become."""

from __future__ import annotations

import asyncio

import pytest

from observant_host.errors import CallTimeout, ConfigError, InvalidCall, RpcError, Unavailable
from observant_host.telemetry.facade import Link, Telemetry, TraceContext
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.setup import capturing, silent
from observant_host.telemetry.vocabulary import (
    DeadlineExpired,
    EraDecide,
    FrameDropped,
    Request,
    RetryDenied,
    RoutedCall,
)
from observant_host.timing.deadline import DeadlinePassed
from observant_host.timing.tasks import spawn
from tests.telemetry.facts import ALL, every_kind

REQUEST = Request(peer="a", method="tools/call", era="modern", target="x")
CALL = RoutedCall(name="x", method="tools/call", peer="a", local_name="x")


def test_every_fact_of_the_vocabulary_can_be_told() -> None:
    telemetry, told = capturing()
    for fact in ALL:
        telemetry.count(fact)
    assert [done.fact for done in told] == list(ALL)
    assert {type(fact) for fact in ALL} == every_kind()


def test_an_operation_that_returns_is_ok_and_has_a_duration() -> None:
    telemetry, told = capturing()
    with telemetry.operation(REQUEST) as op:
        op.note(items=3)
    assert told[0].outcome == "ok"
    assert told[0].error_type is None
    assert told[0].duration_ns > 0
    assert told[0].fact.items == 3
    assert told[0].context == op.context


@pytest.mark.parametrize(
    ("error", "outcome", "error_type"),
    [
        (RpcError(-32601, "no such method"), "rpc_error", "-32601"),
        (InvalidCall("unknown"), "invalid", "invalid_call"),
        (Unavailable("gone"), "unavailable", "unavailable"),
        (CallTimeout("late", scope="call"), "timeout", "timeout"),
        (DeadlinePassed(scope="list", budget_s=1, elapsed_s=1), "timeout", "timeout"),
        (asyncio.CancelledError(), "cancelled", "cancelled"),
        (ConfigError(["bad"]), "error", "config_invalid"),
        (ZeroDivisionError(), "error", "ZeroDivisionError"),
    ],
)
def test_an_exception_becomes_an_outcome_and_passes_through(
    error: BaseException, outcome: str, error_type: str
) -> None:
    telemetry, told = capturing()
    with pytest.raises(type(error)), telemetry.operation(REQUEST):
        raise error
    assert (told[0].outcome, told[0].error_type) == (outcome, error_type)


def test_an_outcome_that_was_said_wins_over_the_exception() -> None:
    telemetry, told = capturing()
    operation = telemetry.operation(REQUEST)
    operation.end_as("unavailable", "legacy_refused")
    with pytest.raises(ValueError, match="x"), operation:
        raise ValueError("x")
    assert (told[0].outcome, told[0].error_type) == ("unavailable", "legacy_refused")


def test_a_call_error_says_whose_fault_it_was_and_how_far_the_call_got() -> None:
    telemetry, told = capturing()
    with pytest.raises(CallTimeout), telemetry.operation(CALL):
        raise CallTimeout("late", scope="queue", delivery="not_sent", fault="host")
    assert (told[0].fact.fault, told[0].fact.delivery) == ("host", "not_sent")


@pytest.mark.parametrize(
    ("error", "fault"), [(asyncio.CancelledError(), "caller"), (KeyError("x"), "host")]
)
def test_a_call_that_ends_otherwise_has_a_fault_too(error: BaseException, fault: str) -> None:
    telemetry, told = capturing()
    with pytest.raises(type(error)), telemetry.operation(CALL):
        raise error
    assert told[0].fact.fault == fault


def test_operations_nest_by_task_and_leave_nothing_behind() -> None:
    telemetry, told = capturing()
    assert telemetry.current() is None
    with telemetry.operation(CALL) as outer:
        with telemetry.operation(REQUEST) as inner:
            assert telemetry.current() == inner.context
        assert telemetry.current() == outer.context
    assert telemetry.current() is None
    assert told[0].parent == outer.context
    assert told[1].parent is None
    assert inner.context.trace_id == outer.context.trace_id


def test_a_given_parent_wins_over_the_operation_around() -> None:
    telemetry, told = capturing()
    far = TraceContext(5, 6, sampled=True, tracestate="x=1")
    with telemetry.operation(CALL), telemetry.operation(REQUEST, parent=far) as op:
        pass
    assert told[0].parent == far
    assert (op.context.trace_id, op.context.tracestate) == (5, "x=1")


async def test_parallel_tasks_do_not_see_each_others_operations() -> None:
    telemetry, told = capturing()
    inside = asyncio.Event()

    async def one(name: str) -> None:
        with telemetry.operation(RoutedCall(name=name, method="tools/call")):
            inside.set()
            await asyncio.sleep(0)
            with telemetry.operation(REQUEST):
                await asyncio.sleep(0)

    await asyncio.gather(one("x"), one("y"))
    requests = [done for done in told if done.fact is REQUEST]
    assert len({done.context.trace_id for done in requests}) == 2


async def test_a_spawned_task_starts_without_anybodys_operation() -> None:
    telemetry, _ = capturing()

    async def look() -> TraceContext | None:
        return telemetry.current()

    with telemetry.operation(CALL):
        assert await spawn("look", look()) is None


def test_time_spent_in_requests_is_known_to_the_call_around_them() -> None:
    telemetry, told = capturing()
    with telemetry.operation(CALL):
        with telemetry.operation(REQUEST):
            sum(range(1000))
        with telemetry.operation(REQUEST):
            pass
    first, second, call = told
    assert call.inner_ns == first.duration_ns + second.duration_ns
    assert call.inner_ns < call.duration_ns


def test_a_moment_is_an_event_of_the_operation_around_it() -> None:
    telemetry, told = capturing()
    with telemetry.operation(CALL):
        telemetry.count(RetryDenied(peer="a", reason="budget"))
    assert [event.name for event in told[1].events] == ["retry.denied"]
    assert told[1].events[0].attributes["observant_host.retry.reason"] == "budget"


def test_waiting_for_a_place_is_the_calls_own() -> None:
    telemetry, told = capturing()
    telemetry.waited(1.0)
    with telemetry.operation(REQUEST):
        telemetry.waited(1.0)
    with telemetry.operation(CALL):
        telemetry.waited(0.5)
        telemetry.waited(0.25)
    assert told[0].events == ()
    assert told[1].fact.queued_ms == 750
    assert [event.attributes["wait_ms"] for event in told[1].events] == [500, 250]


def test_time_that_a_call_waits_for_its_server_or_a_person_is_not_our_own_work() -> None:
    telemetry, told = capturing()
    telemetry.spent_elsewhere(1.0)
    with telemetry.operation(REQUEST):
        telemetry.spent_elsewhere(1.0)
    with telemetry.operation(CALL):
        telemetry.spent_elsewhere(0.5)
    assert [done.inner_ns for done in told] == [0, 500_000_000]


def test_events_of_one_operation_are_bounded() -> None:
    telemetry, told = capturing()
    with telemetry.operation(CALL) as op:
        for _ in range(1000):
            op.event("progress")
    assert len(told[0].events) == 128


def test_count_returns_a_place_that_can_be_linked_to() -> None:
    telemetry, told = capturing()
    place = telemetry.count(DeadlineExpired(peer="a", scope="call", budget_ms=1, elapsed_ms=2))
    with telemetry.operation(REQUEST, links=[Link(place, "caused_by")]):
        pass
    assert told[0].context == place
    assert told[1].links == (Link(place, "caused_by"),)


def test_a_moment_without_a_span_outside_of_any_operation_has_a_place_too() -> None:
    telemetry, told = capturing()
    place = telemetry.count(FrameDropped(peer="a", kind="not_json"))
    assert place.trace_id
    assert told[0].parent is None


async def test_silent_telemetry_gives_ids_and_tells_nobody() -> None:
    telemetry = silent()
    telemetry.peer_configured("a")
    telemetry.peer_forgotten("a")
    with telemetry.operation(REQUEST) as op:
        assert op.context.traceparent().startswith("00-")
    assert (await telemetry.render())[0] == b""
    await telemetry.flush()
    await telemetry.close()


def test_ids_are_sampled_by_ratio_but_decisions_always() -> None:
    telemetry = Telemetry(starter=OwnIds(ratio=0.0))
    with telemetry.operation(CALL) as op:
        assert not op.context.sampled
    telemetry = Telemetry(starter=OwnIds(ratio=1e-18))
    with telemetry.operation(CALL) as op:
        assert not op.context.sampled
        with telemetry.operation(
            EraDecide(peer="a", generation=1, trigger="reprobe", previous="modern")
        ) as decision:
            assert decision.context.sampled
    telemetry = Telemetry(starter=OwnIds(ratio=1.0))
    with telemetry.operation(CALL) as op:
        assert op.context.sampled


def test_an_operation_left_in_another_context_breaks_nothing() -> None:
    import contextvars

    telemetry, told = capturing()
    op = telemetry.operation(CALL)
    contextvars.copy_context().run(op.__enter__)
    op.__exit__(None, None, None)
    assert told[0].outcome == "ok"
