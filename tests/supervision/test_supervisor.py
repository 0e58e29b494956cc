"""One peer over time: what begins, waits, ends and comes again, and when."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from observant_host.errors import SpawnFailed, Unavailable
from observant_host.state_files import Memory
from observant_host.telemetry.vocabulary import (
    EraDecide,
    EraDropped,
    ListingFlawed,
    PeerRestart,
    PeerStateChanged,
)
from tests.supervision.stage import (
    DISCOVERED,
    INITIALIZED,
    UNKNOWN,
    Script,
    Stage,
    changing,
    result,
    say,
    tools,
)


def modern() -> Script:
    return Script(**{"server/discover": result(DISCOVERED)})


def legacy(**more: object) -> Script:
    return Script(
        **{"server/discover": UNKNOWN, "initialize": result(INITIALIZED), **more}  # type: ignore[dict-item]
    )


async def test_a_good_server_becomes_ready_by_one_discover_and_its_lists() -> None:
    async with Stage(modern()) as stage:
        assert stage.state == ("ready", None, "discover_ok")
        assert stage.script.methods() == ["server/discover", "tools/list"]
        view = stage.peer.record.view()
        assert (view.era, view.tools, view.layers.era, view.layers.listing) == (
            "modern",
            1,
            "ok",
            "ok",
        )
    assert stage.state[0] == "stopped"
    assert [one.state for one in stage.facts(PeerStateChanged)] == ["ready", "stopped"]


async def test_a_disabled_server_is_not_started() -> None:
    async with Stage(modern(), enabled=False) as stage:
        assert stage.state[0] == "disabled"
        await stage.peer.again()
        assert stage.script.lives == []


async def test_restarts_back_off_and_only_sustained_uptime_resets_them() -> None:
    async with Stage(modern(), restart_initial_s=1, restart_max_s=8) as stage:
        for expected in (1, 2, 4, 8, 8):
            stage.script.link.end("exit")
            await stage.clock.settle()
            assert stage.state[0] == "backoff"
            assert stage.facts(PeerRestart)[-1].backoff_ms == expected * 1000
            await stage.pass_time(expected - 0.01)
            assert stage.state[0] == "backoff"
            await stage.pass_time(0.02)
            assert stage.state[0] == "ready"
        await stage.pass_time(60)
        stage.script.link.end("exit")
        await stage.clock.settle()
        assert stage.facts(PeerRestart)[-1].backoff_ms == 1000


async def test_an_era_is_dropped_with_its_life_and_the_cause_is_kept_until_ready() -> None:
    async with Stage(modern(), restart_initial_s=1) as stage:
        stage.script["server/discover"] = None
        stage.script.link.end("exit", "it fell over")
        await stage.clock.settle()
        assert stage.state == ("backoff", "process", "discover_ok")
        view = stage.peer.record.view()
        assert (view.era, view.version, view.capabilities, view.tools) == (
            "unknown",
            None,
            None,
            1,
        )
        assert "it fell over" in view.detail
        assert [one.era for one in stage.facts(EraDropped)] == ["modern"]
        await stage.pass_time(1)
        assert stage.state[:2] == ("starting", "process")
        with pytest.raises(Unavailable):
            await stage.peer.call("tools/call", {"name": "echo"})


async def test_an_unavailable_peer_is_probed_again_by_backoff_on_the_same_life() -> None:
    script = Script(**{"server/discover": UNKNOWN})
    async with Stage(script, restart_initial_s=1, reprobe_max_s=4) as stage:
        since = stage.peer.record.status.since_ns
        for number, wait in enumerate((1, 2, 4, 4), start=2):
            await stage.pass_time(wait)
            assert stage.script.methods().count("server/discover") == number
        assert stage.state == ("unavailable", "policy", "ambiguous_error")
        assert stage.peer.record.status.since_ns == since
        assert len(stage.script.lives) == 1
        script["server/discover"] = result(DISCOVERED)
        await stage.pass_time(4)
        assert stage.state == ("ready", None, "discover_ok")


async def test_the_death_of_a_kept_process_does_not_leave_unavailable_nor_count_as_restart() -> (
    None
):
    script = Script(**{"server/discover": UNKNOWN})
    async with Stage(script, restart_initial_s=10) as stage:
        stage.script.link.end("exit")
        await stage.clock.settle()
        assert stage.state == ("unavailable", "policy", "ambiguous_error")
        await stage.pass_time(10)
        assert len(stage.script.lives) == 2
        assert stage.state[0] == "unavailable"
        assert stage.facts(PeerRestart) == []
        assert [one.state for one in stage.facts(PeerStateChanged)] == ["unavailable"]


async def test_a_silent_server_is_never_replaced_without_an_allowance() -> None:
    script = Script(**{"server/discover": None})
    async with Stage(script, probe_timeout_s=5, reprobe_max_s=10, silent_restart_s=20) as stage:
        await stage.pass_time(600)
        assert stage.state == ("unavailable", "policy", "ambiguous_timeout")
        assert len(script.lives) == 1
        assert script.methods() == ["server/discover", "server/discover"]


async def test_a_late_answer_wakes_the_peer_at_once() -> None:
    script = Script(**{"server/discover": None})
    async with Stage(script, probe_timeout_s=5, restart_initial_s=300) as stage:
        await stage.pass_time(5)
        assert stage.state == ("unavailable", "policy", "ambiguous_timeout")
        say(script.link, {"id": script.first_id("server/discover"), **(result(DISCOVERED) or {})})
        await stage.clock.settle()
        await stage.clock.settle()
        assert stage.state == ("ready", None, "discover_ok")
        assert stage.peer.record.view().evidence[-1]["late"] is True
        assert script.methods() == ["server/discover", "tools/list"]


async def test_after_a_silent_handshake_the_process_is_kept_until_it_was_silent_too_long() -> None:
    script = legacy(initialize=None)
    async with Stage(
        script, allow_legacy=True, restart_initial_s=1, reprobe_max_s=2, silent_restart_s=100
    ) as stage:
        await stage.pass_time(5)
        assert stage.state == ("unavailable", "process", "legacy_probe_timeout")
        await stage.pass_time(99)
        assert len(script.lives) == 1
        await stage.pass_time(2)
        assert [one.reason for one in stage.facts(PeerRestart)] == ["silent"]
        assert len(script.lives) == 2
    assert [script.methods(life).count("initialize") for life in (0, 1)] == [1, 1]


async def test_after_a_silent_handshake_a_message_gives_the_next_round_a_fresh_process() -> None:
    script = legacy(initialize=None)
    async with Stage(script, allow_legacy=True, restart_initial_s=3) as stage:
        await stage.pass_time(5)
        say(script.link, {"method": "notifications/message", "params": {}})
        await stage.clock.settle()
        assert len(script.lives) == 1
        script["initialize"] = result(INITIALIZED)
        await stage.pass_time(3)
        assert stage.state == ("ready", None, "initialize_ok")
        assert len(script.lives) == 2
        assert stage.facts(PeerRestart) == []


async def test_a_refused_handshake_gets_a_fresh_process_for_the_next_round() -> None:
    script = legacy(initialize=UNKNOWN)
    async with Stage(script, allow_legacy=True, restart_initial_s=3) as stage:
        assert stage.state == ("unavailable", "protocol", "legacy_probe_error")
        await stage.pass_time(3)
        assert [script.methods(life).count("initialize") for life in (0, 1)] == [1, 1]


async def test_modern_evidence_after_legacy_was_chosen_ends_the_life_for_discover_only() -> None:
    script = legacy(**{"server/discover": None})
    async with Stage(
        script, allow_legacy=True, probe_timeout_s=5, restart_initial_s=1, remember_modern=False
    ) as stage:
        await stage.pass_time(5)
        assert stage.state == ("ready", None, "initialize_ok")
        late = {"id": script.first_id("server/discover"), **(result(DISCOVERED) or {})}
        say(script.link, late)
        await stage.clock.settle()
        assert stage.state == ("backoff", "protocol", "late_modern_evidence")
        assert [one.reason for one in stage.facts(PeerRestart)] == ["late_modern_evidence"]
        assert [one.reason for one in stage.facts(EraDecide)][-1] == "late_modern_evidence"
        assert stage.decisions[-1]["evidence"][0]["late"] is True
        await stage.pass_time(1)
        await stage.pass_time(5)
        assert script.methods(1) == ["server/discover"]
        assert stage.state[0] == "unavailable"


async def test_a_server_remembered_as_modern_is_refused_and_remembered_as_refused() -> None:
    memory = Memory()
    async with Stage(modern(), memory=memory, allow_legacy=True):
        pass
    assert len(memory.modern) == 1
    async with Stage(legacy(), memory=memory, allow_legacy=True) as stage:
        assert stage.state == ("unavailable", "policy", "was_modern")
        assert memory.moments["peer"].last_refused is not None
        server = stage.peer.server
        until = stage.around.now_s() + 60
        stage.memory.allow(server, until=until, reason="", principal="ann")
        await stage.peer.again()
        assert stage.state == ("ready", None, "initialize_ok")
        assert stage.decisions[-1]["direction"] == "downgrade"
        assert memory.moments["peer"].last_downgrade is not None


async def test_an_allowance_that_ends_while_it_runs_degrades_the_peer() -> None:
    day = datetime.fromtimestamp(1_900_000_000, UTC).date() + timedelta(days=1)
    async with Stage(legacy(), allow_legacy=True, legacy_expires=day) as stage:
        assert stage.state[0] == "ready"
        await stage.pass_time(3 * 86400)
        assert stage.state == ("degraded", None, "allowance_expired")
        assert stage.peer.routable
        stage.script.link.end("exit")
        await stage.clock.settle()
        await stage.pass_time(60)
        assert stage.state == ("unavailable", "policy", "allowance_expired")
        assert stage.script.methods() == ["server/discover"] * len(stage.script.methods())


async def test_a_list_that_fails_degrades_the_peer_and_is_tried_again() -> None:
    script = modern()
    script["tools/list"] = UNKNOWN
    async with Stage(script) as stage:
        assert stage.state == ("degraded", None, "discover_ok")
        assert stage.peer.record.view().layers.listing == "failing"
        script["tools/list"] = tools("echo", "more")
        await stage.pass_time(1)
        assert stage.state == ("ready", None, "discover_ok")
        assert stage.peer.record.view().tools == 2


async def test_flaws_of_a_listing_are_told_once_and_shown_beside_the_state() -> None:
    script = modern()
    entries = [{"name": "echo", "inputSchema": {"type": "object"}}, {"name": "odd"}, None]
    script["tools/list"] = result({"tools": entries, "nextCursor": "again"})
    async with Stage(script) as stage:
        assert stage.state == ("ready", None, "discover_ok")
        detail = stage.peer.record.view().detail
        assert "repeated a cursor" in detail
        assert "left out" in detail
        await stage.peer.again()
        (told,) = stage.facts(ListingFlawed)
        assert told.excluded == 5
        assert any(one.startswith("odd: ") for one in told.left_out)
        script["tools/list"] = tools("echo")
        await stage.peer.again()
        assert stage.peer.record.view().detail == "modern 2026-07-28, 1 tool"


async def test_why_a_list_could_not_be_read_is_in_the_detail() -> None:
    script = modern()
    script["tools/list"] = UNKNOWN
    async with Stage(script) as stage:
        detail = stage.peer.record.view().detail
        assert "tools/list failed: the server answered with error -32601" in detail
        assert len(stage.facts(ListingFlawed)) == 1


async def test_a_server_whose_lists_never_rest_is_reported() -> None:
    script = changing()

    def restless(_message: dict[str, Any]) -> dict[str, Any] | None:
        script.change()
        return tools("echo")

    script["tools/list"] = restless
    async with Stage(script) as stage:
        await stage.pass_time(2)
        assert stage.facts(ListingFlawed) == []
        await stage.pass_time(120)
        assert "again and again" in stage.peer.record.view().detail
        assert len(stage.facts(ListingFlawed)) == 1
        assert stage.script.methods().count("tools/list") < 34


async def test_a_flood_of_changes_costs_few_lists() -> None:
    async with Stage(changing()) as stage:
        for _ in range(1000):
            stage.script.change()
        await stage.pass_time(3)
        assert stage.script.methods().count("tools/list") == 2
        for _ in range(60):
            stage.script.change()
            await stage.pass_time(1)
        assert stage.script.methods().count("tools/list") < 12


async def test_a_start_that_cannot_work_waits_for_a_person_and_another_for_the_backoff() -> None:
    def failing(cause: OSError) -> SpawnFailed:
        failed = SpawnFailed(f"cannot start: {cause.strerror}")
        failed.__cause__ = cause
        return failed

    async with Stage(modern(), restart_initial_s=5) as stage:
        stage.fail_to_open = failing(FileNotFoundError(2, "No such file"))
        stage.script.link.end("exit")
        await stage.clock.settle()
        await stage.pass_time(5)
        assert stage.state == ("unavailable", "process", "spawn_failed")
        evidence = stage.peer.record.view().evidence
        assert evidence[0]["step"] == "spawn"
        await stage.pass_time(10_000)
        assert len(stage.script.lives) == 1
        stage.fail_to_open = failing(OSError(11, "Resource temporarily unavailable"))
        await stage.peer.again()
        stage.fail_to_open = None
        await stage.pass_time(5)
        assert stage.state == ("ready", None, "discover_ok")


async def test_a_persons_act_lists_again_where_an_era_stands() -> None:
    async with Stage(modern()) as stage:
        stage.script["tools/list"] = tools("a", "b", "c")
        await stage.peer.again()
        assert stage.peer.record.view().tools == 3
        assert stage.script.methods().count("server/discover") == 1


async def test_an_act_during_the_backoff_begins_the_next_life_at_once() -> None:
    async with Stage(modern(), restart_initial_s=600, restart_max_s=600) as stage:
        stage.script.link.end("exit")
        await stage.clock.settle()
        assert stage.state[0] == "backoff"
        await stage.peer.again()
        assert stage.state[0] == "ready"


async def test_no_call_is_routed_to_a_life_that_has_just_ended() -> None:
    async with Stage(modern(), restart_initial_s=5) as stage:
        assert stage.peer.routable
        stage.script.link.end("exit")
        while stage.peer.peer.life is not None and stage.peer.peer.life.end is None:
            await asyncio.sleep(0)
        assert not stage.peer.routable
        assert not await stage.peer.wake(stage.clock.monotonic())


async def test_the_outcome_of_the_last_call_is_shown() -> None:
    script = modern()
    script["tools/call"] = result({"content": [], "isError": True})
    async with Stage(script) as stage:
        assert stage.peer.record.view().layers.last_call == "none"
        await stage.peer.call("tools/call", {"name": "echo"}, target="echo")
        assert stage.peer.record.view().layers.last_call == "tool_error"
        script["tools/call"] = UNKNOWN
        with pytest.raises(Exception, match="Method not found"):
            await stage.peer.call("tools/call", {"name": "echo"}, target="echo")
        assert stage.peer.record.view().layers.last_call == "rpc_error"
