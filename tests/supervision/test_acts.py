"""A person's acts on one peer: what goes on, what ends, what comes again, and when."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.decisions.acts import Act, Place, Ruling, RulingAct
from observant_host.decisions.merge import EMPTY
from observant_host.decisions.terms import RestartReason
from observant_host.errors import SpawnFailed, Unavailable
from observant_host.state_files import Memory
from observant_host.supervision.snapshots import snapshots
from observant_host.telemetry.vocabulary import OperatorAct, PeerRestart, PeerStateChanged
from tests.supervision.stage import DISCOVERED, UNKNOWN, Script, Stage, result, say, tools

if TYPE_CHECKING:
    from collections.abc import Awaitable


def modern() -> Script:
    return Script(**{"server/discover": result(DISCOVERED)})


def ruling(stage: Stage, act: RulingAct, for_s: float | None = None, why: str = "") -> Ruling:
    now = stage.around.now_s()
    until = None if for_s is None else now + for_s
    return Ruling(act=act, until=until, principal="ann", reason=why, time=now)


async def rule(stage: Stage, act: RulingAct, for_s: float | None = None, why: str = "") -> None:
    stands = ruling(stage, act, for_s, why)
    stage.memory.rule(stage.peer.server, stands)
    await soon(stage, stage.peer.act(Act(act), stands, why=f"{act} by ann"))


async def do(stage: Stage, act: Act) -> None:
    stands = None if act in (Act.RETRY, Act.ENABLE) else stage.peer.record.ruling
    await soon(stage, stage.peer.act(act, stands, why=f"{act} by ann"))


async def soon(stage: Stage, work: Awaitable[None]) -> None:
    """`work`, which no waiting for the clock may delay."""
    task = asyncio.ensure_future(work)
    for _ in range(4):
        await stage.clock.settle()
    assert task.done()
    await task


async def test_a_disabled_server_ends_and_stays_so_until_it_is_enabled() -> None:
    async with Stage(modern()) as stage:
        await rule(stage, "disable", why="it deletes things")
        view = stage.peer.record.view()
        assert (view.state, view.cause, view.era) == ("disabled", None, "unknown")
        assert "disabled by ann: it deletes things" in view.detail
        assert "enable peer" in view.detail
        with pytest.raises(Unavailable, match="disabled by ann") as refused:
            await stage.peer.call("tools/call", {"name": "echo"})
        assert refused.value.fault == "policy"
        await stage.pass_time(7 * 86400)
        assert (stage.state[0], len(stage.script.lives)) == ("disabled", 1)
        await do(stage, Act.ENABLE)
        assert (stage.state[0], len(stage.script.lives)) == ("ready", 2)
        assert stage.peer.record.ruling is None
    states = [one.state for one in stage.facts(PeerStateChanged)]
    assert states == ["ready", "disabled", "starting", "ready", "stopped"]
    assert stage.facts(PeerRestart) == []


async def test_a_time_that_is_over_enables_by_itself_and_that_is_recorded() -> None:
    async with Stage(modern()) as stage:
        await rule(stage, "disable", for_s=1800)
        await stage.pass_time(1799)
        assert stage.state[0] == "disabled"
        await stage.pass_time(2)
        assert stage.state[0] == "ready"
        assert stage.memory.memory.acts == {}
        (told,) = stage.facts(OperatorAct)
        assert (told.verb, told.principal) == ("enable", "host")
        assert "disabled by ann until" in told.reason


async def test_a_server_that_is_switched_off_keeps_its_names_and_its_list() -> None:
    async with Stage(modern()) as stage:
        await rule(stage, "disable")
        view = stage.peer.record.peer_view()
        assert (view.enabled, view.settled, view.state) == (True, True, "disabled")
        assert view.listing is not None


async def test_disable_and_hold_stand_in_the_next_run_and_are_said_there() -> None:
    memory = Memory()
    async with Stage(modern(), memory=memory) as stage:
        await rule(stage, "disable", for_s=3600, why="moved")
    async with Stage(modern(), memory=memory) as stage:
        assert stage.script.lives == []
        assert stage.peer.record.settled
        assert "disabled by ann until" in stage.peer.record.view().detail
        assert stage.peer.place() is Place.SWITCHED_OFF
        await do(stage, Act.ENABLE)
        assert stage.state[0] == "ready"


async def test_a_ruling_whose_time_passed_while_no_host_ran_is_forgotten() -> None:
    memory = Memory(acts={"peer": Ruling(act="disable", until=5.0, principal="ann")})
    async with Stage(modern(), memory=memory) as stage:
        assert stage.state[0] == "ready"
        assert memory.acts == {}


async def test_a_held_server_goes_on_and_is_not_restarted_when_it_ends() -> None:
    async with Stage(modern(), restart_initial_s=1) as stage:
        await rule(stage, "hold", why="debugging")
        assert stage.state[0] == "ready"
        assert stage.peer.routable
        assert "held by ann: debugging" in stage.peer.record.view().detail
        stage.script.link.end("exit", "it fell over")
        await stage.pass_time(3600)
        assert (stage.state[0], len(stage.script.lives)) == ("backoff", 1)
        detail = stage.peer.record.view().detail
        assert "held by ann" in detail
        assert "it is started again in" not in detail
        assert not await stage.peer.wake(stage.clock.monotonic() + 10)
        await do(stage, Act.RETRY)
        assert (stage.state[0], len(stage.script.lives)) == ("ready", 2)
        assert stage.peer.record.ruling is None


async def test_a_held_server_is_not_probed_again() -> None:
    script = Script(**{"server/discover": UNKNOWN})
    async with Stage(script, restart_initial_s=1, reprobe_max_s=4) as stage:
        await rule(stage, "hold", for_s=3600)
        await stage.pass_time(3500)
        assert script.methods() == ["server/discover"]
        script["server/discover"] = result(DISCOVERED)
        await stage.pass_time(200)
        assert stage.state[0] == "ready"
        assert "held" not in stage.peer.record.view().detail


async def test_a_person_may_restart_and_probe_what_is_held_and_it_stays_held() -> None:
    async with Stage(modern()) as stage:
        await rule(stage, "hold")
        await do(stage, Act.RESTART)
        assert (stage.state[0], len(stage.script.lives)) == ("ready", 2)
        stage.script["tools/list"] = tools("a", "b")
        await do(stage, Act.PROBE)
        assert stage.peer.record.view().tools == 2
        assert stage.peer.record.held


async def test_what_is_held_goes_on_though_its_life_would_have_been_ended() -> None:
    async with Stage(modern()) as stage:
        await rule(stage, "hold")
        signals: Any = stage.peer.record.life.listener  # type: ignore[union-attr]  # it is ready
        signals.condemn(RestartReason.UNRESPONSIVE, "it hangs")
        await stage.pass_time(1)
        assert len(stage.script.lives) == 1
        await do(stage, Act.ENABLE)
        signals.condemn(RestartReason.UNRESPONSIVE, "it hangs")
        await stage.pass_time(1)
        assert len(stage.script.lives) == 2


async def test_nobody_expects_a_server_that_is_held_or_off() -> None:
    def expected(stage: Stage) -> bool:
        (one,) = snapshots(
            [stage.peer],  # type: ignore[arg-type]  # one peer for a fleet
            memory=stage.memory,
            figures={},
            catalogue=EMPTY,
            now_s=stage.around.now_s(),
        )
        return one.expected

    async with Stage(modern()) as stage:
        assert expected(stage)
        for act in ("hold", "disable"):
            await rule(stage, act)
            assert not expected(stage)
            await do(stage, Act.ENABLE)
            assert expected(stage)


async def test_retry_tries_at_once_and_forgets_the_backoff() -> None:
    script = Script(**{"server/discover": UNKNOWN})
    async with Stage(script, restart_initial_s=8, reprobe_max_s=300) as stage:
        await stage.pass_time(1000)
        before = script.methods().count("server/discover")
        await do(stage, Act.RETRY)
        assert script.methods().count("server/discover") == before + 1
        await stage.pass_time(8)
        assert script.methods().count("server/discover") == before + 2


async def test_retry_gets_a_server_out_of_a_start_that_cannot_work() -> None:
    failed = SpawnFailed("cannot start: No such file")
    failed.__cause__ = FileNotFoundError(2, "No such file")
    async with Stage(modern(), restart_initial_s=1) as stage:
        stage.fail_to_open = failed
        stage.script.link.end("exit")
        await stage.pass_time(3600)
        assert stage.state == ("unavailable", "process", "spawn_failed")
        assert not await stage.peer.wake(stage.clock.monotonic() + 10)
        stage.fail_to_open = None
        await do(stage, Act.RETRY)
        assert stage.peer.record.view().state == "ready"


async def test_restart_gives_a_serving_peer_a_new_life_at_once_and_it_is_told_as_a_persons() -> (
    None
):
    async with Stage(modern(), restart_initial_s=600) as stage:
        await do(stage, Act.RESTART)
        assert (stage.state[0], len(stage.script.lives)) == ("ready", 2)
        (told,) = stage.facts(PeerRestart)
        assert (told.reason, told.backoff_ms) == ("operator", 0)


async def test_restart_replaces_a_start_that_hangs() -> None:
    script = Script(**{"server/discover": None})
    async with Stage(script, probe_timeout_s=30) as stage:
        assert stage.state[0] == "starting"
        script["server/discover"] = result(DISCOVERED)
        await do(stage, Act.RESTART)
        assert (stage.state[0], len(script.lives)) == ("ready", 2)


async def test_restart_replaces_a_process_that_is_kept_though_it_is_refused() -> None:
    script = Script(**{"server/discover": UNKNOWN})
    async with Stage(script, restart_initial_s=600) as stage:
        await do(stage, Act.RESTART)
        assert (stage.state[0], len(script.lives)) == ("unavailable", 2)


async def test_restart_does_not_wait_for_the_backoff() -> None:
    async with Stage(modern(), restart_initial_s=600) as stage:
        stage.script.link.end("exit")
        await stage.clock.settle()
        await do(stage, Act.RESTART)
        assert stage.state[0] == "ready"


async def test_a_drained_server_lets_its_calls_end_and_takes_no_new_ones() -> None:
    script = modern()
    async with Stage(script) as stage:
        call = asyncio.ensure_future(stage.peer.call("tools/call", {"name": "echo"}, target="echo"))
        await stage.clock.settle()
        stands = ruling(stage, "drain", why="a new disk")
        act = asyncio.ensure_future(stage.peer.act(Act.DRAIN, stands, why="drained by ann"))
        await stage.clock.settle()
        assert stage.state[0] == "disabled"
        assert "1 open calls may end first" in stage.peer.record.view().detail
        with pytest.raises(Unavailable, match="drained by ann: a new disk") as refused:
            await stage.peer.call("tools/call", {"name": "echo"})
        assert (refused.value.fault, refused.value.delivery) == ("policy", "not_sent")
        answer = {"id": script.first_id("tools/call"), **(result({"content": []}) or {})}
        say(script.link, answer)
        await stage.pass_time(1)
        assert not (await call).is_error
        assert act.done()
        detail = stage.peer.record.view().detail
        assert detail.startswith("drained by ann: a new disk; `observant-host enable peer`")
        assert stage.script.lives[0].pid is None
        assert stage.peer.record.era == "unknown"


async def test_draining_waits_no_longer_than_drain_timeout_s_nor_than_a_disable() -> None:
    for acts in (("drain",), ("drain", "disable")):
        async with Stage(modern()) as stage:
            call = asyncio.ensure_future(
                stage.peer.call("tools/call", {"name": "echo"}, expires=1e9)
            )
            await stage.clock.settle()
            done = [
                asyncio.ensure_future(
                    stage.peer.act(Act(act), ruling(stage, act), why="x")  # type: ignore[arg-type]  # literals
                )
                for act in acts
            ]
            await stage.pass_time(0.1 if "disable" in acts else 29)
            assert call.done() == ("disable" in acts)
            await stage.pass_time(2)
            assert all(one.done() for one in done)
            with pytest.raises(Unavailable):
                await call
            word = "disabled" if "disable" in acts else "drained"
            assert f"{word} by ann" in stage.peer.record.view().detail


async def test_enabling_what_still_drains_lets_its_calls_end_and_then_starts_it() -> None:
    async with Stage(modern()) as stage:
        call = asyncio.ensure_future(stage.peer.call("tools/call", {"name": "echo"}, expires=1e9))
        await stage.clock.settle()
        drain = asyncio.ensure_future(stage.peer.act(Act.DRAIN, ruling(stage, "drain"), why="x"))
        await stage.clock.settle()
        enable = asyncio.ensure_future(stage.peer.act(Act.ENABLE, None, why="x"))
        await stage.pass_time(5)
        assert not call.done()
        answer = {"id": stage.script.first_id("tools/call"), **(result({"content": []}) or {})}
        say(stage.script.link, answer)
        await stage.pass_time(1)
        assert (await call).is_error is False
        await asyncio.gather(drain, enable)
        assert (stage.state[0], len(stage.script.lives)) == ("ready", 2)


async def test_disabling_ends_a_round_that_is_under_way() -> None:
    script = Script(**{"server/discover": None})
    async with Stage(script, probe_timeout_s=30) as stage:
        await rule(stage, "disable")
        assert stage.state[0] == "disabled"
        await stage.pass_time(100)
        assert script.methods() == ["server/discover"]


async def test_a_server_that_is_off_can_be_switched_off_for_longer_and_by_another_reason() -> None:
    async with Stage(modern()) as stage:
        await rule(stage, "disable", for_s=10, why="first")
        since = stage.peer.record.status.since_ns
        await rule(stage, "disable", for_s=100, why="second")
        assert "second" in stage.peer.record.view().detail
        assert stage.peer.record.status.since_ns == since
        await stage.pass_time(50)
        assert stage.state[0] == "disabled"
        await stage.pass_time(51)
        assert stage.state[0] == "ready"


async def test_what_makes_no_sense_changes_nothing() -> None:
    async with Stage(modern(), enabled=False) as stage:
        assert stage.peer.place() is Place.DISABLED
        for act in Act:
            await do(stage, act)
        assert stage.script.lives == []
    async with Stage(modern()) as stage:
        await rule(stage, "disable")
        for act in (Act.RETRY, Act.RESTART, Act.PROBE):
            await do(stage, act)
        assert len(stage.script.lives) == 1


async def test_the_host_ends_a_server_that_is_off_and_one_that_drains() -> None:
    async with Stage(modern()) as stage:
        await rule(stage, "disable")
    assert stage.state[0] == "stopped"
    async with Stage(modern()) as stage:
        call = asyncio.ensure_future(stage.peer.call("tools/call", {"name": "echo"}, expires=1e9))
        await stage.clock.settle()
        act = asyncio.ensure_future(stage.peer.act(Act.DRAIN, ruling(stage, "drain"), why="x"))
        await stage.clock.settle()
    assert stage.state[0] == "stopped"
    await act
    with pytest.raises(Unavailable):
        await call
