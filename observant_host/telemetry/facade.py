"""The one verb: an operation for work that takes time, count for moments, level for states.

Everything the host does is told here once, and goes from here to span, metric, log and record.
A sink that fails waits and is tried again; it never breaks, slows or loses the caller's work.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from observant_host.telemetry.finished import Choosy, Meter, Repetitive
from observant_host.telemetry.finished import Finished as Finished
from observant_host.telemetry.finished import Sink as Sink
from observant_host.telemetry.operation import Operation as Operation
from observant_host.telemetry.operation import ambient
from observant_host.telemetry.propagation import Link as Link
from observant_host.telemetry.propagation import TraceContext as TraceContext
from observant_host.telemetry.propagation import new_span_id, new_trace_id
from observant_host.telemetry.rules import RULES, attributes_of, rule_of
from observant_host.telemetry.vocabulary import RoutedCall, TelemetryLost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from observant_host.telemetry.audit import Audit
    from observant_host.telemetry.finished import Measured, OneOfMany, Starter
    from observant_host.telemetry.flight import FlightRecorder
    from observant_host.telemetry.vocabulary import Fact, HostLevel, PeerLevel, PeerSnapshot


class Metrics(Protocol):
    """The part of the metric sink that is not a fact."""

    def level(self, fact: PeerLevel | HostLevel, value: float) -> None: ...
    def peer_configured(self, peer: str, *, legacy_allowed: bool) -> None: ...
    def peer_forgotten(self, peer: str) -> None: ...
    def watch_peers(self, snapshot: Callable[[], Sequence[PeerSnapshot]]) -> None: ...
    def watch_clients(self, count: Callable[[], Mapping[str, int]]) -> None: ...
    async def render(self, accept: str | None) -> tuple[bytes, str]: ...


class Closing(Protocol):
    """Something behind a sink that has a thread or a queue of its own."""

    async def flush(self) -> None: ...
    async def close(self) -> None: ...


class Leveled(Protocol):
    """The log, as far as its level goes."""

    def set_level(self, level: str) -> None: ...


class Telemetry:
    """What the rest of the host talks to. Built by `telemetry.setup`.

    losses: spans lost since the start by stream ("decisions", "traces", "otlp"). flight: the last
    decisions in memory, where they are kept. down: the sinks that take nothing now, and why ("" for
    what is not known). log_tail: the last lines that went to stderr.
    log: whose level may change, where lines are written at all. arguments: how those of a tool call
    are kept in its span, where that is wished.
    """

    operation: partial[Operation]
    """Work that takes time: `with telemetry.operation(fact, parent=None, links=()) as op:`.

    The parent is, unless given, the operation this task is in, else the embedding program's current
    OpenTelemetry span, else none.
    """

    def __init__(
        self,
        *,
        starter: Starter,
        sinks: Sequence[Sink] = (),
        metrics: Metrics | None = None,
        closing: Sequence[Closing] = (),
        wall_ns: Callable[[], int] = time.time_ns,
        losses: Callable[[], Mapping[str, int]] = dict,
        rotate: Callable[[], None] | None = None,
        flight: FlightRecorder | None = None,
        down: Callable[[], Mapping[str, str]] = dict,
        audit: Audit | None = None,
        arguments: Callable[[object], str] | None = None,
        log_tail: Callable[[], Sequence[str]] = tuple,
        log: Leveled | None = None,
    ) -> None:
        self.operation = partial(Operation, self)
        self.start = starter.start
        self.embedding = starter.ambient
        self.losses = losses
        self.flight = flight
        self.down = down
        self.audit = audit
        self.arguments = arguments
        self.log_tail = log_tail
        self.log = log
        self._rotate = rotate
        self._sinks = tuple(sinks)
        self.ways: dict[type[Fact], Ways] = {}
        self._metrics = metrics
        self._closing = tuple(closing)
        self.wall_ns = wall_ns

    def count(
        self, fact: Fact, *, parent: TraceContext | None = None, links: Sequence[Link] = ()
    ) -> TraceContext:
        """A moment. Returns where it stands in the trace, to be linked to later; all zeros for what
        is a number and nothing else."""
        ways = self.ways.get(type(fact)) or self.ways_of(type(fact))
        if ways.only_measured:
            done = Finished(fact, _NOWHERE)
            for meter in ways.meters:
                meter(done)
            return _NOWHERE
        rule = rule_of(fact)
        outer = ambient.get()
        if rule.event is not None and outer is not None:
            outer.event(rule.event, **attributes_of(fact, "ok", None))
        around = parent or (outer.context if outer is not None else self.embedding())
        now = self.wall_ns()
        handle: object | None = None
        if rule.span is not None:
            context, handle = self.start(fact, around, tuple(links), now)
        else:
            context = around or TraceContext(new_trace_id(), new_span_id())
        done = Finished(
            fact, context, start_ns=now, parent=around, links=tuple(links), handle=handle
        )
        for meter in ways.meters:
            meter(done)
        for sink in ways.sinks:
            sink.emit(done)
        return context

    def level(self, fact: PeerLevel | HostLevel, value: float) -> None:
        """A state, as a number; `fact.metric` names it."""
        if self._metrics is not None:
            self._metrics.level(fact, value)

    def current(self) -> TraceContext | None:
        """The operation this task is in."""
        outer = ambient.get()
        return outer.context if outer is not None else None

    def waited(self, seconds: float, until_ns: int | None = None) -> None:
        """The routed call that this task is in has waited so long for a place with its server;
        until now, where nothing else is said."""
        outer = ambient.get()
        if outer is not None and type(outer.given) is RoutedCall:
            outer.waited(seconds, self.wall_ns() if until_ns is None else until_ns)

    def spent_elsewhere(self, seconds: float) -> None:
        """The routed call that this task is in has waited so long for its server to be there, or
        for a person: neither our work nor our queue."""
        outer = ambient.get()
        if outer is not None and type(outer.given) is RoutedCall:
            outer.not_ours(round(seconds * 1e9))

    def peer_configured(self, peer: str, *, legacy_allowed: bool = False) -> None:
        """Create at 0 every counter of this peer that an alert reads."""
        if self._metrics is not None:
            self._metrics.peer_configured(peer, legacy_allowed=legacy_allowed)

    def peer_forgotten(self, peer: str) -> None:
        """Remove every series of a peer that left the configuration."""
        if self._metrics is not None:
            self._metrics.peer_forgotten(peer)

    def watch_peers(self, snapshot: Callable[[], Sequence[PeerSnapshot]]) -> None:
        """Say where the states of all peers are read at each scrape: on the loop, at one moment."""
        if self._metrics is not None:
            self._metrics.watch_peers(snapshot)

    def watch_clients(self, count: Callable[[], Mapping[str, int]]) -> None:
        """Say where the clients of each era are counted at each scrape."""
        if self._metrics is not None:
            self._metrics.watch_clients(count)

    async def render(self, accept: str | None = None) -> tuple[bytes, str]:
        """(body, content type) of `/metrics`, made off the loop, at most once a second."""
        if self._metrics is None:
            return b"", "text/plain; version=0.0.4; charset=utf-8"
        return await self._metrics.render(accept)

    async def flush(self) -> None:
        """Wait until everything told so far is on disk, on stderr, or handed to the exporter."""
        for one in self._closing:
            await one.flush()

    async def rotate_record(self) -> None:
        """Finish the files of record and audit that are being written; the next fact begins
        others."""
        if self._rotate is not None:
            self._rotate()
        await self.flush()

    async def close(self) -> None:
        """Flush and end the threads behind the sinks, and tell those that are still open what that
        lost. Idempotent; later facts are lost silently."""
        for one in self._closing:
            before = dict(self.losses())
            await one.close()
            self._tell_lost_since(before)

    def _tell_lost_since(self, before: Mapping[str, int]) -> None:
        for stream, total in self.losses().items():
            if total > before.get(stream, 0):
                self.count(TelemetryLost(stream=stream, spans=total - before.get(stream, 0)))

    def around(self) -> TraceContext | None:
        """What work that begins now is part of."""
        outer = ambient.get()
        return outer.context if outer is not None else self.embedding()

    def alike(self, call: Finished, request: Finished) -> Told | None:
        """Where calls go that end well after one request and differ from these in numbers only.
        None where some sink wants to see each of the two by itself: then each is an operation of
        its own."""
        always: list[Callable[[OneOfMany], None]] = []
        ended: list[Callable[[OneOfMany], None]] = []
        kinds = (type(call.fact), type(request.fact))
        for one in self._sinks:
            wanted = [kind for kind in kinds if one.wants(kind)]
            choosy = isinstance(one, Choosy) and all(map(one.passes_over, wanted))
            way = one.alike(call, request) if wanted and isinstance(one, Repetitive) else None
            if way is not None:
                (ended if choosy else always).append(way)
            elif wanted and not choosy:
                return None
        one_by_one = self.audit is not None or self.arguments is not None
        return None if one_by_one else Told(tuple(always), (*ended, *always))

    # For Operation: `start` gives identity, `embedding` says what is around, `ways` where it goes.

    def ways_of(self, kind: type[Fact]) -> Ways:
        """Where facts of this kind go; remembered in `ways`."""
        meters: list[Callable[[Measured], None]] = []
        sinks: list[Sink] = []
        for one in self._sinks:
            if one.wants(kind):
                meter = one.meter(kind) if isinstance(one, Meter) else None
                if meter is None:
                    sinks.append(one)
                else:
                    meters.append(meter)
        ordinary = [one for one in sinks if not (isinstance(one, Choosy) and one.passes_over(kind))]
        rule = RULES[kind]
        only = not sinks and rule.span is None and rule.event is None
        ways = self.ways[kind] = Ways(tuple(meters), tuple(sinks), tuple(ordinary), only)
        return ways


class Ways(NamedTuple):
    """Where facts of one kind go, found once. `ordinary`: the sinks of work that ended well and has
    no span. `only_measured`: nothing of them is kept but a number, so that they have no place in a
    trace either."""

    meters: tuple[Callable[[Measured], None], ...]
    sinks: tuple[Sink, ...]
    ordinary: tuple[Sink, ...]
    only_measured: bool


class Told(NamedTuple):
    """Who is told of calls that are alike: `ours` of those that have no span of a tracing library,
    `spanned` of the others."""

    ours: tuple[Callable[[OneOfMany], None], ...]
    spanned: tuple[Callable[[OneOfMany], None], ...]


_NOWHERE: Final = TraceContext(0, 0)
