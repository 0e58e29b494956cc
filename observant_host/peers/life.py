"""One transport life of one server: what was said, what is still open, and how it ended.

The era lives here and nowhere else, so it dies with the connection: a restart makes a new Life,
which knows nothing. Request ids never repeat within a life, so a late answer is known by its id.
A call costs one future and no task; what the server sends is only ever answered by callbacks.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Final

from observant_host.errors import TransportError
from observant_host.peers import endings, losses
from observant_host.peers.askers import Askers
from observant_host.peers.eras import ModernEra
from observant_host.peers.errand import Errand
from observant_host.peers.headers import Headers
from observant_host.peers.inbox import Drops, Inbox
from observant_host.peers.notices import Notices
from observant_host.peers.open_call import OpenCall
from observant_host.peers.outbox import Outbox
from observant_host.peers.overdue import Overdue
from observant_host.peers.pending import Pending
from observant_host.peers.probe_writer import ProbeWriter
from observant_host.peers.probes import DISCOVER, INITIALIZE, Probe, Probes
from observant_host.peers.server_requests import ServerRequests
from observant_host.peers.sessions import Sessions
from observant_host.peers.subscriptions import Subscriptions
from observant_host.peers.writing import Writing
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.vocabulary import TransportConnect
from observant_host.timing.deadline import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from msgspec import Raw

    from observant_host.config import ServerConfig
    from observant_host.errors import Delivery
    from observant_host.peers.eras import Era, Params
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.listener import LifeListener
    from observant_host.peers.notices import ProgressNote
    from observant_host.peers.ordinary import OrdinaryCall
    from observant_host.telemetry.facade import Operation, Telemetry, TraceContext
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal
    from observant_host.transports.base import End, Outbound, Transport
    from observant_host.wire.envelope import ClientInfo

    Look = Callable[[Operation, Raw], None]

NEVER_CANCELLED: Final = frozenset({DISCOVER, INITIALIZE})
"""Source: MCP 2025-11-25 basic/utilities/cancellation; a late discover is evidence we want."""


class Life:
    """Made for one transport; opened once, ended once.

    `era`, `server_info`, `capabilities` and `instructions` are set once, by `settle`.
    """

    def __init__(
        self,
        server: ServerConfig,
        *,
        generation: int,
        transport: Transport,
        telemetry: Telemetry,
        clock: Clock,
        client_info: ClientInfo,
        input_handlers: InputHandlers,
        listener: LifeListener,
        masker: Masker | None = None,
    ) -> None:
        self.server = server
        self.generation = generation
        self.transport = transport
        self.telemetry = telemetry
        self.clock = clock
        self.client_info = client_info
        self.masker = masker or Masker()
        self.listener = listener
        self.headers = Headers() if transport.kind == "http" else None
        self._sessions: Sessions | None = None
        self.run: Callable[[Errand, Params], Coroutine[Any, Any, Raw]] = self.ask
        """As `ask`, by a new session where a legacy HTTP server has forgotten the present one."""

        self.era: Era | None = None
        self.batches = False  # arrays of messages exist in one old revision only
        self.server_info: dict[str, Any] | None = None
        self.capabilities: dict[str, Any] = {}
        self.instructions: str | None = None

        self._declared: Mapping[str, Any] = input_handlers.capabilities()
        self.writing = Writing(
            server.name, generation=generation, declared=self._declared, headers=self.headers
        )
        self.pending: Pending[OpenCall | Probe] = Pending()
        self.probes = Probes(
            self.pending,
            on_evidence=listener.evidence_arrived,
            on_late_modern=listener.late_modern_evidence,
        )
        self._overdue = Overdue(
            server.name,
            self.pending,
            connects=transport.kind == "http",
            telemetry=telemetry,
            take_back=self._take_back,
        )
        self._sweep = Sweep(clock, self._overdue.fail)
        self._drop = Drops(server.name, telemetry=telemetry, masker=self.masker)
        self._outbox = Outbox(transport, clock=clock, drop=self._drop)
        self._asking = ProbeWriter(
            self.probes,
            self._outbox,
            client_info=client_info,
            capabilities=self._declared,
            initial=input_handlers.initial(),
            clock=clock,
        )
        answers = ServerRequests(
            server.name,
            handlers=input_handlers,
            askers=Askers(self.pending, input_handlers, sweep=self._sweep, clock=clock),
            telemetry=telemetry,
            drop=self._drop,
            write=self._answer,
        )
        self.subscriptions = Subscriptions(self, drop=self._drop)
        self.notices = Notices(
            server.name,
            telemetry=telemetry,
            clock=clock,
            drop=self._drop,
            admits=self.subscriptions.admits,
            on_progress=self._progress,
            on_list_changed=listener.list_changed,
            on_cancelled=answers.cancelled,
        )
        self.inbox = Inbox(
            server.name,
            rules=self,
            pending=self.pending,
            probes=self.probes,
            notices=self.notices,
            server_requests=answers,
            drops=self._drop,
            masker=self.masker,
            clock=clock,
            heard=listener.any_traffic,
            ailing=listener.ailing,
            stream_heard=self.subscriptions.heard,
            stream_reopened=self.subscriptions.reopened,
        )

    # From opening to the end

    async def open(self) -> None:
        """Start the transport. Raises SpawnFailed or another TransportError."""
        fact = TransportConnect(
            peer=self.server.name, generation=self.generation, transport=self.transport.kind
        )
        with self.telemetry.operation(fact) as op:
            await self.transport.open(self.inbox)
            op.note(pid=self.transport.pid)
        self.inbox.reached = self.inbox.reached or self.transport.kind != "http"

    async def close(self) -> End:
        """End the life within the transport's bound; idempotent, from any task."""
        self.subscriptions.close()
        return await self.transport.close()

    async def ended_wait(self) -> End:
        """Wait until the life is over. By any number of waiters, any number of times."""
        await self.inbox.end.wait()
        return self.inbox.end.value  # type: ignore[return-value]  # a released latch has its value

    @property
    def end(self) -> End | None:
        """How it ended, once it has."""
        return self.inbox.end.value

    @property
    def end_signal(self) -> Signal:
        """Set for ever once the life is over; for `wait_any`."""
        return self.inbox.end

    @property
    def session(self) -> int:
        """Counts the sessions that its server gave it; 0 where there are none."""
        return self._sessions.number if self._sessions is not None else 0

    @property
    def open_requests(self) -> int:
        """How many requests wait for an answer, unanswered probes included, streams not."""
        return len(self.pending) - len(self.subscriptions)

    def settle(
        self,
        era: Era,
        *,
        server_info: dict[str, Any] | None,
        capabilities: dict[str, Any],
        instructions: str | None,
    ) -> None:
        """Negotiation's result, once and for this whole life."""
        if self.era is not None:
            raise RuntimeError("the era of a life is decided once")
        self.era = era
        self.writing.settle(era)
        self.batches = era.batches
        self.server_info = server_info
        self.capabilities = capabilities
        self.instructions = instructions
        self.probes.settle()
        if self.headers is not None and not isinstance(era, ModernEra):
            self._sessions = Sessions(self)
            self.run = self._sessions.run

    # Requests

    async def request(
        self, method: str, params: Params = None, *, expires: float, **options: Any
    ) -> Raw:
        """As `run`, for one errand made on the spot; the options are `Errand`'s."""
        return await self.run(Errand(method, expires=expires, **options), params)

    async def ask(self, errand: Errand, params: Params) -> Raw:
        """Send one request and await its result, as the server sent it.

        A timeout or a cancellation withdraws what had not left, else sends notifications/cancelled
        once. Raises RpcError, CallTimeout, Unavailable, InvalidResult, InvalidCall.
        """
        era = self.era
        if era is None or self.inbox.end.raised:
            raise endings.not_open(self.server.name, self.inbox.end.value)
        now = self.clock.monotonic()
        if errand.expires <= now:
            raise self._overdue.refusal(errand, now=now)
        request_id = self.pending.next_id()
        if errand.witness is not None:
            errand.witness.asked()
        writing = self.writing
        with self.telemetry.operation(writing.fact(era, errand), errand.parent) as op:
            op.note(request_id=request_id, deadline_ms=(errand.expires - now) * 1000)
            future = asyncio.get_running_loop().create_future()
            call = OpenCall(errand, future, request_id, now, op.context)
            try:
                self.send(call, writing.outbound(era, request_id, errand, params, op.context))
                result = await call.future
            except BaseException as failed:
                self._lost(op, call, failed)
                raise
            errand.look(op, result)
            return result

    def send(self, call: OpenCall, out: Outbound) -> None:
        """Send it, and watch its time. Raises TransportError: nothing was sent."""
        self.pending.add(call)
        call.sent = self.transport.send(out, call.expires)
        self._sweep.arm(call.expires)

    async def ask_on(self, call: OrdinaryCall, look: Look) -> Raw:
        """As `ask`, for what an ordinary call has come to; with `look` for the result's kind."""
        with call.resumed() as op:
            try:
                if call.failed is not None:
                    raise call.failed
                result: Raw = await call.future
            except BaseException as failed:
                call.failed = None  # its traceback holds the call: no circle of the two
                self._lost(op, call, failed)
                raise
            look(op, result)
            return result

    def _lost(self, op: Operation, call: OpenCall, failed: BaseException) -> None:
        """It got no result: have that told, and taken back. Raises Unavailable where the transport
        took nothing."""
        if isinstance(failed, TransportError):
            self.pending.forget(call.id)
            raise endings.not_sent(self.server.name, failed) from failed
        losses.note_status(op, failed)
        if losses.casts_doubt(failed):
            self.subscriptions.doubt(call.began)
        if self.pending.forget(call.id) is not None:
            self._take_back(call.id, call.method, call)
        call.settle_quietly()

    def begin(self, errand: Errand, params: Params, *, trace: TraceContext) -> tuple[int, OpenCall]:
        """Send what its opener waits for; it must have left by `expires`. Raises Unavailable."""
        era = self.era
        if era is None or self.inbox.end.is_set():
            raise endings.not_open(self.server.name, self.inbox.end.value)
        request_id, future = self.pending.next_id(), asyncio.get_running_loop().create_future()
        call = OpenCall(errand, future, request_id, self.clock.monotonic(), trace)
        call.expires = math.inf  # its opener watches the time
        out = self.writing.outbound(era, request_id, errand, params, trace)
        self.pending.add(call)
        try:
            call.sent = self.transport.send(out, expires=errand.expires)
        except TransportError as error:
            self.pending.forget(request_id)
            raise endings.not_sent(self.server.name, error) from error
        return request_id, call

    def give_up(self, request_id: int, call: OpenCall, *, tell: bool = True) -> None:
        """Wait no more for what `begin` sent; `tell` the server, unless it has said so itself."""
        known = self.pending.forget(request_id) is not None
        if known and tell:
            self._take_back(request_id, call.errand.method, call)
        elif known:
            self.transport.cancel(request_id)

    def notify(self, method: str, params: Params = None) -> None:
        """Send a notification in the era's shape; does nothing on an ended or undecided life."""
        if self.era is not None and not self.inbox.end.is_set():
            frame = self.era.notification(method, params)
            modern = isinstance(self.era, ModernEra)
            self._outbox.write(frame, method, version=self.era.version_header, modern=modern)
            self.pending.notified(self.clock.monotonic())

    async def say_initialized(self) -> None:
        """End the legacy handshake: nothing else is asked before the server has taken this."""
        self.notify("notifications/initialized")
        patience_s = self.server.timing.legacy_probe_timeout_ms / 1000
        await self.transport.taken(expires=self.clock.monotonic() + patience_s)
        self.transport.listen()

    def _answer(self, frame: bytes) -> None:
        self._outbox.write(frame, version=self.era.version_header if self.era is not None else None)

    # Probes: negotiation writes them, and they outlive its rounds

    def send_discover(self, version: str, *, trace: TraceContext | None) -> Probe:
        """Write a `server/discover`. Nothing is raised: what cannot be sent gets no answer."""
        propagate = self.server.propagate != "none"
        return self._asking.discover(version, trace=trace, propagate=propagate)

    def send_initialize(self, version: str, *, renewal: bool = False) -> Probe:
        """Write the one `initialize` of this life; from now on legacy answering rules hold.

        `renewal`: for a new session of the era that stands.
        """
        return self._asking.initialize(version, renewal=renewal)

    # How the inbox is to read what comes (peers.inbox.Rules)

    @property
    def spoken(self) -> str:
        """Legacy answering rules hold from the moment `initialize` is written."""
        probes = self.probes
        if self.era is not None:
            return "unknown" if probes.late_modern is not None else self.era.name
        return "legacy" if probes.initialize is not None and not probes.saw_modern else "unknown"

    def over(self) -> None:
        """No deadline is watched any more, no session renewed."""
        self._sweep.close()
        if self._sessions is not None:
            self._sessions.close()

    def _progress(self, note: ProgressNote) -> bool:
        entry = self.pending.get(note.token) if type(note.token) is int else None
        if entry is None or not isinstance(entry.waiter, OpenCall):
            return False
        call = entry.waiter
        if not call.advances(note.progress):
            return False
        renew_s = call.errand.renew_s
        if renew_s is not None:
            entry.expires = min(self.clock.monotonic() + renew_s, call.errand.latest)
            self._sweep.arm(entry.expires)
        if not call.tell(note):
            self._drop("progress_callback_failed")
        return True

    # Time and cancellation

    def _take_back(self, request_id: int, method: str, call: OpenCall) -> Delivery:
        """Nobody waits any more: withdraw what has not left, else tell the server, once."""
        if call.withdraw():
            return "not_sent"
        if not self.transport.cancel(request_id) and method not in NEVER_CANCELLED:
            self.notify("notifications/cancelled", {"requestId": request_id})
        return "sent_no_reply"
