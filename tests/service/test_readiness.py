"""Readiness follows the servers that somebody called required."""

from __future__ import annotations

import msgspec
import pytest

from observant_host.config import StdioServer
from observant_host.decisions.terms import PeerState
from observant_host.service.readiness import Readiness, readiness
from observant_host.supervision.declared import declare
from observant_host.supervision.peer_state import ServerView, unstarted


def view(name: str, state: PeerState) -> ServerView:
    server = declare(name, StdioServer(["x"]), allow_legacy=False, keys={})
    return msgspec.structs.replace(unstarted(server), state=state)


VIEWS = {
    "up": view("up", PeerState.READY),
    "half": view("half", PeerState.DEGRADED),
    "down": view("down", PeerState.BACKOFF),
    "off": view("off", PeerState.DISABLED),
}


def judge(**changes: object) -> Readiness:
    keys: dict[str, object] = {
        "required": (),
        "ready_when": "required",
        "published": True,
        "draining": False,
    }
    return readiness(VIEWS, **{**keys, **changes})  # type: ignore[arg-type]  # a test's shorthand


def test_only_required_servers_are_waited_for() -> None:
    assert judge(required=("up", "half")).ready
    waiting = judge(required=("up", "down"))
    assert (waiting.ready, waiting.waiting) == (False, ("down",))
    assert "down" in waiting.why


def test_a_disabled_server_is_not_waited_for() -> None:
    assert judge(required=("off",)).ready


@pytest.mark.parametrize(
    ("ready_when", "ready"), [("any", True), ("all", False), ("published", True)]
)
def test_other_rules_can_be_chosen(ready_when: str, ready: bool) -> None:
    assert judge(ready_when=ready_when).ready is ready


def test_any_is_not_met_by_servers_that_are_all_down() -> None:
    down = {"down": VIEWS["down"]}
    assert not readiness(down, required=(), ready_when="any", published=True, draining=False).ready
    assert readiness({}, required=(), ready_when="any", published=True, draining=False).ready


@pytest.mark.parametrize("ready_when", ["required", "any", "all", "published"])
def test_nothing_is_ready_before_publication_or_while_draining(ready_when: str) -> None:
    assert not judge(ready_when=ready_when, published=False).ready
    assert not judge(ready_when=ready_when, draining=True).ready
