"""A peer that is unavailable stays so, and since when is no lie, whatever is tried for an hour."""

from __future__ import annotations

import pytest

from observant_host.telemetry.vocabulary import PeerStateChanged
from tests.supervision.stage import DISCOVERED, UNKNOWN, Script, Stage, result, say

STEP_S = 20


async def stays(stage: Stage, *, hours: float = 1) -> None:
    """Unavailable at every look, since the first moment."""
    since = stage.peer.record.status.since_ns
    for _ in range(int(hours * 3600 / STEP_S)):
        await stage.pass_time(STEP_S)
        status = stage.peer.record.status
        assert (status.state, status.since_ns) == ("unavailable", since)


@pytest.mark.parametrize("url", [False, True], ids=["stdio", "http"])
@pytest.mark.parametrize("proven", [False, True])
async def test_a_slow_modern_server_probed_for_an_hour_is_unavailable_and_then_ready(
    *, proven: bool, url: bool
) -> None:
    script = Script(**{"server/discover": None})
    keys = {"expect_era": "modern"} if proven else {}
    async with Stage(script, allow_legacy=False, url=url, **keys) as stage:
        await stage.pass_time(30)
        assert stage.state[0] == "unavailable"
        await stays(stage)
        if url:
            script["server/discover"] = result(DISCOVERED)
            await stage.pass_time(300)
        else:
            assert len(script.lives) == 1
            first = script.first_id("server/discover")
            say(script.link, {"id": first, **(result(DISCOVERED) or {})})
            await stage.pass_time(1)
        assert stage.peer.record.view().state == "ready"
        assert stage.peer.record.view().era == "modern"
    assert all("initialize" not in script.methods(life) for life in range(len(script.lives)))
    states = [one.state for one in stage.facts(PeerStateChanged)]
    assert states == ["unavailable", "ready", "stopped"]


async def test_neither_deaths_nor_new_lives_nor_other_refusals_move_since() -> None:
    script = Script(**{"server/discover": UNKNOWN})
    async with Stage(script, restart_initial_s=1, reprobe_max_s=120) as stage:
        since = stage.peer.record.status.since_ns
        for turn in range(20):
            script["server/discover"] = UNKNOWN if turn % 2 else result({})
            script.link.end("exit")
            await stays(stage, hours=1 / 20)
        assert len(script.lives) > 5
        assert stage.peer.record.status.since_ns == since
        script["server/discover"] = result(DISCOVERED)
        await stage.pass_time(240)
        assert stage.peer.record.view().state == "ready"
