"""The composition root: the one place that knows every layer.

One owner task holds everything that is open: it starts the servers, publishes the catalogue when
something changed, and ends all of it in reverse order. Others only signal it and wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import secrets as tokens
from collections import deque
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from observant_host.errors import HostError, SpawnFailed
from observant_host.host.followers import Followers
from observant_host.host.merging import first_listed, listed
from observant_host.host.transports import Transports
from observant_host.peers.input_handlers import NO_HANDLERS
from observant_host.peers.resource_cache import ResourceCache
from observant_host.routing.catalogue_store import CatalogueStore
from observant_host.routing.router import Router
from observant_host.state_files import InstanceLock, Memory, MemoryFile
from observant_host.supervision.fleet import Fleet
from observant_host.supervision.guardian import Guardian
from observant_host.supervision.memory import HostMemory
from observant_host.supervision.sampling import Sampler
from observant_host.supervision.saver import Saver
from observant_host.supervision.snapshots import snapshots
from observant_host.supervision.surroundings import Surroundings
from observant_host.telemetry import setup
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.vocabulary import HostLifecycle
from observant_host.timing.clock import Clock, SystemClock
from observant_host.timing.lag import watch_lag
from observant_host.timing.losses import tell_losses
from observant_host.timing.tasks import OwnerTask, Signal, in_turns, wait_any
from observant_host.transports.child import StartGate
from observant_host.version import VERSION
from observant_host.wire.envelope import ClientInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from observant_host.config import HostConfig, ServerConfig
    from observant_host.decisions.catalogue import Catalogue
    from observant_host.decisions.names import Grants
    from observant_host.peers.input_handlers import InputHandlers
    from observant_host.peers.told import LogMessage, OnLog
    from observant_host.telemetry.facade import Telemetry

FLIGHT_RECORDER: Final = 1000
"""Decisions kept in memory where no record is written: days of a quiet fleet, a megabyte."""
MERGE_SHARE: Final = 4.0
"""After a merge that took t the next waits 4 t: a storm of changes costs a fifth of the loop."""
START_REST: Final = (19.0, 0.25)
"""At start it waits 19 t, at most this (s): few merges, for nobody waits, and none of many."""
MEMORY_NAME: Final = "memory.json"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a host is made of. `servers` are read when it opens.
    `state_dir` None: nothing on disk. `recall_from` is a state folder whose memory is read but
    never written (a copy beside a running host). `partial`: more servers are configured than these,
    so the names that are kept are not for this host to recall or to change.
    """

    config: HostConfig
    servers: Collection[ServerConfig]
    state_dir: Path | None = None
    recall_from: Path | None = None
    record: bool = False
    partial: bool = False
    configure_sdk: bool = False
    child_nofile: int | None = None
    handlers: InputHandlers = NO_HANDLERS
    log_level: str | None = None
    on_log: OnLog | None = None
    masker: Masker = field(default_factory=Masker)
    telemetry: Telemetry | None = None
    clock: Clock = field(default_factory=SystemClock)
    random: Callable[[], float] = random.random


