"""One life over HTTP: what goes out in headers, and what a failed exchange means."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from observant_host.decisions.catalogue import ListedTool
from observant_host.errors import CallError, InvalidResult, RateLimited, RpcError, Unavailable
from observant_host.telemetry.vocabulary import FrameDropped, Request
from observant_host.wire.mirrored_headers import annotations_of
from tests.peers.web_desk import WebDesk, error_body

TOOL = {
    "name": "t",
    "inputSchema": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    },
}


def start(desk: WebDesk, method: str = "tools/call", params: Any = None) -> asyncio.Task[Raw]:
    return asyncio.ensure_future(
        desk.life.request(method, params or {"name": "t"}, expires=desk.soon())
    )


async def test_a_modern_request_says_its_method_its_name_and_its_mirrored_arguments() -> None:
    desk = await WebDesk().modern()
    mirrored = annotations_of(TOOL["inputSchema"])  # type: ignore[arg-type]  # a test's dict
    assert not isinstance(mirrored, str)
    assert desk.life.headers is not None
    desk.life.headers.listed([ListedTool("größe", Raw(b"{}"), mirrored=mirrored)])
    for params in (
        {"name": "größe", "arguments": {"region": " eu"}},
        Raw('{"name":"größe","arguments":{"region":" eu"}}'.encode()),
    ):
        waiting = start(desk, params=params)
        await desk.clock.settle()
        out = desk.sent()
        assert (out.modern, out.version, out.method) == (True, "2026-07-28", "tools/call")
        assert out.name == "=?base64?Z3LDtsOfZQ==?="
        assert out.mirrored == (("Mcp-Param-Region", "=?base64?IGV1?="),)
        assert desk.result(out, {}) is True
        assert await waiting == Raw(b"{}")


async def test_a_request_without_parameters_has_no_name() -> None:
    desk = await WebDesk().modern()
    waiting = asyncio.ensure_future(desk.life.request("tools/list", expires=desk.soon()))
    await desk.clock.settle()
    assert (desk.sent().name, desk.sent().mirrored) == (None, ())
    desk.result(desk.sent(), {})
    await waiting


@pytest.mark.parametrize(
    ("version", "header"),
    [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", None)],
)
async def test_a_legacy_message_says_its_version_where_the_revision_has_that_header(
    version: str, header: str | None
) -> None:
    desk = await WebDesk().legacy(version)
    waiting = start(desk)
    await desk.clock.settle()
    desk.come({"id": 7, "method": "ping"}, None)
    desk.life.notify("notifications/roots/list_changed")
    outs = desk.transport.sent
    assert [out.method for out in outs] == ["tools/call", "", "notifications/roots/list_changed"]
    assert {(out.version, out.modern, out.name) for out in outs} == {(header, False, None)}
    desk.result(outs[0], {})
    await waiting


@pytest.mark.parametrize(
    ("failure", "kind", "delivery", "doubts"),
    [
        ({"kind": "refused", "sent": False}, Unavailable, "not_sent", 1),
        ({"kind": "credentials", "sent": False}, Unavailable, "not_sent", 1),
        ({"kind": "reset"}, Unavailable, "sent_no_reply", 1),
        ({"kind": "no_response", "status": 200}, Unavailable, "sent_no_reply", 1),
        ({"kind": "status", "status": 502}, Unavailable, "sent_no_reply", 1),
        ({"kind": "status", "status": 408}, Unavailable, "sent_no_reply", 1),
        ({"kind": "status", "status": 413}, Unavailable, "replied", 1),
        ({"kind": "status", "status": 401}, Unavailable, "replied", 1),
        ({"kind": "status", "status": 429}, RateLimited, "replied", 0),
        ({"kind": "redirect", "status": 302}, Unavailable, "replied", 1),
        ({"kind": "status", "status": 400, "body": error_body(-32602, 1)}, RpcError, "replied", 0),
        ({"kind": "status", "status": 404, "body": error_body(-32601, 1)}, RpcError, "replied", 1),
        ({"kind": "status", "status": 500, "body": error_body(-32603, 1)}, RpcError, "replied", 1),
        ({"kind": "status", "status": 400, "body": error_body(-1, None)}, RpcError, "replied", 1),
        ({"kind": "status", "status": 400, "body": error_body(-1, 99)}, Unavailable, "replied", 1),
    ],
)
async def test_what_a_failed_exchange_means(
    failure: dict[str, Any], kind: type[CallError], delivery: str, doubts: int
) -> None:
    desk = await WebDesk().modern()
    waiting = start(desk)
    await desk.clock.settle()
    desk.lose(desk.sent(), **failure)
    with pytest.raises(kind) as failed:
        await waiting
    assert type(failed.value) is kind
    assert failed.value.delivery == delivery
    assert desk.listener.doubts == doubts
    (told,) = [done.fact for done in desk.told if type(done.fact) is Request]
    assert told.http_status == failure.get("status")


async def test_whose_fault_a_failed_exchange_is() -> None:
    desk = await WebDesk().modern()
    for facts, fault in (
        ({"kind": "status", "status": 403}, "policy"),
        ({"kind": "credentials", "sent": False}, "policy"),
        ({"kind": "refused", "sent": False}, "peer"),
        ({"kind": "status", "status": 500}, "peer"),
    ):
        waiting = start(desk)
        await desk.clock.settle()
        desk.lose(desk.sent(), **facts)  # type: ignore[arg-type]  # each a dict of its own
        with pytest.raises(Unavailable) as failed:
            await waiting
        assert failed.value.fault == fault


async def test_a_loss_of_what_was_answered_or_given_up_changes_nothing() -> None:
    desk = await WebDesk().modern()
    waiting = start(desk)
    await desk.clock.settle()
    out = desk.sent()
    desk.result(out, {})
    desk.lose(out, "reset")
    assert await waiting == Raw(b"{}")
    assert desk.listener.doubts == 0


async def test_an_answer_on_another_requests_response_is_nobodys() -> None:
    desk = await WebDesk().modern()
    first, second = start(desk), start(desk)
    await desk.clock.settle()
    one, two = desk.transport.sent
    assert desk.come({"id": two.request_id, "result": {}}, one) is True
    with pytest.raises(InvalidResult, match="not the number 1"):
        await first
    assert not second.done()
    assert desk.come({"id": 5, "result": {}}, one) is True
    assert [done.fact.kind for done in desk.told if type(done.fact) is FrameDropped][-1] == (
        "misdirected_reply"
    )
    assert desk.result(two, {}) is True
    await second


async def test_a_notification_does_not_end_the_stream_that_it_came_on() -> None:
    desk = await WebDesk().modern()
    waiting = start(desk)
    await desk.clock.settle()
    note = {"method": "notifications/message", "params": {}}
    assert desk.come(note, desk.sent()) is False
    assert desk.come(note, None) is False
    desk.result(desk.sent(), {})
    await waiting


async def test_cancelling_a_modern_request_closes_its_stream_and_says_nothing() -> None:
    desk = await WebDesk().modern()
    waiting = start(desk)
    await desk.clock.settle()
    waiting.cancel()
    await desk.clock.settle()
    assert desk.transport.cancelled == [1]
    assert desk.methods() == ["tools/call"]


async def test_cancelling_a_legacy_request_is_said_in_a_notification() -> None:
    desk = await WebDesk().legacy()
    waiting = start(desk)
    await desk.clock.settle()
    waiting.cancel()
    await desk.clock.settle()
    assert desk.methods() == ["tools/call", "notifications/cancelled"]


async def test_a_life_over_http_has_reached_its_server_once_a_connection_was_made() -> None:
    desk = await WebDesk().modern()
    assert desk.life.inbox.reached is False
    for sent, reached in ((False, False), (True, True), (False, True)):
        waiting = start(desk)
        await desk.clock.settle()
        desk.lose(desk.sent(), "reset" if sent else "dns", sent=sent)
        with pytest.raises(Unavailable):
            await waiting
        assert desk.life.inbox.reached is reached
