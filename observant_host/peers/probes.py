"""The questions about an era: `server/discover` and `initialize`, written once, never cancelled.

They outlive the round that wrote them, because what comes late is still evidence: before
`initialize` was written it decides the next round, afterwards it proves that the choice was wrong.

Source: MCP 2026-07-28 basic/transports/stdio › Backward Compatibility.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from observant_host.decisions.evidence import Seen, judge_discover, judge_initialize
from observant_host.wire.jsonrpc import Broken, Error, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.errors import HttpFailure
    from observant_host.peers.open_call import OpenCall
    from observant_host.peers.pending import Pending
    from observant_host.transports.base import Answering
    from observant_host.wire.jsonrpc import Frame

Answer = Result | Error | Broken

DISCOVER: Final = "server/discover"
INITIALIZE: Final = "initialize"

KEPT_BYTES: Final = 4096
"""Of an answer: more than is ever shown, so that secrets are masked before it is cut."""


class Probe:
    """`sent_at` and `answered_at` are monotonic seconds. `taken` once a round has judged it.

    `paired` is False where the answer's id only resembled ours: its result then proves nothing.
    Over HTTP `answering` says on what the answer came, and `failure` why none came with a 2xx: its
    body may still have held one.
    """

    __slots__ = (
        "answer",
        "answered_at",
        "answering",
        "excerpt",
        "failure",
        "method",
        "paired",
        "request_id",
        "sent_at",
        "taken",
        "version",
    )

    def __init__(self, request_id: int, method: str, *, version: str, sent_at: float) -> None:
        self.request_id = request_id
        self.method = method
        self.version = version
        self.sent_at = sent_at
        self.answer: Answer | None = None
        self.answered_at = 0.0
        self.excerpt = b""
        self.paired = True
        self.taken = False
        self.answering: Answering | None = None
        self.failure: HttpFailure | None = None

    @property
    def over(self) -> bool:
        """Nothing more will come of it."""
        return self.answer is not None or self.failure is not None

    @property
    def proves_modern(self) -> bool:
        """Whether this answer, whenever it came, can only be a modern server's."""
        if self.answer is None:
            return False
        if self.method == DISCOVER:
            judged = judge_discover(self.answer, seen=Seen(), paired=self.paired)
        else:
            judged = judge_initialize(self.answer, seen=Seen(), allowed=(), paired=self.paired)
        return judged.proves_modern


class Probes:
    """All probes of one life.

    `on_evidence`: a discover was answered while nobody negotiates. `on_late_modern`: modern
    evidence came after `initialize` was written (told once).
    """

    def __init__(
        self,
        pending: Pending[OpenCall | Probe],
        *,
        on_evidence: Callable[[], None],
        on_late_modern: Callable[[], None],
    ) -> None:
        self._pending = pending
        self._on_evidence = on_evidence
        self._on_late_modern = on_late_modern
        self._overtaken: dict[int, Probe] = {}
        self.discovers: list[Probe] = []
        self.initialize: Probe | None = None
        self.late_modern: Probe | None = None
        self.saw_modern = False
        """Set for ever by the first modern evidence: this life is never sent `initialize`."""
        self.negotiating = False
        self._settled = False

    def unanswered(self) -> list[Probe]:
        """Discovers that may still be answered, oldest first."""
        return [probe for probe in self.discovers if not probe.over]

    def untaken(self) -> Probe | None:
        """The oldest answered (or lost) discover that no round has judged."""
        return next((probe for probe in self.discovers if probe.over and not probe.taken), None)

    def open(self, method: str, version: str, *, now: float, renewal: bool = False) -> Probe:
        """Register one before it is written. `renewal`: an `initialize` that gets a new session
        for an era already chosen."""
        if method == INITIALIZE and not renewal:
            self._begin_legacy()
        request_id = self._pending.next_id()
        probe = Probe(request_id, method, version=version, sent_at=now)
        self._pending.open(request_id, method, expires=math.inf, waiter=probe)
        if method == INITIALIZE:
            self.initialize = probe
        else:
            self.discovers.append(probe)
        return probe

    def _begin_legacy(self) -> None:
        if self.initialize is not None or self.saw_modern:
            raise RuntimeError("a life is sent initialize at most once, and never a modern one")
        self._overtake()

    def settle(self) -> None:
        """An era is chosen: what is still open decides nothing more, unless it proves a mistake."""
        self._settled = True
        self._overtake()

    def _overtake(self) -> None:
        """Open discovers no longer count as open requests; their answers are still recognised."""
        for probe in self.unanswered():
            self._pending.forget(probe.request_id)
            self._overtaken[probe.request_id] = probe

    def lost(self, probe: Probe, failure: HttpFailure, *, now: float) -> None:
        """It got no answer, and the transport can say why."""
        probe.failure = failure
        probe.answered_at = now
        probe.excerpt = failure.body[:KEPT_BYTES]

    def answered(
        self, probe: Probe, answer: Answer, *, now: float, frame: Frame, paired: bool = True
    ) -> bool:
        """The one answer it gets. False where it changes nothing any more (to be counted)."""
        probe.answer = answer
        probe.paired = paired
        probe.answered_at = now
        probe.excerpt = bytes(frame[:KEPT_BYTES])
        if self.initialize is None:
            if not self.negotiating and not self._settled:
                self._on_evidence()
            return not self._settled
        if probe.proves_modern:
            self.saw_modern = True
            if self.late_modern is None:
                self.late_modern = probe
                self._on_late_modern()
            return True
        return probe is self.initialize and (self.negotiating or self._settled)

    def adopt(self, answer: Answer, reason: str) -> Probe | None:
        """Whose answer is this, that no open request matches? None: nobody's.

        An overtaken discover is known by its id. An error without an id answers the oldest
        discover while nothing but discovers is open.
        """
        if type(answer.id) is int:
            return self._overtaken.pop(answer.id, None)
        waiting = self.unanswered()
        only_discovers = self.initialize is None and len(self._pending) == len(waiting)
        if reason == "no_id" and isinstance(answer, Error) and only_discovers and waiting:
            self._pending.forget(waiting[0].request_id)
            return waiting[0]
        return None
