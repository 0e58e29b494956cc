"""Between a round without an era and the next one: how long, on which life, woken by what."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.terms import Reason, Trigger
from observant_host.supervision.peer_state import iso
from observant_host.timing.tasks import Signal, wait_any

if TYPE_CHECKING:
    from observant_host.peers.life import Life
    from observant_host.peers.negotiation import Round
    from observant_host.supervision.peer_state import PeerRecord
    from observant_host.supervision.signals import LifeSignals
    from observant_host.supervision.surroundings import Surroundings

AFTER_INITIALIZE: Final = frozenset(
    {
        Reason.LEGACY_PROBE_TIMEOUT,
        Reason.LEGACY_PROBE_ERROR,
        Reason.LEGACY_PROBE_INVALID,
        Reason.LEGACY_PROBE_CLOSED,
        Reason.LEGACY_UNSUPPORTED_REVISION,
    }
)
"""A life that ended a round so has had its one `initialize`: the next round needs a fresh one."""


class Next(msgspec.Struct, frozen=True, gc=False):
    """What follows: a round on the same life, or a new life after `delay_s` seconds (None: not
    before a person acts). `may_wake`: a call may begin it sooner; `asked`: a person wants it, so it
    begins also while the server is held. `silent`: the old life is replaced for its silence;
    `proved_modern`: it is ended since it spoke modern after `initialize`; `login`: other
    credentials will do too."""

    trigger: Trigger
    delay_s: float | None = 0.0
    same_life: bool = False
    may_wake: bool = True
    asked: bool = False
    silent: bool = False
    proved_modern: bool = False
    login: bool = False

    def start_said(self, now_ns: int, *, held: bool = False) -> str:
        """When the next life begins, for a person who may read it later."""
        if held and not self.asked:
            return "it is not started again by itself while it is held"
        if not self.delay_s:
            return "it is started again now"
        at = iso(now_ns + int(self.delay_s * 1e9))
        return f"it is started again in {self.delay_s:.1f} s, at {at}"


class Sooner:
    """What begins the next try before its time: a person's `wish`, a call that has `woken` it; and
    what keeps it from beginning: a ruling, `ruled` where one came or went."""

    def __init__(self, record: PeerRecord) -> None:
        self._record = record
        self.wish = Signal()
        self.woken = Signal()
        self.ruled = Signal()

    @property
    def held(self) -> bool:
        """Nothing begins by itself."""
        return self._record.held


class Waiting:
    """One wait. A kept process may be downloading itself: after a failed `initialize` it stays
    until it writes a message or `silent_restart_s` is over; without one it is never replaced for
    its silence."""

    def __init__(
        self,
        found: Round,
        *,
        life: Life,
        signals: LifeSignals,
        around: Surroundings,
        delay_s: float,
        silent_restart_s: float,
    ) -> None:
        self._signals = signals
        self._ended: Signal = life.end_signal
        self._clock = around.clock
        self._late = found.reason is Reason.LATE_MODERN_EVIDENCE
        self._initialized = found.reason in AFTER_INITIALIZE
        now = around.clock.monotonic()
        self._until = now + delay_s
        self._patience = (
            now + silent_restart_s if found.reason is Reason.LEGACY_PROBE_TIMEOUT else now
        )
        signals.spoke.clear()
        signals.answered.clear()

    @property
    def due_s(self) -> float:
        """When the next round begins by itself, as far as that is known (monotonic)."""
        return self._until if self.may_wake() else math.inf

    def may_wake(self) -> bool:
        """Whether a call may begin the next round. Not while a process that was sent `initialize`
        may be downloading itself: the next round would replace it."""
        return not self._initialized or self._signals.spoke.is_set()

    async def next(self, sooner: Sooner) -> Next:
        """Wait for the time of the next round, or for what comes before it."""
        if self._late:
            return Next(Trigger.LATE_EVIDENCE, proved_modern=True)
        while True:
            now = self._clock.monotonic()
            held = sooner.held
            if not held and self._initialized and self._is_over(now):
                silent = not self._signals.spoke.is_set() and self._waited
                return Next(Trigger.REPROBE, silent=silent)
            left = None if held else self._left(now)
            woken = await wait_any(self._clock, left, *self._wakers(sooner))
            if woken is sooner.ruled:
                sooner.ruled.clear()
            elif (following := self._following(woken, sooner)) is not None:
                return following

    def _is_over(self, now: float) -> bool:
        patient = now < self._patience and not self._signals.spoke.is_set()
        return now >= self._until and not patient

    def _following(self, woken: Signal | None, sooner: Sooner) -> Next | None:
        signals = self._signals
        if woken is self._ended:
            return Next(Trigger.REPROBE, max(0.0, self._until - self._clock.monotonic()))
        if woken is signals.late_modern:
            return Next(Trigger.LATE_EVIDENCE, proved_modern=True)
        if woken is sooner.wish:
            return Next(Trigger.MANUAL, same_life=not self._initialized, asked=True)
        if woken is sooner.woken:
            return Next(Trigger.WAKE, same_life=not self._initialized)
        if woken is signals.answered:
            return Next(Trigger.LATE_EVIDENCE, same_life=True)
        if woken is None and not self._initialized:
            return Next(Trigger.REPROBE, same_life=True)
        return None

    @property
    def _waited(self) -> bool:
        return self._patience > self._until

    def _left(self, now: float) -> float:
        """Seconds to the next moment that matters."""
        if not self._initialized or self._signals.spoke.is_set() or now < self._until:
            return self._until - now
        return self._patience - now

    def _wakers(self, sooner: Sooner) -> tuple[Signal, ...]:
        signals = self._signals
        always = (signals.late_modern, self._ended, sooner.wish, sooner.woken, sooner.ruled)
        if not self._initialized:
            return (*always, signals.answered)
        return always if signals.spoke.is_set() else (*always, signals.spoke)
