"""Every stdio row of the table of eras end to end: real child processes, and what they received."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.config import EraPolicy, ServerConfig, StdioServer, Timing, ToolFilter
from observant_host.decisions.era import Permission
from observant_host.decisions.terms import Era, Reason, Trigger
from observant_host.errors import RpcError, Unavailable
from observant_host.peers.discovery import list_everything
from observant_host.peers.input_handlers import InputHandlers
from observant_host.peers.life import Life
from observant_host.peers.negotiation import Round, negotiate
from observant_host.peers.pages import ListBounds
from observant_host.peers.peer import Peer
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.setup import capturing
from observant_host.timing.clock import SystemClock
from observant_host.transports.child import StartGate
from observant_host.transports.stdio import StdioTransport
from tests.peers.desk import CLIENT, META, MODERN, Listener
from tests.support.peers import events, received, scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SHORT_S = 0.8
"""For tests that wait it out: a child starts in 30 ms, on a busy machine in some hundreds."""

PATIENT_S = 20.0
"""For tests in which something comes: nobody waits for it to pass."""

WAITED_OUT = frozenset({"silent", "garbage", "wrong_id"})
"""Answers that are none: they are evidence only when the time is over."""

LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
NONE, GRANTED = Permission.NONE, Permission.GRANTED


class Stage:
    """Starts scripted servers, negotiates with them, and reads their diaries."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.state = folder / "state"
        self.clock = SystemClock()
        self.telemetry, self.told = capturing()
        self.listener = Listener()
        self.lives: list[Life] = []
        self._starts = StartGate()
        self.command: tuple[str, ...] = ()
        self.probe_s = PATIENT_S
        self.initialize_s = PATIENT_S
        self.handlers = InputHandlers()

    def server(self, **options: Any) -> None:
        self.command = scripted(log=self.log, **options)

    async def open(self) -> Life:
        launch = StdioServer(self.command)
        transport = StdioTransport(
            "staged",
            launch,
            max_message_bytes=16 << 20,
            shutdown_timeout_s=0.5,
            masker=Masker(),
            guardian=None,
            starts=self._starts,
            telemetry=self.telemetry,
            clock=self.clock,
        )
        config = ServerConfig(
            name="staged",
            launch=launch,
            fingerprint="sha256:0",
            era=EraPolicy(allow_legacy=LEGACY),
            timing=Timing(
                probe_timeout_s=self.probe_s, legacy_probe_timeout_ms=self.initialize_s * 1e3
            ),
        )
        life = Life(
            config,
            generation=len(self.lives) + 1,
            transport=transport,
            telemetry=self.telemetry,
            clock=self.clock,
            client_info=CLIENT,
            input_handlers=self.handlers,
            listener=self.listener,
        )
        self.lives.append(life)
        await life.open()
        return life

    async def round(self, permission: Permission, life: Life | None = None) -> Round:
        return await negotiate(
            life or await self.open(),
            permission=permission,
            proven=False,
            trigger=Trigger.BOOT,
            previous_era=Era.UNKNOWN,
            respawn=self.open,
        )

    async def close(self) -> None:
        for life in self.lives:
            await life.close()

    async def wire(self) -> list[str]:
        """Methods in the order received, once every server has ended: its diary is then whole."""
        await self.close()
        return [message["method"] for message in received(self.log)]


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    one = Stage(tmp_path)
    yield one
    await one.close()


