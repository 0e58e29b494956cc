"""What a scrape says of a peer: last ready now while it takes calls, and when it left after."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from observant_host.decisions.merge import EMPTY
from observant_host.state_files import LastEra, Memory, ProvenModern
from observant_host.supervision.snapshots import snapshots
from tests.supervision.stage import DISCOVERED, INITIALIZED, UNKNOWN, Script, Stage, result

if TYPE_CHECKING:
    from observant_host.supervision.fleet import Fleet
    from observant_host.telemetry.vocabulary import PeerSnapshot


def modern() -> Script:
    return Script(**{"server/discover": result(DISCOVERED)})


def legacy() -> Script:
    return Script(**{"server/discover": UNKNOWN, "initialize": result(INITIALIZED)})


def seen(stage: Stage) -> PeerSnapshot:
    (one,) = snapshots(
        cast("Fleet", [stage.peer]),
        memory=stage.memory,
        figures={},
        catalogue=EMPTY,
        now_s=stage.around.now_s(),
    )
    return one


async def test_a_peer_that_takes_calls_was_last_ready_now() -> None:
    async with Stage(modern()) as stage:
        await stage.pass_time(3600)
        assert stage.state[0] == "ready"
        assert seen(stage).last_ready_s == stage.around.now_s()


async def test_a_peer_that_is_lost_after_hours_was_last_ready_when_it_was_lost() -> None:
    async with Stage(modern()) as stage:
        await stage.pass_time(3600)
        lost_at = stage.around.now_s()
        stage.script["server/discover"] = None
        stage.script.link.end("lost")
        await stage.clock.settle()
        assert stage.state[0] != "ready"
        await stage.pass_time(120)
        assert seen(stage).last_ready_s == lost_at
        assert stage.memory.moments(stage.peer.server).last_ready == lost_at


async def test_a_peer_that_was_never_ready_has_no_such_moment() -> None:
    async with Stage(Script()) as stage:
        assert seen(stage).last_ready_s is None
        assert seen(stage).era_expected is None


async def test_the_era_of_an_allowed_server_is_expected() -> None:
    async with Stage(legacy(), allow_legacy=True) as stage:
        assert stage.peer.record.era == "legacy"
        assert seen(stage).era_expected is True


async def test_legacy_against_the_memory_is_not_expected_for_as_long_as_it_lasts() -> None:
    memory = Memory()
    stage = Stage(legacy(), memory=memory, remember_modern=False, allow_legacy=True)
    fingerprint = stage.peer.server.fingerprint
    memory.modern[fingerprint] = ProvenModern("peer", "2026-07-28", 0.0)
    memory.eras["peer"] = LastEra("modern", "2026-07-28", 0.0)
    async with stage:
        assert stage.peer.record.era == "legacy"
        assert seen(stage).era_expected is False
        assert seen(stage).last_downgrade_s is not None
