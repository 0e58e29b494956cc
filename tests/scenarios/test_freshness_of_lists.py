"""Lists are read anew when somebody looks and their server's hint has run out, and never else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from observant_host.timing.clock import SystemClock
from tests.support.hosts import PATIENCE_S, add, quick_host
from tests.support.peers import received

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host import Host


class Watch:
    """A host's clock that runs as the real one does, and can be set forward."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.ahead = 0.0

    def monotonic(self) -> float:
        return float(self._clock.monotonic()) + self.ahead

    def call_at(self, when: float, callback: Any) -> Any:
        return self._clock.call_at(when - self.ahead, callback)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)


def lists(log: Path) -> int:
    return len(received(log, "tools/list"))


async def opened(log: Path, **options: Any) -> tuple[Host, Watch]:
    watch = Watch(SystemClock())
    host, _ = quick_host(clock=watch)
    era = options.pop("era", "modern")
    allowed = {"allow_legacy": True} if era == "legacy" else {}
    add(host, "s", {"log": log, "tools": "echo", "era": era, **options}, **allowed)
    return host, watch


async def grown(log: Path, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while lists(log) < count:
            await asyncio.sleep(0.01)


async def test_a_list_is_read_anew_by_the_next_look_after_its_time_and_only_then(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, watch = await opened(log, ttl=60_000)
    async with host:
        await host.fresh_catalogue()
        _ = host.catalogue
        watch.ahead = 30.0
        await host.fresh_catalogue()
        assert lists(log) == 1
        watch.ahead = 61.0
        before = host.core.store.current
        assert host.catalogue is before
        await grown(log, 2)
        watch.ahead = 130.0
        await host.fresh_catalogue()
        assert lists(log) == 3
        await host.call_tool("echo", {})
        assert lists(log) == 3


async def test_many_who_look_at_once_get_one_reading(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, watch = await opened(log, ttl=1000, list_sleep=0.1)
    async with host:
        watch.ahead = 10.0
        found = await asyncio.gather(*(host.fresh_catalogue() for _ in range(20)))
        assert lists(log) == 2
        assert {len(one.tools) for one in found} == {1}


async def test_without_a_time_only_whoever_asks_for_new_lists_has_them_read(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, watch = await opened(log)
    async with host:
        await host.fresh_catalogue()
        assert lists(log) == 1
        watch.ahead = 10.0
        _ = host.catalogue
        await host.call_tool("echo", {})
        assert lists(log) == 1
        await host.fresh_catalogue()
        assert lists(log) == 2


async def test_a_legacy_list_never_runs_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, watch = await opened(log, era="legacy", ttl=1)
    async with host:
        watch.ahead = 10_000.0
        await host.fresh_catalogue()
        _ = host.catalogue
        assert lists(log) == 1


async def test_the_old_list_is_served_where_reading_it_anew_takes_too_long(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    host, watch = await opened(log, ttl=1000, list_sleep=1)
    async with host:
        watch.ahead = 10.0
        found = await host.fresh_catalogue(within_s=0.05)
        assert [tool.name for tool in found.tools] == ["echo"]
        assert host.servers["s"].state == "ready"


async def test_expired_lists_do_not_make_a_server_chatty(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, watch = await opened(log, ttl=1000)
    async with host:
        for number in range(1, 10):
            watch.ahead = number * 5.0
            await host.fresh_catalogue()
        assert lists(log) == 10
        assert "often" not in host.servers["s"].detail


async def test_nothing_is_polled(tmp_path: Path) -> None:
    log = tmp_path / "log"
    host, watch = await opened(log, ttl=50)
    async with host:
        watch.ahead = 3600.0
        for _ in range(5):
            await host.call_tool("echo", {})
        assert lists(log) == 1
