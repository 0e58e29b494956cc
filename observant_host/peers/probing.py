"""Writing one probe and waiting for what comes of it: an answer, the end, or the deadline.

Noise and foreign ids are no answer. They count only when the time is over, where they tell a
server that speaks something else from one that says nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions.evidence import (
    EXCERPT_BYTES,
    Closed,
    Evidence,
    Seen,
    Silence,
    judge_discover,
    judge_initialize,
    judge_spawn,
)
from observant_host.decisions.evidence_http import (
    HttpReply,
    judge_get_sse,
    judge_http_discover,
    judge_http_initialize,
)
from observant_host.decisions.terms import Era
from observant_host.errors import HttpFailure, TransportError
from observant_host.peers.endings import last_words
from observant_host.peers.probes import DISCOVER, INITIALIZE, KEPT_BYTES
from observant_host.telemetry.vocabulary import DeadlineExpired, Request
from observant_host.timing.deadline import DeadlinePassed, deadline
from observant_host.timing.tasks import wait_any
from observant_host.wire.revisions import LEGACY, PREFERRED_LEGACY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from observant_host.decisions.evidence import Answer
    from observant_host.peers.life import Life
    from observant_host.peers.probes import Probe
    from observant_host.telemetry.facade import Operation
    from observant_host.transports.base import End

MAX_UNANSWERED: Final = 2
"""Discovers of one life that may wait for an answer: a server that answers none of two will not
answer ten, and one that reads them late answers each."""


class Probing:
    """The probes of one round on one life. `judged` is the probe whose answer came last."""

    def __init__(self, life: Life, *, legacy_until: float | None = None) -> None:
        self._life = life
        self._http = life.transport.kind in ("http", "sse")
        self._clock = life.clock
        timing = life.server.timing
        self._probe_s = timing.probe_timeout_s
        self._initialize_s = timing.legacy_probe_timeout_ms / 1000
        self._allowed = life.server.era.allow_legacy
        self.judged: Probe | None = None
        self.legacy_until = legacy_until
        self.sse_asked_at = 0.0
        self.retry_after_s: float | None = None

    # server/discover

    async def discover(self, version: str, *, again: bool = False) -> Evidence:
        """Evidence from any open discover; writes a new one unless an answer already lies here,
        two are unanswered, or this life was sent its `initialize`."""
        life, probes = self._life, self._life.probes
        lies_here = probes.untaken() is not None and not again
        full = len(probes.unanswered()) >= MAX_UNANSWERED
        if lies_here or full or life.end is not None or probes.initialize is not None:
            return await self._take_up()
        with life.telemetry.operation(self._fact(DISCOVER, Era.UNKNOWN, version)) as op:
            probe = life.send_discover(version, trace=op.context)
            op.note(request_id=probe.request_id)
            came = await self._discover_answer(since=probe.sent_at, newest=probe)
            _note(op, came)
            return came

    async def _take_up(self) -> Evidence:
        """A round that writes nothing: only an answer is a request's outcome, not its absence."""
        came = await self._discover_answer(since=self._clock.monotonic(), newest=None)
        if self.judged is not None and came.late:
            fact = self._fact(DISCOVER, Era.UNKNOWN, self.judged.version)
            with self._life.telemetry.operation(fact) as op:
                op.note(request_id=self.judged.request_id)
                _note(op, came)
        return came

    async def _discover_answer(self, *, since: float, newest: Probe | None) -> Evidence:
        life = self._life
        until = since + self._probe_s
        while True:
            life.inbox.stirred.clear()
            answered = life.probes.untaken()
            if answered is not None:
                return self._judge(answered, newest=newest)
            if life.end is not None:
                return self._closed(life.end, seen=self._seen(newest, since))
            if not await self._time_left(until):
                return self._silence(newest, since)

    def _judge(self, probe: Probe, *, newest: Probe | None) -> Evidence:
        probe.taken = True
        self.judged = probe
        self._life.inbox.take_noise()
        elapsed = probe.answered_at - probe.sent_at
        late = probe is not newest or elapsed > self._probe_s
        seen = Seen(
            version=probe.version,
            excerpt=self._excerpt(probe.excerpt),
            elapsed_ms=_ms(elapsed),
            timeout_ms=_ms(self._probe_s),
            late=late,
        )
        if self._http:
            return judge_http_discover(self._http_answer(probe), seen=seen)
        if probe.answer is None:
            raise RuntimeError("judged a probe without an answer")
        return judge_discover(probe.answer, seen=seen, paired=probe.paired)

    def _closed(self, end: End, *, seen: Seen) -> Evidence:
        if self._http:
            return judge_http_discover(_broken_off(end), seen=seen)
        return judge_discover(Closed(last_words(end)), seen=seen)

    def _http_answer(self, probe: Probe) -> HttpReply | HttpFailure:
        """What the exchange brought, failure or message, as it is judged."""
        if probe.failure is not None:
            self.retry_after_s = probe.failure.retry_after_s
            return probe.failure
        if probe.answer is None:
            raise RuntimeError("judged a probe without an answer")
        on = probe.answering
        return HttpReply(
            message=probe.answer,
            status=on.status if on is not None else 200,
            content_type=on.content_type if on is not None else "",
            paired=probe.paired,
        )

    def _silence(self, newest: Probe | None, since: float) -> Evidence:
        noise = self._life.inbox.take_noise()
        self._time_over(DISCOVER, self._probe_s, since)
        seen = self._seen(newest, since, excerpt=noise or b"")
        if self._http:
            return judge_http_discover(Silence(), seen=seen)
        return judge_discover(Silence(noise=noise is not None), seen=seen)

    # initialize

    async def initialize(self, *, fresh: bool = False) -> Evidence:
        """Write the one `initialize` of this life, and judge what comes within its time.

        In a `fresh` process that time begins with its first output (a launcher may be downloading
        it), at the latest after probe_timeout_s.
        """
        life = self._life
        version = newest_of(life.server.era.allow_legacy)
        with life.telemetry.operation(self._fact(INITIALIZE, Era.LEGACY, version)) as op:
            probe = life.send_initialize(version)
            if self._http and self.legacy_until is None:
                self.legacy_until = probe.sent_at + self._initialize_s
            op.note(request_id=probe.request_id)
            came = await self._initialize_answer(probe, fresh=fresh)
            _note(op, came)
            return came

    async def renew(self) -> Evidence:
        """Write another `initialize`, for a new session of the era that stands, and judge it."""
        life = self._life
        version = life.era.version if life.era is not None else PREFERRED_LEGACY
        with life.telemetry.operation(self._fact(INITIALIZE, Era.LEGACY, version)) as op:
            probe = life.send_initialize(version, renewal=True)
            op.note(request_id=probe.request_id, purpose="session")
            self._allowed = (version,)
            came = await self._initialize_answer(probe, fresh=False)
            _note(op, came)
            return came

    async def _initialize_answer(self, probe: Probe, *, fresh: bool) -> Evidence:
        life = self._life
        while True:
            life.inbox.stirred.clear()
            late = life.probes.late_modern
            if late is not None and late is not probe:
                return self._judge(late, newest=None)
            if probe.over:
                return self._judge_initialize(probe, probe.answer)
            if life.end is not None:
                return self._judge_initialize(probe, Closed(last_words(life.end)))
            if not await self._time_left(self._initialize_until(probe, fresh=fresh)):
                self._time_over(INITIALIZE, self._initialize_s, probe.sent_at)
                return self._judge_initialize(probe, Silence())

    def _initialize_until(self, probe: Probe, *, fresh: bool) -> float:
        if self.legacy_until is not None:
            return self.legacy_until
        began = probe.sent_at
        if fresh:
            latest = probe.sent_at + self._probe_s
            first = self._life.inbox.first_output_at
            began = latest if first is None else min(max(first, probe.sent_at), latest)
        return began + self._initialize_s

    def _judge_initialize(self, probe: Probe, answer: Answer | None) -> Evidence:
        probe.taken = True
        self.judged = probe
        at = probe.answered_at if probe.over else self._clock.monotonic()
        seen = Seen(
            version=probe.version,
            excerpt=self._excerpt(probe.excerpt),
            elapsed_ms=_ms(at - probe.sent_at),
            timeout_ms=_ms(self._initialize_s),
        )
        if self._http:
            http = self._http_answer(probe) if probe.over else self._missing(answer)
            return judge_http_initialize(http, seen=seen, allowed=self._allowed)
        if answer is None:
            raise RuntimeError("judged an initialize without an answer")
        return judge_initialize(answer, seen=seen, allowed=self._allowed, paired=probe.paired)

    def _missing(self, answer: Answer | None) -> HttpFailure | Silence:
        """No answer will come: the stream that would bring it ended, or its time did."""
        if isinstance(answer, Closed) and self._life.end is not None:
            return _broken_off(self._life.end)
        return Silence()

    # HTTP+SSE

    async def get_sse(self, open_sse: Callable[[], Awaitable[Life]]) -> Life | Evidence:
        """Open the stream, within what is left of the time for `initialize` where that has begun:
        a life on it, or why there is none."""
        life = self._life
        now = self.sse_asked_at = self._clock.monotonic()
        left = None if self.legacy_until is None else max(0.0, self.legacy_until - now)
        try:
            async with deadline(
                left,
                scope="probe",
                peer=life.server.name,
                telemetry=life.telemetry,
                method="get_sse",
                clock=self._clock,
            ):
                return await open_sse()
        except DeadlinePassed:
            return judge_get_sse(Silence(), seen=self._seen_get(now))
        except HttpFailure as failure:
            self.retry_after_s = failure.retry_after_s
            excerpt = self._excerpt(failure.body[:KEPT_BYTES])
            return judge_get_sse(failure, seen=self._seen_get(now, excerpt=excerpt))
        except TransportError as failed:
            return judge_get_sse(str(failed), seen=self._seen_get(now))

    def sse_opened(self, *, since: float) -> Evidence:
        """The stream is open and has named its endpoint."""
        return judge_get_sse("", seen=self._seen_get(since))

    def _seen_get(self, since: float, *, excerpt: str = "") -> Seen:
        return Seen(
            excerpt=excerpt,
            elapsed_ms=_ms(self._clock.monotonic() - since),
            timeout_ms=_ms(self._initialize_s),
        )

    def not_started(self, error: TransportError) -> Evidence:
        """The fresh process could not be started."""
        return judge_spawn(str(error), seen=Seen(timeout_ms=_ms(self._probe_s)))

    # What both need

    async def _time_left(self, until: float) -> bool:
        """Wait until something stirs or `until`. False where that is over; but a life that is
        ending is not silent, so its end is awaited, which its transport bounds."""
        left = until - self._clock.monotonic()
        ending = self._life.transport.ending
        if left <= 0 and not ending:
            return False
        await wait_any(self._clock, None if ending else left, self._life.inbox.stirred)
        return True

    def _fact(self, method: str, era: Era, version: str) -> Request:
        timeout = self._initialize_s if method == INITIALIZE else self._probe_s
        return Request(
            peer=self._life.server.name,
            method=method,
            era=era,
            generation=self._life.generation,
            version=version,
            purpose="era",
            deadline_ms=_ms(timeout),
        )

    def _time_over(self, method: str, budget_s: float, since: float) -> None:
        self._life.telemetry.count(
            DeadlineExpired(
                peer=self._life.server.name,
                scope="probe",
                budget_ms=_ms(budget_s),
                elapsed_ms=_ms(self._clock.monotonic() - since),
                method=method,
            )
        )

    def _seen(self, newest: Probe | None, since: float, *, excerpt: bytes = b"") -> Seen:
        return Seen(
            version=newest.version if newest is not None else None,
            excerpt=self._excerpt(excerpt),
            elapsed_ms=_ms(self._clock.monotonic() - since),
            timeout_ms=_ms(self._probe_s),
        )

    def _excerpt(self, frame: bytes) -> str:
        """Masked before it is cut, so that no half of a secret is left."""
        shown = self._life.masker.bytes(frame)[:EXCERPT_BYTES]
        return shown.decode("utf-8", "replace")


def newest_of(allowed: tuple[str, ...]) -> str:
    """The revision to offer: the latest one that is allowed.

    Source: MCP 2025-11-25 basic/lifecycle › Version Negotiation.
    """
    return next((version for version in LEGACY if version in allowed), PREFERRED_LEGACY)


def _broken_off(end: End) -> HttpFailure:
    """A life that ended under its probe, as the failure of that exchange."""
    return HttpFailure(last_words(end), kind="reset", url="")


def _note(op: Operation, came: Evidence) -> None:
    op.note(probe_outcome=came.outcome, rpc_code=came.rpc_code, http_status=came.http_status)
    match came.outcome:
        case "ok":
            pass
        case "timeout":
            op.end_as("timeout", "timeout")
        case "error" | "modern_error" | "modern_evidence":
            op.end_as("rpc_error", str(came.rpc_code) if came.rpc_code is not None else came.kind)
        case "closed" | "http_other":
            op.end_as("unavailable", came.kind if came.outcome == "http_other" else "closed")
        case _:
            op.end_as("invalid", came.outcome)


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
