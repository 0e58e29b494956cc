"""The opening of one stream of changes, its loss, and what each means for everybody around."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from observant_host.decisions.subscription import Filter, Loss
from observant_host.errors import CallError, RpcError
from observant_host.peers import losses
from observant_host.telemetry.propagation import Link
from observant_host.telemetry.vocabulary import (
    DeadlineExpired,
    ListenOpen,
    SubscriptionLost,
    WatchdogCheck,
)
from observant_host.timing.tasks import wait_any

if TYPE_CHECKING:
    from collections.abc import Callable

    from observant_host.decisions.silence import Verdict
    from observant_host.peers.life import Life
    from observant_host.peers.listening import Listening
    from observant_host.peers.subscriptions import Subscription
    from observant_host.peers.wishes import Wishes
    from observant_host.telemetry.facade import Operation, TraceContext

NOT_GRANTED = "its server did not grant it; it is read by its time to live"


class Openings:
    """Of one life. `on_updated` gets the URI of each resource that may have changed untold."""

    def __init__(
        self,
        life: Life,
        *,
        listening: Listening,
        wishes: Wishes,
        on_updated: Callable[[str], None],
    ) -> None:
        self._life = life
        self._listening = listening
        self._wishes = wishes
        self._on_updated = on_updated
        self._stood = False
        self.parent: TraceContext | None = None
        self.reopening = False
        self.lists_read = False
        """Lists are being read, or were: what is acknowledged from now on came too late for them.
        """

    async def open(
        self, asked: Filter, *, previous: Subscription | None, verdict: Verdict | None
    ) -> Subscription | None:
        """Ask for one and wait for its acknowledgment; the previous one ends after that.

        `verdict` is why that one is replaced, None where the wishes changed. None is returned
        where the request could not even be sent.
        """
        life = self._life
        fact = ListenOpen(
            peer=life.server.name,
            generation=life.generation,
            version=life.era.version if life.era is not None else None,
            filter=asked.words(),
            reopened=self.reopening,
        )
        last, self.reopening = self._listening.last, False
        links = (Link(last, "resumes"),) if last is not None else ()
        with life.telemetry.operation(fact, parent=self.parent, links=links) as op:
            self.parent = None
            opened = await self._sent(asked, op)
            self._replace(previous, verdict, by=opened)
            self._listening.last = op.context
            if opened is not None:
                self._answered(opened, op)
        return opened

    async def _sent(self, asked: Filter, op: Operation) -> Subscription | None:
        life, ack_s = self._life, self._life.server.timing.ack_timeout_s
        expires = life.clock.monotonic() + ack_s
        try:
            opened = life.subscriptions.open(asked, expires=expires, trace=op.context)
        except CallError as error:
            self._refused(error, op, Loss.TRANSPORT)
            return None
        op.note(request_id=opened.id)
        await wait_any(life.clock, ack_s, opened.acked, opened.lost)
        return opened

    def _replace(
        self, previous: Subscription | None, verdict: Verdict | None, *, by: Subscription | None
    ) -> None:
        """The other stream is not needed any more; it may have ended in the meantime.

        One that was doubted is given up also where there is no other: that proves the doubt.
        """
        if previous is None:
            return
        if verdict is not None and not previous.lost.is_set():
            if by is not None and by.acked.is_set():
                self._listening.doubted(previous.pulse.heard_s, Loss.WATCHDOG)
            else:
                previous.lost.release(Loss.WATCHDOG)
        if previous.lost.is_set():
            self.lost(previous)
        self._life.subscriptions.end(previous)

    def _answered(self, opened: Subscription, op: Operation) -> None:
        if opened.acked.value is not None:
            self._up(opened, opened.acked.value, op)
        elif not opened.lost.is_set():
            self._life.subscriptions.end(opened)
            self._late(opened, op)
        elif opened.error is not None:
            self._refused(opened.error, op, opened.lost.value or Loss.REFUSED)
        else:
            why = "it ended its stream of changes before acknowledging it"
            self._down(why, opened.lost.value or Loss.GRACEFUL)
            op.end_as("invalid", "invalid_result")

    def _up(self, opened: Subscription, granted: Filter, op: Operation) -> None:
        left = opened.asked.without(granted)
        gap_s = self._listening.up(self._life.clock.monotonic())
        op.note(acked=granted.words(), left_out=left.words(), gap_s=gap_s)
        op.event("acknowledged")
        self._wishes.met(granted.uris)
        self._wishes.refused(left.uris, NOT_GRANTED)
        gap = self._listening.gap
        if not granted:
            self._listening.off("it grants none of the changes that it announces")
        if gap is not None:
            gap.resources_told = len(opened.asked.uris)
            self._read_anew(opened.asked)
            if not opened.asked.lists:
                self._listening.healed(gap, None, life=self._life)
        elif self.lists_read and not self._stood:
            self._read_anew(Filter(opened.asked.lists))
        self._stood = True

    def _read_anew(self, covered: Filter) -> None:
        """What changed meanwhile was not told: take it all as changed."""
        kinds: dict[str, Literal["tools", "prompts", "resources"]] = {
            "tools": "tools",
            "prompts": "prompts",
            "resources": "resources",
        }
        for kind in covered.lists:
            self._life.listener.list_changed(kinds[kind])
        for uri in covered.uris:
            self._on_updated(uri)

    def _late(self, opened: Subscription, op: Operation) -> None:
        ack_s = self._life.server.timing.ack_timeout_s
        self._down(f"it did not acknowledge subscriptions/listen within {ack_s:.3g} s", Loss.NO_ACK)
        self._life.telemetry.count(
            DeadlineExpired(
                peer=self._life.server.name,
                scope="ack",
                budget_ms=ack_s * 1000,
                elapsed_ms=(self._life.clock.monotonic() - opened.call.began) * 1000,
                method="subscriptions/listen",
            )
        )
        op.end_as("timeout", "timeout")

    def _refused(self, error: CallError, op: Operation, loss: Loss) -> None:
        self._down(f"it gives no stream of changes: {error}", loss)
        if isinstance(error, RpcError):
            op.note(rpc_code=error.code)
        losses.note_status(op, error)
        op.end_as(error.outcome, error.error_type)

    def _down(self, why: str, loss: Loss) -> None:
        self._listening.down(self._life.clock.monotonic(), why, reason=loss)

    # Losses

    def lost(self, opened: Subscription) -> float:
        """A stream that stood is no more; returns for how many seconds it stood."""
        life, now = self._life, self._life.clock.monotonic()
        age_s = now - (opened.acked_at or now)
        loss = opened.lost.value or Loss.TRANSPORT
        since = opened.pulse.heard_s if loss is Loss.WATCHDOG else now
        gap = self._listening.down(
            now, f"its stream of changes ended ({loss})", reason=loss, since=since
        )
        if life.subscriptions.closed:
            return age_s
        last, stream = opened.last_message_at, self._listening.last
        gap.lost = life.telemetry.count(
            SubscriptionLost(
                peer=life.server.name,
                generation=life.generation,
                request_id=opened.id,
                reason=loss,
                age_s=age_s,
                messages=opened.messages,
                last_message_age_s=None if last is None else now - last,
                detail=str(opened.error) if opened.error is not None else "",
            ),
            links=(Link(stream, "of_stream"),) if stream is not None else (),
        )
        return age_s

    def distrusted(self, opened: Subscription, verdict: Verdict) -> None:
        """Tell that a stream which has not ended is trusted no longer, and why."""
        life, stream = self._life, self._listening.last
        life.telemetry.count(
            WatchdogCheck(
                peer=life.server.name,
                generation=life.generation,
                request_id=opened.id,
                verdict=verdict,
                silent_s=life.clock.monotonic() - opened.pulse.heard_s,
                interval_s=opened.pulse.interval_s,
            ),
            links=(Link(stream, "of_stream"),) if stream is not None else (),
        )