async def test_modern_only_dual_and_allowed_legacy_servers_all_work(stage: Stage) -> None:
    for era, permission, found_era in (
        ("modern", NONE, Era.MODERN),
        ("dual", GRANTED, Era.MODERN),
        ("legacy", GRANTED, Era.LEGACY),
    ):
        stage.server(era=era, tools="echo,add")
        found = await stage.round(permission)
        assert found.selected is found_era
        listing = await list_everything(
            found.life, tool_filter=ToolFilter(), bounds=ListBounds(seconds=10)
        )
        assert [tool.name for tool in listing.tools] == ["echo", "add"]
        peer = Peer(found.life.server, telemetry=stage.telemetry, clock=stage.clock)
        peer.attach(found.life)
        reply = await peer.call("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}})
        assert json.loads(bytes(reply.raw))["content"][0]["text"] == "5"


DISCOVER = "server/discover"
ONE_INITIALIZE = [DISCOVER, "initialize", "notifications/initialized"]

REFUSED = [
    ("error:-32601", Reason.AMBIGUOUS_ERROR),
    ("error:-32603", Reason.AMBIGUOUS_ERROR),
    ("null_id", Reason.AMBIGUOUS_ERROR),
    ("empty", Reason.AMBIGUOUS_EMPTY),
    ("null", Reason.AMBIGUOUS_EMPTY),
    ("both", Reason.AMBIGUOUS_MALFORMED),
    ("neither", Reason.AMBIGUOUS_MALFORMED),
    ("array", Reason.AMBIGUOUS_MALFORMED),
    ("string_id", Reason.AMBIGUOUS_MALFORMED),
    ("float_id", Reason.AMBIGUOUS_MALFORMED),
    ("wrong_id", Reason.AMBIGUOUS_MALFORMED),
    ("garbage", Reason.AMBIGUOUS_MALFORMED),
    ("silent", Reason.AMBIGUOUS_TIMEOUT),
]


@pytest.mark.parametrize(("case", "reason"), REFUSED)
async def test_without_an_allowance_no_initialize_byte_is_written(
    stage: Stage, case: str, reason: Reason
) -> None:
    stage.probe_s = SHORT_S if case in WAITED_OUT else PATIENT_S
    stage.server(era="legacy", discover=case)
    found = await stage.round(NONE)
    assert (found.era, found.reason) == (None, reason)
    assert stage.lives[0].end is None
    assert await stage.wire() == [DISCOVER]


@pytest.mark.parametrize("case", [case for case, _ in REFUSED])
async def test_with_an_allowance_exactly_one_initialize_on_the_same_process(
    stage: Stage, case: str
) -> None:
    stage.probe_s = SHORT_S if case in WAITED_OUT else PATIENT_S
    stage.server(era="legacy", discover=case)
    found = await stage.round(GRANTED)
    assert (found.selected, found.reason) == (Era.LEGACY, Reason.INITIALIZE_OK)
    assert await stage.wire() == ONE_INITIALIZE
    assert len(events(stage.log, "start")) == 1


@pytest.mark.parametrize("permission", [NONE, GRANTED])
@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("error:-32020", Reason.MODERN_ERROR_UNFIXABLE),
        ("error:-32021", Reason.MODERN_ERROR_UNFIXABLE),
        ("error:-32022", Reason.MODERN_ERROR_UNFIXABLE),
        ('error:-32022:{"supported":["2025-11-25"]}', Reason.LEGACY_ONLY_ADVERTISED),
        ('error:-32022:{"supported":["2031-01-01"]}', Reason.NO_MUTUAL_VERSION),
        ("versions:2025-11-25", Reason.LEGACY_ONLY_ADVERTISED),
        ("versions:2031-01-01", Reason.NO_MUTUAL_VERSION),
        ("both:-32022", Reason.MODERN_ERROR_UNFIXABLE),
    ],
)
async def test_modern_evidence_never_receives_initialize(
    stage: Stage, case: str, reason: Reason, permission: Permission
) -> None:
    stage.server(discover=case)
    found = await stage.round(permission)
    assert (found.era, found.reason, found.modern_evidence) == (None, reason, True)
    assert await stage.wire() == [DISCOVER]


async def test_a_mutual_version_in_the_refusal_is_asked_for_with_a_new_id(stage: Stage) -> None:
    stage.server(discover=f'error:-32022:{{"supported":["{MODERN}"]}}', discover_then="ok")
    assert (await stage.round(NONE)).selected is Era.MODERN
    await stage.close()
    first, second = received(stage.log)
    assert first["id"] != second["id"]
    assert second["params"]["_meta"][META + "protocolVersion"] == MODERN


