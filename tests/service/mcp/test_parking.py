"""A call that waits for its caller: bounded, and refused properly where nobody comes back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Raw

from observant_host.errors import CallFacts, Unavailable
from observant_host.peers.asking import MAX_INPUTS
from observant_host.peers.relay import Refused
from observant_host.routing.call_result import CallResult
from observant_host.service.mcp.parking import MAX_PARKED, PARK_S, ParkedCall, Parking
from observant_host.telemetry import setup
from observant_host.telemetry.vocabulary import DeadlineExpired
from tests.support.clock import ManualClock

if TYPE_CHECKING:
    from observant_host.telemetry.facade import Finished

FORM = Raw(b'{"message":"Who?"}')
YES = Raw(b'{"action":"accept"}')
CANCEL = Raw(b'{"action":"cancel"}')


class Lot:
    """A parking, and calls whose servers ask what a test says."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.telemetry, self.told = setup.capturing()
        self.parking = Parking(telemetry=lambda: self.telemetry, clock=self.clock)
        self.heard: list[Raw | Refused] = []
        self.ended: list[str] = []

    def call(self, *methods: str) -> ParkedCall:
        parked = ParkedCall(self.parking, server="s", method="tools/call", audience="ann")

        async def work() -> CallResult:
            try:
                for method in methods:
                    self.heard.append(await parked.ask(method, FORM))
            except asyncio.CancelledError:
                self.ended.append("cancelled")
                raise
            self.ended.append("done")
            return CallResult(Raw(b"{}"), CallFacts("t"))

        parked.begin(work())
        return parked


async def test_a_call_that_asks_nothing_just_ends() -> None:
    lot = Lot()
    assert (await lot.call().attend()) is not None
    assert len(lot.parking) == 0


async def test_a_call_goes_on_with_its_callers_answers_round_by_round() -> None:
    lot = Lot()
    parked = lot.call("elicitation/create", "roots/list")
    for number, answer in enumerate((YES, Raw(b'{"roots":[]}')), start=1):
        assert await parked.attend() is None
        assert parked.number == number
        assert parked.park()
        assert lot.parking.find(parked.key) is parked
        parked.answered({next(iter(parked.asks)): answer, "other": YES})
        assert lot.parking.find(parked.key) is None
    assert await parked.attend() is not None
    assert lot.heard == [YES, Raw(b'{"roots":[]}')]


@pytest.mark.parametrize(
    ("method", "refusal"),
    [
        ("elicitation/create", CANCEL),
        ("sampling/createMessage", Refused(-1, "nobody answered")),
        ("roots/list", Refused(-1, "nobody answered")),
    ],
)
async def test_where_nobody_comes_back_the_server_is_refused_and_then_cancelled(
    method: str, refusal: Any
) -> None:
    lot = Lot()
    parked = lot.call(method, "elicitation/create", "elicitation/create")
    assert await parked.attend() is None
    parked.park()
    await lot.clock.advance(PARK_S - 1)
    assert lot.ended == []
    await lot.clock.advance(1)
    assert lot.heard[0] == refusal
    assert lot.heard[1:] == [CANCEL, CANCEL]  # a server that insists is told the same
    assert lot.parking.find(parked.key) is None
    assert _expiries(lot.told) == [("s", "call", "tools/call", PARK_S * 1e3)]


async def test_a_server_that_only_waits_is_cancelled_when_nobody_comes_back() -> None:
    lot = Lot()
    parked = ParkedCall(lot.parking, server="s", method="tools/call", audience="ann")
    asking = asyncio.ensure_future(parked.ask("elicitation/create", FORM))

    async def work() -> CallResult:
        try:
            await asyncio.Event().wait()
        finally:
            lot.ended.append("ended")
        raise AssertionError

    parked.begin(work())
    assert await parked.attend() is None
    parked.park()
    await lot.clock.advance(PARK_S)
    assert await asking == CANCEL
    await lot.clock.advance(0)
    assert lot.ended == ["ended"]


async def test_whoever_leaves_while_it_waits_with_the_call_ends_it() -> None:
    lot = Lot()
    parked = ParkedCall(lot.parking, server="s", method="tools/call", audience="ann")

    async def work() -> CallResult:
        try:
            await asyncio.Event().wait()
        finally:
            lot.ended.append("ended")
        raise AssertionError

    parked.begin(work())
    attending = asyncio.ensure_future(parked.attend())
    await lot.clock.advance(1)
    attending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attending
    await lot.clock.advance(1)
    assert lot.ended == ["ended"]


async def test_a_host_that_goes_away_leaves_nobody_waiting() -> None:
    lot = Lot()
    calls = [lot.call("elicitation/create") for _ in range(3)]
    for parked in calls:
        assert await parked.attend() is None
        assert parked.park()
    lot.parking.close()
    lot.parking.close()
    await lot.clock.advance(1)
    assert lot.heard == [CANCEL] * 3
    assert len(lot.parking) == 0


async def test_there_is_room_for_so_many_and_no_more() -> None:
    lot = Lot()
    calls = [lot.call("elicitation/create") for _ in range(MAX_PARKED + 1)]
    room = []
    for parked in calls:
        assert await parked.attend() is None
        room.append(parked.park())
    await lot.clock.advance(1)
    assert room == [True] * MAX_PARKED + [False]
    assert lot.heard == [CANCEL]
    lot.parking.close()


async def test_a_server_may_ask_so_many_things_at_once_and_no_more() -> None:
    lot = Lot()
    parked = lot.call()
    asked = [
        asyncio.ensure_future(parked.ask("elicitation/create", FORM)) for _ in range(MAX_INPUTS + 1)
    ]
    await lot.clock.advance(1)
    assert [one.done() for one in asked] == [False] * MAX_INPUTS + [True]
    await parked.attend()
    await lot.clock.advance(1)
    assert [one.result() for one in asked] == [CANCEL] * (MAX_INPUTS + 1)


async def test_a_call_that_fails_meanwhile_tells_its_caller_when_it_comes_back() -> None:
    lot = Lot()
    parked = ParkedCall(lot.parking, server="s", method="tools/call", audience="ann")
    asking = asyncio.ensure_future(parked.ask("elicitation/create", FORM))
    gone = asyncio.Event()

    async def work() -> CallResult:
        await gone.wait()
        asking.cancel()  # its life is over, and with it whoever answers there
        raise Unavailable("s is gone", delivery="sent_no_reply")

    parked.begin(work())
    assert await parked.attend() is None
    parked.park()
    gone.set()
    await lot.clock.advance(1)
    assert parked.asks == {}
    parked.answered({"input-1": YES})
    with pytest.raises(Unavailable, match="s is gone"):
        await parked.attend()


async def test_progress_goes_to_whoever_attends_now() -> None:
    lot = Lot()
    parked = lot.call()
    heard: list[float] = []
    parked.told(1, None, None)
    parked.tell = lambda progress, _total, _message: heard.append(progress)
    parked.told(2, None, None)
    assert heard == [2]


def _expiries(told: list[Finished]) -> list[tuple[Any, ...]]:
    facts = [one.fact for one in told if isinstance(one.fact, DeadlineExpired)]
    return [(one.peer, one.scope, one.method, one.budget_ms) for one in facts]
