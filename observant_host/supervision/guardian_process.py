"""The guardian itself: a small program that ends what a killed host leaves behind.

Run by `guardian.py` as `python -I -S guardian_process.py HOST_PID`, in a session of its own, so
that neither Ctrl-C nor a signal to the host's group reaches it. Its stdin is a pipe of which only
the host has the other end. Lines: `token TEXT`, `watch PGID`, `forget PGID`, `bye`. When the host
is gone without `bye`, it sends SIGTERM and then SIGKILL to

- every watched process group, and whoever is still in the session of one,
- their descendants, found while they live,
- every process with the host's token in its environment: those that were just being started when
  the host died, and those that left their group or session.

What it cannot find: a process that left group, session *and* environment, and whose parent had
already ended. Without /proc (macOS) it knows the groups only.

Standard library only, and little of it: one process a host, about 10 MiB.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

GUARD_VARIABLE = "OBSERVANT_HOST_GUARD"
"""In each child's environment: the tokens of the hosts above it, outermost first, joined by ":"."""

STDIN = 0
TERM_S = 1.0
"""Between SIGTERM and SIGKILL."""
SETTLED_S = 1.5
"""A process that was between fork and exec when the host died has its environment long before."""
GIVE_UP_S = 10.0
"""What SIGKILL has not ended by then hangs in the kernel."""
STEP_S = 0.05


class Process:
    """From /proc/PID/stat; `start` (clock ticks since boot) tells two users of one pid apart. No
    NamedTuple: to import typing is a fifth of this program's start."""

    __slots__ = ("group", "parent", "pid", "session", "start")

    def __init__(self, pid: int, parent: int, group: int, session: int, start: int) -> None:
        self.pid, self.parent, self.group, self.session = pid, parent, group, session
        self.start = start


class Orders:
    """What the host said so far. `watched` maps a group to its leader's start (None: was gone)."""

    def __init__(self) -> None:
        self.token = ""
        self.watched: dict[int, int | None] = {}
        self.dismissed = False
        self._rest = b""

    def take(self, data: bytes) -> None:
        """Whole lines count; a torn one waits for its rest. What is not understood is ignored."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            verb, _, argument = line.decode("utf-8", "replace").partition(" ")
            if verb == "token":
                self.token = argument
            elif verb == "bye":
                self.dismissed = True
            elif verb == "watch" and argument.isdecimal():
                self.watched[int(argument)] = start_of(int(argument))
            elif verb == "forget" and argument.isdecimal():
                self.watched.pop(int(argument), None)


def read_process(pid: int) -> Process | None:
    """None where there is no such process, or only a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def start_of(pid: int) -> int | None:
    found = read_process(pid)
    return found.start if found else None


def all_processes() -> list[Process]:
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return [found for pid in pids if (found := read_process(pid)) is not None]


def carries(pid: int, token: str) -> bool:
    """Whether the process was started with our token; unreadable ones are somebody else's."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return False
    name = GUARD_VARIABLE.encode() + b"="
    return any(
        entry.startswith(name) and token.encode() in entry[len(name) :].split(b":")
        for entry in entries
    )


def still_ours(watched: dict[int, int | None], processes: list[Process]) -> set[int]:
    """The watched groups whose number was not given to another process since."""
    starts = {process.pid: process.start for process in processes}
    return {pgid for pgid, start in watched.items() if pgid not in starts or starts[pgid] == start}


def doomed(processes: list[Process], groups: set[int], marked: set[int]) -> list[Process]:
    """Members of `groups`, those in `marked` (pids), and the descendants of either."""
    chosen = {
        process.pid
        for process in processes
        if process.pid in marked or process.group in groups or process.session in groups
    }
    while True:
        more = {p.pid for p in processes if p.parent in chosen} - chosen
        if not more:
            break
        chosen |= more
    return [process for process in processes if process.pid in chosen - {os.getpid(), 1}]


def send_signal(process: Process, number: signal.Signals) -> None:
    """Only to that very process, even if its pid was given away meanwhile."""
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(process.pid)
        try:
            if start_of(process.pid) == process.start:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def end_everything(orders: Orders) -> None:
    if not os.path.isdir("/proc/self") or not hasattr(os, "pidfd_open"):
        end_groups(orders.watched)
        return
    began = time.monotonic()
    asked: set[tuple[int, int]] = set()
    while (elapsed := time.monotonic() - began) < GIVE_UP_S:
        processes = all_processes()
        groups = still_ours(orders.watched, processes)
        marked = {p.pid for p in processes if orders.token and carries(p.pid, orders.token)}
        left = doomed(processes, groups, marked)
        if not left and elapsed >= SETTLED_S:
            return
        if elapsed < TERM_S:
            for process in left:
                if (process.pid, process.start) not in asked:
                    send_signal(process, signal.SIGTERM)
            asked.update((process.pid, process.start) for process in left)
        else:
            kill(left, groups)
        time.sleep(STEP_S)


def kill(left: list[Process], groups: set[int]) -> None:
    """Groups first, since one signal to a group cannot be outrun by a fork."""
    for pgid in groups & {process.group for process in left}:
        with contextlib.suppress(OSError):
            os.killpg(pgid, signal.SIGKILL)
    for process in left:
        send_signal(process, signal.SIGKILL)


def end_groups(groups: dict[int, int | None]) -> None:
    """All that can be done without /proc."""
    for number, pause in ((signal.SIGTERM, TERM_S), (signal.SIGKILL, 0.0)):
        for pgid in groups:
            with contextlib.suppress(OSError):
                os.killpg(pgid, number)
        time.sleep(pause)


def listen(host_pid: int, orders: Orders) -> None:
    """Until the host says `bye` or is gone.

    The end of the pipe says so; the host's pidfd says it too where a fork of the host (without
    exec) keeps the pipe open.
    """
    sources = [STDIN]
    with contextlib.suppress(OSError, AttributeError):
        sources.append(os.pidfd_open(host_pid))
    while not orders.dismissed:
        ready, _, _ = select.select(sources, [], [])
        if STDIN in ready:
            data = os.read(STDIN, 65536)
            if not data:
                return
            orders.take(data)
        else:
            return


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    orders = Orders()
    listen(int(sys.argv[1]), orders)
    if not orders.dismissed:
        end_everything(orders)


if __name__ == "__main__":
    main()
