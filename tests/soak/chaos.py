"""Callers that count side effects while servers are killed, stopped, slowed, cut, and flood.

calm     all servers behave: what the loop's lag and the healthy servers' queues are like
chaos    each goes wrong by its temper, and signals from outside
after    all behave again and are ready; then everything is closed and nothing is left
"""

from __future__ import annotations

import asyncio
import gc
import random
import tempfile
import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from observant_host import Host
from observant_host.errors import CallError
from observant_host.telemetry.vocabulary import GapHealed, RoutedCall
from tests.soak import figures
from tests.soak.fleet import Fleet, Member, members
from tests.soak.ledger import Account, Ended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from observant_host.telemetry.facade import Finished
    from observant_host.telemetry.vocabulary import Fact

CALLERS = 64
THINK_S = (0.02, 0.2)
DEADLINE_S = 3.0
GIVES_UP = 0.02
"""Share of calls that their caller cancels on the way."""
LAG_EVERY_S = 0.02
SERVER_KEYS: dict[str, Any] = {
    "restart_initial_s": 0.1,
    "restart_max_s": 2.0,
    "reprobe_max_s": 2.0,
    "probe_timeout_s": 3.0,
    "connect_timeout_s": 2.0,
    "shutdown_timeout_s": 1.0,
}
RELISTEN_S = 90.0
"""A pause before a stream of changes is asked for again grows to a minute."""
SLACK_MIB = 24.0
"""What memory may grow between the first quarter of the chaos and its end."""


@dataclass
class Phase:
    """What was measured in one phase, in seconds."""

    lag: array[float] = field(default_factory=lambda: array("d"))
    queued: array[float] = field(default_factory=lambda: array("d"))
    calls: int = 0

    def p99(self) -> tuple[float, float]:
        return figures.percentile(self.lag, 0.99), figures.percentile(self.queued, 0.99)


class Watching:
    """A sink of the host's telemetry: how long calls to healthy servers waited for a place, and how
    often changes of servers went untold for a while."""

    name = "log"

    def __init__(self, healthy: set[str]) -> None:
        self._healthy = healthy
        self.phase = Phase()
        self.gaps = 0

    def wants(self, kind: type[Fact]) -> bool:
        return kind in (RoutedCall, GapHealed)

    def emit(self, done: Finished) -> None:
        fact = done.fact
        if isinstance(fact, RoutedCall):
            self.phase.calls += 1
            if fact.peer in self._healthy:
                self.phase.queued.append(fact.queued_ms / 1000)
        elif isinstance(fact, GapHealed):
            self.gaps += 1


