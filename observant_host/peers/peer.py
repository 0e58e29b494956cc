"""One configured server as its callers see it: a name, the life in use, and a gate in front.

A routed call passes here without a task, a lock or a scope: one comparison at the gate, one future
in the life, one look at the result's type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from observant_host.errors import Unavailable
from observant_host.peers.call import Call
from observant_host.peers.call import CallReply as CallReply
from observant_host.peers.gate import Gate
from observant_host.peers.input_handlers import NO_HANDLERS, InputHandlers
from observant_host.peers.reading import Reading, place_of
from observant_host.peers.tasks import Tasks
from observant_host.peers.told import LogMessage, OnLog, Told
from observant_host.peers.url_rounds import REVISION
from observant_host.peers.wishes import Wishes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Unpack

    from msgspec import Raw

    from observant_host.config import ServerConfig
    from observant_host.errors import Fault
    from observant_host.peers.errand import Witness
    from observant_host.peers.life import Life
    from observant_host.peers.notices import LogNote
    from observant_host.peers.ordinary import OrdinaryCall
    from observant_host.peers.resource_cache import ResourceCache
    from observant_host.telemetry.facade import Telemetry, TraceContext
    from observant_host.timing.clock import Clock

    OnProgress = Callable[[float, float | None, str | None], object]


class Terms(TypedDict, total=False):
    """What few calls ask for; see `Peer.call`."""

    on_progress: OnProgress | None
    handlers: InputHandlers | None
    principal: str | None
    log_level: str | None
    hand_up: int | None


class RequestOptions(Terms, total=False):
    """What `Peer.call` takes by keyword; see there."""

    expires: float | None
    began: float | None
    target: str | None
    uri: str | None
    parent: TraceContext | None
    attempt: int
    purpose: str
    witness: Witness | None
    first: OrdinaryCall | None


class Peer:
    """`life` is set by the supervisor while the server is routable, None otherwise.

    `log_level` is asked for by every call that does not say its own; `on_log` gets the server's
    log messages, a few a second.
    """

    def __init__(
        self,
        server: ServerConfig,
        *,
        telemetry: Telemetry,
        clock: Clock,
        handlers: InputHandlers = NO_HANDLERS,
        cache: ResourceCache | None = None,
        log_level: str | None = None,
        on_log: OnLog | None = None,
    ) -> None:
        self.name = server.name
        self.server = server
        self.handlers = handlers
        self.telemetry = telemetry
        self.clock = clock
        self.life: Life | None = None
        self.told = Told()
        self.tasks = Tasks(server)
        self.wishes = Wishes(server.name, telemetry)
        self._cache = cache
        self._place = place_of(server)
        self.log_level = log_level
        self._on_log = on_log
        self._because = "it has not started yet"
        self._fault: Fault = "peer"
        self.gate = Gate(
            server.name,
            max_in_flight=server.max_in_flight,
            queue_max=server.queue_max,
            queue_timeout_s=server.timing.queue_timeout_s,
            telemetry=telemetry,
            clock=clock,
        )

    def configure(self, server: ServerConfig) -> None:
        """A changed configuration: its limits and times hold from now on."""
        if server.extensions != self.server.extensions:
            self.tasks = Tasks(server)
        self.server = server
        self._place = place_of(server)
        self.gate.configure(
            max_in_flight=server.max_in_flight,
            queue_max=server.queue_max,
            queue_timeout_s=server.timing.queue_timeout_s,
        )

    def attach(self, life: Life) -> None:
        """Route calls to this life from now on."""
        self.life = life
        self.follow(life)
        if self._on_log is not None:
            life.notices.on_log = self._log

    def follow(self, life: Life) -> None:
        """Hear of changed resources in this life."""
        life.notices.on_updated = self.updated

    def detach(self, because: str, *, fault: Fault = "peer") -> None:
        """Route no more calls; those in line fail at once. `because` is a sentence for a person,
        `fault` "peer" for an outage, "policy" for a refusal, "host" while draining."""
        if self.life is not None and self._cache is not None:
            self._cache.forget(self._place.server)
        self.life = None
        self._because = because
        self._fault = fault
        self.gate.fail_waiting(self.unroutable)

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | Raw | None,
        **options: Unpack[RequestOptions],
    ) -> Coroutine[Any, Any, CallReply]:
        """One call, waiting for a place, rounds of input and a task included; to be awaited once.

        `expires` (monotonic seconds) is the caller's own deadline for everything; without it the
        server's call_timeout_s since the call `began` (default: now), renewed by progress and by
        each round of input, and its call_max_s for the whole. Raises CallError. `handlers` replaces
        the peer's for this call, `log_level` its level of log messages; `principal` stands in line.
        `hand_up`: a wish for input is the answer, to this round of it (0: the first). `first`: its
        request was begun as an ordinary one, and something came of that.
        """
        return Call(self, method, **options).made(params)

    def opens_addresses(self, version: str, handlers: InputHandlers | None = None) -> bool:
        """Whether a server of this revision may ask, by an error, for an address to be opened."""
        handlers = handlers or self.handlers
        return (
            version == REVISION
            and handlers.elicitation is not None
            and "url" in handlers.elicitation_modes
        )

    def unroutable(self) -> Unavailable:
        """The error of a call that finds no life to go to."""
        return Unavailable(
            f"{self.name} cannot be called now: {self._because}",
            delivery="not_sent",
            fault=self._fault,
        )

    def reading(self, parent: TraceContext | None) -> Reading | None:
        """For one read; None where nothing is kept."""
        if self._cache is None:
            return None
        return Reading(
            self._cache, self._place, peer=self.name, telemetry=self.telemetry, parent=parent
        )

    def updated(self, uri: str) -> None:
        """This resource changed, or may have: what was kept of it is stale, and whoever follows
        it is told."""
        if self._cache is not None:
            self._cache.updated(self._place.server, uri)
        self.wishes.updated(uri)

    def _log(self, note: LogNote) -> None:
        if self._on_log is not None:
            self._on_log(
                LogMessage(server=self.name, level=note.level, logger=note.logger, data=note.data)
            )
