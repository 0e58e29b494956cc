"""Memory, CPU and descriptors of whole process groups, read from /proc in one pass.

A group, not a process: most servers are started by a launcher (npx, uv) that itself uses nothing.
On systems without /proc there are none.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

PROC: Final = Path("/proc")

STATE, GROUP, STARTED, RESIDENT = 0, 2, 19, 21
CPU: Final = (11, 12, 13, 14)
"""Indices after the name in /proc/PID/stat (proc_pid_stat(5)). CPU is its own and that of children
it has waited for, so that the sum of a group never falls when one of them ends."""


class Figures(msgspec.Struct, frozen=True):
    """Sums over the living processes of one group."""

    processes: int = 0
    resident_bytes: int = 0
    cpu_seconds: float = 0.0
    open_fds: int = 0


def read_figures(groups: Iterable[int], *, proc: Path = PROC) -> dict[int, Figures]:
    """Figures by process group, for those of `groups` that have processes. Blocks: use a thread."""
    wanted = frozenset(groups)
    found: dict[int, Figures] = {}
    if not wanted or not proc.is_dir():
        return found
    for entry in os.scandir(proc):
        if not entry.name.isdigit() or (fields := _fields(proc / entry.name)) is None:
            continue
        group = int(fields[GROUP])
        if group in wanted and (own := _figures(proc / entry.name, fields)) is not None:
            found[group] = _sum(found.get(group, Figures()), own)
    return found


def process_state(pid: int, *, proc: Path = PROC) -> str:
    """One letter ("R" runs, "S" sleeps, "T" stopped), "" where it cannot be known. Blocks."""
    fields = _fields(proc / str(pid))
    return fields[STATE] if fields is not None else ""


def _fields(folder: Path) -> list[str] | None:
    """Of /proc/PID/stat, those after the name; None where there is no such process any more."""
    try:
        text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return fields if len(fields) > RESIDENT else None


def _figures(folder: Path, fields: list[str]) -> Figures | None:
    """Of one process; None for a zombie, and where its number has gone to another meanwhile."""
    if fields[STATE] == "Z":
        return None
    try:
        descriptors = len(os.listdir(folder / "fd"))  # noqa: PTH208 - a count, no paths wanted
    except OSError:
        return None
    now = _fields(folder)
    if now is None or now[STARTED] != fields[STARTED]:
        return None
    return Figures(
        processes=1,
        resident_bytes=int(fields[RESIDENT]) * os.sysconf("SC_PAGE_SIZE"),
        cpu_seconds=sum(int(fields[index]) for index in CPU) / os.sysconf("SC_CLK_TCK"),
        open_fds=descriptors,
    )


def _sum(one: Figures, other: Figures) -> Figures:
    return Figures(
        processes=one.processes + other.processes,
        resident_bytes=one.resident_bytes + other.resident_bytes,
        cpu_seconds=one.cpu_seconds + other.cpu_seconds,
        open_fds=one.open_fds + other.open_fds,
    )
