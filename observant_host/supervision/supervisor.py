"""One server over time: the owner task that begins lives, waits between them, and ends them.

    begin a life -> negotiate -> list -> serve until it ends -> drop the era -> back off -> again
                        └-> no era: unavailable; further rounds by backoff, on the same process
                            where it is kept

Nobody else opens or closes a transport of this server, so every scope is left by the task that
entered it; whoever wants the end only signals and waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from observant_host.decisions import restart
from observant_host.decisions.era import cause_of
from observant_host.decisions.peer_states import Happened
from observant_host.decisions.terms import OUTAGES, Cause, PeerState, Reason, RestartReason, Trigger
from observant_host.errors import TransportError
from observant_host.supervision.acts import Acting
from observant_host.supervision.between import Next, Waiting
from observant_host.supervision.freshening import Freshening
from observant_host.supervision.http_misses import after_http, over_http, stays
from observant_host.supervision.lives import Lives
from observant_host.supervision.rounds import Rounds
from observant_host.supervision.serving import Serving
from observant_host.supervision.sightings import spawn_evidence
from observant_host.supervision.waking import Pause
from observant_host.telemetry.vocabulary import PeerRestart, PeerStart
from observant_host.timing.tasks import OwnerTask, Signal

if TYPE_CHECKING:
    from observant_host.config import ServerConfig
    from observant_host.peers.life import Life
    from observant_host.peers.negotiation import Round
    from observant_host.supervision.surroundings import Surroundings
    from observant_host.transports.base import End


class PeerSupervisor(Acting):
    """Owns one peer. All methods are for the loop's thread; `start` once, `stop` any time."""

    def __init__(self, server: ServerConfig, around: Surroundings) -> None:
        super().__init__(server, around)
        self._rounds = Rounds(self.record, around)
        self._lives = Lives(self.record, self.peer, around, refused=self._rounds.refusal)
        self.freshening = Freshening(self.record, self._lives, around.clock)
        self._owner = OwnerTask(f"peer {server.name}", self._own, on_error=around.broken)
        self._why_ended = ""
        self._over = Signal()

    # From outside: signal and wait

    def start(self) -> None:
        """Begin; a disabled server stays as it is."""
        if self.server.enabled:
            self._owner.start()

    def stop(self) -> None:
        """Ask for the end; `wait` for it."""
        self.peer.detach("the host is closing it", fault="host")
        self._owner.stop()

    @property
    def done(self) -> bool:
        return not self._owner.started or self._owner.done

    async def ended(self) -> None:
        """Until its process is gone and nothing of it runs; never raises for what it died of."""
        if self._owner.started:
            await self._over.wait()

    # The owner task

    async def _own(self, stop: Signal) -> None:
        coming = Next(Trigger.BOOT, asked=True)
        try:
            while not stop.is_set():
                if self.record.off:
                    coming = await self._off(stop)
                    continue
                async with anyio.create_task_group() as group:
                    group.start_soon(self._live, coming, name=f"lives of {self.server.name}")
                    await self._until_interrupted(stop)
                    group.cancel_scope.cancel()
                if self._asked_anew.is_set() and not stop.is_set():
                    coming = await self._begin_anew(stop)
                elif not stop.is_set() and not self.record.off:
                    coming = await self._begin_afresh()
        finally:
            asked = stop.is_set()
            why = "the host ended it" if asked else "its supervision failed: a bug of the host"
            await self._lives.end(why)
            self.record.happened(
                Happened.STOPPED if asked else Happened.GAVE_UP, cause=Cause.PROCESS, detail=why
            )
            self._serve_acts(self._acts_asked)
            self._over.set()

    async def _off(self, stop: Signal) -> Next:
        """A person does not want it to run: end its life, and stay so until that is over."""
        await self._switch_off(stop)
        await self._stay_off(stop)
        if self._asked_anew.is_set() and not stop.is_set():
            return await self._begin_anew(stop)
        return self._switched_on() if not stop.is_set() else Next(Trigger.MANUAL)

    async def _live(self, coming: Next) -> None:
        if self.server.problem is not None:
            self._misconfigured(self.server.problem, trigger=coming.trigger)
            self._serve_acts(self._acts_asked)
            return
        while True:
            coming = await self._one_life(await self._rest(coming))

    def _misconfigured(self, problem: str, *, trigger: Trigger = Trigger.BOOT) -> None:
        self._rounds.conclude(Reason.CONFIG_INVALID, trigger=trigger, detail=problem)
        self.peer.detach(problem, fault="policy")
        self.record.happened(
            Happened.NO_ERA, cause=Cause.CONFIG, reason=Reason.CONFIG_INVALID, detail=problem
        )

    async def _one_life(self, trigger: Trigger) -> Next:
        again = self.record.status.state is PeerState.BACKOFF
        self.record.happened(
            Happened.LIFE_BEGAN,
            detail=f"it is being started again: {self._why_ended}" if again else "",
        )
        acts = self._take_wish()
        refusal = self._rounds.sse_refusal()
        if refusal is not None:
            self._serve_acts(acts)
            return self._refused(refusal, trigger)
        try:
            found, serving = await self._begin(trigger)
        except TransportError as failed:
            return self._not_started(failed, trigger=trigger)
        finally:
            self._serve_acts(acts)
        while serving is None:
            coming = await self._after_a_miss(found)
            if not coming.same_life:
                return coming
            acts = self._take_wish()
            found, serving = await self._round(coming.trigger)
            self._serve_acts(acts)
        return await self._serve(serving)

    async def _begin(self, trigger: Trigger) -> tuple[Round, Serving | None]:
        fact = PeerStart(
            peer=self.server.name,
            generation=self._lives.next_generation,
            trigger=trigger,
            transport=self.server.transport,
        )
        self._rounds.new_life()
        with self._around.telemetry.operation(
            fact, parent=self._trail.restart, links=self._trail.before_start()
        ) as operation:
            self._trail.start(operation.context)
            await self._lives.open()
            found, serving = await self._round(trigger)
            operation.note(era=found.selected)
            if serving is None:
                operation.end_as("unavailable", found.reason)
            return found, serving

    async def _round(self, trigger: Trigger) -> tuple[Round, Serving | None]:
        """Negotiate, and list where that gave an era."""
        lives = self._lives
        found = await self._rounds.run(
            lives.life, trigger, respawn=lives.open, open_sse=lives.open_sse
        )
        if found.era is None:
            return found, None
        self._misses = 0
        self.record.era, self.record.version = found.selected, found.era.version
        serving = Serving(
            self.record,
            self.peer,
            lives=self._lives,
            around=self._around,
            reason=found.reason,
        )
        await serving.list(trigger)
        return found, serving

    # What follows a round without an era

    async def _after_a_miss(self, found: Round) -> Next:
        self._misses += 1
        cause = found.cause or Cause.PROTOCOL
        self.peer.detach(found.detail, fault="peer" if cause in OUTAGES else "policy")
        self.record.happened(Happened.NO_ERA, cause=cause, reason=found.reason, detail=found.detail)
        delay_s = self._reprobe_delay()
        gone = self.record.life is None  # a stream that could not be opened in its place
        if over_http(found.life) and (gone or not stays(found)):
            return await self._leave(found, cause, delay_s)
        waiting = Waiting(
            found,
            life=self._lives.life,
            signals=self._lives.signals,
            around=self._around,
            delay_s=delay_s,
            silent_restart_s=self.server.restarts.silent_restart_s,
        )
        with self._waiting(Pause(waiting.may_wake, waiting.due_s)):
            coming = await waiting.next(self._sooner)
        if coming.trigger is Trigger.MANUAL:
            self._forget_failures()
        if coming.proved_modern:
            known = found.reason is Reason.LATE_MODERN_EVIDENCE
            return await self._late_modern(known=known)
        if coming.silent:
            return await self._ended(RestartReason.SILENT, "it stayed silent after initialize")
        if not coming.same_life:
            await self._lives.end("the next round needs a fresh process")
        return coming

    async def _leave(self, found: Round, cause: Cause, delay_s: float) -> Next:
        """Over HTTP nothing is kept for an answer that may come late."""
        if found.reason is Reason.LATE_MODERN_EVIDENCE:
            return await self._late_modern(known=True)
        await self._lives.end("it could not be used")
        return after_http(found, cause, delay_s=delay_s)

    def _refused(self, reason: Reason, trigger: Trigger) -> Next:
        """HTTP+SSE knows no modern server, so without an allowance there is nothing to ask."""
        detail = self._rounds.why_not_sse(reason)
        cause = cause_of(reason, transport=self.server.transport)
        self._rounds.conclude(reason, trigger=trigger, detail=detail)
        self.peer.detach(detail, fault="policy")
        self.record.happened(Happened.NO_ERA, cause=cause, reason=reason, detail=detail)
        return Next(Trigger.REPROBE, delay_s=None)

    def _not_started(self, failed: TransportError, *, trigger: Trigger) -> Next:
        self._misses += 1
        detail = str(failed)
        if self.server.transport != "stdio":
            self._misconfigured(detail, trigger=trigger)
            return Next(Trigger.REPROBE, delay_s=None)
        self._rounds.conclude(
            Reason.SPAWN_FAILED, trigger=trigger, detail=detail, evidence=spawn_evidence(detail)
        )
        self.peer.detach(detail)
        cause_errno = getattr(failed.__cause__, "errno", None)
        fatal = not restart.heals(Cause.PROCESS, spawn_errno=cause_errno)
        self.record.happened(
            Happened.GAVE_UP if fatal else Happened.NO_ERA,
            cause=Cause.PROCESS,
            reason=Reason.SPAWN_FAILED,
            detail=detail,
        )
        return Next(Trigger.REPROBE, delay_s=None if fatal else self._reprobe_delay())

    # What follows a life that had an era

    async def _serve(self, serving: Serving) -> Next:
        signals = self._lives.signals
        woken = await serving.until_over(
            self._sooner.wish, take=self._take_wish, served=self._serve_acts
        )
        uptime = serving.uptime_s()
        if woken is signals.late_modern:
            return await self._late_modern(uptime_s=uptime)
        lost = signals.lost.value
        if lost is not None and woken is signals.lost:
            why = RestartReason.CONNECTION_LOST
            return await self._ended(why, lost.detail, uptime_s=uptime, reason=lost.reason)
        condemned = signals.condemned.value
        if condemned is not None and woken is signals.condemned:
            return await self._ended(condemned.reason, condemned.detail, uptime_s=uptime)
        return await self._ended(None, "", uptime_s=uptime)

    async def _late_modern(self, *, known: bool = False, uptime_s: float = 0.0) -> Next:
        """A server that speaks modern after all: this life ends, a fresh one gets discover only.

        `known`: its own round has reported it.
        """
        self._rounds.proved_modern(None if known else self._lives.life)
        detail = (
            "it proved to be modern after initialize was written: this process is ended and a "
            "fresh one is asked by server/discover only"
        )
        late = Reason.LATE_MODERN_EVIDENCE
        why = RestartReason.LATE_MODERN_EVIDENCE
        return await self._ended(why, detail, uptime_s=uptime_s, reason=late)

    async def _ended(
        self,
        why: RestartReason | None,
        detail: str,
        *,
        uptime_s: float = 0.0,
        reason: Reason | None = None,
    ) -> Next:
        """End (or notice the end of) the life, drop its era, and say what comes when."""
        life = self.record.life
        end = self._leaving(life, detail or _sentence(None))
        if end is None and self.server.transport == "stdio":
            end = await self._lives.end(detail)  # how the process ended belongs to the restart
        if life is not None and life.inbox.cut_off is not None:
            self._trail.call_failed(life.inbox.cut_off)
        self._why_ended = detail or _sentence(end)
        coming = self._restart(why, end, uptime_s=uptime_s)
        lost = Cause.PROCESS if self.server.transport == "stdio" else Cause.NETWORK
        self.record.happened(
            Happened.ERA_ENDED,
            cause=lost if reason is None else cause_of(reason, transport=self.server.transport),
            reason=reason or "",
            detail=f"{self._why_ended}; {self._start_said(coming)}",
        )
        await self._lives.end(self._why_ended)
        return coming

    def _start_said(self, coming: Next) -> str:
        return coming.start_said(self._around.clock.wall_ns(), held=self.record.held)

    def _leaving(self, life: Life | None, why: str) -> End | None:
        """Call it no more, drop its era, and say how it ended if it did by itself: closing it may
        take a while, in which it must not look alive."""
        self.peer.detach(why)
        self._lives.drop(why)
        return life.end if life is not None else None

    def _restart(self, why: RestartReason | None, end: End | None, *, uptime_s: float) -> Next:
        following = restart.after(
            restart.Ended(
                how=end.kind if end is not None else "lost",
                exit_code=end.exit_code if end is not None else None,
                uptime_s=uptime_s,
                ended_by_us=why,
            ),
            policy=self.server.restarts,
            attempts=self._restarts,
            random_0_1=self._around.random(),
        )
        self._restarts = following.attempts
        delay_s = self._restart_delay(following)
        self._trail.restart = self.record.because = self._around.telemetry.count(
            PeerRestart(
                peer=self.server.name,
                reason=following.reason,
                generation=self.record.generation,
                attempt=following.attempts,
                backoff_ms=delay_s * 1000,
                exit_code=end.exit_code if end is not None else None,
                stderr_tail=end.stderr_tail if end is not None else "",
            ),
            links=self._trail.before_restart(None if why is None else self.record.because),
        )
        late = why is RestartReason.LATE_MODERN_EVIDENCE
        trigger = Trigger.LATE_EVIDENCE if late else Trigger.RESTART
        return Next(trigger, delay_s, asked=following.reason in restart.IMMEDIATE)


def _sentence(end: End | None) -> str:
    return end.detail if end is not None else "its process or connection ended"