@pytest.mark.parametrize(("case", "said"), [("exit:3", "3"), ("kill:9", "9"), ("close", "exiting")])
async def test_the_end_without_an_allowance_is_reported_at_once(
    stage: Stage, case: str, said: str
) -> None:
    stage.server(era="legacy", discover=case)
    async with asyncio.timeout(30):
        found = await stage.round(NONE)
    assert (found.reason, found.era) == (Reason.AMBIGUOUS_CLOSED, None)
    if case != "close":
        assert said in found.evidence[-1].problem
    assert await stage.wire() == [DISCOVER]


@pytest.mark.parametrize("case", ["exit:3", "close"])
async def test_the_end_with_an_allowance_leads_to_initialize_first_in_a_fresh_process(
    stage: Stage, case: str
) -> None:
    stage.server(era="legacy", discover=case)
    found = await stage.round(GRANTED)
    assert found.selected is Era.LEGACY
    assert found.life is stage.lives[1]
    assert await stage.wire() == ONE_INITIALIZE
    pids = [event["pid"] for event in events(stage.log, "in")]
    assert pids[0] != pids[1] == pids[2]


async def test_a_server_that_ends_at_initialize_too_is_unavailable(stage: Stage) -> None:
    stage.server(era="legacy", discover="exit:1", initialize="exit:2")
    found = await stage.round(GRANTED)
    assert (found.era, found.reason) == (None, Reason.LEGACY_PROBE_CLOSED)
    assert await stage.wire() == [DISCOVER, "initialize"]
    assert len(events(stage.log, "start")) == 2


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("silent", Reason.LEGACY_PROBE_TIMEOUT),
        ("error:-32602", Reason.LEGACY_PROBE_ERROR),
        ("empty", Reason.LEGACY_PROBE_INVALID),
        ("string_id", Reason.LEGACY_PROBE_INVALID),
        ("both", Reason.LEGACY_PROBE_INVALID),
        (
            'result:{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x"}}',
            Reason.LEGACY_PROBE_INVALID,
        ),
        ("version:2031-01-01", Reason.LEGACY_UNSUPPORTED_REVISION),
        (f"version:{MODERN}", Reason.LEGACY_UNSUPPORTED_REVISION),
        ("exit:1", Reason.LEGACY_PROBE_CLOSED),
    ],
)
async def test_a_bad_initialize_answer_is_not_followed_by_initialized(
    stage: Stage, case: str, reason: Reason
) -> None:
    stage.initialize_s = SHORT_S if case == "silent" else PATIENT_S
    stage.server(era="legacy", initialize=case)
    found = await stage.round(GRANTED)
    assert (found.era, found.reason) == (None, reason)
    assert await stage.wire() == [DISCOVER, "initialize"]


async def test_a_slow_modern_server_is_found_late_and_without_a_second_discover(
    stage: Stage,
) -> None:
    stage.probe_s = SHORT_S
    stage.server(era="modern", discover=f"late:{SHORT_S * 4}")
    first = await stage.round(NONE)
    assert first.reason is Reason.AMBIGUOUS_TIMEOUT
    async with asyncio.timeout(30):
        while not stage.listener.evidence:
            await first.life.inbox.stirred.wait()
            first.life.inbox.stirred.clear()
    second = await stage.round(NONE, first.life)
    assert second.selected is Era.MODERN
    assert second.evidence[0].late
    assert await stage.wire() == [DISCOVER]


async def test_a_slow_modern_server_with_an_allowance_ends_and_is_asked_afresh(
    stage: Stage,
) -> None:
    stage.probe_s = SHORT_S
    stage.server(era="modern", discover="after:initialize", initialize="silent")
    found = await stage.round(GRANTED)
    assert (found.reason, found.end_life) == (Reason.LATE_MODERN_EVIDENCE, True)
    assert await stage.wire() == [DISCOVER, "initialize"]


