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
    from collections.abc import Collection

PROC: Final = Path("/proc")


class Figures(msgspec.Struct, frozen=True):
    """Sums over the living processes of one group."""

    processes: int = 0
    resident_bytes: int = 0
    cpu_seconds: float = 0.0
    open_fds: int = 0


def read_figures(groups: Collection[int], *, proc: Path = PROC) -> dict[int, Figures]:
    """Figures by process group, for those of `groups` that have processes. Blocks: use a thread."""
    wanted = frozenset(groups)
    found: dict[int, Figures] = {}
    if not wanted or not proc.is_dir():
        return found
    for entry in os.scandir(proc):
        if entry.name.isdigit() and (stat := _stat(proc / entry.name)) is not None:
            group, own = stat
            if group in wanted:
                found[group] = _sum(found.get(group, Figures()), own)
    return found


def process_state(pid: int, *, proc: Path = PROC) -> str:
    """One letter ("R" runs, "S" sleeps, "T" stopped), "" where it cannot be known. Blocks."""
    try:
        text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]


def _stat(folder: Path) -> tuple[int, Figures] | None:
    """(process group, figures) of one process; None where it has just gone or is a zombie."""
    try:
        text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()
        if fields[0] == "Z":
            return None
        descriptors = len(os.listdir(folder / "fd"))  # noqa: PTH208 - a count, no paths wanted
    except (OSError, IndexError):
        return None
    ticks = int(fields[11]) + int(fields[12])
    return int(fields[2]), Figures(
        processes=1,
        resident_bytes=int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
        cpu_seconds=ticks / os.sysconf("SC_CLK_TCK"),
        open_fds=descriptors,
    )


def _sum(one: Figures, other: Figures) -> Figures:
    return Figures(
        processes=one.processes + other.processes,
        resident_bytes=one.resident_bytes + other.resident_bytes,
        cpu_seconds=one.cpu_seconds + other.cpu_seconds,
        open_fds=one.open_fds + other.open_fds,
    )
