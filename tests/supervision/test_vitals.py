"""A server that says nothing: when it is asked, what its callers hear, when its life is ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from observant_host.decisions.suspicion import Health
from observant_host.decisions.terms import RestartReason
from observant_host.errors import CallTimeout, NotAnswering, Unavailable
from observant_host.telemetry.vocabulary import HealthVerdict, PeerRestart, PeerStateChanged
from tests.supervision.stage import DISCOVERED, INITIALIZED, UNKNOWN, Script, Stage, result, say

QUICK: dict[str, Any] = {"call_timeout_s": 5, "probe_timeout_s": 10, "silent_restart_s": 60}


def modern() -> Script:
    return Script(**{"server/discover": result(DISCOVERED)})


def legacy(**more: Any) -> Script:
    return Script(**{"server/discover": UNKNOWN, "initialize": result(INITIALIZED), **more})


def call(stage: Stage, seconds: float | None = None) -> asyncio.Task[Any]:
    expires = None if seconds is None else stage.clock.monotonic() + seconds
    return asyncio.ensure_future(
        stage.peer.call("tools/call", {"name": "echo"}, expires=expires, target="echo")
    )


def mute(stage: Stage) -> None:
    """From now on it answers nothing."""
    stage.script.answers.clear()


async def time_out(stage: Stage) -> None:
    """One call, over its whole time."""
    calling = call(stage)
    await stage.pass_time(5)
    with pytest.raises(CallTimeout):
        await calling


async def wedge(stage: Stage) -> None:
    """One call and the probe after it get no answer."""
    mute(stage)
    await time_out(stage)
    await stage.pass_time(10)
    assert stage.state[0] == "degraded"


def health(stage: Stage) -> Health:
    return stage.peer.record.vitals.health


async def test_a_call_that_times_out_in_silence_leads_to_one_probe() -> None:
    async with Stage(modern(), **QUICK) as stage:
        stage.script["tools/call"] = None
        await time_out(stage)
        assert stage.script.methods().count("server/discover") == 2
        assert (stage.state[0], health(stage)) == ("ready", Health.HEALTHY)
        assert stage.facts(HealthVerdict) == []
        assert stage.peer.record.view().layers.last_call == "timeout"


async def test_a_legacy_server_is_asked_by_ping_and_an_error_is_an_answer() -> None:
    async with Stage(legacy(ping=UNKNOWN), allow_legacy=True, **QUICK) as stage:
        await time_out(stage)
        assert stage.script.methods()[-2:] == ["notifications/cancelled", "ping"]
        assert "server/discover" not in stage.script.methods()[2:]
        assert (stage.state[0], health(stage)) == ("ready", Health.HEALTHY)


async def test_a_modern_server_that_answers_with_an_error_is_alive() -> None:
    async with Stage(modern(), **QUICK) as stage:
        stage.script["server/discover"] = UNKNOWN
        await time_out(stage)
        assert (stage.state[0], health(stage)) == ("ready", Health.HEALTHY)


async def test_a_slow_call_beside_others_that_are_answered_is_no_reason_to_ask() -> None:
    async with Stage(modern(), **QUICK) as stage:
        for _ in range(20):
            slow = call(stage, 4)
            await stage.clock.settle()
            stage.script["tools/call"] = result({"content": []})
            await stage.pass_time(3)
            await call(stage)
            stage.script["tools/call"] = None
            await stage.pass_time(1)
            with pytest.raises(CallTimeout):
                await slow
        assert stage.script.methods().count("server/discover") == 1
        assert len(stage.script.lives) == 1


async def test_progress_is_a_sign_of_life() -> None:
    async with Stage(modern(), **QUICK) as stage:
        mute(stage)
        slow = call(stage, 100)
        await stage.clock.settle()
        for step in range(9):
            await stage.pass_time(11)
            params = {"progressToken": 3, "progress": step}
            say(stage.script.link, {"method": "notifications/progress", "params": params})
        await stage.pass_time(1)
        with pytest.raises(CallTimeout):
            await slow
        assert stage.script.methods().count("server/discover") == 1


async def test_a_server_that_does_not_answer_its_probe_is_degraded_and_says_why() -> None:
    async with Stage(modern(), **QUICK) as stage:
        await wedge(stage)
        view = stage.peer.record.view()
        assert "it does not answer: peer did not answer server/discover within 10 s" in view.detail
        assert "silent_restart_s" in view.detail
        assert (view.layers.process, view.layers.transport, view.layers.last_call) == (
            "ok",
            "failing",
            "timeout",
        )
        (verdict,) = stage.facts(HealthVerdict)
        assert (verdict.verdict, verdict.health, verdict.unanswered) == (
            "unresponsive",
            "wedged",
            1,
        )


async def test_then_calls_fail_at_once_but_for_one_at_a_time() -> None:
    async with Stage(modern(), **QUICK) as stage:
        await wedge(stage)
        sent = len(stage.script.methods())
        trial = call(stage, 100)
        await stage.clock.settle()
        for _ in range(10):
            with pytest.raises(NotAnswering) as refused:
                await call(stage)
            assert (refused.value.delivery, refused.value.fault) == ("not_sent", "peer")
            assert "a trial call is under way" in str(refused.value)
        assert stage.script.methods()[sent:] == ["tools/call"]
        trial.cancel()
        await stage.clock.settle()
        second = call(stage, 1)
        await stage.clock.settle()
        assert stage.script.methods()[sent:].count("tools/call") == 2
        await stage.pass_time(1)
        with pytest.raises(CallTimeout):
            await second


async def test_a_trial_that_is_answered_heals_it() -> None:
    async with Stage(modern(), **QUICK) as stage:
        await wedge(stage)
        stage.script["tools/call"] = result({"content": []})
        await call(stage)
        await call(stage)
        await stage.clock.settle()
        assert (stage.state[0], health(stage)) == ("ready", Health.HEALTHY)
        assert "does not answer" not in stage.peer.record.status.detail
        assert [one.state for one in stage.facts(PeerStateChanged)] == [
            *("ready", "degraded", "ready"),
        ]


async def test_a_late_answer_or_any_other_word_heals_it_without_a_caller() -> None:
    async with Stage(modern(), **QUICK) as stage:
        await wedge(stage)
        say(stage.script.link, {"method": "notifications/message", "params": {"level": "info"}})
        await stage.clock.settle()
        assert stage.state[0] == "ready"


async def test_a_probe_that_is_answered_later_heals_it_without_a_caller() -> None:
    async with Stage(modern(), **QUICK) as stage:
        await wedge(stage)
        stage.script["server/discover"] = result(DISCOVERED)
        await stage.pass_time(10)
        assert stage.state[0] == "ready"


async def test_it_is_ended_after_a_second_question_and_a_long_silence() -> None:
    async with Stage(modern(), restart_initial_s=1, **QUICK) as stage:
        await wedge(stage)
        await stage.pass_time(39)
        assert (stage.state[0], len(stage.script.lives)) == ("degraded", 1)
        stage.script["server/discover"] = None
        await stage.pass_time(21)
        assert stage.state[:2] == ("backoff", "process")
        (restart,) = stage.facts(PeerRestart)
        assert restart.reason == "unresponsive"
        assert stage.facts(HealthVerdict)[-1].verdict == "hopeless"
        assert "it did not answer" in stage.peer.record.status.detail
        stage.script["server/discover"] = result(DISCOVERED)
        await stage.pass_time(1)
        assert len(stage.script.lives) == 2
        assert health(stage) is Health.HEALTHY


async def test_it_is_not_ended_while_somebody_still_waits_for_a_call() -> None:
    async with Stage(modern(), **QUICK) as stage:
        mute(stage)
        patient = call(stage, 500)
        await wedge(stage)
        await stage.pass_time(450)
        assert (stage.state[0], len(stage.script.lives)) == ("degraded", 1)
        assert stage.facts(PeerRestart) == []
        await stage.pass_time(60)
        with pytest.raises(CallTimeout):
            await patient
        assert [one.reason for one in stage.facts(PeerRestart)] == ["unresponsive"]


async def test_calls_in_line_are_told_at_once_when_it_falls_silent() -> None:
    async with Stage(modern(), max_in_flight=1, queue_timeout_s=100, **QUICK) as stage:
        mute(stage)
        first = call(stage, 5)
        await stage.pass_time(5)
        with pytest.raises(CallTimeout):
            await first
        second, queued = call(stage, 50), call(stage, 50)
        await stage.pass_time(10)
        with pytest.raises(NotAnswering):
            await queued
        second.cancel()


async def test_lists_that_get_no_answer_lead_to_a_probe_too() -> None:
    async with Stage(modern(), list_timeout_s=5, **QUICK) as stage:
        mute(stage)
        stage.peer.record.life.listener.stale_lists()  # type: ignore[union-attr]
        await stage.pass_time(15)
        assert (stage.state[0], health(stage)) == ("degraded", Health.WEDGED)


async def test_a_persons_act_asks_it_at_once_and_lists_only_where_it_answers() -> None:
    async with Stage(modern(), **QUICK) as stage:
        await wedge(stage)
        act = asyncio.ensure_future(stage.peer.again())
        await stage.pass_time(10)
        await act
        assert stage.script.methods().count("tools/list") == 1
        assert stage.facts(HealthVerdict)[-1].unanswered == 2
        stage.script["server/discover"] = result(DISCOVERED)
        stage.script["tools/list"] = result({"tools": []})
        await stage.peer.again()
        assert stage.script.methods().count("tools/list") == 2
        assert stage.state[0] == "ready"


async def test_callers_in_a_hurry_do_not_make_a_storm_of_probes() -> None:
    async with Stage(modern(), **QUICK) as stage:
        stage.script["tools/call"] = None
        for _ in range(100):
            hasty = call(stage, 0.01)
            await stage.pass_time(0.01)
            with pytest.raises(CallTimeout):
                await hasty
        assert stage.script.methods().count("server/discover") <= 5
        assert stage.state[0] == "ready"


async def test_calls_are_let_in_by_the_word_of_the_server_and_not_by_its_supervisor() -> None:
    async with Stage(modern(), **QUICK) as stage:
        await wedge(stage)
        say(stage.script.link, {"method": "notifications/message", "params": {"level": "info"}})
        stage.script["tools/call"] = result({"content": []})
        await asyncio.gather(call(stage), call(stage))


async def test_a_legacy_server_that_answers_ping_is_only_slow() -> None:
    async with Stage(legacy(ping=result({})), allow_legacy=True, **QUICK) as stage:
        await time_out(stage)
        assert (stage.state[0], health(stage)) == ("ready", Health.HEALTHY)


async def test_an_odd_answer_of_a_process_is_an_answer() -> None:
    async with Stage(modern(), **QUICK) as stage:
        stage.script["server/discover"] = result({"odd": True})
        await time_out(stage)
        assert (stage.state[0], health(stage)) == ("ready", Health.HEALTHY)


async def test_when_the_life_ends_meanwhile_callers_hear_of_that() -> None:
    async with Stage(modern(), restart_initial_s=100, **QUICK) as stage:
        await wedge(stage)
        trial = call(stage, 100)
        await stage.clock.settle()
        stage.script.link.end("exit", "it fell over")
        await stage.clock.settle()
        with pytest.raises(Unavailable, match="fell over"):
            await trial
        for _ in range(2):
            with pytest.raises(Unavailable) as failed:
                await call(stage, 0.1)
            assert not isinstance(failed.value, NotAnswering)
        assert health(stage) is Health.HEALTHY


async def test_a_life_is_condemned_only_while_it_is_the_one_that_was_meant() -> None:
    async with Stage(modern(), restart_initial_s=1, **QUICK) as stage:
        vitals = stage.peer.record.vitals
        vitals.condemn(RestartReason.MEMORY, "too much", generation=7)
        await stage.clock.settle()
        assert stage.state[0] == "ready"
        vitals.condemn(RestartReason.MEMORY, "too much", generation=1)
        await stage.clock.settle()
        assert stage.state[0] == "backoff"
        assert [one.reason for one in stage.facts(PeerRestart)] == ["memory"]
