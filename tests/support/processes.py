"""Looking at real processes, without trusting the code under test."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.receivers import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def state_of(pid: int) -> str:
    """One letter of /proc ("R", "S", "Z" …); "" where there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(")")[2].split()[0]


def alive(pid: int) -> bool:
    """Runs, or at least is not dead: a zombie of somebody else does not count."""
    return state_of(pid) not in ("", "Z", "X")


def living(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if alive(pid)]


def group_members(pgid: int) -> list[int]:
    """Processes of the group, zombies included."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[2]) == pgid:
                found.append(int(folder.name))
    return found


def open_fds() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


async def eventually(
    condition: Callable[[], object], *, within: float = PATIENCE_S, every: float = 0.02
) -> None:
    """Poll what sends no event (another process's state); fails after `within` seconds."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(every)
