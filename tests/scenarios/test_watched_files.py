"""When files count as changed: by content, and once they stand still."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from observant_host.config_files import digests
from observant_host.errors import ConfigError, HostError
from observant_host.host import watched
from observant_host.host.watched import LARGE_BYTES, LOOK_S, Watched, follow
from observant_host.timing.tasks import Signal
from tests.support.clock import ManualClock

if TYPE_CHECKING:
    from pathlib import Path


def test_a_change_counts_once_it_was_the_same_at_two_looks(tmp_path) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    files = Watched(digests([file]))
    assert not files.look()
    file.write_text("tw")
    assert not files.look(), "it may be half written"
    file.write_text("two")
    assert not files.look(), "it was"
    assert files.look()
    assert not files.look(), "told once"


def test_a_touched_file_and_one_that_was_put_back_are_no_change(tmp_path) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    files = Watched(digests([file]))
    file.touch()
    assert not files.look()
    assert not files.look()
    file.write_text("two")
    assert not files.look()
    file.write_text("one")
    assert not files.look()
    assert not files.look()


def test_swapped_links_are_a_change_and_a_vanished_file_is_one(tmp_path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    (tmp_path / "data").symlink_to("one")
    file = tmp_path / "f"
    file.symlink_to("data/f")
    files = Watched(digests([file]))
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").rename(tmp_path / "data")
    assert [files.look(), files.look()] == [False, True]
    (tmp_path / "data").unlink()
    assert [files.look(), files.look(), files.look()] == [False, True, False]


def test_a_large_file_is_read_again_only_when_it_was_written(tmp_path, monkeypatch) -> None:
    file = tmp_path / "f"
    file.write_text("x" * LARGE_BYTES)
    files = Watched(digests([file]))
    assert not files.look()
    read: list[Path] = []
    monkeypatch.setattr(watched, "digests", lambda some: read.extend(some) or digests(some))
    assert not files.look()
    assert read == []
    file.write_text("y" * LARGE_BYTES)
    assert [files.look(), files.look()] == [False, True]
    assert read == [file]


def test_what_was_read_meanwhile_is_no_change_any_more(tmp_path) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    files = Watched(digests([file]))
    file.write_text("two")
    files.learn(digests([file]))
    assert not files.look()
    assert not files.look()


class Reloads:
    """Stands for a host."""

    def __init__(self, files: list[Path], *, error: HostError | None = None) -> None:
        self.files = digests(files)
        self.error = error
        self.asked: list[str] = []
        self.more = asyncio.Event()

    async def reload(self, *, principal: str, only_changes: bool) -> None:
        self.asked.append(principal)
        self.more.set()
        if self.error is not None:
            raise self.error
        self.files = digests(self.files)


async def _look(clock: ManualClock, looks: int) -> None:
    """Pass time for so many looks; each is a thread's work."""
    for _ in range(looks):
        async with asyncio.timeout(30):
            while not clock.waiting:
                await asyncio.sleep(0.001)
        await clock.advance(LOOK_S)


async def test_the_host_is_asked_when_a_file_changed_and_when_a_signal_came(tmp_path) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    host: Any = Reloads([file], error=ConfigError(["f: is wrong"]))
    stop, hangup, clock = Signal(), Signal(), ManualClock()
    refused: list[HostError] = []
    following = asyncio.create_task(
        follow(host, stop, hangup=hangup, clock=clock, watch=True, refused=refused.append)
    )
    await _look(clock, 2)
    assert host.asked == []
    file.write_text("two")
    await _look(clock, 2)
    async with asyncio.timeout(30):
        await host.more.wait()
    await _look(clock, 3)
    assert host.asked == ["file"], "what was refused is not tried again until it changes"
    assert [str(error) for error in refused] == ["f: is wrong"]
    host.error = None
    hangup.set()
    async with asyncio.timeout(30):
        while len(host.asked) < 2:
            await asyncio.sleep(0)
    assert host.asked[1] == "signal:SIGHUP"
    stop.set()
    await following


async def test_files_that_nobody_gave_are_not_watched_but_a_signal_is_heard(tmp_path) -> None:
    file = tmp_path / "f"
    file.write_text("one")
    host: Any = Reloads([file], error=ConfigError(["f: is wrong"]))
    stop, hangup, clock = Signal(), Signal(), ManualClock()
    following = asyncio.create_task(follow(host, stop, hangup=hangup, clock=clock, watch=False))
    await clock.settle()
    assert clock.waiting == 0
    hangup.set()
    await clock.settle()
    assert host.asked == ["signal:SIGHUP"]
    stop.set()
    await following
