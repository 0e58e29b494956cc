"""What one peer looks like from outside: the status that a person reads, and its bookkeeping."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from observant_host.decisions.acts import Ruling, is_off, sentence
from observant_host.decisions.catalogue import Listing, PeerView
from observant_host.decisions.peer_states import Happened, PeerStatus, after
from observant_host.decisions.suspicion import Health
from observant_host.decisions.terms import Cause, Era, PeerState
from observant_host.peers.listening import Listening
from observant_host.supervision.vitals import Vitals
from observant_host.telemetry.propagation import Link
from observant_host.telemetry.vocabulary import PeerStateChanged
from observant_host.timing.tasks import Signal, wait_any

if TYPE_CHECKING:
    from observant_host.config import ServerConfig
    from observant_host.peers.life import Life
    from observant_host.supervision.surroundings import Surroundings
    from observant_host.telemetry.propagation import TraceContext
    from observant_host.timing.clock import Clock

SETTLING: Final = frozenset(
    {
        Happened.LISTED,
        Happened.LISTED_IN_PART,
        Happened.NO_ERA,
        Happened.GAVE_UP,
        Happened.DISABLED,
        Happened.STOPPED,
    }
)
"""What ends the wait for a server at start: it listed, was refused, or failed."""

SERVING: Final = frozenset({PeerState.READY, PeerState.DEGRADED})
"""States in which it takes calls: it was last ready when it left these."""

MAX_DEPTH: Final = 32
"""Of what a server says of itself; deeper is left out."""

Layer = Literal["ok", "waiting", "failing", "down", "off", "unknown"]


class Layers(msgspec.Struct, frozen=True, kw_only=True):
    """How far up each layer of the peer stands; `last_call` is the last call's outcome or "none".

    "waiting": begun, no answer yet. "off": not wanted for this server.
    """

    process: Layer = "down"
    transport: Layer = "down"
    era: Layer = "unknown"
    listing: Layer = "unknown"
    listen: Layer = "off"
    last_call: str = "none"


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """One server at one moment; encoded as JSON it is the object of `status --json`.

    `since` is ISO 8601 UTC, the moment `state` was entered. `detail` is a sentence for a person
    with the next step. `generation` counts transport lives. `evidence` is that of the last round.
    `ruling` is a person's hold, disable or drain that stands.
    """

    name: str
    transport: Literal["stdio", "http", "sse", "memory"]
    state: PeerState
    cause: Cause | None
    era: Era
    version: str | None
    reason: str
    detail: str
    since: str
    generation: int
    allow_legacy: bool
    fingerprint: str
    server_info: Mapping[str, Any] | None
    capabilities: Mapping[str, Any] | None
    tools: int
    layers: Layers
    evidence: tuple[Mapping[str, object], ...]
    pid: int | None
    trace_id: str | None
    ruling: Ruling | None = None


def iso(ns: int) -> str:
    """Epoch nanoseconds as ISO 8601 UTC with milliseconds."""
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns // 1_000_000 % 1000:03d}Z"


class PeerRecord:
    """Bookkeeping of one peer, by the table of decisions/peer_states; reports each transition.

    Everything here is set by the peer's own supervisor, on the loop; `view` may be read any time.
    `because` is the last decision about it, or the end of its life: what its next state follows
    from.
    """

    def __init__(self, server: ServerConfig, around: Surroundings) -> None:
        self.server = server
        self._around = around
        self.ruling: Ruling | None = around.memory.ruling(server)
        enabled = server.enabled and not self.off
        self.status = PeerStatus(
            state=PeerState.STARTING if enabled else PeerState.DISABLED,
            since_ns=around.clock.wall_ns(),
            detail="it is being started" if enabled else "it is disabled (enabled = false)",
        )
        # what a person switched off is waited for by nobody, but it keeps its names
        self.settled = not enabled
        self.generation = 0
        self.leaving = False  # its life is ended by us as soon as its calls are over
        self.era = Era.UNKNOWN
        self.era_expected: bool | None = None
        self.version: str | None = None
        self.listing: Listing | None = None
        self.listing_layer: Layer = "unknown"
        self.listening = Listening()
        self.life: Life | None = None
        self.evidence: tuple[Mapping[str, object], ...] = ()
        self.trace_id: str | None = None
        self.because: TraceContext | None = None
        self._listed: tuple[str, TraceContext | None] | None = None
        self._announced: frozenset[str] = frozenset()
        self.allowed = bool(server.era.allow_legacy)
        self.allowance_expires_s: float | None = None
        self.last_call = "none"
        self.vitals = Vitals(server, around)
        self.changed = Signal()
        self.readings = 0
        self.listed = Signal()
        self._seen: PeerView | None = None

    @property
    def off(self) -> bool:
        """Whether a person does not want it to run."""
        return is_off(self.ruling)

    @property
    def held(self) -> bool:
        """Whether a person wants nothing to begin by itself."""
        return self.ruling is not None and self.ruling.act == "hold"

    @property
    def expected(self) -> bool:
        """Whether anybody should be alarmed where it is not up."""
        return self.server.enabled and self.ruling is None

    def happened(
        self, what: Happened, *, cause: Cause | None = None, reason: str = "", detail: str = ""
    ) -> None:
        """Move by the table, report the transition, tell the catalogue."""
        before = self.status
        now_ns = self._around.clock.wall_ns()
        self.status = after(before, what, now_ns=now_ns, cause=cause, reason=reason, detail=detail)
        if what in SETTLING:
            self.settled = True
        if self.status.state is not before.state:
            if before.state in SERVING:
                self._around.memory.was_ready(self.server)
            self._report(before, now_ns)
        self.changed.set()
        if self.status != before:
            self._around.changed(self.server.name)

    def lists_read(
        self,
        trigger: str,
        context: TraceContext | None,
        *,
        announced: Collection[str] = (),
    ) -> None:
        """Its lists were read anew, and that in this trace. `announced`: kinds of lists of which
        the server had said that they changed."""
        self._listed = trigger, context
        self._announced |= frozenset(announced)

    def take_listed(self) -> tuple[str, TraceContext | None] | None:
        """(trigger, context) of a reading that was not taken yet."""
        found, self._listed = self._listed, None
        return found

    def take_announced(self) -> frozenset[str]:
        """Kinds of lists that the server said changed, read and not taken yet."""
        found, self._announced = self._announced, frozenset()
        return found

    def _report(self, before: PeerStatus, now_ns: int) -> None:
        self._around.telemetry.count(
            PeerStateChanged(
                peer=self.server.name,
                previous=before.state,
                state=self.status.state,
                cause=self.status.cause,
                reason=self.status.reason,
                detail=self.status.detail,
                time_in_previous_ms=(now_ns - before.since_ns) / 1e6,
                generation=self.generation,
                pid=self.pid,
            ),
            links=(Link(self.because, "caused_by"),) if self.because is not None else (),
        )

    async def listed_again(self, until: float, *, clock: Clock) -> bool:
        """Have the lists of the present life read now, and wait for that, at most until `until`
        (monotonic seconds). False where it did not come to that."""
        life, before = self.life, self.readings
        if life is None:
            return False
        life.listener.stale_lists()
        while self.readings == before and not life.end_signal.is_set():
            left = until - clock.monotonic()
            if left <= 0:
                return False
            self.listed.clear()
            await wait_any(clock, left, self.listed, life.end_signal)
        return not life.end_signal.is_set()

    @property
    def pid(self) -> int | None:
        """Of the running child, None where there is none."""
        life = self.life
        return life.transport.pid if life is not None and life.end is None else None

    @property
    def offered(self) -> Listing | None:
        """Its last good listing, without the tools that a person switched off."""
        return self._around.memory.offered(self.listing)

    def peer_view(self) -> PeerView:
        """What the catalogue needs to know; the same object while that is the same."""
        now = PeerView(
            name=self.server.name,
            enabled=self.server.enabled,
            state=self.status.state,
            cause=self.status.cause,
            reason=self.status.reason,
            settled=self.settled,
            listing=self.offered,
            answers=self.vitals.health is not Health.WEDGED,
        )
        seen = self._seen
        if seen is not None and seen.listing is now.listing and seen == now:
            return seen
        self._seen = now
        return now

    def view(self) -> ServerView:
        """The frozen view of this moment."""
        life, status, listing = self.life, self.status, self.offered
        return ServerView(
            name=self.server.name,
            transport=self._transport(),
            state=status.state,
            cause=status.cause,
            era=self.era,
            version=self.version,
            reason=status.reason,
            detail=self._detail(),
            since=iso(status.since_ns),
            generation=self.generation,
            allow_legacy=self.allowed,
            fingerprint=self.server.fingerprint,
            server_info=self._masked(life.server_info) if life is not None else None,
            capabilities=self._masked(life.capabilities)
            if life and self.era is not Era.UNKNOWN
            else None,
            tools=len(listing.tools) if listing is not None else 0,
            layers=self._layers(),
            evidence=self.evidence,
            pid=self.pid,
            trace_id=self.trace_id,
            ruling=self.ruling,
        )

    def _detail(self) -> str:
        if self.held and self.ruling is not None:
            return f"{self.status.detail}; {sentence(self.ruling)}"
        return self.status.detail

    def _transport(self) -> Literal["stdio", "http", "sse", "memory"]:
        """Of a URL, the one that is spoken: an "auto" may have come to HTTP+SSE."""
        life = self.life
        if self.server.transport == "stdio" or life is None:
            return self.server.transport
        return life.transport.kind

    def _masked(self, told: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """What a server says of itself, without the secrets that it was given."""
        return None if told is None else _cleaned(told, self._around.masker.text)

    def _layers(self) -> Layers:
        alive = self.life is not None and self.life.end is None
        waiting = self.status.state is PeerState.STARTING
        era: Layer = "ok" if self.era is not Era.UNKNOWN else "waiting" if waiting else "down"
        connected = alive and self.life is not None and self.life.inbox.reached
        silent = connected and self.vitals.health is Health.WEDGED
        running: Layer = "ok" if alive else "waiting" if waiting else "down"
        process: Layer = "failing" if silent and self.vitals.stopped else running
        transport: Layer = "ok" if connected else "waiting" if waiting else "down"
        return Layers(
            process=process if self.server.transport == "stdio" else "off",
            transport="failing" if silent else transport,
            era=era,
            listing=self.listing_layer,
            listen=self.listening.layer,
            last_call=self.last_call,
        )


def _cleaned(value: Any, clean: Callable[[str], str], depth: int = 0) -> Any:
    match value:
        case str():
            return clean(value)
        case dict() | list() if depth == MAX_DEPTH:
            return "…"
        case dict():
            return {clean(key): _cleaned(one, clean, depth + 1) for key, one in value.items()}
        case list():
            return [_cleaned(one, clean, depth + 1) for one in value]
        case _:
            return value


def unstarted(server: ServerConfig) -> ServerView:
    """The view of a server whose host does not run."""
    return ServerView(
        name=server.name,
        transport=server.transport,
        state=PeerState.STOPPED if server.enabled else PeerState.DISABLED,
        cause=None,
        era=Era.UNKNOWN,
        version=None,
        reason="",
        detail="the host does not run" if server.enabled else "it is disabled (enabled = false)",
        since=iso(0),
        generation=0,
        allow_legacy=bool(server.era.allow_legacy),
        fingerprint=server.fingerprint,
        server_info=None,
        capabilities=None,
        tools=0,
        layers=Layers(),
        evidence=(),
        pid=None,
        trace_id=None,
    )
