"""Reaping what is re-parented to a host that is the first process of its container.

A grandchild whose parent died becomes a child of process 1, or of the nearest subreaper; somebody
has to take its exit status, or it stays in the process table for ever. Children that the host
started itself are never touched: their exit status belongs to whoever started them. The host makes
itself no subreaper: a process that was detached on purpose belongs to the machine's own init.

Source: prctl(2) PR_SET_CHILD_SUBREAPER, wait(2) NOTES.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from observant_host.telemetry.vocabulary import HostLifecycle
from observant_host.timing.tasks import Signal, wait_any
from observant_host.transports.child import started_here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from observant_host.telemetry.facade import Telemetry
    from observant_host.timing.clock import Clock

PR_GET_CHILD_SUBREAPER: Final = 37
LOOK_AGAIN_S: Final = 1.0
"""A zombie is reaped at the second look only: a child that somebody has just started and that died
at once is taken by its starter before that."""


def adopts_orphans() -> bool:
    """True where orphans come to this process: process 1 of a container, or a subreaper."""
    if sys.platform != "linux":
        return False
    return os.getpid() == 1 or _is_subreaper()


def _is_subreaper() -> bool:
    flag = ctypes.c_int(0)
    try:
        failed = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0)
    except (OSError, AttributeError):  # no such libc call here
        return False
    return not failed and bool(flag.value)


async def reap_orphans(stop: Signal, *, telemetry: Telemetry, clock: Clock) -> None:
    """Until `stop`. Needs the main thread: it looks whenever a child of ours has ended."""
    loop = asyncio.get_running_loop()
    ended = Signal()
    ended.set()  # some may have ended before
    loop.add_signal_handler(signal.SIGCHLD, ended.set)
    seen: frozenset[int] = frozenset()
    try:
        while not stop.is_set():
            await wait_any(clock, LOOK_AGAIN_S if seen else None, stop, ended)
            ended.clear()
            zombies = await asyncio.to_thread(orphaned_zombies)
            reaped = [pid for pid in zombies & seen if _reap(pid)]
            if reaped:
                detail = f"orphans taken over from servers: {', '.join(map(str, sorted(reaped)))}"
                telemetry.count(HostLifecycle(what="orphans_reaped", detail=detail))
            seen = zombies - frozenset(reaped)
            if seen:
                await wait_any(clock, LOOK_AGAIN_S, stop)
    finally:
        loop.remove_signal_handler(signal.SIGCHLD)


def orphaned_zombies() -> frozenset[int]:
    """Dead children of this process that it did not start."""
    own = started_here()
    return frozenset(pid for pid in _dead_children(os.getpid()) if pid not in own)


def _dead_children(parent: int) -> Iterator[int]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, its_parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it has gone meanwhile
            continue
        if state == "Z" and int(its_parent) == parent:
            yield int(folder.name)


def _reap(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False
