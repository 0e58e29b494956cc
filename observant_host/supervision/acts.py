"""A person's acts on one server, and the rulings among them that stand: hold, disable, drain.

What an act comes to is decided by the table in `decisions.acts`. A ruling ends by another act, or
by its time; that too is recorded, as an act of the host's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions.acts import Act, Place, Ruling, Step, decide, is_over, place, sentence
from observant_host.decisions.peer_states import Happened
from observant_host.decisions.terms import Cause, RestartReason, Trigger
from observant_host.supervision.between import Next
from observant_host.supervision.peer_state import SERVING
from observant_host.supervision.waking import Waking
from observant_host.telemetry.vocabulary import OperatorAct
from observant_host.timing.tasks import Signal, wait_any

if TYPE_CHECKING:
    from observant_host.config import ServerConfig
    from observant_host.supervision.surroundings import Surroundings

LOOK_S: Final = 60.0
"""The longest sleep until a ruling's time is over: the wall clock may be set meanwhile."""


class Acting(Waking):
    """The part of a supervisor that does what a person says."""

    def __init__(self, server: ServerConfig, around: Surroundings) -> None:
        super().__init__(server, around)
        self._ruled = Signal()
        self._afresh = Signal()
        self._why_afresh = ""

    # From outside

    def place(self) -> Place:
        """Where it stands, as far as acts care."""
        return place(
            self.record.status.state,
            enabled=self.server.enabled,
            configured=self.server.problem is None,
            ruling=self.record.ruling,
        )

    async def act(self, act: Act, ruling: Ruling | None, *, why: str) -> None:
        """Do what the table says at this moment; returns once it is done, a round included.

        `ruling` is what stands after it, `why` a sentence with who and what for.
        """
        step = decide(self.place(), act)
        if step in (Step.REFUSE, Step.NOTHING):
            return
        if ruling != self.record.ruling:
            self._rule(ruling)
        match step:
            case Step.TRY:
                await self.again()
            case Step.END_LIFE:
                mine = self._ask()
                self._lives.signals.condemn(RestartReason.OPERATOR, why)
                await self._answered(mine)
            case Step.BEGIN_AFRESH:
                mine, self._why_afresh = self._ask(), why
                self._afresh.set()
                await self._answered(mine)
            case Step.RULE if self.record.off:
                await self._answered(self._ask())
            case Step.BEGIN:
                await self._answered(self._ask())
            case Step.RULE | Step.LIFT:
                pass

    def _rule(self, ruling: Ruling | None) -> None:
        self.record.ruling = ruling
        self._ruled.set()
        self._sooner.ruled.set()
        self._around.changed(self.server.name)

    # In the owner task

    async def _until_interrupted(self, stop: Signal) -> None:
        """Until the present life must go: the end, another configuration, a person's act."""
        over = (stop, self._asked_anew, self._afresh)
        while not (self.record.off or any(signal.is_set() for signal in over)):
            await self._ruling_moves(*over)

    async def _ruling_moves(self, *over: Signal) -> None:
        """Wait for one of `over`, or for a ruling to come, change, or run out."""
        self._ruled.clear()
        ruling = self.record.ruling
        left = None
        if ruling is not None and ruling.until is not None:
            left = min(max(0.0, ruling.until - self._around.now_s()), LOOK_S)
        await wait_any(self._around.clock, left, *over, self._ruled)
        if ruling is self.record.ruling and ruling is not None:
            self._expire(ruling)

    def _expire(self, ruling: Ruling) -> None:
        if is_over(ruling, self._around.now_s()):
            self._around.telemetry.count(
                OperatorAct(
                    verb=Act.ENABLE,
                    peer=self.server.name,
                    principal="host",
                    reason=f"its time is over: {sentence(ruling)}",
                )
            )
            self._around.memory.rule(self.server, None)
            self._rule(None)

    async def _begin_afresh(self) -> Next:
        """A person wants another life, whatever became of this one."""
        self._afresh.clear()
        why = self._why_afresh
        self.peer.detach(why)
        if self.record.status.state in SERVING:
            self.record.happened(Happened.ERA_ENDED, cause=Cause.PROCESS, detail=why)
        await self._lives.end(why)
        self._forget_failures()
        return Next(Trigger.MANUAL, asked=True)

    async def _switch_off(self, stop: Signal) -> None:
        """End the life, its open calls first where it is drained, and say so."""
        self._say_off()
        await self._drained(self._around.drain_timeout_s(), stop, at_once=self._at_once)
        ruling = self.record.ruling
        await self._lives.end(sentence(ruling) if ruling is not None else "it was switched off")
        self._forget_failures()
        self._say_off()

    def _say_off(self) -> None:
        ruling = self.record.ruling
        if ruling is None or not self.record.off:
            return  # enabled meanwhile: it is started as soon as its old life has ended
        self.peer.detach(sentence(ruling), fault="policy")
        left = self.peer.gate.in_flight if self.record.life is not None else 0
        open_calls = f"; {left} open calls may end first" if left and ruling.act == "drain" else ""
        self.record.happened(
            Happened.DISABLED,
            detail=f"{sentence(ruling)}{open_calls}; `observant-host enable {self.server.name}` "
            "starts it",
        )

    def _at_once(self) -> bool:
        ruling = self.record.ruling
        return ruling is not None and ruling.act == "disable"

    async def _stay_off(self, stop: Signal) -> None:
        """Until it is to run again, has another configuration, or the host ends."""
        while self.record.off and not stop.is_set() and not self._asked_anew.is_set():
            self._say_off()
            self._serve_acts(self._acts_asked)
            await self._ruling_moves(stop, self._asked_anew)

    def _switched_on(self) -> Next:
        self.record.happened(Happened.ENABLED, detail="it is being started")
        return Next(Trigger.MANUAL, asked=True)
