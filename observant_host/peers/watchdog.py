"""Has one life tell of changes: keeps one stream open, and sees to it that none goes unnoticed.

A stream is opened again whenever it ends, ever more rarely where it does not last, and what it
covers is read anew each time: the protocol replays nothing. One that falls silent without having
ended is given up or replaced, so that no change can be missed for ever. It ends with the life.

Source: MCP 2026-07-28 server/utilities/subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from observant_host.decisions.silence import Judged, Patience, Verdict, is_doubtful, judge
from observant_host.decisions.subscription import Do, Filter, Loss, after, announces, wanted
from observant_host.peers.eras import ModernEra
from observant_host.peers.legacy_following import NOT_FOLLOWED, LegacyFollowing
from observant_host.peers.openings import Openings
from observant_host.timing.tasks import Signal, spawn, wait_any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from observant_host.peers.life import Life
    from observant_host.peers.listening import Listening
    from observant_host.peers.subscriptions import Subscription
    from observant_host.peers.wishes import Wishes

HEAD_START_S: Final = 0.25
"""The first lists wait so long for the first acknowledgment: then they need no second reading."""


class Watchdog:
    """Of one life that has its era. `random` gives [0, 1); `on_updated` gets the URI of each
    resource that may have changed while nobody told."""

    def __init__(
        self,
        life: Life,
        *,
        listening: Listening,
        wishes: Wishes,
        random: Callable[[], float],
        on_updated: Callable[[str], None],
        patience: Patience,
    ) -> None:
        self._life = life
        self._listening = listening
        self._wishes = wishes
        self._random = random
        self._patience = patience
        self._openings = Openings(life, listening=listening, wishes=wishes, on_updated=on_updated)
        self._following = LegacyFollowing(life, wishes=wishes, on_updated=on_updated)
        self._first_done = Signal()
        self._task: asyncio.Task[None] | None = None
        self._previous: Subscription | None = None
        self._verdict: Verdict | None = None
        self._attempts = 0
        self._uptime_s = 0.0
        life.subscriptions.least_gap_s = patience.least_gap_s

    @property
    def started(self) -> bool:
        return self._task is not None

    async def start(self, broken: Callable[[str, BaseException], None]) -> None:
        """Begin, and give the first stream a moment before lists are read."""
        life = self._life
        self._openings.parent = life.telemetry.current()
        self._task = spawn(f"changes of {life.server.name}", self._run(), on_error=broken)
        if isinstance(life.era, ModernEra):
            await wait_any(life.clock, HEAD_START_S, self._first_done, life.end_signal)
        self._openings.lists_read = True

    def session_renewed(self) -> None:
        """A legacy server has forgotten its session, and what it was asked to tell with it."""
        self._following.renewed.set()

    async def _run(self) -> None:
        try:
            if isinstance(self._life.era, ModernEra):
                await self._listen()
            else:
                self._listening.off()
                await self._following.run()
        finally:
            self._first_done.set()

    @property
    def _over(self) -> bool:
        return self._life.end is not None or self._life.subscriptions.closed

    async def _listen(self) -> None:
        life = self._life
        while not self._over:
            await self._budgeted()
            self._wishes.changed.clear()
            asked = wanted(life.capabilities, self._wishes.uris)
            if not announces(life.capabilities, "resources", "subscribe"):
                self._wishes.refused(self._wishes.uris, NOT_FOLLOWED)
            if asked or self._previous is not None:
                loss = await self._stream(asked)
                if loss is not None and not await self._pause(loss):
                    return
            else:
                self._listening.off()
                self._first_done.set()
                await wait_any(life.clock, None, self._wishes.changed, life.end_signal)

    async def _pause(self, loss: Loss) -> bool:
        """Wait for the next try; False where there is to be none."""
        life = self._life
        step = after(
            loss,
            attempts=self._attempts,
            uptime_s=self._uptime_s,
            healthy_after_s=life.server.restarts.healthy_after_s,
            random_0_1=self._random(),
        )
        self._first_done.set()
        if self._over:
            return False
        if step.do is Do.STOP:
            self._listening.off("it announces changes but knows no subscriptions/listen")
            self._wishes.refused(self._wishes.uris, self._listening.why)
            return False
        self._attempts, self._uptime_s = step.attempts, 0.0
        self._openings.reopening = True
        await wait_any(life.clock, step.delay_s, life.end_signal)
        return not self._over

    async def _stream(self, asked: Filter) -> Loss | None:
        """One stream, to its end; None where another is to take its place at once."""
        previous, verdict = self._previous, self._verdict
        self._previous = self._verdict = None
        if not asked:  # nobody wishes anything any more
            if previous is not None:
                self._life.subscriptions.end(previous)
            return None
        self._listening.wait()
        self._listening.relistens.take(self._life.clock.monotonic())
        opened = await self._openings.open(asked, previous=previous, verdict=verdict)
        if opened is None:
            return Loss.TRANSPORT
        self._first_done.set()
        if not opened.acked.is_set():
            return opened.lost.value or Loss.NO_ACK
        return await self._until_over(opened)

    async def _budgeted(self) -> None:
        """Until another stream may be opened: at once, unless that was asked for too often."""
        life, budget = self._life, self._listening.relistens
        while not self._over and (left := budget.wait_s(life.clock.monotonic())):
            await wait_any(life.clock, left, life.end_signal)

    async def _until_over(self, opened: Subscription) -> Loss | None:
        """Until it is lost, or is to be replaced: for other wishes, or because it is doubted."""
        life, drawn = self._life, self._random()
        while not opened.lost.is_set():
            opened.stirred.clear()
            judged = self._judged(opened, drawn)
            if judged.verdict is Verdict.SILENT:
                self._openings.distrusted(opened, judged.verdict)
                opened.lost.release(Loss.WATCHDOG)
                life.subscriptions.end(opened)
                break
            if judged.verdict is not Verdict.OK:
                self._openings.distrusted(opened, judged.verdict)
                self._previous, self._verdict = opened, judged.verdict
                return None
            left = judged.left_s if life.transport.kind != "stdio" else None
            signals = (opened.lost, self._wishes.changed, opened.stirred)
            await wait_any(life.clock, left, *signals)
            if opened.lost.is_set():
                break
            if self._rewished(opened):
                self._previous = opened
                return None
        self._uptime_s = self._openings.lost(opened)
        return opened.lost.value

    def _rewished(self, opened: Subscription) -> bool:
        if not self._wishes.changed.is_set():
            return False
        self._wishes.changed.clear()
        return wanted(self._life.capabilities, self._wishes.uris) != opened.asked

    def _judged(self, opened: Subscription, drawn: float) -> Judged:
        """A pipe cannot fall silent halfway: there only a process can, which is found otherwise."""
        now = self._life.clock.monotonic()
        if self._life.transport.kind == "stdio":
            return Judged(Verdict.OK)
        judged = judge(opened.pulse, self._patience, now_s=now, random_0_1=drawn)
        failed_since = opened.doubted_s
        if judged.verdict is not Verdict.OK or failed_since is None:
            return judged
        opened.doubted_s = None
        doubted = is_doubtful(opened.pulse, failed_since) and self._listening.doubts.take(now)
        return Judged(Verdict.DOUBTFUL) if doubted else judged
