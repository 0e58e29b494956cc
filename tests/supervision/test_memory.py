"""What is remembered, and that it reaches the disk, also after a disk that was full."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from observant_host.config import StdioServer
from observant_host.decisions.permission import CommandAllowance
from observant_host.decisions.terms import Era
from observant_host.state_files import LastEra, Memory, MemoryFile
from observant_host.supervision.declared import declare
from observant_host.supervision.memory import HostMemory
from observant_host.supervision.saver import RETRY_S, SPACING_S, Saver
from observant_host.telemetry import setup
from tests.support.clock import ManualClock
from tests.support.processes import eventually

if TYPE_CHECKING:
    from pathlib import Path

SERVER = declare("s", StdioServer(["x"]), allow_legacy=False, keys={})


def memory() -> tuple[HostMemory, list[str]]:
    changes: list[str] = []
    return HostMemory(Memory(), clock=ManualClock(), changed=lambda: changes.append("x")), changes


def test_a_fingerprint_is_proven_modern_once() -> None:
    kept, changes = memory()
    assert not kept.recall(SERVER).proven_modern
    kept.proved_modern(SERVER, version="2026-07-28")
    kept.proved_modern(SERVER)
    assert kept.recall(SERVER).proven_modern
    assert kept.memory.modern[SERVER.fingerprint].version == "2026-07-28"
    assert len(changes) == 1


def test_an_allowance_forgets_that_the_server_was_modern() -> None:
    kept, _ = memory()
    kept.proved_modern(SERVER)
    kept.allow(SERVER, until=9.0, reason="r", principal="ann")
    known = kept.recall(SERVER)
    assert not known.proven_modern
    assert known.allowance == CommandAllowance(SERVER.fingerprint, 9.0)


def test_the_last_era_is_known_and_an_unreadable_one_is_unknown() -> None:
    kept, _ = memory()
    assert kept.last_era(SERVER) is Era.UNKNOWN
    kept.chose(SERVER, Era.LEGACY, version="2025-11-25", downgrade=True)
    assert kept.last_era(SERVER) is Era.LEGACY
    assert kept.moments(SERVER).last_downgrade is not None
    kept.memory.eras["s"] = LastEra("from the future", None, 0.0)
    assert kept.last_era(SERVER) is Era.UNKNOWN


def test_moments_add_up() -> None:
    kept, changes = memory()
    kept.was_ready(SERVER)
    kept.refused(SERVER)
    moments = kept.moments(SERVER)
    assert moments.last_ready is not None
    assert moments.last_refused is not None
    assert moments.last_downgrade is None
    assert len(changes) == 2


class FullDisk(MemoryFile):
    """A disk that is full until it is not."""

    full = True
    writes = 0

    def write(self, data: bytes) -> None:
        self.writes += 1
        if self.full:
            raise OSError(28, "No space left on device")
        super().write(data)


async def test_a_full_disk_is_told_tried_again_and_never_fatal(tmp_path: Path) -> None:
    clock = ManualClock()
    telemetry, told = setup.capturing()
    kept = Memory()
    file = FullDisk(tmp_path / "memory.json")
    saver = Saver(file, kept, telemetry=telemetry, clock=clock)
    saver.start()
    saver.changed()
    await eventually(lambda: told)
    assert "No space left" in repr(told[0].fact)
    assert not (tmp_path / "memory.json").exists()
    file.full = False
    await eventually(lambda: clock.waiting)
    await clock.advance(RETRY_S)
    await eventually((tmp_path / "memory.json").exists)
    await saver.close()


async def test_what_must_not_be_lost_is_written_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    file = FullDisk(tmp_path / "memory.json")
    file.full = False
    saver = Saver(file, Memory(), telemetry=setup.silent(), clock=clock)
    saver.start()
    saver.changed()
    await eventually(lambda: file.writes == 1 and clock.waiting)
    saver.changed()
    assert await asyncio.gather(saver.keep(), saver.keep()) == [True, True]
    assert file.writes == 2
    assert await saver.keep()
    assert file.writes == 2
    file.full = True
    saver.changed()
    assert not await saver.keep()
    await saver.close()


async def test_changes_are_written_together_and_the_last_ones_at_the_end(tmp_path: Path) -> None:
    clock = ManualClock()
    file = FullDisk(tmp_path / "memory.json")
    file.full = False
    saver = Saver(file, Memory(), telemetry=setup.silent(), clock=clock)
    saver.start()
    saver.changed()
    await eventually(lambda: file.writes == 1 and clock.waiting)
    for _ in range(100):
        saver.changed()
    await clock.advance(SPACING_S / 2)
    assert file.writes == 1
    await saver.close()
    assert file.writes == 2


@pytest.mark.parametrize("changed", [True, False])
async def test_nothing_is_written_where_nothing_changed(tmp_path: Path, changed: bool) -> None:
    file = FullDisk(tmp_path / "memory.json")
    file.full = False
    saver = Saver(file, Memory(), telemetry=setup.silent(), clock=ManualClock())
    saver.start()
    if changed:
        saver.changed()
    await saver.close()
    assert file.writes == int(changed)
