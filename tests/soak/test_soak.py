"""The long runs in short: the same promises, a minute of them."""

from __future__ import annotations

import pytest

from tests.soak.chaos import Run
from tests.soak.doors import Doors
from tests.soak.kills import Kills
from tests.soak.many import many
from tests.soak.replicas import Replicas, nginx

pytestmark = pytest.mark.soak


@pytest.mark.timeout(300)
async def test_a_minute_of_chaos_breaks_no_promise() -> None:
    run = Run(seconds=60, calm_s=10, seed=1)
    await run.run()
    print("\n".join(run.report))
    assert run.failures == []


@pytest.mark.timeout(300)
async def test_servers_that_are_killed_again_and_again_leave_nothing() -> None:
    run = Kills(256, pool=16)
    await run.run()
    assert run.failures == []


@pytest.mark.timeout(300)
async def test_one_of_forty_crashes_and_no_other_notices() -> None:
    found = await many(40, idle_s=1.0)
    assert found["not_ready"] == []
    assert found["touched"] == []


@pytest.mark.timeout(180)
async def test_many_agents_at_once_get_every_answer_and_leave_nothing_in_the_host() -> None:
    doors = Doors(clients=40, seconds=8)
    await doors.run()
    print("\n".join(doors.report))
    assert doors.failures == []


@pytest.mark.skipif(nginx() is None, reason="nginx is not installed: apt-get install nginx-light")
@pytest.mark.timeout(240)
async def test_a_killed_replica_costs_modern_agents_no_more_than_what_was_in_flight() -> None:
    behind = Replicas(seconds=15)
    await behind.run()
    print("\n".join(behind.report))
    assert behind.failures == []
