"""What this process holds: tasks, descriptors, children, memory; read from the system itself."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = os.sysconf("SC_PAGE_SIZE")


class Holdings(NamedTuple):
    tasks: int
    descriptors: int
    children: int

    def above(self, before: Holdings) -> dict[str, int]:
        """By how much each grew; empty where nothing did."""
        pairs = zip(self._fields, self, before, strict=True)
        return {name: now - then for name, now, then in pairs if now > then}


def holdings() -> Holdings:
    return Holdings(
        tasks=len(asyncio.all_tasks()),
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        children=len(descendants()),
    )


def resident_mib(pid: int | str = "self") -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE / (1 << 20)


def cpu_s(pid: int | str = "self") -> float:
    """User and system time of one process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descendants() -> list[tuple[int, str]]:
    """(pid, state) of every process below this one, zombies included."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents.setdefault(int(fields[1]), []).append((int(folder.name), fields[0]))
    found: list[tuple[int, str]] = []
    below = parents.get(os.getpid(), [])
    while below:
        found += below
        below = [one for pid, _ in below for one in parents.get(pid, [])]
    return found


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def running(marker: str) -> list[int]:
    """Processes anywhere on this machine whose command line holds `marker`, orphans included."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if marker.encode() in line:
                found.append(int(folder.name))
    return found


def zombies() -> list[int]:
    return [pid for pid, state in descendants() if state == "Z"]


def percentile(values: Iterable[float], share: float) -> float:
    """0 for no values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
