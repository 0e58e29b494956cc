"""A peer whose configuration changes while the host runs.

What goes into the present life goes in at once. What needs a new one ends the old one: it takes no
more calls, its open ones may finish within the host's drain time, and the next life begins with
the new configuration. Both work at any moment, also between lives and in the middle of a round.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.config import ServerConfig
from observant_host.decisions.era import Permission
from observant_host.decisions.peer_states import Happened
from observant_host.decisions.reload_plan import Effect
from observant_host.decisions.terms import Cause, Era, RestartReason, Trigger
from observant_host.supervision.between import Next
from observant_host.supervision.calling import Calling
from observant_host.supervision.lives import Lives, with_revisions
from observant_host.supervision.peer_state import SERVING
from observant_host.timing.tasks import OwnerTask, Signal, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from observant_host.supervision.rounds import Rounds
    from observant_host.supervision.surroundings import Surroundings
    from observant_host.transports.base import End

LOOK_S: Final = 0.05
"""Between two looks at the calls that are still open: nothing on their path tells of it."""

ANEW: Final = "its configuration changed"


def _never() -> bool:
    return False


class Wanted(msgspec.Struct, frozen=True):
    """What becomes of the peer: another configuration, or (None) its end. `drain_s` is for calls
    that are open."""

    server: ServerConfig | None
    drain_s: float


class Adopting(Calling):
    """The part of a supervisor that takes a changed configuration; `start` once before."""

    _rounds: Rounds
    _lives: Lives
    _owner: OwnerTask
    _misses: int
    _restarts: int
    _why_ended: str

    def __init__(self, server: ServerConfig, around: Surroundings) -> None:
        super().__init__(server, around)
        self._wanted: Wanted | None = None
        self._asked_anew = Signal()

    @abstractmethod
    def _restart(self, why: RestartReason | None, end: End | None, *, uptime_s: float) -> Next:
        """Report the end of a life."""

    # From outside

    def adopt(self, server: ServerConfig, effects: Collection[str], *, drain_s: float) -> None:
        """Take new values into the life that goes on; a new life where its era is no longer
        allowed, or where none was chosen and more is allowed now."""
        if self.record.leaving:  # it was to begin anew before: then with these values, too
            self.begin_anew(server, drain_s=drain_s)
            return
        self.configure(server)
        if Effect.ERA in effects and self._needs_another_round():
            self.begin_anew(server, drain_s=drain_s)
            return
        if Effect.LISTS in effects and self.peer.life is not None:
            self._lives.signals.stale_lists()
        self._around.changed(server.name)

    def begin_anew(self, server: ServerConfig, *, drain_s: float) -> None:
        """End the present life, once its calls are over or `drain_s` is, and begin another."""
        self._want(Wanted(server, drain_s))

    def retire(self, *, drain_s: float) -> None:
        """End for good, once its calls are over or `drain_s` is; nothing new is routed to it."""
        self._want(Wanted(None, drain_s))

    def _want(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._asked_anew.set()
        self._route_no_more(wanted)

    def configure(self, server: ServerConfig) -> None:
        """From now on everything reads this configuration; what was made by another stays."""
        self.server = self.record.server = server
        self.record.leaving = False
        self.peer.configure(server)
        self.record.vitals.server = server
        self._rounds.judge()
        if self.record.life is not None:
            self.record.life.server = with_revisions(server)
        self._around.telemetry.peer_configured(
            server.name, legacy_allowed=bool(server.era.allow_legacy)
        )

    def _needs_another_round(self) -> bool:
        if self.record.era is Era.MODERN:
            return False
        allowed = self._rounds.verdict.permission is Permission.GRANTED
        revisions = self.server.era.allow_legacy
        spoken = not revisions or self.record.version in revisions
        return not (self.record.era is Era.LEGACY and allowed and spoken)

    # In the owner task

    async def _begin_anew(self, stop: Signal) -> Next:
        """End the present life, take what is wanted, and say what begins."""
        life = self.record.life
        wanted = await self._end_present(stop)
        if wanted.server is None or stop.is_set():
            self._owner.stop()
            return Next(Trigger.RELOAD)
        end = await self._lives.end(ANEW)  # whatever is left of it, within its own bound
        self._misses = self._restarts = 0
        self._why_ended = ANEW
        if life is not None:
            self._restart(RestartReason.RELOAD, end, uptime_s=0.0)
        self.configure(wanted.server)
        return Next(Trigger.RELOAD, asked=True)

    async def _end_present(self, stop: Signal) -> Wanted:
        """Route nothing more to the present life, let its calls finish, and end it."""
        self._asked_anew.clear()
        wanted = self._wanted or Wanted(self.server, 0.0)
        self._route_no_more(wanted)
        await self._drained(wanted.drain_s, stop)
        wanted = self._wanted or wanted
        self._asked_anew.clear()
        return wanted

    def _route_no_more(self, wanted: Wanted) -> None:
        why = ANEW if wanted.server is not None else "it left the configuration or is switched off"
        serving, comes_back = self.record.status.state in SERVING, wanted.server is not None
        self.record.leaving = True
        # a fault of the peer's is what calls wait out
        self.peer.detach(f"{why}; its open calls may end", fault="peer" if comes_back else "policy")
        if serving and comes_back:
            lost = Cause.PROCESS if self.server.transport == "stdio" else Cause.NETWORK
            self.record.happened(Happened.ERA_ENDED, cause=lost, detail=self._ending(why))

    def _ending(self, why: str) -> str:
        open_calls = self.peer.gate.in_flight
        if not open_calls:
            return f"{why}; it is started again now"
        return f"{why}; it is started again when its {open_calls} open calls are over"

    async def _drained(
        self, drain_s: float, stop: Signal, *, at_once: Callable[[], bool] = _never
    ) -> None:
        """Until its open calls are over, `drain_s` is, or somebody wants it `at_once`."""
        clock, life = self._around.clock, self.record.life
        until = clock.monotonic() + drain_s
        while life is not None and self.peer.gate.in_flight and not at_once():
            left = until - clock.monotonic()
            if left <= 0 or await wait_any(clock, min(left, LOOK_S), stop, life.end_signal):
                return
