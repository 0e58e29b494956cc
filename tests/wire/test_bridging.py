"""A client's traffic over hosts that are replaced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from observant_host.wire.bridging import AGAIN, MAX_KEPT, Bridge
from tests.support.published import problems


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def request(method: str, request_id: Any = 1, **params: Any) -> bytes:
    return line(id=request_id, method=method, **({"params": params} if params else {}))


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "c", "version": "1"},
}


def begun() -> Bridge:
    bridge = Bridge()
    bridge.up(request("initialize", 0, **INITIALIZE))
    assert bridge.down(line(id=0, result={}))
    bridge.up(line(method="notifications/initialized"))
    return bridge


def test_what_was_open_at_a_lost_host_is_answered_with_an_error() -> None:
    bridge = begun()
    bridge.up(request("tools/call", "a", name="x"))
    bridge.up(request("tools/call", 7, name="x"))
    assert bridge.down(line(id="a", error={"code": 1, "message": "no"}))
    assert bridge.busy
    errors = [json.loads(one) for one in bridge.lost()]
    assert [one["id"] for one in errors] == [7]
    assert "not known whether" in errors[0]["error"]["message"]
    assert not bridge.busy
    assert bridge.lost() == []


def test_without_a_host_requests_are_answered_at_once_and_notifications_are_not() -> None:
    bridge = begun()
    asked = request("tools/call", 7, name="x")
    bridge.up(asked)
    (error,) = [json.loads(one) for one in bridge.unanswerable(asked)]
    assert error["id"] == 7
    assert "nothing was executed" in error["error"]["message"]
    assert bridge.unanswerable(line(method="notifications/initialized")) == []
    assert bridge.unanswerable(b"{") == []
    assert bridge.lost() == []


def test_a_new_host_hears_what_the_old_one_knew_and_its_answers_stay_here() -> None:
    bridge = begun()
    bridge.up(request("logging/setLevel", 2, level="error"))
    for uri in ("x://a", "x://b"):
        bridge.up(request("resources/subscribe", 3, uri=uri))
    bridge.up(request("resources/unsubscribe", 4, uri="x://a"))
    bridge.up(request("ping", 5))
    said = [json.loads(one) for one in bridge.again()]
    assert [one["method"] for one in said] == [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
    ]
    assert said[0]["params"] == INITIALIZE
    assert said[3]["params"] == {"uri": "x://b"}
    assert [found for one in said for found in problems(one, "2025-11-25")] == []
    ids = [one["id"] for one in said if "id" in one]
    assert len(set(ids)) == 3
    assert all(one.startswith(AGAIN) for one in ids)
    assert not any(bridge.down(line(id=one, result={})) for one in ids)
    assert bridge.down(line(method="notifications/tools/list_changed"))
    assert not {json.loads(one).get("id") for one in bridge.again()} & set(ids)


def test_the_client_hears_that_its_lists_may_be_others() -> None:
    methods = [json.loads(one)["method"] for one in begun().changed()]
    assert methods == [f"notifications/{k}/list_changed" for k in ("tools", "prompts", "resources")]


def test_a_client_that_was_not_initialized_has_nothing_said_again() -> None:
    bridge = Bridge()
    bridge.up(request("server/discover", 1))
    assert bridge.again() == []
    assert bridge.changed() == []
    bridge.up(request("initialize", 2))
    assert [json.loads(one)["method"] for one in bridge.again()] == ["initialize"]
    assert "params" not in json.loads(bridge.again()[0])


@pytest.mark.parametrize("params", ["[1]", '{"uri":5}', "[" * 5000 + "]" * 5000, None])
def test_a_resource_without_a_uri_is_remembered_under_none(params: str | None) -> None:
    bridge = begun()
    inside = b"" if params is None else b',"params":%b' % params.encode()
    bridge.up(b'{"jsonrpc":"2.0","id":9,"method":"resources/unsubscribe"%b}' % inside)
    assert len(bridge.again()) == 2


def test_what_is_remembered_is_bounded() -> None:
    bridge = begun()
    for number in range(MAX_KEPT + 10):
        bridge.up(request("resources/subscribe", number + 1, uri=f"x://{number}"))
    assert len(bridge.lost()) == MAX_KEPT
    assert len(bridge.again()) == MAX_KEPT + 2
