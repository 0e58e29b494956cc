"""A legacy HTTP session that its server has forgotten: renewed once, by one task, for all calls.

A refused request was never executed, so it may be sent again once a new session stands. Calls that
come meanwhile wait for the same renewal, each no longer than its own time. A renewal that fails,
that nobody allows any more, or the last of a few whose sessions serve nobody is the end of the
life: the next one asks by server/discover first.

Source: MCP 2025-11-25 basic/transports › Session Management.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from observant_host.decisions.evidence_kinds import EvidenceKind
from observant_host.decisions.terms import Reason
from observant_host.errors import CallTimeout, RpcError, Unavailable
from observant_host.peers.losses import SessionGone
from observant_host.peers.probing import Probing
from observant_host.telemetry.vocabulary import DeadlineExpired, RetryScheduled
from observant_host.timing.tasks import Latch, spawn, wait_any

if TYPE_CHECKING:
    import asyncio

    from msgspec import Raw

    from observant_host.peers.eras import Params
    from observant_host.peers.errand import Errand
    from observant_host.peers.life import Life


MAX_SENDS: Final = 8
"""Of one request: a call that is still refused after so many sessions is better told so."""
MAX_USELESS: Final = 3
"""Sessions one after the other that end before they serve anybody. One may be used up by what is
said at its start; but a server that refuses all of its own would be asked for ever more of them."""
USELESS: Final = "its session was lost, and the new ones are refused before they serve anybody"


class Sessions:
    """The renewals of one life's session. `number` counts the sessions it has had."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._renewal: Latch[bool] | None = None
        self._task: asyncio.Task[Any] | None = None
        self._served = 0
        self._asking: Counter[int] = Counter()
        self.number = 1

    async def run(self, errand: Errand, params: Params) -> Raw:
        """As Life.run; a request that was refused for its session is sent again in the next one.

        Once, or more often while each of these sessions served somebody, or may yet: then it is
        many calls that short sessions have to serve, and not this one that they refuse.
        """
        sends = 0
        while True:
            sends += 1
            if self._renewal is not None:
                await self._renewed(self._renewal, errand)
            number = self.number
            try:
                return await self._asked(number, errand, params)
            except SessionGone as gone:
                useless = self._served < number and not self._asking[number]
                if useless and number - self._served > MAX_USELESS:
                    self._life.listener.broken(Reason.HTTP_UNAVAILABLE, USELESS)
                if sends == MAX_SENDS or (sends > 1 and useless):
                    raise
                await self._again(number, errand, gone)
                errand.attempt += 1

    async def _asked(self, number: int, errand: Errand, params: Params) -> Raw:
        """Any answer but that one shows that the session lives."""
        self._asking[number] += 1
        try:
            answer = await self._life.ask(errand, params)
        except RpcError:
            self._served = max(self._served, number)
            raise
        finally:
            self._asking[number] -= 1
            if not self._asking[number]:
                del self._asking[number]
        self._served = max(self._served, number)
        return answer

    async def _again(self, number: int, errand: Errand, gone: SessionGone) -> None:
        """Until there is a newer session than `number`, the one that was refused."""
        life = self._life
        life.telemetry.count(
            RetryScheduled(
                peer=life.server.name,
                reason="session_lost",
                attempt=errand.attempt + 1,
                delay_ms=0.0,
            ),
            parent=errand.parent,
        )
        if self.number > number:
            return
        renewal = self._renewal or self._begin()
        try:
            await self._renewed(renewal, errand)
        except Unavailable as failed:
            raise failed from gone

    def _begin(self) -> Latch[bool]:
        renewal = self._renewal = Latch()
        self._task = spawn(
            f"{self._life.server.name} session", self._renew(renewal), on_error=self._failed
        )
        return renewal

    async def _renewed(self, renewal: Latch[bool], errand: Errand) -> None:
        life = self._life
        began = life.clock.monotonic()
        left = max(0.0, errand.expires - began)
        woken = await wait_any(life.clock, left, renewal, life.end_signal)
        if woken is None:
            raise self._too_late(errand, left, life.clock.monotonic() - began)
        if woken is not renewal or not renewal.value:
            raise Unavailable(
                f"{life.server.name} lost its session and got no new one; nothing was executed"
            )

    def _too_late(self, errand: Errand, budget_s: float, elapsed_s: float) -> CallTimeout:
        name = self._life.server.name
        self._life.telemetry.count(
            DeadlineExpired(
                peer=name,
                scope="connect",
                budget_ms=budget_s * 1e3,
                elapsed_ms=elapsed_s * 1e3,
                method=errand.method,
            ),
            parent=errand.parent,
        )
        return CallTimeout(
            f"the call's time was over while {name} got a new session; nothing was executed",
            scope="connect",
            delivery="not_sent",
        )

    async def _renew(self, renewal: Latch[bool]) -> None:
        try:
            renewed = await self._initialize()
        except BaseException:
            renewal.release(False)
            raise
        if renewed:
            self.number += 1
            self._renewal = None
        renewal.release(renewed)
        if renewed:
            self._life.listener.session_renewed()

    async def _initialize(self) -> bool:
        """One `initialize` without the old id, for the era that stands."""
        life = self._life
        refused = life.listener.legacy_refused()
        if refused is not None:
            life.listener.broken(refused, "its session was lost, and its allowance has ended")
            return False
        life.transport.forget_session()
        came = await Probing(life).renew()
        if came.kind is EvidenceKind.INITIALIZE_OK:
            await life.say_initialized()
            return True
        if not came.proves_modern:
            life.listener.broken(
                Reason.HTTP_UNAVAILABLE,
                f"its session was lost, and initialize gave no new one ({came.outcome})",
            )
        return False

    def _failed(self, _name: str, error: BaseException) -> None:
        self._life.listener.broken(
            Reason.HTTP_UNAVAILABLE, f"its session could not be renewed: {type(error).__name__}"
        )

    def close(self) -> None:
        """The life is over."""
        if self._task is not None:
            self._task.cancel()