async def test_modern_evidence_after_legacy_was_chosen_wakes_the_supervisor(stage: Stage) -> None:
    stage.probe_s = SHORT_S
    stage.server(discover="after:notifications/initialized")
    found = await stage.round(GRANTED)
    assert found.selected is Era.LEGACY
    async with asyncio.timeout(30):
        while not stage.listener.late_modern:
            await found.life.inbox.stirred.wait()
            found.life.inbox.stirred.clear()
    assert await stage.wire() == ONE_INITIALIZE


async def test_initialize_answered_with_a_modern_code_is_late_evidence(stage: Stage) -> None:
    stage.server(era="legacy", initialize='error:-32022:{"supported":["2026-07-28"]}')
    found = await stage.round(GRANTED)
    assert (found.reason, found.modern_evidence) == (Reason.LATE_MODERN_EVIDENCE, True)


async def test_every_modern_message_is_stamped_and_no_legacy_message_is(stage: Stage) -> None:
    for era in ("modern", "legacy"):
        stage.server(era=era)
        found = await stage.round(GRANTED)
        await list_everything(found.life, tool_filter=ToolFilter(), bounds=ListBounds())
        await found.life.request(
            "tools/call", {"name": "echo"}, expires=stage.clock.monotonic() + 9
        )
        await stage.close()
        for message in received(stage.log):
            text = json.dumps(message)
            if message["method"] == DISCOVER or era == "modern":
                meta = message["params"]["_meta"]
                assert meta[META + "protocolVersion"] == MODERN
                assert meta[META + "clientInfo"] == {"name": "tested-host", "version": "1"}
                assert META + "clientCapabilities" in meta
                assert len(meta["traceparent"]) == 55
            else:
                assert META not in text
                assert "traceparent" not in text
        stage.log.unlink()


async def test_a_server_that_dies_under_a_call_says_how_with_its_last_words(stage: Stage) -> None:
    stage.server(tools="die,mute")
    found = await stage.round(NONE)
    late = stage.clock.monotonic() + 30
    mute = asyncio.create_task(found.life.request("tools/call", {"name": "mute"}, expires=late))
    async with asyncio.timeout(30):
        with pytest.raises(Unavailable, match="out of cheese") as caught:
            await found.life.request("tools/call", {"name": "die"}, expires=late)
        with pytest.raises(Unavailable):
            await mute
    assert "3" in str(caught.value)
    assert caught.value.delivery == "sent_no_reply"


async def test_a_legacy_servers_requests_are_answered_while_it_serves(stage: Stage) -> None:
    async def roots(_request: object) -> dict[str, Any]:
        return {"roots": [{"uri": "file:///tmp"}]}

    stage.handlers = InputHandlers(roots=roots)
    stage.server(era="legacy", ping_at_start=True, tools="request", discover="error:-32601")
    found = await stage.round(GRANTED)
    peer = Peer(found.life.server, telemetry=stage.telemetry, clock=stage.clock)
    peer.attach(found.life)
    for method, expected in (("ping", {}), ("roots/list", {"roots": [{"uri": "file:///tmp"}]})):
        arguments = {"name": "request", "arguments": {"method": method}}
        reply = await peer.call("tools/call", arguments)
        told = json.loads(json.loads(bytes(reply.raw))["content"][0]["text"])
        assert told["result"] == expected


async def test_a_call_times_out_cancels_and_the_server_goes_on(stage: Stage) -> None:
    stage.server(tools="mute,echo,rpc_error")
    found = await stage.round(NONE)
    life = found.life
    with pytest.raises(Exception, match="did not answer"):
        await life.request("tools/call", {"name": "mute"}, expires=stage.clock.monotonic() + 0.2)
    with pytest.raises(RpcError):
        await life.request(
            "tools/call", {"name": "rpc_error"}, expires=stage.clock.monotonic() + 10
        )
    wire = await stage.wire()
    assert wire.count("notifications/cancelled") == 1
