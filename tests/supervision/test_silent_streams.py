"""A stream of changes that dies without a word, and what goes untold: on a passed clock."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from observant_host.decisions.budget import DOUBTS
from observant_host.errors import CallTimeout
from observant_host.supervision.serving import PATIENCE
from observant_host.telemetry.vocabulary import (
    GapHealed,
    ListenOpen,
    ServerMessage,
    SubscriptionLost,
    WatchdogCheck,
)
from tests.supervision.stage import Script, Stage, changing, say, tools
from tests.supervision.test_listening import cancelled, failed, graceful

if TYPE_CHECKING:
    from collections.abc import Callable


def keep_alive(stage: Stage) -> None:
    """As a comment on the present stream would be."""
    life = stage.peer.record.life
    assert life is not None
    life.inbox.stream_heard(stage.script.listens()[-1]["id"])


async def kept_alive_for(stage: Stage, seconds: float, every: float) -> None:
    for _ in range(int(seconds / every)):
        await stage.pass_time(every)
        keep_alive(stage)


# Gaps


@pytest.mark.parametrize(
    ("lose", "reason"),
    [(graceful, "graceful"), (cancelled, "cancelled"), (failed, "transport")],
)
async def test_what_changed_in_a_gap_is_recorded_with_its_length_and_how_it_came(
    lose: Callable[[Script], None], reason: str
) -> None:
    async with Stage(changing()) as stage:
        script = stage.script
        script["tools/list"] = tools("echo", "second")
        script.change()
        await stage.pass_time(5)
        lose(script)
        script["tools/list"] = tools("second", "later")
        await stage.pass_time(3)
        (gap,) = stage.facts(GapHealed)
        assert (gap.reason, gap.gap_s, gap.changes) == (reason, 0.5, 2)
        assert (gap.added, gap.removed, gap.changed) == (("tool later",), ("tool echo",), ())
        told = next(one for one in stage.told if type(one.fact) is GapHealed)
        assert {link.type for link in told.links} == {"of_stream", "caused_by"}
        lost = next(one for one in stage.told if type(one.fact) is SubscriptionLost)
        assert lost.context in [link.context for link in told.links]


async def test_a_gap_without_a_change_is_recorded_too() -> None:
    async with Stage(changing()) as stage:
        graceful(stage.script)
        await stage.pass_time(3)
        (gap,) = stage.facts(GapHealed)
        assert (gap.changes, gap.added) == (0, ())


async def test_a_gap_goes_on_over_a_restart_and_names_what_the_new_process_has_else() -> None:
    async with Stage(changing(), restart_initial_s=4) as stage:
        stage.script["tools/list"] = tools("echo", "later")
        stage.script.link.end("exit")
        await stage.pass_time(6)
        (gap,) = stage.facts(GapHealed)
        assert (gap.gap_s, gap.added, gap.generation) == (4, ("tool later",), 2)


async def test_a_gap_whose_lists_fail_is_healed_by_the_first_whole_reading() -> None:
    async with Stage(changing()) as stage:
        script = stage.script
        script["tools/list"] = {"error": {"code": -32603, "message": "not now"}}
        graceful(script)
        await stage.pass_time(0.6)
        assert stage.facts(GapHealed) == []
        script["tools/list"] = tools("echo", "later")
        await stage.pass_time(5)
        (gap,) = stage.facts(GapHealed)
        assert gap.added == ("tool later",)


async def test_while_nothing_is_told_the_status_says_so_at_once() -> None:
    async with Stage(changing()) as stage:
        script = stage.script
        script["subscriptions/listen"] = {"error": {"code": -32603, "message": "not now"}}
        graceful(script)
        await stage.clock.settle()
        assert "does not tell of changes" in stage.peer.record.view().detail
        assert stage.state[0] == "ready"
        script["subscriptions/listen"] = script.acknowledge
        await stage.pass_time(3)
        assert "does not tell" not in stage.peer.record.view().detail


# Silence


async def test_keep_alives_that_stay_away_are_a_loss_whose_gap_began_with_the_silence() -> None:
    async with Stage(changing()) as stage:
        await kept_alive_for(stage, 75, every=15)
        stage.script["tools/list"] = tools("echo", "later")  # on a stream that is dead
        await stage.pass_time(59)
        assert stage.facts(SubscriptionLost) == []
        await stage.pass_time(3)
        (check,) = stage.facts(WatchdogCheck)
        assert (check.verdict, check.silent_s, check.interval_s) == ("silent", 60, 15)
        (lost,) = stage.facts(SubscriptionLost)
        assert lost.reason == "watchdog_silent"
        (gap,) = stage.facts(GapHealed)
        assert (gap.reason, gap.gap_s, gap.added) == (
            "watchdog_silent",
            60.5,
            ("tool later",),
        )
        first, second = stage.script.listens()
        assert first["id"] != second["id"]
        assert stage.peer.record.view().layers.listen == "ok"


async def test_a_stream_that_is_kept_alive_stands_for_days_and_is_never_renewed() -> None:
    async with Stage(changing()) as stage:
        await kept_alive_for(stage, 4 * 3600, every=120)
        assert len(stage.script.listens()) == 1
        assert stage.script.methods().count("tools/list") == 1


async def test_a_stream_on_which_nothing_is_ever_heard_is_replaced_before_it_is_ended() -> None:
    async with Stage(changing()) as stage:
        script = stage.script
        await stage.pass_time(PATIENCE.max_quiet_s - 100)
        assert len(script.listens()) == 1
        await stage.pass_time(100)
        first, second = script.listens()
        order = [m["method"] for m in script.heard[-1]]
        assert order.index("notifications/cancelled") > order.index("subscriptions/listen")
        assert script.heard[-1][order.index("notifications/cancelled")]["params"] == {
            "requestId": first["id"]
        }
        assert second["id"] != first["id"]
        await stage.pass_time(2)
        assert script.methods().count("tools/list") == 2
        assert stage.facts(SubscriptionLost) == []
        assert stage.facts(GapHealed) == []
        assert [one.verdict for one in stage.facts(WatchdogCheck)] == ["quiet"]
        assert not stage.facts(ListenOpen)[-1].reopened


async def test_a_change_that_only_a_renewal_found_proves_that_its_stream_was_dead() -> None:
    async with Stage(changing()) as stage:
        stage.script["tools/list"] = tools("echo", "later")
        await stage.pass_time(PATIENCE.max_quiet_s + 2)
        (gap,) = stage.facts(GapHealed)
        assert (gap.reason, gap.added) == ("watchdog_silent", ("tool later",))
        assert 0 < gap.gap_s <= PATIENCE.max_quiet_s
        assert stage.peer.record.view().tools == 2


async def test_a_renewal_that_is_not_acknowledged_proves_the_old_stream_dead() -> None:
    async with Stage(changing(), ack_timeout_s=3) as stage:
        script = stage.script
        script["subscriptions/listen"] = None
        await stage.pass_time(PATIENCE.max_quiet_s * 0.9 + 1)
        assert stage.peer.record.view().layers.listen == "ok"  # not before it is known
        await stage.pass_time(3)
        assert [one.reason for one in stage.facts(SubscriptionLost)] == ["watchdog_silent"]
        assert stage.peer.record.view().layers.listen == "down"
        script["subscriptions/listen"] = script.acknowledge
        await stage.pass_time(8)
        (gap,) = stage.facts(GapHealed)
        assert gap.gap_s >= PATIENCE.max_quiet_s * 0.9 + 3


# Doubt


async def time_out(stage: Stage) -> None:
    now = stage.clock.monotonic()
    life = stage.peer.record.life
    assert life is not None
    call = life.request("tools/call", {"name": "echo"}, expires=now + 1, scope="call")
    answered = asyncio.ensure_future(call)
    await stage.pass_time(1.5)
    with pytest.raises(CallTimeout):
        await answered


async def test_a_call_that_timed_out_has_the_stream_replaced_and_what_it_covers_read() -> None:
    async with Stage(changing()) as stage:
        await stage.pass_time(30)
        await time_out(stage)
        await stage.pass_time(2)
        assert [one.verdict for one in stage.facts(WatchdogCheck)] == ["doubtful"]
        assert len(stage.script.listens()) == 2
        assert stage.script.methods().count("tools/list") == 2
        assert stage.facts(SubscriptionLost) == []


async def test_what_was_heard_since_the_call_began_takes_the_doubt_away() -> None:
    async with Stage(changing()) as stage:
        await stage.pass_time(30)
        now = stage.clock.monotonic()
        life = stage.peer.record.life
        assert life is not None
        call = life.request("tools/call", {"name": "echo"}, expires=now + 1, scope="call")
        answered = asyncio.ensure_future(call)
        await stage.pass_time(0.5)
        keep_alive(stage)
        await stage.pass_time(1)
        with pytest.raises(CallTimeout):
            await answered
        await stage.pass_time(2)
        assert stage.facts(WatchdogCheck) == []
        assert len(stage.script.listens()) == 1


async def test_a_tool_that_always_times_out_costs_few_streams() -> None:
    async with Stage(changing()) as stage:
        for _ in range(120):
            await time_out(stage)
            say(stage.script.link, {"method": "notifications/message", "params": {}})
        allowed = DOUBTS.burst + 180 / DOUBTS.every_s
        assert len(stage.script.listens()) <= 1 + allowed


# Links


async def test_a_reading_is_linked_to_the_notification_that_asked_for_it() -> None:
    async with Stage(changing()) as stage:
        await stage.pass_time(1)
        stage.peer.record.take_listed()
        stage.script.change()
        await stage.clock.settle()
        told = [one for one in stage.told if type(one.fact) is ServerMessage]
        assert stage.peer.record.take_listed() == ("list_changed", told[-1].context)