class Core:
    """A running host. `run` is its owner task; `ready` is set when start-up is over, `over` when
    everything is ended."""

    fleet: Fleet
    router: Router
    store: CatalogueStore
    memory: HostMemory
    telemetry: Telemetry
    around: Surroundings
    sampler: Sampler
    transports: Transports

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.instance = setup.instance_of(plan.state_dir) or tokens.token_hex(8)
        self.opened = Signal()
        self.ready = Signal()
        self.over = Signal()
        self.hurry = Signal()
        self.refreshed = Signal()
        self.dirty = Signal()
        self.catalogues: Followers[Catalogue] = Followers()
        self.servers: Followers[str] = Followers()
        self.announced: Followers[tuple[str, frozenset[str]]] = Followers()
        self.logs: Followers[LogMessage] = Followers(plan.on_log)
        self.decisions: deque[tuple[str, Mapping[str, Any]]] = deque(maxlen=FLIGHT_RECORDER)
        self._lists_run_out_s = math.inf
        self._changed: set[str] = set()
        self._starting = False
        self._settled = Signal()
        self._starts = StartGate(child_nofile=plan.child_nofile)
        self.black_box: Path | None = None
        self._guardian: Guardian | None = None
        self._saves: Saver | None = None

    async def run(self, stop: Signal) -> None:
        """Open, start, publish, serve, and end everything once `stop` is set."""
        try:
            async with AsyncExitStack() as stack:
                await self._open(stack)
                self.opened.set()
                stack.push_async_exit(self._crashed)
                stack.push_async_callback(self._end)
                await self.fleet.start()
                await self._start_up(stop)
                self.ready.set()
                await self._serve(stop)
        finally:
            self.over.set()
            self.refreshed.set()

    # Opening

    async def _open(self, stack: AsyncExitStack) -> None:
        plan = self.plan
        if plan.state_dir is not None:
            lock = await asyncio.to_thread(InstanceLock.of, plan.state_dir)
            stack.callback(lock.release)
        self.telemetry = plan.telemetry or setup.build(
            plan.config.telemetry,
            state_dir=plan.state_dir,
            record=plan.record,
            masker=plan.masker,
            instance=self.instance,
            version=VERSION,
            configure_sdk=plan.configure_sdk,
        )
        if plan.telemetry is None:
            stack.push_async_callback(self.telemetry.close)
        self._watch_loop(stack)
        remembered = await self._recall()
        saved = self._saver(remembered, stack)
        self.memory = HostMemory(remembered, clock=plan.clock, changed=saved)
        await self._guard(stack)
        self._compose(remembered, saved)
        await in_turns(plan.servers, self.fleet.add)
        stack.push_async_callback(self.sampler.close)
        self.sampler.start()

    def _watch_loop(self, stack: AsyncExitStack) -> None:
        """Measure how late the event loop is, and tell what telemetry lost, as long as we run."""
        lag = OwnerTask(
            "event loop lag",
            lambda stop: watch_lag(stop, clock=self.plan.clock, telemetry=self.telemetry),
            on_error=lambda name, error: self._say("task_failed", f"{name}: {error!r}"),
        )
        losses = OwnerTask(
            "telemetry losses",
            lambda stop: tell_losses(stop, clock=self.plan.clock, telemetry=self.telemetry),
            on_error=lambda name, error: self._say("task_failed", f"{name}: {error!r}"),
        )
        for task in (lag, losses):
            task.start()
            stack.push_async_callback(task.wait)
            stack.callback(task.stop)

    async def _recall(self) -> Memory:
        folder = self.plan.state_dir or self.plan.recall_from
        if folder is None:
            return Memory()
        loaded = await asyncio.to_thread(MemoryFile(folder / MEMORY_NAME).load)
        if loaded.warning is not None:
            self._say("memory_set_aside", loaded.warning)
        return loaded.memory

    def _saver(self, memory: Memory, stack: AsyncExitStack) -> Callable[[], None]:
        if self.plan.state_dir is None:
            return lambda: None
        saver = self._saves = Saver(
            MemoryFile(self.plan.state_dir / MEMORY_NAME),
            memory,
            telemetry=self.telemetry,
            clock=self.plan.clock,
        )
        saver.start()
        stack.push_async_callback(saver.close)
        return saver.changed

    async def _guard(self, stack: AsyncExitStack) -> None:
        guardian = Guardian(telemetry=self.telemetry, clock=self.plan.clock)
        try:
            await guardian.start()
        except SpawnFailed as error:
            self._say("guardian_missing", str(error))
            return
        self._guardian = guardian
        stack.push_async_callback(guardian.close)

    def _compose(self, remembered: Memory, saved: Callable[[], None]) -> None:
        plan, settings = self.plan, self.plan.config.host
        self.transports = transports = Transports(
            max_message_bytes=settings.max_message_bytes,
            masker=plan.masker,
            guardian=self._guardian,
            starts=self._starts,
            telemetry=self.telemetry,
            clock=plan.clock,
            hurry=self.hurry,
        )
        self.around = Surroundings(
            telemetry=self.telemetry,
            clock=plan.clock,
            random=plan.random,
            memory=self.memory,
            transport=transports,
            rotating=transports.rotating,
            client_info=ClientInfo("observant-host", VERSION),
            handlers=plan.handlers,
            masker=plan.masker,
            remember_modern=settings.remember_modern,
            changed=self.changed,
            decided=lambda name, decision: self.decisions.append((name, decision)),
            broken=lambda name, error: self._say("task_failed", f"{name}: {error!r}"),
            drain_timeout_s=lambda: self.plan.config.service.drain_timeout_s,
            cache=ResourceCache(plan.clock),
            log_level=plan.log_level,
            on_log=self.logs.tell,
        )

        def keep(grants: Grants) -> None:
            if not plan.partial:
                remembered.grants = grants
                saved()

        self.store = CatalogueStore(
            policy=settings.collision_policy,
            rename_grace_s=settings.rename_grace_s,
            telemetry=self.telemetry,
            clock=plan.clock,
            startup_deadline_s=settings.startup_deadline_s,
            granted=None if plan.partial else remembered.grants,
            remember=keep,
            on_change=self.catalogues.tell,
        )
        self.fleet = Fleet(self.around)
        self.sampler = Sampler(self.fleet, clock=plan.clock, on_error=self.around.broken)
        self.router = Router(
            self.store,
            self.fleet,
            telemetry=self.telemetry,
            clock=plan.clock,
            masker=plan.masker,
            catch_up=self.catch_up,
        )
        self.telemetry.watch_peers(
            lambda: snapshots(
                self.fleet,
                memory=self.memory,
                figures=self.sampler.figures,
                catalogue=self.store.current,
                now_s=self.around.now_s(),
            )
        )

    # Running

    async def keep_memory(self) -> bool:
        """Have the memory on disk before this returns; False where the disk does not take it."""
        return self._saves is None or await self._saves.keep()

    def configure(self, config: HostConfig) -> None:
        """Another configuration is in force, servers apart: those are the fleet's."""
        self.plan = replace(self.plan, config=config)
        self.store.policy = config.host.collision_policy
        self.store.rename_grace_s = config.host.rename_grace_s

    def changed(self, name: str) -> None:
        """A peer's state or listing changed: merge soon."""
        self._changed.add(name)
        self.dirty.set()
        if self._starting and self.fleet.settled():
            self._settled.set()
        self.servers.tell(name)

    async def _start_up(self, stop: Signal) -> None:
        self._starting, clock = True, self.plan.clock
        until = clock.monotonic() + self.plan.config.host.startup_deadline_s
        while not stop.is_set() and not self.fleet.settled():
            left = until - clock.monotonic()
            if left <= 0 or await wait_any(clock, left, stop, self.dirty) is None:
                break
            if self.dirty.is_set() and not self.fleet.settled():
                await self._merge(stop)
        self._starting = False
        for told in (self._settled, self.dirty, self._changed):
            told.clear()
        self.store.publish(self.fleet.peer_views())
        self._lists_run_out_s = self.fleet.lists_run_out_s()
        self._say("published", f"{len(self.store.current.tools)} tools")
        self.refreshed.set()

    async def _serve(self, stop: Signal) -> None:
        while not stop.is_set():
            await wait_any(self.plan.clock, self._wake_s(), stop, self.dirty)
            if not stop.is_set() and (self.dirty.is_set() or self._wake_s() == 0):
                await self._merge(stop)

    def catch_up(self) -> bool:
        """Merge at once what a server has listed for the first time: who sees it ready finds what
        it offers. True where there was something; once for each server, however often asked."""
        changed = self._changed  # none, at nearly every look
        behind = bool(changed) and first_listed(self.fleet, changed, self.store)
        if behind:
            self._merge_changed()
        return behind

    def looked_at(self) -> None:
        """Somebody looks at the catalogue: have lists read anew whose time has run out."""
        if self.plan.clock.monotonic() >= self._lists_run_out_s:
            self._lists_run_out_s = math.inf  # until the next merge: one look is enough
            self.fleet.freshen()

    async def fresh(self, within_s: float) -> None:
        """Until lists whose time is over were read anew and merged, or the time is over."""
        clock = self.plan.clock
        until_s = clock.monotonic() + within_s
        for peer in self.fleet.freshen():
            await peer.freshening.wait(until_s)
        while self.dirty.is_set() and not self.over.is_set():
            left = until_s - clock.monotonic()
            if left <= 0:
                return
            self.refreshed.clear()
            await wait_any(clock, left, self.refreshed, self.over)

    def _wake_s(self) -> float | None:
        at = self.store.wake_at
        return None if at is None else max(0.0, at - self.around.now_s())

    async def _merge(self, stop: Signal) -> None:
        began = self.plan.clock.monotonic()
        self._merge_changed()
        took = self.plan.clock.monotonic() - began
        share, most = (MERGE_SHARE, math.inf) if self.store.published else START_REST
        await wait_any(self.plan.clock, min(took * share, most), stop, self._settled)

    def _merge_changed(self) -> None:
        self.dirty.clear()
        names, self._changed = self._changed, set()
        peer = next(iter(names)) if len(names) == 1 else ""
        trigger, links = listed(self.fleet, names)
        self.store.refresh(self.fleet.peer_views(), peer=peer, trigger=trigger, links=links)
        self._lists_run_out_s = self.fleet.lists_run_out_s()
        self.refreshed.set()
        for name in names:
            known = self.fleet.get(name)
            if known is not None and (kinds := known.record.take_announced()):
                self.announced.tell((name, kinds))

    async def _crashed(
        self, _kind: object, error: BaseException | None, _traceback: object
    ) -> None:
        """A defect ends the host: what it decided last is kept beside the record."""
        if not isinstance(error, Exception) or isinstance(error, HostError):
            return
        folder, flight = self.plan.state_dir, self.telemetry.flight
        if folder is not None and flight is not None:
            with contextlib.suppress(OSError):
                self.black_box = await asyncio.to_thread(flight.dump, folder, "crash")
        where = f"; its last decisions: {self.black_box}" if self.black_box else ""
        self._say("crashed", f"{type(error).__name__}: {error}{where}")

    async def _end(self) -> None:
        self._say("stopping")
        await self.fleet.close()
        self._say("stopped")

    def _say(self, what: str, detail: str = "") -> None:
        self.telemetry.count(HostLifecycle(what=what, detail=detail))