class Run:
    """`report` is for people, `failures` is empty where every promise held, and `slow` where the
    loop and the healthy servers were as quick as in calm: a busy machine can spoil that one."""

    def __init__(
        self, *, seconds: float, calm_s: float, seed: int, crew: Sequence[Member] | None = None
    ) -> None:
        self._seconds = seconds
        self._calm_s = calm_s
        self._seed = seed
        self._crew = list(crew or members())
        self._random = random.Random(seed)
        self._watching = Watching({member.name for member in self._crew if member.steady})
        self._account = Account()
        self.report: list[str] = []
        self.failures: list[str] = []
        self.slow: list[str] = []

    async def run(self) -> None:
        before = figures.holdings()
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            async with Fleet(Path(folder), seed=self._seed, crew=self._crew) as fleet:
                await self._with(fleet, Path(folder))
            broken = self._account.broken_promises(fleet.ledgers)
        self.failures += broken[:20] + ([f"… {len(broken)} in all"] if len(broken) > 20 else [])
        gc.collect()
        await asyncio.sleep(0)  # done callbacks
        left = figures.holdings().above(before)
        self._say("left behind", left or "nothing: no task, descriptor or process")
        if left:
            self.failures.append(f"left behind: {left}")

    async def _with(self, fleet: Fleet, folder: Path) -> None:
        host = Host(state_dir=folder / "state", record=True, startup_deadline_s=30)
        fleet.add_to(host, **SERVER_KEYS)
        async with host:
            sinks = host.telemetry
            sinks._sinks = (*sinks._sinks, self._watching)
            calm = await self._phase(host, self._calm_s)
            fleet.go.touch()
            over = asyncio.Event()
            harming = asyncio.ensure_future(fleet.harm(host, over))
            quarter_mib, chaos = await self._chaos(host)
            over.set()
            await harming
            fleet.go.unlink()
            await fleet.healed()
            await self._all_ready(host)
            after = await self._phase(host, self._calm_s)
            await self._all_told(host)
            self._nothing_pending(host)
            self._compare(calm, chaos, after)
            self._memory(quarter_mib)
            self._say("harmed from outside", f"{fleet.harmed} times")
            self._say("gaps in streams of changes, healed", self._watching.gaps)
        self._say("outcomes", dict(self._account.outcomes().most_common()))

    async def _chaos(self, host: Host) -> tuple[float, Phase]:
        quarter = await self._phase(host, self._seconds / 4)
        mib = figures.resident_mib()
        chaos = await self._phase(host, self._seconds * 3 / 4)
        return mib, Phase(
            quarter.lag + chaos.lag, quarter.queued + chaos.queued, quarter.calls + chaos.calls
        )

    # Callers

    async def _phase(self, host: Host, seconds: float) -> Phase:
        phase = self._watching.phase = Phase()
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, over.set)
        async with asyncio.TaskGroup() as group:
            group.create_task(_watch_lag(phase.lag, over))
            for number in range(CALLERS):
                group.create_task(self._caller(host, random.Random(f"{self._seed}/{number}"), over))
        return phase

    async def _caller(self, host: Host, dice: random.Random, over: asyncio.Event) -> None:
        while not over.is_set():
            server = dice.choice(self._crew).name
            token = self._account.next_token()
            if dice.random() < GIVES_UP:
                how = await self._given_up(host, server, token, after_s=dice.uniform(0, 0.05))
            else:
                how = await self._call(host, server, token)
            self._account.ended(token, how)
            await asyncio.sleep(dice.uniform(*THINK_S))

    async def _call(self, host: Host, server: str, token: int) -> Ended:
        try:
            result = await host.call_tool(
                f"{server}/mark", {"token": str(token)}, deadline_s=DEADLINE_S
            )
        except CallError as error:
            return Ended(error.outcome, error.delivery)
        return Ended("ok", "replied", answered_rightly=result.text == str(token))

    async def _given_up(self, host: Host, server: str, token: int, *, after_s: float) -> Ended:
        call = asyncio.ensure_future(self._call(host, server, token))
        await asyncio.sleep(after_s)
        call.cancel()
        try:
            return await call
        except asyncio.CancelledError:
            return Ended("cancelled", "unknown")

    # Promises

    async def _all_ready(self, host: Host) -> None:
        for member in self._crew:
            try:
                async with asyncio.timeout(60):
                    await host.wait_for(member.name, "ready")
            except TimeoutError:
                view = host.servers[member.name]
                self.failures.append(f"{member.name} did not recover: {view.state}, {view.detail}")

    async def _all_told(self, host: Host) -> None:
        """Each stream of changes stands again, or will after a pause that grew in the chaos."""
        names = [member.name for member in self._crew if member.http]
        end = time.monotonic() + RELISTEN_S
        while silent := [name for name in names if host.servers[name].layers.listen != "ok"]:
            if time.monotonic() > end:
                whys = {name: host.servers[name].detail for name in silent}
                self.failures.append(f"streams of changes that did not come back: {whys}")
                return
            await asyncio.sleep(0.1)

    def _nothing_pending(self, host: Host) -> None:
        for peer in host.core.fleet:
            life = peer.record.life
            left = life.open_requests if life is not None else 0
            gate = peer.peer.gate
            if left or gate.in_flight or gate.queued:
                self.failures.append(
                    f"{peer.server.name}: {left} requests pending, {gate.in_flight} in flight, "
                    f"{gate.queued} queued after all callers ended"
                )

    def _compare(self, calm: Phase, chaos: Phase, after: Phase) -> None:
        names = ("loop lag", "queue of healthy servers")
        for name, quiet, wild, then in zip(
            names, calm.p99(), chaos.p99(), after.p99(), strict=True
        ):
            bound = 2 * quiet + 0.020
            self._say(
                f"{name}, p99",
                f"calm {quiet * 1e3:.1f} ms, chaos {wild * 1e3:.1f} ms "
                f"(bound {bound * 1e3:.1f}), after {then * 1e3:.1f} ms",
            )
            if wild > bound:
                self.slow.append(f"{name}: {wild:.4f} s in chaos, bound {bound:.4f} s")
        self._say("calls", f"calm {calm.calls}, chaos {chaos.calls}, after {after.calls}")

    def _memory(self, quarter_mib: float) -> None:
        gc.collect()
        now = figures.resident_mib()
        self._say(
            "memory", f"{quarter_mib:.0f} MiB at a quarter of the chaos, {now:.0f} at the end"
        )
        if now > quarter_mib * 1.15 + SLACK_MIB:
            self.failures.append(f"memory grew from {quarter_mib:.0f} to {now:.0f} MiB")

    def _say(self, what: str, value: object) -> None:
        self.report.append(f"{what}: {value}")


async def _watch_lag(lag: array[float], over: asyncio.Event) -> None:
    while not over.is_set():
        asked = time.monotonic() + LAG_EVERY_S
        await asyncio.sleep(LAG_EVERY_S)
        lag.append(max(0.0, time.monotonic() - asked))
