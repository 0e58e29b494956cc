"""When a running host reads its configuration again: on SIGHUP, or when its files changed.

Files are compared by content, at intervals: that sees a ConfigMap's swapped links, an editor's
rename and a network file system alike, and needs nothing of the platform. A change counts once it
stood still for one interval, so that nobody reads half a file.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from observant_host.config_files import digests
from observant_host.errors import HostError
from observant_host.timing.tasks import Signal, wait_any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from observant_host.host.reload import Reloading
    from observant_host.timing.clock import Clock

LOOK_S: Final = 2.0
"""Between two looks: a person does not wait for it, and hashing a few small files costs nothing."""


LARGE_BYTES: Final = 1024 * 1024
"""Hashing this takes a millisecond."""

Stamp = tuple[int, int, int, int]
"""Device, inode, time, size."""


class Watched:
    """The files of one host. `look` says whether they changed and then stood still."""

    def __init__(self, known: Mapping[Path, str]) -> None:
        self._known = dict(known)
        self._last = self._known
        self._large: dict[Path, tuple[Stamp, str]] = {}

    def look(self) -> bool:
        """Reads the files (in a thread). True once for each content that differs from the one
        known and was the same at the look before."""
        found = {path: self._digest(path) for path in self._known}
        still, self._last = found == self._last, found
        if found == self._known or not still:
            return False
        self._known = found
        return True

    def learn(self, known: Mapping[Path, str]) -> None:
        """The configuration was read: these are its files, with what was in them then."""
        self._known = self._last = dict(known)

    def _digest(self, path: Path) -> str:
        """A large file (a client's, with its history in it) is read again only where its inode,
        size or time changed: else looking would be work."""
        stamp = _stamp(path)
        if stamp is None or stamp[-1] < LARGE_BYTES:
            return digests([path])[path]
        kept = self._large.get(path)
        if kept is None or kept[0] != stamp:
            kept = self._large[path] = stamp, digests([path])[path]
        return kept[1]


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


async def follow(
    host: Reloading,
    stop: Signal,
    *,
    hangup: Signal,
    clock: Clock,
    watch: bool,
    refused: Callable[[HostError], object] | None = None,
) -> None:
    """Reload at each `hangup`, and with `watch` whenever the files changed, until `stop`.

    What cannot be used is told by the host, and to `refused`; the next change is tried again.
    """
    files = Watched(host.files)
    while not stop.is_set():
        woken = await wait_any(clock, LOOK_S if watch else None, stop, hangup)
        if woken is stop:
            return
        if woken is hangup:
            hangup.clear()
        elif not await asyncio.to_thread(files.look):
            continue
        by_signal = woken is hangup
        before = host.files
        try:
            await host.reload(
                principal="signal:SIGHUP" if by_signal else "file", only_changes=not by_signal
            )
        except HostError as error:
            if refused is not None:
                refused(error)
        if host.files is not before:
            files.learn(host.files)
