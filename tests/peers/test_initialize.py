"""What the bounded `initialize` proves, modern evidence that comes after it, and rounds in which
people and memory have a say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.config import EraPolicy
from observant_host.decisions.era import Permission
from observant_host.decisions.terms import Cause, Direction, Era, Reason
from observant_host.telemetry.vocabulary import DeadlineExpired
from tests.peers.desk import MODERN, server
from tests.peers.negotiating import (
    DISCOVERED,
    GRANTED,
    INITIALIZED,
    NONE,
    Table,
    config,
    initializes,
    initializing,
)

if TYPE_CHECKING:
    from observant_host.peers.negotiation import Round

BAD_INITIALIZE: list[tuple[Any, Reason, Cause]] = [
    ({"error": {"code": -32602, "message": "m"}}, Reason.LEGACY_PROBE_ERROR, Cause.PROTOCOL),
    ({"id": None, "error": {"code": 1, "message": ""}}, Reason.LEGACY_PROBE_ERROR, Cause.PROTOCOL),
    ({"result": {}}, Reason.LEGACY_PROBE_INVALID, Cause.PROTOCOL),
    ({"id": "2", "result": INITIALIZED}, Reason.LEGACY_PROBE_INVALID, Cause.PROTOCOL),
    (
        {"result": INITIALIZED, "error": {"code": 1, "message": ""}},
        Reason.LEGACY_PROBE_INVALID,
        Cause.PROTOCOL,
    ),
    (
        {"result": {**INITIALIZED, "serverInfo": {"name": "s"}}},
        Reason.LEGACY_PROBE_INVALID,
        Cause.PROTOCOL,
    ),
    (
        {"result": {**INITIALIZED, "serverInfo": {"name": "", "version": "1"}}},
        Reason.LEGACY_PROBE_INVALID,
        Cause.PROTOCOL,
    ),
    (
        {"result": {**INITIALIZED, "capabilities": None}},
        Reason.LEGACY_PROBE_INVALID,
        Cause.PROTOCOL,
    ),
    (
        {"result": {**INITIALIZED, "protocolVersion": "1.0"}},
        Reason.LEGACY_UNSUPPORTED_REVISION,
        Cause.PROTOCOL,
    ),
    (
        {"result": {**INITIALIZED, "protocolVersion": MODERN}},
        Reason.LEGACY_UNSUPPORTED_REVISION,
        Cause.PROTOCOL,
    ),
]


@pytest.mark.parametrize(("answer", "reason", "cause"), BAD_INITIALIZE)
async def test_anything_but_a_valid_initialize_result_is_no_legacy_server(
    answer: Any, reason: Reason, cause: Cause
) -> None:
    table = Table()
    task = await initializing(table)
    table.desk.say({"jsonrpc": "2.0", "id": 2, **answer})
    found = await task
    assert (found.era, found.reason, found.cause) == (None, reason, cause)
    await table.desk.settle()
    assert table.desk.methods() == ["server/discover", "initialize"]


async def test_only_allowed_revisions_are_offered_and_accepted() -> None:
    table = Table(server(era=EraPolicy(allow_legacy=("2024-11-05", "2025-03-26"))))
    task = await initializing(table)
    assert table.desk.sent[1]["params"]["protocolVersion"] == "2025-03-26"
    table.desk.result(table.desk.sent[1], {**INITIALIZED, "protocolVersion": "2025-06-18"})
    assert (await task).reason is Reason.LEGACY_UNSUPPORTED_REVISION


async def test_initialize_has_its_own_time_and_its_own_end() -> None:
    table = Table()
    task = await initializing(table)
    await table.desk.clock.advance(4.9)
    assert not task.done()
    await table.desk.clock.advance(0.2)
    found = await task
    assert (found.reason, found.cause) == (Reason.LEGACY_PROBE_TIMEOUT, Cause.PROCESS)
    assert "notifications/cancelled" not in table.desk.methods()
    (expired,) = table.desk.facts(DeadlineExpired)
    assert (expired.scope, expired.method, expired.budget_ms) == ("probe", "initialize", 5000)
    other = Table()
    task = await initializing(other)
    other.desk.transport.link.end("eof", "it closed its output")
    found = await task
    assert (found.reason, found.cause) == (Reason.LEGACY_PROBE_CLOSED, Cause.PROCESS)


async def test_a_life_gets_one_initialize_whatever_later_rounds_allow() -> None:
    table = Table()
    task = await initializing(table)
    await table.desk.clock.advance(6)
    await task
    again = await table.round(GRANTED)
    await table.desk.clock.advance(40)
    assert (await again).era is None
    assert initializes(table.desk) == 1
    with pytest.raises(RuntimeError):
        table.desk.life.send_initialize("2025-11-25")


# late modern evidence


async def silent_then_initializing(table: Table) -> asyncio.Task[Round]:
    task = await table.round(GRANTED)
    await table.desk.clock.advance(30.1)
    assert table.desk.methods() == ["server/discover", "initialize"]
    return task


@pytest.mark.parametrize("answer", ["result", "code", "initialize"])
async def test_modern_evidence_after_initialize_was_written_ends_the_life(answer: str) -> None:
    table = Table()
    task = await silent_then_initializing(table)
    discover, initialize = table.desk.sent
    if answer == "result":
        table.desk.result(discover, DISCOVERED)
    elif answer == "code":
        table.desk.error(discover, -32020)
    else:
        table.desk.error(initialize, -32022, {"supported": [MODERN]})
    found = await task
    assert (found.era, found.reason) == (None, Reason.LATE_MODERN_EVIDENCE)
    assert found.end_life
    assert found.modern_evidence
    assert "notifications/initialized" not in table.desk.methods()


async def test_it_counts_also_after_legacy_was_chosen() -> None:
    table = Table()
    task = await silent_then_initializing(table)
    discover, initialize = table.desk.sent
    table.desk.result(initialize, INITIALIZED)
    assert (await task).selected is Era.LEGACY
    assert table.desk.listener.late_modern == 0
    table.desk.result(discover, DISCOVERED)
    table.desk.say({"jsonrpc": "2.0", "id": "s", "method": "ping"})
    await table.desk.settle()
    assert table.desk.listener.late_modern == 1
    assert table.desk.life.probes.late_modern is not None
    assert table.desk.methods()[2:] == ["notifications/initialized"]


@pytest.mark.parametrize("answer", [{}, {"tools": []}])
async def test_a_late_answer_that_proves_nothing_changes_nothing(answer: Any) -> None:
    table = Table()
    task = await silent_then_initializing(table)
    discover, initialize = table.desk.sent
    table.desk.result(discover, answer)
    await table.desk.settle()
    table.desk.result(initialize, INITIALIZED)
    assert (await task).selected is Era.LEGACY
    assert table.desk.drops() == ["late_reply"]
    assert table.desk.listener.late_modern == 0


async def test_the_same_codes_in_answer_to_a_legacy_call_are_ordinary_errors() -> None:
    table = Table()
    task = await initializing(table)
    table.desk.result(table.desk.sent[1], INITIALIZED)
    found = await task
    call = asyncio.create_task(
        found.life.request("tools/call", {}, expires=table.desk.soon(), purpose="call")
    )
    await table.desk.settle()
    table.desk.error(table.desk.sent[-1], -32022)
    await table.desk.settle()
    assert call.exception() is not None
    assert table.desk.listener.late_modern == 0


# what people and memory say


@pytest.mark.parametrize(
    ("permission", "reason"),
    [
        (Permission.REFUSED, Reason.WAS_MODERN),
        (Permission.EXPIRED, Reason.ALLOWANCE_EXPIRED),
        (Permission.MISMATCH, Reason.ALLOWANCE_MISMATCH),
    ],
)
async def test_an_allowance_that_does_not_stand_refuses_by_its_own_name(
    permission: Permission, reason: Reason
) -> None:
    table = Table()
    task = await table.round(permission)
    table.desk.error(table.desk.sent[0], -32601)
    found = await task
    assert (found.reason, found.cause) == (reason, Cause.POLICY)
    assert initializes(table.desk) == 0


@pytest.mark.parametrize("permission", [NONE, Permission.REFUSED])
async def test_the_silence_of_a_proven_modern_server_is_an_outage(permission: Permission) -> None:
    table = Table()
    task = await table.round(permission, proven=True)
    await table.desk.clock.advance(31)
    found = await task
    assert (found.reason, found.cause) == (Reason.AMBIGUOUS_TIMEOUT, Cause.PROCESS)


@pytest.mark.parametrize(
    ("expect", "remembered", "expected"),
    [(None, False, True), ("legacy", False, True), (None, True, False), ("modern", False, False)],
)
async def test_a_downgrade_against_the_memory_is_not_expected(
    expect: Any, remembered: bool, expected: bool
) -> None:
    table = Table(config(expect_era=expect))
    task = await initializing(table, previous_era=Era.MODERN, remembered_modern=remembered)
    table.desk.result(table.desk.sent[1], INITIALIZED)
    found = await task
    assert (found.direction, found.expected) == (Direction.DOWNGRADE, expected)


async def test_a_modern_server_where_a_legacy_one_was_expected_is_not_expected() -> None:
    table = Table(config(expect_era="legacy"))
    task = await table.round(NONE)
    table.desk.result(table.desk.sent[0], DISCOVERED)
    assert not (await task).expected


async def test_a_cancelled_round_leaves_the_probe_open_for_the_next() -> None:
    table = Table()
    task = await table.round(NONE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    table.desk.result(table.desk.sent[0], DISCOVERED)
    await table.desk.settle()
    assert table.desk.listener.evidence == 1
    assert (await (await table.round(NONE))).selected is Era.MODERN


async def test_a_life_that_ended_before_its_round_is_asked_nothing() -> None:
    table = Table()
    await table.desk.life.open()
    table.desk.transport.link.end("exit", "it exited at once")
    await table.desk.settle()
    found = await (await table.round(NONE))
    assert found.reason is Reason.AMBIGUOUS_CLOSED
    assert table.desk.sent == []
