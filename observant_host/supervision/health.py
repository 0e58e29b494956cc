"""Whether a server is still there and answers, asked by one bounded request.

It is the one way in which anybody here asks: the serving loop, and through it the command line and
the API, so two questions never overlap.

Source: MCP 2026-07-28 server/discover; MCP 2025-11-25 basic/utilities/ping.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.decisions.budget import CHECKS, Budget
from observant_host.decisions.suspicion import Sign
from observant_host.decisions.terms import Era, Reason
from observant_host.errors import CallError, CallTimeout, HttpFailure, QueueFull, RpcError
from observant_host.supervision.figures import process_state
from observant_host.timing.tasks import ended_by
from observant_host.wire.messages import parse_discover

if TYPE_CHECKING:
    from observant_host.peers.life import Life
    from observant_host.supervision.signals import LifeSignals
    from observant_host.supervision.vitals import Vitals
    from observant_host.timing.clock import Clock
    from observant_host.timing.tasks import Signal

TOO_MANY_REQUESTS: Final = 429
STOPPED: Final = frozenset({"T", "t"})
"""States of a process in /proc that run only when somebody continues it."""


class Checkup(msgspec.Struct, frozen=True):
    """What came of one question. `missing` is None where it answers as the server it was, else
    what came, as a part of a sentence; `silent` where that was nothing at all."""

    missing: str | None = None
    silent: bool = False


async def ask(life: Life) -> Checkup:
    """One question, within `probe_timeout_s`.

    A legacy server need not know ping: any answer to it is a sign of life, and so is the wish to be
    left alone (429). A modern server that gives no DiscoverResult is not the one that this life
    began with.
    """
    modern = is_modern(life)
    expires = life.clock.monotonic() + life.server.timing.probe_timeout_s
    try:
        answer = await life.request(
            "server/discover" if modern else "ping",
            expires=expires,
            scope="probe",
            purpose="health",
        )
    except RpcError as error:
        said = f"server/discover was answered with error {error.code}"
        return Checkup(said if modern else None)
    except CallTimeout as late:
        unread = late.delivery == "not_sent"
        return Checkup(f"it does not read its input: {late}" if unread else str(late), silent=True)
    except CallError as failed:
        if _asks_for_a_pause(failed):
            return Checkup()
        return Checkup(str(failed), silent=isinstance(failed.__cause__, QueueFull))
    if not modern:
        return Checkup()
    found = parse_discover(answer)
    said = f"server/discover was answered, but {found}"
    return Checkup(said if isinstance(found, str) else None)


def is_modern(life: Life) -> bool:
    return life.era is not None and life.era.name is Era.MODERN


def _asks_for_a_pause(failed: CallError) -> bool:
    cause = failed.__cause__
    return isinstance(cause, HttpFailure) and cause.status == TOO_MANY_REQUESTS


class Checkups:
    """Asks one life, for its serving loop, and says what that means."""

    def __init__(self, life: Life, vitals: Vitals, *, signals: LifeSignals, clock: Clock) -> None:
        self._life = life
        self._vitals = vitals
        self._signals = signals
        self._clock = clock
        self._budget = Budget(CHECKS)
        self._by_http = life.server.transport != "stdio"
        self._over = (life.end_signal, signals.late_modern, signals.lost, signals.condemned)

    def wait_s(self) -> float | None:
        """Seconds until the server is to be asked, None where nothing is held against it."""
        wanted_s = self._vitals.wait_s()
        if wanted_s is None:
            return None
        return max(wanted_s, self._budget.wait_s(self._clock.monotonic()))

    async def after_a_loss(self) -> None:
        """A request was lost: is the server still there? If not, this life is over."""
        found = await self._ask(*self._over)
        if found is not None and found.missing is not None:
            self._gone(found.missing)

    async def of_a_suspect(self) -> None:
        """It said nothing: does it still answer? It need not, where it speaks meanwhile."""
        self._budget.take(self._clock.monotonic())
        vitals = self._vitals
        until = self._over if self._by_http else (*self._over, self._signals.spoke)
        found = await self._ask(*until)
        vitals.look()
        if found is None or any(signal.is_set() for signal in self._over):
            return
        if found.silent:
            await self._unanswered(found.missing or "")
        elif found.missing is not None and self._by_http:
            self._gone(found.missing)
        else:
            vitals.take(Sign.HEARD)  # from a process, an error is an answer too

    async def _unanswered(self, why: str) -> None:
        pid, vitals = self._life.transport.pid, self._vitals
        state = "" if pid is None else await asyncio.to_thread(process_state, pid)
        vitals.stopped = state in STOPPED
        if vitals.stopped:
            why = f"its process is stopped (SIGSTOP), continue it by kill -CONT {pid}: {why}"
        vitals.look()
        vitals.silent(why)

    def _gone(self, why: str) -> None:
        self._vitals.gone(why)
        self._signals.broken(Reason.UNREACHABLE, f"it is no longer there: {why}")

    async def _ask(self, *until: Signal) -> Checkup | None:
        found: Checkup | None = None
        with ended_by(*until) as scope:
            found = await ask(self._life)
        return None if scope.cancelled_caught else found
