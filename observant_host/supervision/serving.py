"""A peer that has an era: list, route, list again when it changed, until the life ends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from observant_host.decisions import backoff
from observant_host.decisions.budget import STALE_LISTS, Budget
from observant_host.decisions.listing_flaws import Flaws, flaws
from observant_host.decisions.peer_states import Happened
from observant_host.decisions.relisting import Relists
from observant_host.decisions.silence import Patience
from observant_host.decisions.suspicion import Health, Sign
from observant_host.decisions.terms import Era, Reason, Trigger
from observant_host.errors import Unavailable
from observant_host.peers.discovery import list_everything
from observant_host.peers.pages import ListBounds
from observant_host.peers.watchdog import Watchdog
from observant_host.supervision.health import Checkups
from observant_host.telemetry.vocabulary import ListingFlawed
from observant_host.timing.tasks import Signal, ended_by, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.peers.peer import Peer
    from observant_host.supervision.lives import Lives
    from observant_host.supervision.peer_state import PeerRecord
    from observant_host.supervision.surroundings import Surroundings

RETRY_FIRST_S: Final = 1.0
RETRY_MAX_S: Final = 60.0
"""A list that failed is read again after this, doubling: the peer works, only its list does not."""


UNHEARD_S: Final = 60.0
"""A stream of changes that is down for longer is more than a reconnection: a person should know."""

PATIENCE: Final = Patience()


class Serving:
    """One serving of one life. Made when an era was chosen, left when the life is over."""

    def __init__(
        self,
        record: PeerRecord,
        peer: Peer,
        *,
        lives: Lives,
        around: Surroundings,
        reason: Reason,
    ) -> None:
        self._record = record
        self._peer = peer
        self._life = lives.life
        self._signals = lives.signals
        self._around = around
        self._reason = reason
        self._relisting = Relists()
        self._stale = Budget(STALE_LISTS)
        self._failures = 0
        self._retry_at = math.inf
        self._ready_at: float | None = None
        self._told = Flaws()
        self._vitals = record.vitals
        self._vitals.begin(self._signals, peer.gate, generation=record.generation)
        self._checkups = Checkups(
            self._life, self._vitals, signals=self._signals, clock=around.clock
        )
        self._watchdog = Watchdog(
            self._life,
            listening=record.listening,
            wishes=peer.wishes,
            random=around.random,
            on_updated=peer.updated,
            patience=PATIENCE,
        )

    async def list(self, trigger: Trigger) -> None:
        """Read all lists, become ready (or degraded). Ends early with the life or its era."""
        signals = self._signals
        if not self._watchdog.started:
            self._peer.follow(self._life)
            await self._watchdog.start(self._around.broken)
        told_in, announced = signals.take_changes()
        if trigger is not Trigger.EXPIRED:  # that a hint ran out is no word of the server's
            self._relisting.began(self._now())
        if signals.stale.is_set():
            self._stale.take(self._now())
            self._watchdog.session_renewed()
        signals.stale.clear()
        signals.expired.clear()
        listening = self._record.listening
        gap = listening.reading(self._record.listing)
        heard, nth = self._vitals.heard, self._record.readings + 1
        with ended_by(signals.late_modern, signals.lost, signals.condemned):
            try:
                self._record.listing = await list_everything(
                    self._life,
                    tool_filter=self._record.server.tools,
                    bounds=ListBounds(seconds=self._record.server.timing.list_timeout_s),
                    previous=self._record.listing,
                )
                self._record.lists_read(
                    trigger, told_in or self._around.telemetry.current(), announced=announced
                )
                if self._record.listing.complete:
                    listening.healed(gap, self._record.listing, life=self._life)
                self._record.readings = nth  # before anybody sees it, and asks for the next
                self._listed()
            except Unavailable:
                pass  # the life ended meanwhile: `until_over` sees the same signal
        listing = self._record.listing
        if listing is not None and not listing.complete and heard == self._vitals.heard:
            self._vitals.take(Sign.QUIET_TIMEOUT)
        self._record.readings = nth
        self._record.listed.set()

    def _listed(self) -> None:
        listing = self._record.listing
        if listing is None or self._life.end is not None or self._record.leaving:
            return
        self._peer.attach(self._life)
        now = self._now()
        self._ready_at = self._ready_at if self._ready_at is not None else now
        self._failures = 0 if listing.complete else self._failures + 1
        self._retry_at = math.inf if listing.complete else now + self._retry_delay()
        self._record.listing_layer = "ok" if listing.complete else "failing"
        self._say()

    def _retry_delay(self) -> float:
        return backoff.ceiling(self._failures, initial_s=RETRY_FIRST_S, maximum_s=RETRY_MAX_S)

    def _say(self) -> None:
        """State and sentence of this moment: ready, or degraded with what is not as it should."""
        record = self._record
        self._around.memory.was_ready(record.server)
        tools = len(record.listing.tools) if record.listing is not None else 0
        parts = [f"{record.era} {record.version}, {tools} tool{'' if tools == 1 else 's'}"]
        parts += [problem] if (problem := self._problem()) else []
        parts += [note] if (note := record.listening.note()) and note != problem else []
        parts += [note] if (note := self._peer.wishes.note()) else []
        parts += [found] if (found := self._flaws().sentence()) else []
        record.happened(
            Happened.LISTED_IN_PART if problem else Happened.LISTED,
            reason=Reason.ALLOWANCE_EXPIRED if self._expired() else self._reason,
            detail="; ".join(parts),
        )
        self._around.changed(record.server.name)

    def _flaws(self) -> Flaws:
        """What is wrong with the lists; told when it changed."""
        found = flaws(self._record.listing, chatty=self._relisting.chatty)
        if found and found != self._told:
            self._around.telemetry.count(
                ListingFlawed(
                    peer=self._record.server.name,
                    detail=found.detail,
                    excluded=found.excluded,
                    left_out=found.left_out,
                )
            )
        self._told = found
        return found

    def _problem(self) -> str | None:
        listing = self._record.listing
        if self._vitals.health is Health.WEDGED:
            return self._vitals.sentence()
        if self._expired():
            return (
                "its legacy allowance ended while it runs: it serves until it ends, then "
                "initialize is refused; renew legacy_expires or move it to a modern version"
            )
        if listing is not None and not listing.complete:
            return "a list could not be read and is tried again"
        since = self._record.listening.down_since
        if since is not None and self._now() >= since + UNHEARD_S:
            return self._record.listening.note()
        return None

    def _expired(self) -> bool:
        expires = self._record.allowance_expires_s
        return (
            self._record.era is Era.LEGACY
            and expires is not None
            and self._around.now_s() >= expires
        )

    def uptime_s(self) -> float:
        """Seconds since it first became ready; 0 where it did not."""
        return self._now() - self._ready_at if self._ready_at is not None else 0.0

    async def until_over(
        self, wish: Signal, *, take: Callable[[], int], served: Callable[[int], None]
    ) -> Signal:
        """Keep the listing up to date until the life ends or proves modern; returns that signal.

        `wish` is a person's act: `take` it, list anew, tell `served` which acts that answered.
        """
        signals = self._signals
        over = (self._life.end_signal, signals.late_modern, signals.lost, signals.condemned)
        try:
            return await self._until(over, wish, take=take, served=served)
        finally:
            self._vitals.over()

    async def _until(
        self,
        over: tuple[Signal, ...],
        wish: Signal,
        *,
        take: Callable[[], int],
        served: Callable[[int], None],
    ) -> Signal:
        signals = self._signals
        while True:
            if not self._vitals.is_well():
                if (end := await self._unwell(over, wish)) is not None:
                    return end
                if wish.is_set() and not self._vitals.is_well():
                    served(take())
                continue
            calm, rest = self._calm_s(), self._rest_s()
            heard, turned = self._record.listening.changed, self._peer.wishes.turned
            wake = (
                *(*over, wish, signals.expired, signals.doubt, heard, turned),
                self._vitals.stirred,
                *(() if rest else (signals.stale,)),
                *(() if calm else (signals.lists,)),
            )
            woken = await wait_any(self._around.clock, self._alarm_s(calm, rest), *wake)
            if woken in over and woken is not None:
                return woken
            if woken is wish:
                asked = take()
                await self.list(Trigger.MANUAL)
                served(asked)
            elif woken is signals.doubt:
                signals.doubt.clear()
                await self._checkups.after_a_loss()
            elif woken in (heard, turned, self._vitals.stirred) and woken is not None:
                woken.clear()
                self._say_again()
            elif woken is signals.expired:
                await self.list(Trigger.EXPIRED)
            elif self._may_list():
                await self.list(Trigger.LIST_CHANGED)
            elif self._now() >= self._retry_at:
                await self.list(Trigger.REPROBE)
            elif woken is None:
                self._say_again()

    async def _unwell(self, over: tuple[Signal, ...], wish: Signal) -> Signal | None:
        """It is suspected, or silent: ask it, and nothing else of it, until it speaks. Returns what
        ended its life, if something did."""
        vitals, spoke = self._vitals, self._signals.spoke
        wake = (*over, spoke, vitals.stirred, wish)
        woken = await wait_any(self._around.clock, self._checkups.wait_s(), *wake)
        if woken in over:
            return woken
        spoke.clear()
        vitals.stirred.clear()
        vitals.look()
        if (woken is None or woken is wish) and not vitals.is_well():
            await self._checkups.of_a_suspect()
        self._say_again()
        return None

    def _say_again(self) -> None:
        """Something other than the lists changed."""
        if self._ready_at is not None and not self._record.leaving:
            self._say()

    def _may_list(self) -> bool:
        """The server said that a list changed, or is stale, and has not said so too often."""
        signals = self._signals
        changed = signals.lists.is_set() and self._calm_s() == 0.0
        return changed or (signals.stale.is_set() and self._rest_s() == 0.0)

    def _calm_s(self) -> float:
        """Seconds until lists may be read because one changed; 0 where they may, or none did."""
        signals = self._signals
        if not signals.lists.is_set():
            return 0.0
        return self._relisting.wait_s(self._now(), changed_s=signals.changed_s)

    def _rest_s(self) -> float:
        """As `_calm_s`, for lists that are stale."""
        return self._stale.wait_s(self._now()) if self._signals.stale.is_set() else 0.0

    def _alarm_s(self, calm: float, rest: float) -> float | None:
        """Seconds to the next thing to do unasked, None where there is none."""
        alarms = [self._retry_at - self._now()] if self._retry_at < math.inf else []
        alarms += [wait for wait in (calm, rest) if wait]
        since = self._record.listening.down_since
        if since is not None and self._now() < since + UNHEARD_S:
            alarms.append(since + UNHEARD_S - self._now())
        expires = self._record.allowance_expires_s
        if expires is not None and self._record.era is Era.LEGACY and not self._expired():
            alarms.append(expires - self._around.now_s())
        return max(0.0, min(alarms)) if alarms else None

    def _now(self) -> float:
        return self._around.clock.monotonic()
