"""A server's changes over time: each loss of their stream leads to a new one, and to new lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from observant_host.telemetry.vocabulary import (
    DeadlineExpired,
    GapHealed,
    ListenOpen,
    SubscriptionLost,
    WishUnmet,
)
from tests.supervision.stage import (
    CHANGING,
    FOLLOWED,
    INITIALIZED,
    UNKNOWN,
    Script,
    Stage,
    changing,
    result,
    say,
    tools,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def graceful(script: Script) -> None:
    stream = script.listens()[-1]["id"]
    say(script.link, {"id": stream, **result({"resultType": "complete"})})


def cancelled(script: Script) -> None:
    params = {"requestId": script.listens()[-1]["id"]}
    say(script.link, {"method": "notifications/cancelled", "params": params})


def both(script: Script) -> None:
    cancelled(script)
    graceful(script)


def failed(script: Script) -> None:
    error = {"code": -32603, "message": "no more"}
    say(script.link, {"id": script.listens()[-1]["id"], "error": error})


@pytest.mark.parametrize("lose", [graceful, cancelled, both, failed])
async def test_a_lost_stream_is_opened_again_under_a_new_id_and_the_lists_are_read_anew(
    lose: Callable[[Script], None],
) -> None:
    async with Stage(changing()) as stage:
        script = stage.script
        assert script.methods() == ["server/discover", "subscriptions/listen", "tools/list"]
        assert stage.peer.record.view().layers.listen == "ok"
        await stage.pass_time(10)
        lose(script)
        await stage.clock.settle()
        assert stage.peer.record.view().layers.listen == "down"
        script["tools/list"] = tools("echo", "new")  # told to nobody
        await stage.pass_time(1)
        first, second = (one["id"] for one in script.listens())
        assert first != second
        assert stage.peer.record.view().tools == 2
        assert script.methods().count("tools/list") == 2
        assert stage.peer.record.view().layers.listen == "ok"
        (lost,) = stage.facts(SubscriptionLost)
        assert (lost.age_s, lost.messages) == (10, 0)
        opened = stage.facts(ListenOpen)[-1]
        assert opened.reopened
        assert opened.gap_s == 0.5
        assert stage.state[0] == "ready"


async def test_a_new_life_listens_again_and_the_gap_is_counted_over_both() -> None:
    async with Stage(changing(), restart_initial_s=4) as stage:
        stage.script.link.end("exit")
        await stage.clock.settle()
        assert stage.facts(SubscriptionLost)[-1].reason == "transport"
        await stage.pass_time(4)
        assert stage.state[0] == "ready"
        assert len(stage.script.listens()) == 1
        assert stage.facts(ListenOpen)[-1].gap_s == 4
        assert stage.script.methods().count("tools/list") == 1


async def test_without_an_acknowledgment_in_time_the_stream_is_given_up_and_tried_again() -> None:
    script = changing()
    script["subscriptions/listen"] = None
    async with Stage(script, ack_timeout_s=3) as stage:
        await stage.pass_time(0.25)
        assert stage.state[0] == "ready"
        assert stage.peer.record.view().layers.listen == "waiting"
        await stage.pass_time(2.75)
        assert stage.peer.record.view().layers.listen == "down"
        assert stage.script.heard[-1][-1]["params"] == {"requestId": script.listens()[0]["id"]}
        assert [one.scope for one in stage.facts(DeadlineExpired)] == ["ack"]
        script["subscriptions/listen"] = script.acknowledge
        await stage.pass_time(1)
        assert stage.peer.record.view().layers.listen == "ok"
        assert script.methods().count("tools/list") == 2


async def test_a_server_without_the_method_is_not_asked_again_and_is_ready() -> None:
    script = changing()
    script["subscriptions/listen"] = UNKNOWN
    async with Stage(script) as stage:
        await stage.pass_time(10_000)
        assert len(script.listens()) == 1
        assert stage.state[0] == "ready"
        assert stage.peer.record.view().layers.listen == "off"


async def test_a_server_that_announces_nothing_is_not_asked() -> None:
    script = Script(**{"server/discover": result({**CHANGING, "capabilities": {"tools": {}}})})
    async with Stage(script) as stage:
        await stage.pass_time(10_000)
        assert script.methods() == ["server/discover", "tools/list"]
        assert stage.peer.record.view().layers.listen == "off"


async def test_streams_that_do_not_last_cost_ever_less_and_make_the_peer_degraded() -> None:
    script = changing()
    script["subscriptions/listen"] = {"error": {"code": -32603, "message": "not now"}}
    async with Stage(script) as stage:
        await stage.pass_time(59)
        assert stage.state[0] == "ready"
        await stage.pass_time(2)
        assert stage.state[0] == "degraded"
        assert "not now" in stage.peer.record.view().detail
        await stage.pass_time(3600)
        assert len(script.listens()) < 75
        assert script.methods().count("tools/list") == 1
        script["subscriptions/listen"] = script.acknowledge
        await stage.pass_time(60)
        assert stage.state[0] == "ready"
        assert script.methods().count("tools/list") == 2


async def test_an_acknowledgment_that_comes_after_the_lists_has_them_read_again() -> None:
    script = changing()
    script["subscriptions/listen"] = None
    async with Stage(script) as stage:
        await stage.pass_time(1)
        assert script.methods().count("tools/list") == 1
        script.acknowledge(script.listens()[-1])
        await stage.pass_time(1)
        assert script.methods().count("tools/list") == 2


async def test_what_is_granted_in_part_is_recorded() -> None:
    script = changing()
    both_kinds = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}}
    script["server/discover"] = result({**CHANGING, "capabilities": both_kinds})
    script["prompts/list"] = result({"prompts": []})

    def partly(message: dict[str, Any]) -> None:
        granted = {"toolsListChanged": True}
        script.in_stream(message["id"], "subscriptions/acknowledged", notifications=granted)

    script["subscriptions/listen"] = partly
    async with Stage(script) as stage:
        (opened,) = stage.facts(ListenOpen)
        assert (opened.filter, opened.acked, opened.left_out) == (
            ("tools", "prompts"),
            ("tools",),
            ("prompts",),
        )
        assert stage.peer.record.view().layers.listen == "ok"


async def test_a_followed_resource_is_told_and_followed_again_in_each_life() -> None:
    script = changing()
    script["server/discover"] = result(FOLLOWED)
    script["resources/list"] = result({"resources": []})
    script["resources/templates/list"] = result({"resourceTemplates": []})
    told: list[str] = []
    async with Stage(script, restart_initial_s=1) as stage:
        stage.peer.peer.wishes.add("file:///d/", told.append)
        await stage.clock.settle()
        first, second = script.listens()
        assert second["params"]["notifications"]["resourceSubscriptions"] == ["file:///d/"]
        assert script.heard[-1][-1]["params"] == {"requestId": first["id"]}  # replaced
        assert told == []
        script.in_stream(second["id"], "resources/updated", uri="file:///d/a")
        script.in_stream(second["id"], "resources/updated", uri="file:///e")
        await stage.clock.settle()
        assert told == ["file:///d/a"]
        script.link.end("exit")
        await stage.pass_time(2)
        (again,) = script.listens()
        assert again["params"]["notifications"]["resourceSubscriptions"] == ["file:///d/"]
        assert told == ["file:///d/a", "file:///d/"]  # it may have changed meanwhile
        stage.peer.peer.wishes.remove("file:///d/")
        await stage.clock.settle()
        assert "resourceSubscriptions" not in script.listens()[-1]["params"]["notifications"]


async def test_a_wish_that_a_server_does_not_fulfil_is_told() -> None:
    async with Stage(changing()) as stage:
        stage.peer.peer.wishes.add("a:", print)
        await stage.pass_time(1)
        graceful(stage.script)
        await stage.pass_time(1)
        assert {one.uri for one in stage.facts(WishUnmet)} == {"a:"}


async def test_a_legacy_server_is_asked_resource_by_resource_and_again_in_each_life() -> None:
    told = {**INITIALIZED, "capabilities": {"tools": {}, "resources": {"subscribe": True}}}
    script = Script(**{"server/discover": UNKNOWN, "initialize": result(told)})
    for method in ("resources/subscribe", "resources/unsubscribe"):
        script[method] = result({})
    script["resources/list"] = result({"resources": []})
    script["resources/templates/list"] = result({"resourceTemplates": []})
    updated: list[str] = []
    async with Stage(script, allow_legacy=True, restart_initial_s=1) as stage:
        stage.peer.peer.wishes.add("a:", updated.append)
        await stage.clock.settle()
        assert script.heard[-1][-1]["params"] == {"uri": "a:"}
        say(script.link, {"method": "notifications/resources/updated", "params": {"uri": "a:"}})
        await stage.clock.settle()
        assert updated == ["a:"]
        script.link.end("exit")
        await stage.pass_time(2)
        assert script.methods().count("resources/subscribe") == 1
        stage.peer.peer.wishes.remove("a:")
        await stage.clock.settle()
        assert script.methods()[-1] == "resources/unsubscribe"


async def test_a_legacy_server_that_does_not_answer_is_asked_again_until_it_refuses() -> None:
    told = {**INITIALIZED, "capabilities": {"tools": {}, "resources": {"subscribe": True}}}
    script = Script(**{"server/discover": UNKNOWN, "initialize": result(told)})
    script["resources/list"] = result({"resources": []})
    script["resources/templates/list"] = result({"resourceTemplates": []})
    async with Stage(script, allow_legacy=True, ack_timeout_s=1) as stage:
        wishes = stage.peer.peer.wishes
        wishes.add("a:", print)
        await stage.pass_time(2)
        assert "a:" in wishes.unmet
        assert "does not tell of a:" in stage.peer.record.view().detail
        await stage.pass_time(600)
        assert 5 < script.methods().count("resources/subscribe") < 25
        script["resources/subscribe"] = {"error": {"code": -32602, "message": "no such thing"}}
        await stage.pass_time(61)
        asked = script.methods().count("resources/subscribe")
        await stage.pass_time(3600)
        assert script.methods().count("resources/subscribe") == asked
        assert "no such thing" in wishes.unmet["a:"]


async def test_a_legacy_server_whose_resources_cannot_be_followed_is_not_asked() -> None:
    script = Script(**{"server/discover": UNKNOWN, "initialize": result(INITIALIZED)})
    async with Stage(script, allow_legacy=True) as stage:
        stage.peer.peer.wishes.add("a:", print)
        await stage.pass_time(1)
        assert "resources/subscribe" not in script.methods()
        assert [one.uri for one in stage.facts(WishUnmet)] == ["a:"]
        stage.peer.peer.wishes.add("b:", print)
        await stage.pass_time(1)
        assert [one.uri for one in stage.facts(WishUnmet)] == ["a:", "b:"]


async def test_a_stream_that_ends_while_another_takes_its_place_is_a_loss() -> None:
    script = changing()
    script["server/discover"] = result(FOLLOWED)
    script["resources/list"] = result({"resources": []})
    script["resources/templates/list"] = result({"resourceTemplates": []})
    async with Stage(script) as stage:
        await stage.pass_time(5)
        script["subscriptions/listen"] = None
        stage.peer.peer.wishes.add("a:", print)
        await stage.clock.settle()
        first, second = script.listens()
        say(script.link, {"id": first["id"], **(result({"resultType": "complete"}) or {})})
        await stage.pass_time(1)
        script.acknowledge(second)
        await stage.pass_time(2)
        assert [one.reason for one in stage.facts(SubscriptionLost)] == ["graceful"]
        assert [one.resources_told for one in stage.facts(GapHealed)] == [1]
        assert script.methods().count("tools/list") == 2
