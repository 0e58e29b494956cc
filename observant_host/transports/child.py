"""One child process: started with its own session and pipes, watched by a pidfd, reaped once.

asyncio's own subprocesses need a child watcher, which in Python 3.11 is a thread for each child;
`preexec_fn` is never used, since it disables vfork and is unsafe with threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from observant_host.timing.tasks import Latch
from observant_host.transports.endings import spawn_failed
from observant_host.transports.oom import OomKills
from observant_host.transports.pipes import add_reader

if TYPE_CHECKING:
    from collections.abc import Mapping

if sys.platform == "linux":
    import resource

STARTS_AT_ONCE: Final = 1
"""Until a child executes its program its parent holds the interpreter, in whichever thread: 8 ms on
a busy machine. More would gain nothing, for they come one after the other anyway, but in a row they
stall the loop, which between two of them has its turn; and fewer children come to life at once."""


_started: Final[set[int]] = set()


def started_here() -> frozenset[int]:
    """Every child that was started here and not reaped yet: their exit status is spoken for."""
    return frozenset(_started)


Stream = Literal["stdin", "stdout", "stderr"]
STREAMS: Final[tuple[Stream, ...]] = ("stdin", "stdout", "stderr")


class StartGate:
    """At most `limit` starts at a time, shared by a whole host.

    `child_nofile` is the soft limit of open files given back to children where the host has raised
    its own (programs that use select() break above 1,024).
    """

    def __init__(self, limit: int = STARTS_AT_ONCE, *, child_nofile: int | None = None) -> None:
        self.child_nofile = child_nofile
        self.slots = asyncio.Semaphore(limit)
        self.oom_kills = OomKills()


class Child:
    """A running child and our ends of its pipes (non-blocking). Made by `start_child`.

    `exited` is released with the exit code (negative: a signal; None: unknown) when the process
    ends. It stays a zombie until `reap`, so that its process group's number stays ours till then.
    """

    def __init__(self, process: subprocess.Popen[bytes], stdin: int, stdout: int, stderr: int):
        self.pid = process.pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.exited: Latch[int | None] = Latch()
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._pidfd: int | None = None
        self._reaped = False
        self._reap_when_it_exits = False
        self._watch_exit()

    def signal_group(self, number: signal.Signals) -> None:
        """To every process of the group that we may signal; nothing once reaped."""
        if not self._reaped:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def close(self, stream: Stream) -> None:
        """Close our end of one pipe; idempotent."""
        fd: int = getattr(self, stream)
        if fd >= 0:
            setattr(self, stream, -1)
            self._loop.remove_reader(fd)
            self._loop.remove_writer(fd)
            os.close(fd)

    def reap(self) -> None:
        """Close the pipes and take the exit status from the kernel, now or when the process ends.

        Afterwards the number of its group may belong to anybody.
        """
        for stream in STREAMS:
            self.close(stream)
        if not self.exited.is_set():
            self._reap_when_it_exits = True
            return
        self._reaped = True
        self._process.poll()
        _started.discard(self.pid)
        self._unwatch()

    def _watch_exit(self) -> None:
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self.pid)
            add_reader(self._pidfd, self._exit_seen)
        else:
            threading.Thread(target=self._wait_in_thread, daemon=True).start()

    def _exit_seen(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
        self._ended(_peek_exit_code(self.pid))

    def _wait_in_thread(self) -> None:
        """Where there is no pidfd (macOS). This reaps early; a group's number is then at risk."""
        code = self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(self._ended, code)

    def _ended(self, code: int | None) -> None:
        self.exited.release(code)
        if self._reap_when_it_exits:
            self.reap()

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


def _peek_exit_code(pid: int) -> int | None:
    """The exit code without reaping; None if somebody else has reaped it."""
    try:
        info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if info is None:
        return None
    return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status


async def start_child(
    server: str,
    argv: tuple[str, ...],
    *,
    cwd: str | None,
    environment: Mapping[str, str],
    gate: StartGate,
) -> Child:
    """Start `argv` in a session of its own. Raises SpawnFailed and leaves nothing behind.

    A cancellation while the process is being made ends it as soon as it exists.
    """
    if not argv or not argv[0]:
        raise spawn_failed(server, argv, cwd=cwd, environment=environment, error=None)
    async with gate.slots:
        launch = partial(_launch, argv, cwd, environment, gate.child_nofile)
        making = asyncio.get_running_loop().run_in_executor(None, launch)
        try:
            started = await asyncio.shield(making)
            return Child(*started)
        except asyncio.CancelledError:
            making.add_done_callback(_discard)
            raise
        except (OSError, ValueError) as error:
            making.add_done_callback(_discard)
            raise await asyncio.to_thread(
                spawn_failed, server, argv, cwd=cwd, environment=environment, error=error
            ) from error


Started = tuple["subprocess.Popen[bytes]", int, int, int]


def _launch(
    argv: tuple[str, ...], cwd: str | None, environment: Mapping[str, str], nofile: int | None
) -> Started:
    """Blocks (in a thread) until the child has begun to execute its program."""
    fds: list[int] = []
    try:
        for _ in range(3):
            fds += os.pipe()
        child_in, our_in, our_out, child_out, our_err, child_err = fds
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=environment,
            stdin=child_in,
            stdout=child_out,
            stderr=child_err,
            start_new_session=True,
        )
        _started.add(process.pid)
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise
    for fd in (child_in, child_out, child_err):
        os.close(fd)
    for fd in (our_in, our_out, our_err):
        os.set_blocking(fd, False)
    _give_back_limit(process.pid, nofile)
    return process, our_in, our_out, our_err


def _give_back_limit(pid: int, nofile: int | None) -> None:
    if nofile is not None and sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (nofile, hard))


def _discard(making: asyncio.Future[Started]) -> None:
    """End a process that nobody wants any more."""
    if making.cancelled() or making.exception() is not None:
        return
    process, *fds = making.result()
    for fd in fds:
        os.close(fd)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    threading.Thread(target=_wait_for, args=(process,), daemon=True).start()


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    _started.discard(process.pid)
