"""The signs of life of one peer, as its calls and its probes see them; lets calls in, or not.

The rules and their reasons are in `decisions.suspicion`; here is what is counted, and who is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions import suspicion
from observant_host.decisions.suspicion import Health, Sign
from observant_host.decisions.terms import RestartReason
from observant_host.errors import CallTimeout, NotAnswering
from observant_host.supervision.signals import LifeSignals
from observant_host.telemetry.vocabulary import HealthVerdict
from observant_host.timing.tasks import Signal

if TYPE_CHECKING:
    from observant_host.config import ServerConfig
    from observant_host.peers.gate import Gate
    from observant_host.supervision.surroundings import Surroundings

TRIAL: Final = -1
"""The ticket of the one call that may find out whether a wedged server has come back."""


def _no_word() -> None:
    return None


class Vitals:
    """Of one peer; `begin` for each life that serves. `stirred` is set when the serving loop has
    something to do: ask, say, or end.

    `admit` gives a ticket, which `ended` takes back however the call ended. `process` is what was
    seen of its process when it was last asked in vain ("" where it just runs).
    """

    def __init__(self, server: ServerConfig, around: Surroundings) -> None:
        self.server = server
        self._around = around
        self.signals = LifeSignals(_no_word)
        self._gate: Gate | None = None
        self._trial = False
        self._heard_s = 0.0
        self.generation = 0
        self.stirred = Signal()
        self.suspicion = suspicion.NONE
        self.why = ""
        self.stopped = False

    def begin(self, signals: LifeSignals, gate: Gate, *, generation: int) -> None:
        """A life with an era: nothing is held against it."""
        self.signals, self._gate, self.generation = signals, gate, generation
        self._trial, self.stopped, self.why = False, False, ""
        self.suspicion = suspicion.NONE
        self.stirred.clear()

    def over(self) -> None:
        """The life has ended: whoever calls is told that, and nothing is held against the next."""
        self.signals, self._gate = LifeSignals(_no_word), None
        self._trial, self.suspicion = False, suspicion.NONE

    @property
    def health(self) -> Health:
        return self.suspicion.health

    def is_well(self) -> bool:
        """Whether nothing is held against it now."""
        return self.suspicion.health is Health.HEALTHY

    @property
    def heard(self) -> int:
        """How many messages this life has brought."""
        return self.signals.heard

    # Calls

    def admit(self) -> int:
        """Let one call in. Raises NotAnswering, at once, where only its deadline would end it."""
        if self.suspicion.health is not Health.WEDGED:
            return self.signals.heard
        self.look()
        if self.suspicion.health is not Health.WEDGED:
            return self.signals.heard
        if self._trial:
            raise self.refusal()
        self._trial = True
        return TRIAL

    def ended(self, ticket: int, failed: BaseException | None = None) -> None:
        """The call is over. What answered it was heard; what cancelled it says nothing."""
        if ticket == TRIAL:
            self._trial = False
        if not isinstance(failed, CallTimeout) or failed.fault != "peer":
            return
        self.look()
        if ticket != TRIAL:
            self.take(Sign.QUIET_TIMEOUT if ticket == self.heard else Sign.TIMEOUT)
        elif self.health is Health.WEDGED:
            self.take(Sign.UNANSWERED)

    def refusal(self) -> NotAnswering:
        """The error of a call that is not let in."""
        return NotAnswering(
            f"{self.server.name} does not answer: {self.why}; a trial call is under way, call "
            "again later",
            delivery="not_sent",
            fault="peer",
        )

    def sentence(self) -> str:
        """What is wrong and what follows, for its status."""
        patience_s = self.server.restarts.silent_restart_s
        return (
            f"it does not answer: {self.why}; one call at a time is let in to find out whether it "
            "is back, and it is ended and begun again if it says nothing for more than "
            f"{patience_s:.0f} s (silent_restart_s), or now by `observant-host restart "
            f"{self.server.name}`; if its tools only take long, raise its call_timeout_s"
        )

    # Signs

    def look(self) -> None:
        """Take note of what was heard since something was held against it."""
        held = self.suspicion
        if held.health is not Health.HEALTHY and held.heard != self.signals.heard:
            self.take(Sign.HEARD)

    def take(self, sign: Sign) -> None:
        """Something was seen: judge, and tell."""
        before, now_s = self.suspicion, self._around.clock.monotonic()
        found = suspicion.after(before, sign, at_s=now_s, heard=self.signals.heard)
        self.suspicion = found
        if sign is Sign.UNANSWERED and found.health is not Health.HEALTHY:
            self._tell("unresponsive", self.why)
        if found.health is not before.health:
            self._changed(found.health)
        self.judge()

    def silent(self, why: str) -> None:
        """A probe got nothing, unless something was heard meanwhile."""
        if self.health is not Health.HEALTHY:
            self.why = why
            self.take(Sign.UNANSWERED)

    def gone(self, why: str) -> None:
        """Over HTTP: what is there is not the server that this life began with."""
        self._tell("gone", why)

    def judge(self) -> None:
        """End this life where there is no hope left."""
        now_s, restarts = self._around.clock.monotonic(), self.server.restarts
        hopeless = suspicion.hopeless(
            self.suspicion,
            at_s=now_s,
            patience_s=restarts.silent_restart_s,
            awaited=self._awaited(),
        )
        spared = self.signals.held() or self.signals.condemned.is_set()
        if hopeless and not spared:
            silent_s = now_s - self.suspicion.since_s
            why = (
                f"it did not answer: {self.why}; nothing came for {silent_s:.0f} s since a call "
                "timed out"
            )
            self._tell("hopeless", why)
            self.signals.condemn(RestartReason.UNRESPONSIVE, why)

    def condemn(self, reason: RestartReason, detail: str, *, generation: int) -> None:
        """End this life for another reason, if it is still that one."""
        if generation == self.generation:
            self.signals.condemn(reason, detail)

    def wait_s(self) -> float | None:
        """Seconds until the server is to be asked, or judged again; None where all is well."""
        now_s = self._around.clock.monotonic()
        every_s = self.server.timing.probe_timeout_s
        return suspicion.probe_in_s(self.suspicion, at_s=now_s, every_s=every_s)

    def _awaited(self) -> bool:
        """Whether somebody still waits for a call that is no trial."""
        return self._gate is not None and self._gate.in_flight > self._trial

    def _changed(self, health: Health) -> None:
        if health is Health.HEALTHY:
            self.stopped, self.why = False, ""
        else:
            self.signals.spoke.clear()
        if health is Health.WEDGED and self._gate is not None:
            self._gate.fail_waiting(self.refusal)
        self.stirred.set()

    def _tell(self, verdict: str, detail: str) -> None:
        found = self.suspicion
        now_s = self._around.clock.monotonic()
        self._around.telemetry.count(
            HealthVerdict(
                peer=self.server.name,
                generation=self.generation,
                verdict=verdict,
                health=found.health,
                detail=detail,
                unanswered=found.unanswered,
                silent_ms=(now_s - found.since_s) * 1e3,
            )
        )
