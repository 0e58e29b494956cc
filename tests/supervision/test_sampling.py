"""Memory of children: read off the loop, of the right life, acted on only when it stays high."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from observant_host.supervision.figures import Figures
from observant_host.supervision.sampling import EVERY_S, SAMPLES, Sampler
from observant_host.telemetry.vocabulary import PeerRestart
from observant_host.timing.clock import SystemClock
from tests.support.clock import ManualClock
from tests.support.hosts import NEVER_AGAIN, add, facts, quick_host, reach, until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from observant_host import Host

MB = 1 << 20


class Proc:
    """What is read, by process: `mb` of memory each; `meanwhile` happens during the reading."""

    def __init__(self, mb: float = 0.0) -> None:
        self.mb = mb
        self.read_times = 0
        self.meanwhile: Any = lambda: None

    def __call__(self, groups: Iterable[int]) -> dict[int, Figures]:
        self.read_times += 1
        self.meanwhile()
        found = Figures(processes=2, resident_bytes=int(self.mb * MB))
        return dict.fromkeys(groups, found)


def sampler(host: Host, proc: Proc, clock: Any = None) -> Sampler:
    return Sampler(host.core.fleet, clock=clock or SystemClock(), on_error=_fail, read=proc)


def _fail(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


async def test_a_server_above_its_limit_twice_in_a_row_is_restarted_with_both_numbers() -> None:
    host, told = quick_host()
    add(host, "s", restart_above_mb=100)
    add(host, "free")
    proc = Proc(mb=151)
    async with host:
        await reach(host, "s", "ready")
        looks = sampler(host, proc)
        await looks.look()
        assert (host.servers["s"].state, facts(told, PeerRestart)) == ("ready", [])
        await looks.look()
        await until(host, "s", lambda view: view.generation == 2)
        after = await reach(host, "s", "ready")
        assert after.pid is not None
        assert [one.reason for one in facts(told, PeerRestart)] == ["memory"]
        assert host.servers["free"].generation == 1


async def test_the_restart_is_by_backoff_and_its_detail_says_how_much_was_too_much() -> None:
    host, _ = quick_host()
    add(host, "s", restart_above_mb=100, **NEVER_AGAIN)
    async with host:
        await reach(host, "s", "ready")
        looks = sampler(host, Proc(mb=151))
        for _ in range(SAMPLES):
            await looks.look()
        view = await reach(host, "s", "backoff")
        assert view.cause == "process"
        assert "2 processes held 151 MB of memory, more than restart_above_mb = 100" in view.detail


async def test_a_peak_between_two_samples_is_no_reason() -> None:
    host, told = quick_host()
    add(host, "s", restart_above_mb=100)
    proc = Proc()
    async with host:
        await reach(host, "s", "ready")
        looks = sampler(host, proc)
        for mb in (151, 99, 151, 100, 151):
            proc.mb = mb
            await looks.look()
        assert host.servers["s"].state == "ready"
        assert facts(told, PeerRestart) == []


async def test_nothing_is_read_by_itself_where_no_server_has_a_limit() -> None:
    host, _ = quick_host()
    add(host, "s")
    proc, clock = Proc(), ManualClock()
    async with host:
        looks = sampler(host, proc, clock)
        looks.start()
        await clock.advance(10 * EVERY_S)
        assert proc.read_times == 0
        await looks.close()


async def test_where_one_has_a_limit_it_is_read_every_few_seconds() -> None:
    host, _ = quick_host()
    add(host, "s", restart_above_mb=100)
    proc, clock, read = Proc(), ManualClock(), asyncio.Event()
    loop = asyncio.get_running_loop()
    proc.meanwhile = lambda: loop.call_soon_threadsafe(read.set)
    async with host:
        looks = sampler(host, proc, clock)
        looks.start()
        await clock.advance(EVERY_S)
        async with asyncio.timeout(30):
            await read.wait()
        await looks.close()
    assert proc.read_times == 1


async def test_what_was_read_of_a_process_that_has_gone_meanwhile_is_nobodys() -> None:
    host, _ = quick_host()
    add(host, "s", **NEVER_AGAIN)
    proc = Proc(mb=1)
    async with host:
        await reach(host, "s", "ready")
        looks = sampler(host, proc)
        await looks.refresh()
        assert set(looks.figures) == {("s", 1)}
        loop = asyncio.get_running_loop()
        record = host.core.fleet.get("s").record  # type: ignore[union-attr]
        done = asyncio.run_coroutine_threadsafe
        proc.meanwhile = lambda: done(record.life.close(), loop).result(10)  # type: ignore[union-attr]
        await looks.refresh()
        assert looks.figures == {}


async def test_a_real_process_that_eats_memory_is_seen_and_begun_again() -> None:
    host, told = quick_host()
    add(host, "s", {"tools": "echo,eat"}, restart_above_mb=150)
    async with host:
        before = await reach(host, "s", "ready")
        looks = host.core.sampler
        for _ in range(SAMPLES):
            await looks.look()
        assert host.servers["s"].pid == before.pid
        await host.call_tool("eat", {"mb": 200}, deadline_s=30)
        for _ in range(SAMPLES):
            await looks.look()
        await until(host, "s", lambda view: view.generation == 2)
        await reach(host, "s", "ready")
        assert [one.reason for one in facts(told, PeerRestart)] == ["memory"]
