"""Whatever a server does about its changes, it costs a bounded number of streams and of readings:
an hour of streams and hundreds of changes, on a passed clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from observant_host.decisions.budget import LAST_CHANGES, RELISTENS, STALE_LISTS
from tests.supervision.stage import FOLLOWED, Script, Stage, changing, say, tools
from tests.supervision.test_listening import cancelled, failed, graceful

if TYPE_CHECKING:
    from collections.abc import Callable

HOUR_S = 3600

REFUSED = {"error": {"code": -32603, "message": "not now"}}


def acks_and(drop: Callable[[Script], None]) -> Script:
    """It acknowledges each stream, and ends it in the same breath."""
    script = changing()

    def listen(message: dict[str, Any]) -> None:
        script.acknowledge(message)
        drop(script)

    script["subscriptions/listen"] = listen
    return script


def refuses() -> Script:
    script = changing()
    script["subscriptions/listen"] = REFUSED
    return script


def never_acknowledges() -> Script:
    script = changing()
    script["subscriptions/listen"] = None
    return script


@pytest.mark.parametrize(
    "made",
    [
        lambda: acks_and(graceful),
        lambda: acks_and(cancelled),
        lambda: acks_and(failed),
        refuses,
        never_acknowledges,
    ],
    ids=["ends", "cancels", "fails", "refuses", "silent"],
)
async def test_an_hour_of_streams_that_do_not_last_costs_one_a_minute(
    made: Callable[[], Script],
) -> None:
    script = made()
    async with Stage(script) as stage:
        await stage.pass_time(60)
        assert len(script.listens()) <= RELISTENS.burst
        await stage.pass_time(HOUR_S - 60)
        assert len(script.listens()) < 75
        assert script.methods().count("tools/list") < 80
        script["subscriptions/listen"] = script.acknowledge
        script["tools/list"] = tools("echo", "later")
        await stage.pass_time(125)
        assert stage.peer.record.view().layers.listen == "ok"
        assert stage.peer.record.view().tools == 2


async def test_an_hour_of_streams_that_end_when_they_count_as_healthy_costs_one_a_minute() -> None:
    script = changing()
    async with Stage(script) as stage:
        for _ in range(HOUR_S // 62):
            await stage.pass_time(62)
            graceful(script)
        assert len(script.listens()) <= HOUR_S / 62 + 1
        assert script.methods().count("tools/list") <= HOUR_S / 62 + 1


async def test_lives_that_do_not_last_open_no_more_streams_than_one_that_does() -> None:
    async with Stage(changing(), restart_initial_s=0.5, restart_max_s=60) as stage:
        for _ in range(HOUR_S // 3):
            stage.script.link.end("exit")
            await stage.pass_time(3)
        opened = sum(len(stage.script.listens(life)) for life in range(len(stage.script.heard)))
        assert opened <= RELISTENS.burst + HOUR_S / RELISTENS.every_s
        assert opened < 150


async def test_wishes_that_come_and_go_have_a_budget_and_the_last_ones_are_asked_for() -> None:
    script = changing()
    script["server/discover"] = {"result": FOLLOWED}
    script["resources/list"] = {"result": {"resources": []}}
    script["resources/templates/list"] = {"result": {"resourceTemplates": []}}
    async with Stage(script) as stage:
        wishes = stage.peer.peer.wishes
        for number in range(600):
            wishes.add(f"a:{number}", print)
            await stage.pass_time(0.1)
        assert len(script.listens()) <= RELISTENS.burst + 60 / RELISTENS.every_s + 1
        await stage.pass_time(RELISTENS.every_s)
        asked = script.listens()[-1]["params"]["notifications"]["resourceSubscriptions"]
        assert len(asked) == 600


@pytest.mark.parametrize("every_s", [0.05, 1.0, 1.6, 5.0])
async def test_changes_without_end_are_read_a_bounded_number_of_times_and_the_last_one_soon(
    every_s: float,
) -> None:
    script = changing()
    async with Stage(script) as stage:
        passed, span = 0.0, min(HOUR_S, every_s * 600)
        while passed < span:
            script.change()
            await stage.clock.advance(every_s)
            passed += every_s
        read = script.methods().count("tools/list")
        spaced, last = passed / 30 + 12, LAST_CHANGES.burst + passed / LAST_CHANGES.every_s
        assert read <= spaced + (last if every_s > 1.5 else 1)
        script["tools/list"] = tools("echo", "later")
        script.change()
        await stage.pass_time(2 if every_s <= 1.5 else LAST_CHANGES.every_s + 2)
        assert stage.peer.record.view().tools == 2


async def test_changes_during_a_reading_are_one_reading_more_and_never_two_at_once() -> None:
    script = changing()
    async with Stage(script) as stage:
        await stage.pass_time(60)
        script["tools/list"] = None
        for _ in range(50):
            script.change()
        await stage.pass_time(1)
        for _ in range(50):
            script.change()
        await stage.pass_time(1)
        assert script.methods().count("tools/list") == 2
        script["tools/list"] = tools("echo", "later")
        first = [m["id"] for m in script.heard[-1] if m["method"] == "tools/list"][-1]
        say(script.link, {"id": first, **(tools("echo") or {})})
        await stage.pass_time(2)
        assert script.methods().count("tools/list") == 3
        assert stage.peer.record.view().tools == 2


async def test_a_session_that_is_renewed_without_end_has_its_lists_read_by_a_budget() -> None:
    async with Stage(changing()) as stage:
        life = stage.peer.record.life
        assert life is not None
        for _ in range(600):
            life.listener.session_renewed()
            await stage.pass_time(0.1)
        read = stage.script.methods().count("tools/list")
        assert read <= 1 + STALE_LISTS.burst + 60 / STALE_LISTS.every_s
