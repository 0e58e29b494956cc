"""Every row of the table of eras, with the clock in the test's hand and each frame looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from observant_host.decisions.terms import Cause, Direction, Era, Reason, Trigger
from observant_host.errors import SpawnFailed
from observant_host.telemetry.vocabulary import DeadlineExpired, EraDecide, Request
from tests.peers.desk import META, MODERN
from tests.peers.negotiating import (
    DISCOVERED,
    GRANTED,
    INITIALIZED,
    NONE,
    Table,
    initializes,
)

if TYPE_CHECKING:
    from observant_host.decisions.era import Permission


async def test_a_discover_result_with_a_mutual_version_is_modern() -> None:
    table = Table()
    task = await table.round(NONE)
    (probe,) = table.desk.sent
    assert probe["method"] == "server/discover"
    assert probe["params"]["_meta"][META + "protocolVersion"] == MODERN
    assert set(probe["params"]) == {"_meta"}
    await table.desk.clock.advance(3)
    table.desk.result(probe, DISCOVERED)
    found = await task
    assert (found.selected, found.reason, found.cause) == (Era.MODERN, Reason.DISCOVER_OK, None)
    assert found.direction is Direction.FIRST
    assert found.modern_evidence
    assert not found.end_life
    life = table.desk.life
    assert life.era is not None
    assert life.era.version == MODERN
    assert life.capabilities == {"tools": {}}
    assert life.server_info == {"name": "s", "version": "1"}
    assert table.desk.methods() == ["server/discover"]
    (evidence,) = found.evidence
    assert (evidence.outcome, evidence.elapsed_ms, evidence.late) == ("ok", 3000, False)
    assert evidence.excerpt.startswith('{"jsonrpc"')


async def test_the_round_and_each_probe_are_told() -> None:
    table = Table()
    task = await table.round(NONE, previous_era=Era.LEGACY, trigger=Trigger.RESTART)
    table.desk.result(table.desk.sent[0], DISCOVERED)
    await task
    probe, decision = (
        next(one for one in table.desk.told if isinstance(one.fact, kind))
        for kind in (Request, EraDecide)
    )
    assert (probe.fact.method, probe.fact.purpose, probe.fact.probe_outcome) == (
        "server/discover",
        "era",
        "ok",
    )
    assert probe.parent.span_id == decision.context.span_id
    fact = decision.fact
    assert (fact.trigger, fact.previous, fact.selected, fact.direction) == (
        "restart",
        "legacy",
        "modern",
        "upgrade",
    )
    assert (fact.reason, fact.version, fact.server_name) == ("discover_ok", MODERN, "s")
    assert fact.evidence[0]["step"] == "discover"
    assert fact.candidates == (MODERN,)
    assert fact.supported == (MODERN, "2025-11-25")


@pytest.mark.parametrize("permission", [NONE, GRANTED])
async def test_a_refused_version_is_asked_again_once_with_a_new_id(permission: Permission) -> None:
    table = Table()
    task = await table.round(permission)
    first = table.desk.sent[0]
    table.desk.error(first, -32022, {"supported": [MODERN]})
    await table.desk.settle()
    second = table.desk.sent[1]
    assert (second["method"], second["id"]) == ("server/discover", first["id"] + 1)
    table.desk.result(second, DISCOVERED)
    found = await task
    assert found.selected is Era.MODERN
    assert [one.outcome for one in found.evidence] == ["modern_error", "ok"]


MODERN_EVIDENCE = [
    ((-32022, {"supported": [MODERN]}), Reason.MODERN_ERROR_UNFIXABLE),
    ((-32022, {"supported": ["2025-11-25"]}), Reason.LEGACY_ONLY_ADVERTISED),
    ((-32022, {"supported": ["2099-01-01"]}), Reason.NO_MUTUAL_VERSION),
    ((-32022, None), Reason.MODERN_ERROR_UNFIXABLE),
    ((-32020, None), Reason.MODERN_ERROR_UNFIXABLE),
    ((-32021, {"requiredCapabilities": {}}), Reason.MODERN_ERROR_UNFIXABLE),
]


@pytest.mark.parametrize("permission", [NONE, GRANTED])
@pytest.mark.parametrize(("answer", "reason"), MODERN_EVIDENCE)
async def test_modern_evidence_never_leads_to_initialize(
    answer: tuple[int, Any], reason: Reason, permission: Permission
) -> None:
    table = Table()
    task = await table.round(permission)
    table.desk.error(table.desk.sent[0], *answer)
    await table.desk.settle()
    if len(table.desk.sent) == 2:
        table.desk.error(table.desk.sent[1], *answer)
    found = await task
    assert (found.era, found.reason, found.cause) == (None, reason, Cause.PROTOCOL)
    assert found.modern_evidence
    assert set(table.desk.methods()) == {"server/discover"}


@pytest.mark.parametrize("permission", [NONE, GRANTED])
async def test_modern_evidence_holds_for_the_rest_of_the_life(permission: Permission) -> None:
    table = Table()
    first = await table.round(permission)
    table.desk.error(table.desk.sent[0], -32020)
    await first
    second = await table.round(GRANTED)
    table.desk.error(table.desk.sent[1], -32601)
    found = await second
    assert found.era is None
    assert initializes(table.desk) == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"result": DISCOVERED, "error": {"code": -32022, "message": ""}},
        {"error": {"code": -32021}},
    ],
)
async def test_a_recognised_code_counts_even_beside_a_result_or_malformed(answer: Any) -> None:
    table = Table()
    task = await table.round(GRANTED)
    table.desk.say({"jsonrpc": "2.0", "id": table.desk.sent[0]["id"], **answer})
    found = await task
    assert found.reason is Reason.MODERN_ERROR_UNFIXABLE
    assert initializes(table.desk) == 0


AMBIGUOUS: list[tuple[Any, Reason]] = [
    ({"error": {"code": code, "message": "m"}}, Reason.AMBIGUOUS_ERROR)
    for code in (-32601, -32600, -32602, -32603, -32700, -32000, -32001, -32023, -32042, 0, 1)
] + [
    ({"error": {"code": "text"}}, Reason.AMBIGUOUS_ERROR),
    ({"error": {"code": -32600, "message": "m"}, "id": None}, Reason.AMBIGUOUS_ERROR),
    ({"result": {}}, Reason.AMBIGUOUS_EMPTY),
    ({"result": None}, Reason.AMBIGUOUS_EMPTY),
    ({"result": {"supportedVersions": [MODERN]}}, Reason.AMBIGUOUS_MALFORMED),
    ({"result": {"capabilities": {}}}, Reason.AMBIGUOUS_MALFORMED),
    ({"result": DISCOVERED, "error": {"code": 1, "message": "m"}}, Reason.AMBIGUOUS_MALFORMED),
    ({"result": DISCOVERED, "id": "1"}, Reason.AMBIGUOUS_MALFORMED),
    ({"result": DISCOVERED, "id": 1.0}, Reason.AMBIGUOUS_MALFORMED),
    ({"result": DISCOVERED, "id": True}, Reason.AMBIGUOUS_MALFORMED),
    ({}, Reason.AMBIGUOUS_MALFORMED),
]


@pytest.mark.parametrize(("answer", "reason"), AMBIGUOUS)
async def test_without_an_allowance_an_ambiguous_answer_refuses_at_once_and_keeps_the_process(
    answer: Any, reason: Reason
) -> None:
    table = Table()
    task = await table.round(NONE)
    table.desk.say({"jsonrpc": "2.0", "id": 1, **answer})
    await table.desk.settle()
    found = await task
    assert (found.era, found.reason, found.cause) == (None, reason, Cause.POLICY)
    assert not found.end_life
    assert not found.modern_evidence
    assert table.desk.life.end is None
    assert table.desk.methods() == ["server/discover"]
    assert "allow_legacy" in found.detail


@pytest.mark.parametrize(("answer", "reason"), AMBIGUOUS)
async def test_with_an_allowance_an_ambiguous_answer_leads_to_one_initialize(
    answer: Any, reason: Reason
) -> None:
    table = Table()
    task = await table.round(GRANTED)
    table.desk.say({"jsonrpc": "2.0", "id": 1, **answer})
    await table.desk.settle()
    assert table.desk.methods() == ["server/discover", "initialize"]
    asked = table.desk.sent[1]
    assert asked["params"] == {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tested-host", "version": "1"},
    }
    table.desk.result(asked, INITIALIZED)
    found = await task
    assert (found.selected, found.reason) == (Era.LEGACY, Reason.INITIALIZE_OK)
    assert table.desk.life.era is not None
    assert table.desk.life.era.version == "2025-11-25"
    await table.desk.settle()
    assert table.desk.methods()[2:] == ["notifications/initialized"]
    assert "params" not in table.desk.sent[2]


@pytest.mark.parametrize("permission", [NONE, GRANTED])
async def test_silence_is_evidence_only_when_the_time_is_over(permission: Permission) -> None:
    table = Table()
    task = await table.round(permission)
    await table.desk.clock.advance(29.9)
    assert not task.done()
    assert table.desk.methods() == ["server/discover"]
    await table.desk.clock.advance(0.2)
    if permission is NONE:
        found = await task
        assert (found.reason, found.cause) == (Reason.AMBIGUOUS_TIMEOUT, Cause.POLICY)
        assert found.evidence[0].timeout_ms == 30_000
        assert [fact.scope for fact in table.desk.facts(DeadlineExpired)] == ["probe"]
        assert table.desk.methods() == ["server/discover"]
    else:
        assert table.desk.methods() == ["server/discover", "initialize"]
        table.desk.result(table.desk.sent[1], INITIALIZED)
        assert (await task).reason is Reason.INITIALIZE_OK
    assert "notifications/cancelled" not in table.desk.methods()


@pytest.mark.parametrize(
    "noise",
    [b"Listening on stdio", b'{"level":"info"}', b'{"jsonrpc":"2.0","id":1001,"result":{}}'],
)
async def test_noise_and_foreign_ids_are_evidence_only_when_the_time_is_over(noise: bytes) -> None:
    table = Table()
    task = await table.round(NONE)
    table.desk.say(noise)
    await table.desk.clock.advance(29)
    assert not task.done()
    await table.desk.clock.advance(2)
    found = await task
    assert (found.reason, found.cause) == (Reason.AMBIGUOUS_MALFORMED, Cause.POLICY)
    assert found.evidence[0].excerpt.startswith(noise.decode()[:10])


async def test_a_late_answer_wakes_and_counts_as_if_in_time() -> None:
    table = Table()
    first = await table.round(NONE)
    await table.desk.clock.advance(31)
    await first
    await table.desk.clock.advance(10)
    assert table.desk.listener.evidence == 0
    table.desk.result(table.desk.sent[0], DISCOVERED)
    await table.desk.settle()
    assert table.desk.listener.evidence == 1
    found = await (await table.round(NONE, trigger=Trigger.LATE_EVIDENCE))
    assert (found.selected, found.reason) == (Era.MODERN, Reason.DISCOVER_OK)
    (evidence,) = found.evidence
    assert (evidence.late, evidence.elapsed_ms) == (True, 41_000)
    assert table.desk.methods() == ["server/discover"]
    outcomes = [fact.probe_outcome for fact in table.desk.facts(Request)]
    assert outcomes == ["timeout", "ok"]


async def test_at_most_two_discovers_wait_and_then_a_round_writes_nothing() -> None:
    table = Table()
    for _ in range(4):
        task = await table.round(NONE)
        await table.desk.clock.advance(31)
        assert (await task).reason is Reason.AMBIGUOUS_TIMEOUT
    assert table.desk.methods() == ["server/discover"] * 2
    task = await table.round(NONE)
    table.desk.result(table.desk.sent[0], DISCOVERED)
    found = await task
    assert found.selected is Era.MODERN
    assert len(table.desk.sent) == 2
    assert table.desk.life.open_requests == 0
    table.desk.result(table.desk.sent[1], DISCOVERED)
    await table.desk.settle()
    assert table.desk.drops() == ["late_reply"]
    assert table.desk.listener.evidence == 0


async def test_a_null_id_error_answers_the_probe_also_with_two_open() -> None:
    table = Table()
    first = await table.round(NONE)
    await table.desk.clock.advance(31)
    await first
    second = await table.round(NONE)
    table.desk.say({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "m"}})
    assert (await second).reason is Reason.AMBIGUOUS_ERROR


async def test_the_end_without_an_allowance_is_an_outage() -> None:
    table = Table()
    task = await table.round(NONE)
    table.desk.transport.link.end("exit", "it exited with status 3")
    found = await task
    assert (found.reason, found.cause) == (Reason.AMBIGUOUS_CLOSED, Cause.PROCESS)
    assert found.evidence[0].outcome == "closed"
    assert "status 3" in found.detail


async def test_the_end_with_an_allowance_leads_to_initialize_in_a_fresh_process() -> None:
    table = Table()
    task = await table.round(GRANTED)
    table.desk.transport.link.end("exit", "it exited")
    await table.desk.settle()
    assert table.fresh.methods() == ["initialize"]
    table.fresh.result(table.fresh.sent[0], INITIALIZED)
    found = await task
    assert found.life is table.fresh.life
    assert (found.selected, found.reason) == (Era.LEGACY, Reason.INITIALIZE_OK)
    assert table.desk.methods() == ["server/discover"]


@pytest.mark.parametrize("permission", [NONE, GRANTED])
async def test_an_end_that_takes_longer_than_the_probe_is_no_silence(
    permission: Permission,
) -> None:
    table = Table()
    task = await table.round(permission)
    table.desk.transport.ending = True
    await table.desk.clock.advance(31)
    assert not task.done()
    assert table.desk.methods() == ["server/discover"]
    table.desk.transport.link.end("eof", "it closed its stdout")
    await table.desk.settle()
    if permission is GRANTED:
        assert table.fresh.methods() == ["initialize"]
        table.fresh.transport.ending = True
        await table.desk.clock.advance(40)
        table.fresh.transport.link.end("eof", "it closed its stdout")
    found = await task
    closed = Reason.LEGACY_PROBE_CLOSED if permission is GRANTED else Reason.AMBIGUOUS_CLOSED
    assert (found.reason, found.cause) == (closed, Cause.PROCESS)


@pytest.mark.parametrize(
    ("output_after", "fails_after"), [(None, 35.0), (10.0, 15.0), (33.0, 35.0)]
)
async def test_a_fresh_process_may_take_its_time_before_its_first_output(
    output_after: float | None, fails_after: float
) -> None:
    table = Table()
    task = await table.round(GRANTED)
    table.desk.transport.link.end("exit", "it exited")
    await table.desk.settle()
    passed = 0.0
    if output_after is not None:
        await table.desk.clock.advance(output_after)
        passed = output_after
        table.fresh.say(b"downloading")
        await table.desk.settle()
    await table.desk.clock.advance(fails_after - passed - 0.1)
    assert not task.done()
    await table.desk.clock.advance(0.2)
    found = await task
    assert (found.reason, found.cause) == (Reason.LEGACY_PROBE_TIMEOUT, Cause.PROCESS)


async def test_a_fresh_process_that_ends_too_or_cannot_start_is_unavailable() -> None:
    table = Table()
    task = await table.round(GRANTED)
    table.desk.transport.link.end("exit", "it exited")
    await table.desk.settle()
    table.fresh.transport.link.end("exit", "again")
    assert (await task).reason is Reason.LEGACY_PROBE_CLOSED
    other = Table()
    other.spawn_error = SpawnFailed("no such file")
    task = await other.round(GRANTED)
    other.desk.transport.link.end("exit", "it exited")
    found = await task
    assert (found.reason, found.cause) == (Reason.SPAWN_FAILED, Cause.PROCESS)
    assert found.evidence[-1].step == "spawn"
