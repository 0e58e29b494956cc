"""Has one life tell of changes: keeps one stream open, and sees to it that none goes unnoticed.

A stream is opened again whenever it ends, ever more rarely where it does not last, and what it
covers is read anew each time: the protocol replays nothing. It ends with the life.

Source: MCP 2026-07-28 server/utilities/subscriptions; 2025-11-25 server/resources › Subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from observant_host.decisions.subscription import Do, Filter, Loss, after, announces, wanted
from observant_host.errors import CallError, RpcError
from observant_host.peers import losses
from observant_host.peers.eras import ModernEra
from observant_host.telemetry.propagation import Link
from observant_host.telemetry.vocabulary import (
    DeadlineExpired,
    ListenOpen,
    SubscriptionLost,
    WishUnmet,
)
from observant_host.timing.tasks import Signal, spawn, wait_any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from observant_host.peers.life import Life
    from observant_host.peers.subscriptions import Subscription
    from observant_host.peers.wishes import Wishes
    from observant_host.telemetry.facade import Operation, TraceContext

HEAD_START_S: Final = 0.25
"""The first lists wait so long for the first acknowledgment: then they need no second reading."""

NOT_FOLLOWED: Final = "its server does not let resources be followed (no resources.subscribe)"


class Listening:
    """How it stands with one server, over all its lives. `changed` is set whenever that changes.

    "off": nothing is to be told, or the server cannot. `down_since` (monotonic seconds) is set
    while changes go untold although they should not.
    """

    def __init__(self) -> None:
        self.layer: Literal["ok", "waiting", "down", "off"] = "off"
        self.why = ""
        self.down_since: float | None = None
        self.last: TraceContext | None = None
        self.changed = Signal()

    def wait(self) -> None:
        if self.layer == "off":
            self.layer = "waiting"

    def up(self, now: float) -> float | None:
        """Returns for how many seconds changes went untold; None where they did not."""
        since, self.down_since = self.down_since, None
        self._be("ok", "")
        return None if since is None else now - since

    def down(self, now: float, why: str) -> None:
        if self.down_since is None:
            self.down_since = now
        self._be("down", why)

    def off(self, why: str = "") -> None:
        self.down_since = None
        self._be("off", why)

    def _be(self, layer: Literal["ok", "down", "off"], why: str) -> None:
        if (layer, why) != (self.layer, self.why):
            self.layer, self.why = layer, why
            self.changed.set()


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
    ) -> None:
        self._life = life
        self._listening = listening
        self._wishes = wishes
        self._random = random
        self._on_updated = on_updated
        self._first_done = Signal()
        self._task: asyncio.Task[None] | None = None
        self._parent: TraceContext | None = None
        self._previous: Subscription | None = None
        self._reopening = False
        self._stood = False
        self._attempts = 0
        self._uptime_s = 0.0
        self.reading = False
        """Lists are being read, or were: what is acknowledged from now on came too late for them.
        """
        self.renewed = Signal()
        """A legacy server has forgotten its session, and what it was asked to tell with it."""

    @property
    def started(self) -> bool:
        return self._task is not None

    async def start(self, broken: Callable[[str, BaseException], None]) -> None:
        """Begin, and give the first stream a moment before lists are read."""
        life = self._life
        self._parent = life.telemetry.current()
        self._task = spawn(f"changes of {life.server.name}", self._run(), on_error=broken)
        if isinstance(life.era, ModernEra):
            await wait_any(life.clock, HEAD_START_S, self._first_done, life.end_signal)

    async def _run(self) -> None:
        modern = isinstance(self._life.era, ModernEra)
        try:
            await (self._listen() if modern else self._subscribe())
        finally:
            self._first_done.set()

    @property
    def _over(self) -> bool:
        return self._life.end is not None or self._life.subscriptions.closed

    # Modern: one stream

    async def _listen(self) -> None:
        life = self._life
        while not self._over:
            self._wishes.changed.clear()
            asked = wanted(life.capabilities, self._wishes.uris)
            if not announces(life.capabilities, "resources", "subscribe"):
                self._unmet(self._wishes.uris, NOT_FOLLOWED)
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
            self._unmet(self._wishes.uris, self._listening.why)
            return False
        self._attempts, self._uptime_s, self._reopening = step.attempts, 0.0, True
        await wait_any(life.clock, step.delay_s, life.end_signal)
        return not self._over

    async def _stream(self, asked: Filter) -> Loss | None:
        """One stream, to its end; None where another is to take its place at once."""
        life, previous = self._life, self._previous
        self._previous = None
        if not asked:  # nobody wishes anything any more
            if previous is not None:
                life.subscriptions.end(previous)
            return None
        self._listening.wait()
        opened = await self._open(asked, previous)
        if opened is None:
            return Loss.TRANSPORT
        self._first_done.set()
        if not opened.acked.is_set():
            return opened.lost.value or Loss.NO_ACK
        return await self._until_lost(opened)

    async def _open(self, asked: Filter, previous: Subscription | None) -> Subscription | None:
        life = self._life
        ack_s = life.server.timing.ack_timeout_s
        fact = ListenOpen(
            peer=life.server.name,
            generation=life.generation,
            version=life.era.version if life.era is not None else None,
            filter=asked.words(),
            reopened=self._reopening,
        )
        last, self._reopening = self._listening.last, False
        links = (Link(last, "resumes"),) if last is not None else ()
        with life.telemetry.operation(fact, parent=self._parent, links=links) as op:
            self._parent = None
            self._listening.last = op.context
            expires = life.clock.monotonic() + ack_s
            opened: Subscription | None
            try:
                opened = life.subscriptions.open(asked, expires=expires, trace=op.context)
            except CallError as error:
                self._refused(error, op)
                opened = None
            else:
                op.note(request_id=opened.id)
                await wait_any(life.clock, ack_s, opened.acked, opened.lost)
            self._replace(previous)
            if opened is not None:
                self._opened(opened, op, ack_s=ack_s)
        return opened

    def _replace(self, previous: Subscription | None) -> None:
        """The other stream is not needed any more; it may have ended in the meantime."""
        if previous is None:
            return
        if previous.lost.is_set():
            self._down("its stream of changes ended")
        self._life.subscriptions.end(previous)

    def _opened(self, opened: Subscription, op: Operation, *, ack_s: float) -> None:
        if opened.acked.value is not None:
            self._up(opened, opened.acked.value, op)
        elif not opened.lost.is_set():
            self._life.subscriptions.end(opened)
            self._late(opened, op, ack_s=ack_s)
        elif opened.error is not None:
            self._refused(opened.error, op)
        else:
            self._down("it ended its stream of changes before acknowledging it")
            op.end_as("invalid", "invalid_result")

    def _up(self, opened: Subscription, granted: Filter, op: Operation) -> None:
        left = opened.asked.without(granted)
        gap_s = self._listening.up(self._life.clock.monotonic())
        op.note(acked=granted.words(), left_out=left.words(), gap_s=gap_s)
        op.event("acknowledged")
        self._unmet(left.uris, "its server did not grant it; it is read by its time to live")
        if not granted:
            self._listening.off("it grants none of the changes that it announces")
        if gap_s is not None:
            self._read_anew(opened.asked)
        elif self.reading and not self._stood:
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

    def _late(self, opened: Subscription, op: Operation, *, ack_s: float) -> None:
        self._down(f"it did not acknowledge subscriptions/listen within {ack_s:.3g} s")
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

    def _refused(self, error: CallError, op: Operation) -> None:
        self._down(f"it gives no stream of changes: {error}")
        if isinstance(error, RpcError):
            op.note(rpc_code=error.code)
        losses.note_status(op, error)
        op.end_as(error.outcome, error.error_type)

    async def _until_lost(self, opened: Subscription) -> Loss | None:
        life = self._life
        while not opened.lost.is_set():
            await wait_any(life.clock, None, opened.lost, self._wishes.changed)
            if opened.lost.is_set():
                break
            self._wishes.changed.clear()
            if wanted(life.capabilities, self._wishes.uris) != opened.asked:
                self._previous = opened
                return None
        self._lost(opened)
        return opened.lost.value

    def _lost(self, opened: Subscription) -> None:
        life, now = self._life, self._life.clock.monotonic()
        self._uptime_s = age_s = now - (opened.acked_at or now)
        loss = opened.lost.value or Loss.TRANSPORT
        self._down(f"its stream of changes ended ({loss})")
        if life.subscriptions.closed:
            return
        last = opened.last_message_at
        context = self._listening.last
        life.telemetry.count(
            SubscriptionLost(
                peer=life.server.name,
                generation=life.generation,
                request_id=opened.id,
                reason=loss,
                age_s=age_s,
                messages=opened.messages,
                last_message_age_s=None if last is None else now - last,
            ),
            links=(Link(context, "of_stream"),) if context is not None else (),
        )

    def _down(self, why: str) -> None:
        self._listening.down(self._life.clock.monotonic(), why)

    def _unmet(self, uris: tuple[str, ...], why: str) -> None:
        for uri in uris:
            fact = WishUnmet(peer=self._life.server.name, uri=uri, detail=why)
            self._life.telemetry.count(fact)

    # Legacy: one request a resource

    async def _subscribe(self) -> None:
        life = self._life
        self._listening.off()
        if not announces(life.capabilities, "resources", "subscribe"):
            self._unmet(self._wishes.uris, NOT_FOLLOWED)
            return
        told: set[str] = set()
        while not self._over:
            self._wishes.changed.clear()
            if self.renewed.is_set():
                self.renewed.clear()
                told.clear()
            wished = set(self._wishes.uris)
            for uri in sorted(wished - told):
                await self._ask("resources/subscribe", uri)
            for uri in sorted(told - wished):
                await self._ask("resources/unsubscribe", uri)
            told = wished
            await wait_any(life.clock, None, self._wishes.changed, self.renewed, life.end_signal)

    async def _ask(self, method: str, uri: str) -> None:
        life = self._life
        params: dict[str, Any] = {"uri": uri}
        expires = life.clock.monotonic() + life.server.timing.ack_timeout_s
        try:
            await life.request(method, params, expires=expires, uri=uri, scope="ack")
        except CallError as error:
            if life.end is None and method == "resources/subscribe":
                self._unmet((uri,), str(error))
