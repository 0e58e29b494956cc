"""What arrives in one life, and to whom it goes. Runs in the transport's reader: never waits.

A reply goes to its request by id and by nothing weaker; everything that belongs to nobody is
counted and dropped, so that no message of a server can end its reader.

Source: MCP 2026-07-28 basic/index › Messages, basic/transports/stdio › Receiving Messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from observant_host.errors import HttpFailure, InvalidResult
from observant_host.peers import endings, losses
from observant_host.peers.open_call import OpenCall
from observant_host.peers.pending import LISTEN, Entry, FailOne, Matched, Pending
from observant_host.peers.probes import KEPT_BYTES, Answer, Probe, Probes
from observant_host.telemetry.vocabulary import FrameDropped
from observant_host.timing.tasks import Latch, Signal
from observant_host.wire import jsonrpc

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.peers.notices import Notices
    from observant_host.peers.server_requests import ServerRequests
    from observant_host.telemetry.facade import Telemetry, TraceContext
    from observant_host.telemetry.masking import Masker
    from observant_host.timing.clock import Clock
    from observant_host.transports.base import Answering, End, NoiseKind
    from observant_host.wire.jsonrpc import Frame

EXCERPT_BYTES: Final = 512


class Drops:
    """Counts what was dropped, with a masked excerpt."""

    def __init__(self, server: str, *, telemetry: Telemetry, masker: Masker) -> None:
        self._server = server
        self._telemetry = telemetry
        self._masker = masker

    def __call__(self, kind: str, excerpt: Frame = b"") -> None:
        masked = self._masker.bytes(bytes(excerpt[:KEPT_BYTES]))[:EXCERPT_BYTES]
        shown = masked.decode("utf-8", "replace")
        self._telemetry.count(FrameDropped(peer=self._server, kind=kind, excerpt=shown))


class Rules(Protocol):
    """What the life says about how its messages are to be read, now."""

    @property
    def batches(self) -> bool:
        """Whether an array of messages is one."""

    @property
    def spoken(self) -> str:
        """ "modern", "legacy" or "unknown": whose rules hold for what the server sends."""

    def over(self) -> None:
        """The life has ended; every open request has been failed."""


class Inbox:
    """A transports.base.Receiver. `heard` is told of each JSON-RPC message, `ailing` of each failed
    exchange that makes one doubt whether the server is still there.

    `reached` is True once a connection was made (HTTP) or anything came. `stirred` is set whenever
    something happened that a negotiation may wait for; `first_output_at` is in monotonic seconds.
    """

    def __init__(
        self,
        server: str,
        *,
        rules: Rules,
        pending: Pending[OpenCall | Probe],
        probes: Probes,
        notices: Notices,
        server_requests: ServerRequests,
        drops: Drops,
        masker: Masker,
        clock: Clock,
        heard: Callable[[], None],
        ailing: Callable[[], None],
        stream_heard: Callable[[int], None],
        stream_reopened: Callable[[], None],
    ) -> None:
        self._server = server
        self.stream_heard = stream_heard
        self.stream_reopened = stream_reopened
        self._heard = heard
        self._ailing = ailing
        self._rules = rules
        self._pending = pending
        self._probes = probes
        self._notices = notices
        self._server_requests = server_requests
        self._drop = drops
        self._masker = masker
        self._clock = clock
        self.end: Latch[End] = Latch()
        self.cut_off: TraceContext | None = None
        """The oldest request that the end left unanswered: what the life may have died of."""
        self.stirred = Signal()
        self._noise_kept: bytes | None = None
        self.first_output_at: float | None = None
        self.reached = False

    def frame_received(self, frame: Frame, answering: Answering | None = None) -> bool:
        """One message, or in one old revision an array of them."""
        if self.first_output_at is None:
            self._output_began()
        usual = jsonrpc.usual(frame)
        if usual is not None and (answering is None or answering.request_id == usual.id):
            call = self._pending.answered(usual.id)
            if call is not None:
                self._heard()
                if isinstance(call, OpenCall):  # most of what comes: its call has it now
                    future = call.future
                    if not future.done():
                        future.set_result(usual.result)
                else:
                    found = jsonrpc.Result(usual.id, usual.result)
                    self._matched(call, found, frame, answering)
                return answering is not None
        for message in jsonrpc.decode(frame, batches=self._rules.batches):
            if isinstance(message, jsonrpc.NotAMessage):
                self._noise("not_a_message", frame)
                continue
            self._heard()
            match message:
                case jsonrpc.Notification():
                    self._notices.received(message, era=self._rules.spoken)
                case jsonrpc.Request():
                    self._request(message, answering)
                case _:
                    self._reply(message, frame, answering)
        if answering is None or answering.request_id is None:
            return False
        return self._pending.get(answering.request_id) is None

    def noise_received(self, kind: NoiseKind, excerpt: bytes) -> None:
        """No message, or one beyond all bounds, whose request then fails by its id."""
        if self.first_output_at is None:
            self._output_began()
        lost = jsonrpc.recover(excerpt) if kind == "oversized" else None
        if isinstance(lost, jsonrpc.Broken):
            self._heard()
            self._reply(lost, excerpt, None)
        else:
            self._noise(kind, excerpt)

    def request_lost(self, request_id: int, error: Exception) -> None:
        """One request can get no answer any more, though the life goes on (HTTP)."""
        self.reached = self.reached or not isinstance(error, HttpFailure) or error.sent
        entry = self._pending.forget(request_id)
        if entry is None:
            return
        if isinstance(entry.waiter, Probe):
            self._probe_lost(entry.waiter, error)
            return
        call = entry.waiter
        call.fail(
            losses.of_request(
                self._server, request_id, error, delivery=call.delivery, masker=self._masker
            )
        )
        if losses.raises_doubt(error, request_id, entry.method):
            self._ailing()

    def _probe_lost(self, probe: Probe, error: Exception) -> None:
        now = self._clock.monotonic()
        if isinstance(error, HttpFailure):
            self._probes.lost(probe, error, now=now)
            said = losses.message_in(error)
            if said is not None:
                paired = said.id is None or jsonrpc.same_id(said.id, probe.request_id)
                self._probes.answered(probe, said, now=now, frame=error.body, paired=paired)
        self.stirred.set()

    def ended(self, end: End) -> None:
        """The life is over: every open request fails now, each with its own certainty."""
        if not self.end.release(end):
            return
        for entry in self._pending.close():
            if isinstance(entry.waiter, OpenCall):
                waited = entry.method != LISTEN and entry.waiter.delivery == "sent_no_reply"
                if self.cut_off is None and waited:
                    self.cut_off = entry.waiter.context
                entry.waiter.fail(endings.life_ended(self._server, end, entry.waiter.delivery))
        self._server_requests.close()
        self._rules.over()
        self.stirred.set()

    def take_noise(self) -> bytes | None:
        """The first of what was no message or nobody's, since it was last asked for."""
        noise, self._noise_kept = self._noise_kept, None
        return noise

    def _request(self, request: jsonrpc.Request, answering: Answering | None) -> None:
        """Legacy servers are answered; a modern one must not ask, and is never answered."""
        spoken = self._rules.spoken
        if spoken == "legacy":
            answers = None if answering is None else answering.request_id
            self._server_requests.received(request, answers)
        else:
            self._drop(f"request_from_{spoken}_server")

    def _reply(self, message: Answer, frame: Frame, answering: Answering | None) -> None:
        answers = None if answering is None else answering.request_id
        verdict = self._pending.match(message, now=self._clock.monotonic(), answers=answers)
        match verdict:
            case Matched():
                self._matched(verdict.entry, verdict.message, frame, answering)
            case FailOne():
                self._failed(verdict, frame, answering)
            case _:
                self._orphan(message, verdict.reason, frame)

    def _matched(
        self,
        entry: Entry[OpenCall | Probe],
        message: jsonrpc.Result | jsonrpc.Error,
        frame: Frame,
        answering: Answering | None,
    ) -> None:
        waiter = entry.waiter
        if isinstance(waiter, Probe):
            waiter.answering = answering
            self._probe_answered(waiter, message, frame)
        elif isinstance(message, jsonrpc.Result):
            waiter.succeed(message.result)
        else:
            waiter.fail(endings.rpc_error(message, self._masker))
            if answering is not None and losses.is_unlike_itself(message, entry.method):
                self._ailing()

    def _failed(
        self, verdict: FailOne[OpenCall | Probe], frame: Frame, answering: Answering | None
    ) -> None:
        waiter, message = verdict.entry.waiter, verdict.message
        if isinstance(waiter, Probe):
            waiter.answering = answering
            self._probe_answered(waiter, message, frame, paired=False)
        elif isinstance(message, jsonrpc.Error) and message.id is None:
            waiter.fail(endings.rpc_error(message, self._masker))
        else:
            self._drop("broken_reply", frame)
            waiter.fail(InvalidResult(f"{self._server}: {verdict.problem}"))

    def _orphan(self, message: Answer, reason: str, frame: Frame) -> None:
        probe = self._probes.adopt(message, reason)
        if probe is not None:
            self._probe_answered(probe, message, frame)
        elif reason in ("foreign", "no_id"):
            self._noise(f"{reason}_reply", frame)
        else:
            self._drop(f"{reason}_reply", frame)

    def _probe_answered(
        self, probe: Probe, answer: Answer, frame: Frame, *, paired: bool = True
    ) -> None:
        now = self._clock.monotonic()
        if not self._probes.answered(probe, answer, now=now, frame=frame, paired=paired):
            self._drop("late_reply", frame)
        self.stirred.set()

    def _output_began(self) -> None:
        self.reached = True
        self.first_output_at = self._clock.monotonic()
        self.stirred.set()

    def _noise(self, kind: str, excerpt: Frame) -> None:
        if self._noise_kept is None:
            self._noise_kept = bytes(excerpt[:KEPT_BYTES])
        self._drop(kind, excerpt)
