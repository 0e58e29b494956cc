"""What a host leaves behind: its last decisions when it crashes or is asked (SIGUSR1), and the
stacks of all threads when a fatal signal ends it.

Python runs no code of ours on SIGSEGV and its like: `faulthandler` writes then, into a file that
was opened before, and the next start tells where it is.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from observant_host.errors import HostError
from observant_host.telemetry.vocabulary import HostLifecycle
from observant_host.timing.tasks import OwnerTask, Signal, wait_any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from pathlib import Path

    from observant_host.cli.output import Screen
    from observant_host.host import Host
    from observant_host.timing.clock import Clock

STACKS: Final = "fatal-signal-{pid}.log"
STACKS_KEPT: Final = 10
"""Files of earlier ends: a host that dies at every start must not fill the disk."""


@contextmanager
def black_box(host: Host, screen: Screen, state_dir: Path) -> Iterator[None]:
    """Around the whole life of a host that serves."""
    with _stacks_of_fatal_signals(state_dir):
        try:
            yield
        except (HostError, OSError):
            raise  # told as sentences: what is wrong is outside
        except Exception:
            with suppress(OSError, HostError):
                path = host.black_box or host.dump_decisions(state_dir, "crash")
                if path is not None:
                    screen.fail(f"the host crashed; its last decisions are in {path}")
            raise


def dumping(
    host: Host, state_dir: Path, *, clock: Clock, loop: asyncio.AbstractEventLoop
) -> OwnerTask:
    """Each SIGUSR1 has the last decisions written to a file; the log says where."""
    asked = Signal()
    loop.add_signal_handler(signal.SIGUSR1, asked.set)

    async def run(over: Signal) -> None:
        tell_fatal_ends(host, state_dir)
        while await wait_any(clock, None, over, asked) is not over:
            asked.clear()
            try:
                await host.dump_flight_recorder(state_dir)
            except OSError as error:
                what = "flight_recorder_not_dumped"
                host.telemetry.count(HostLifecycle(what=what, detail=str(error)))

    return OwnerTask("flight recorder", run)


def tell_fatal_ends(host: Host, state_dir: Path) -> None:
    """What an earlier life left behind, told once: the file is renamed."""
    own = STACKS.format(pid=os.getpid())
    for path in sorted(state_dir.glob(STACKS.format(pid="*"))):
        if path.name == own or _alive(path):
            continue
        with suppress(OSError):
            if not path.stat().st_size:
                path.unlink()  # that life was killed, or its machine went off
                continue
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(path.stat().st_mtime))
            kept = path.rename(path.with_name(f"crash-{stamp}-{path.name}"))
            host.telemetry.count(HostLifecycle(what="crashed_before", detail=str(kept)))
    for old in sorted(state_dir.glob("crash-*.log"))[:-STACKS_KEPT]:
        old.unlink(missing_ok=True)


@contextmanager
def _stacks_of_fatal_signals(state_dir: Path) -> Iterator[None]:
    """Into a file that is empty, and goes, where all ends well."""
    path = state_dir / STACKS.format(pid=os.getpid())
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = path.open("wb")
    except OSError:
        yield  # the start itself tells what is wrong with the folder
        return
    with file:
        path.chmod(0o600)
        faulthandler.enable(file)
        try:
            yield
        finally:
            faulthandler.disable()
            with suppress(OSError):
                path.unlink()


def _alive(path: Path) -> bool:
    """Whether the process that a file belongs to still runs."""
    try:
        os.kill(int(path.stem.rpartition("-")[2]), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
