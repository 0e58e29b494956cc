"""What goes out beside a call's own parameters: only what was announced, in the server's words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Raw

from observant_host.errors import InvalidCall
from observant_host.peers.peer import Peer
from observant_host.telemetry.vocabulary import ServerMessage
from tests.peers.desk import META, Desk, server

if TYPE_CHECKING:
    from observant_host.peers.peer import CallReply
    from observant_host.peers.told import LogMessage

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
COMPLETION = {
    "ref": {"type": "ref/prompt", "name": "p"},
    "argument": {"name": "a", "value": "v"},
    "context": {"arguments": {"b": "w"}},
}


def peer_of(desk: Desk, **options: Any) -> Peer:
    peer = Peer(desk.life.server, telemetry=desk.telemetry, clock=desk.clock, **options)
    peer.attach(desk.life)
    return peer


def call(peer: Peer, params: Any = None, **options: Any) -> asyncio.Task[CallReply]:
    method = options.pop("method", "tools/call")
    return asyncio.create_task(peer.call(method, params or {"name": "t"}, **options))


@pytest.mark.parametrize(
    ("method", "capability"),
    [("completion/complete", "completions"), ("resources/read", "resources")],
)
async def test_what_is_not_announced_is_refused_unsent_and_named(
    method: str, capability: str
) -> None:
    desk = await Desk().modern(tools={})
    with pytest.raises(InvalidCall, match=capability) as caught:
        await peer_of(desk).call(method, {"uri": "file:///a"})
    assert caught.value.delivery == "not_sent"
    assert desk.sent == []


@pytest.mark.parametrize("version", [*LEGACY, "2026-07-28"])
@pytest.mark.parametrize("raw", [True, False])
async def test_a_completions_context_goes_only_to_revisions_that_know_it(
    version: str, raw: bool
) -> None:
    desk = Desk()
    announced = {"completions": {}, "prompts": {}}
    if version in LEGACY:
        await desk.legacy(version, **announced)
    else:
        await desk.modern(**announced)
    desk.answer = lambda message: desk.result(message, {"completion": {"values": []}})
    params = Raw(b'{"ref":{},"argument":{},"context":{}}') if raw else COMPLETION
    await peer_of(desk).call("completion/complete", params)
    assert ("context" in desk.sent[0]["params"]) == (version >= "2025-06-18")


# log levels


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
async def test_a_modern_request_says_the_level_in_its_meta(method: str) -> None:
    desk = await Desk().modern(logging={}, resources={})
    desk.answer = lambda message: desk.result(message, {})
    params = {"name": "t", "uri": "u", "_meta": {"mine": 1}}
    await peer_of(desk).call(method, params, log_level="warning")
    meta = desk.sent[0]["params"]["_meta"]
    assert meta[META + "logLevel"] == "warning"
    assert meta["mine"] == 1
    assert desk.methods() == [method]


async def test_without_the_capability_or_the_wish_no_level_is_said() -> None:
    desk = await Desk().modern()
    desk.answer = lambda message: desk.result(message, {})
    await peer_of(desk).call("tools/call", {"name": "t"}, log_level="debug")
    assert META + "logLevel" not in desk.sent[0]["params"]["_meta"]
    other = await Desk().modern(logging={})
    other.answer = lambda message: other.result(message, {})
    await peer_of(other).call("tools/call", {"name": "t"})
    assert META + "logLevel" not in other.sent[0]["params"]["_meta"]


async def test_a_legacy_server_is_told_the_level_once_in_its_life_before_the_first_call() -> None:
    desk = await Desk().legacy(logging={})
    desk.answer = lambda message: desk.result(message, {})
    peer = peer_of(desk, log_level="info")
    await call(peer)
    await call(peer, log_level="debug")
    assert desk.methods() == ["logging/setLevel", "tools/call", "tools/call"]
    assert desk.sent[0]["params"] == {"level": "info"}
    assert META + "logLevel" not in str(desk.sent)
    fresh = await Desk().legacy(logging={})
    fresh.answer = lambda message: fresh.result(message, {})
    peer.attach(fresh.life)
    await call(peer)
    assert fresh.methods() == ["logging/setLevel", "tools/call"]


async def test_a_legacy_server_without_logging_is_told_nothing() -> None:
    desk = await Desk().legacy()
    desk.answer = lambda message: desk.result(message, {})
    await peer_of(desk, log_level="info").call("tools/call", {"name": "t"})
    assert desk.methods() == ["tools/call"]


@pytest.mark.parametrize("failure", ["error", "silence"])
async def test_a_level_that_cannot_be_set_costs_only_the_log(failure: str) -> None:
    desk = await Desk().legacy(logging={})

    def answer(message: dict[str, Any]) -> None:
        if message["method"] == "tools/call":
            desk.result(message, {})
        elif failure == "error" and message["method"] == "logging/setLevel":
            desk.error(message, -32602)

    desk.answer = answer
    task = call(peer_of(desk, log_level="info"))
    await desk.clock.advance(6)
    assert (await task).era == "legacy"


# log messages


def log(level: Any = "error", **more: Any) -> dict[str, Any]:
    params = {"level": level, "data": {"n": 1}, **more}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


async def test_log_messages_are_told_by_level_and_passed_on_as_they_came() -> None:
    heard: list[LogMessage] = []
    desk = await Desk().modern(logging={})
    peer_of(desk, on_log=heard.append)
    desk.say(log("error", logger="db"))
    desk.say(log("loud", logger=5))
    desk.say({"jsonrpc": "2.0", "method": "notifications/message"})
    await desk.settle()
    assert [(one.server, one.level, one.logger) for one in heard] == [
        ("tested", "error", "db"),
        ("tested", "", None),
        ("tested", "", None),
    ]
    assert [bytes(one.data) for one in heard] == [b'{"n": 1}', b'{"n": 1}', b"null"]
    assert [fact.level for fact in desk.facts(ServerMessage)] == ["error", "", ""]


async def test_a_flood_of_log_messages_is_passed_on_a_few_a_second() -> None:
    heard: list[LogMessage] = []
    desk = await Desk().modern(logging={})
    peer_of(desk, on_log=heard.append)
    for _ in range(500):
        desk.say(log())
    await desk.settle()
    assert len(heard) == 10
    assert desk.drops().count("message_flood") == 490
    await desk.clock.advance(1.1)
    desk.say(log())
    await desk.settle()
    assert len(heard) == 11


async def test_a_listener_that_fails_does_not_end_the_reader() -> None:
    def fail(_message: LogMessage) -> None:
        raise KeyError("the program's bug")

    desk = await Desk().modern(logging={})
    peer = peer_of(desk, on_log=fail)
    desk.say(log())
    desk.answer = lambda message: desk.result(message, {})
    await call(peer)
    assert desk.drops() == ["log_callback_failed"]


async def test_the_end_of_an_elicitation_is_heard_from_legacy_servers_only() -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {}}
    desk = await Desk(server()).legacy()
    desk.say(note)
    await desk.settle()
    assert desk.drops() == []
    modern = await Desk(server()).modern()
    modern.say(note)
    await modern.settle()
    assert modern.drops() == ["notification_unknown"]
