"""One stream of the record on disk: append, rotate, compress, forget by size and by age.

Every method blocks and belongs to the recorder's thread. Files are private to the user, named by
the moment they were begun, so that sorting by name is sorting by time.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

SEGMENT_BYTES: Final = 16 * 1024 * 1024
"""A file is closed and compressed at this size: a second of work, and cheap to read back whole."""
SEGMENT_S: Final = 86_400.0
"""A file is closed after a day however small it is: days of retention are counted by files."""
COMPRESSION: Final = 1
"""Of ISA-L's four levels: files a twentieth of what they were, as zlib's 6 makes them, for a
fifteenth of its work, which was more than all else that is done for the record of a call."""
GZIP: Final = 31
"""zlib's largest window, and gzip around it."""
AT_ONCE: Final = 1024
"""Pieces given to the kernel at once: as many as it takes (IOV_MAX of Linux)."""
MAINTENANCE_S: Final = 3600.0
"""Age limits are looked at this often; sizes at each rotation."""
DAY_S: Final = 86_400.0


class StreamFiles:
    """Appends lines to the newest file of `folder`, within `max_bytes` and `max_days`.

    Several processes may write to one folder: each has files of its own, locked while it lives,
    and leaves those of others alone.
    """

    def __init__(
        self,
        folder: Path,
        *,
        max_bytes: int,
        max_days: float,
        segment_bytes: int = SEGMENT_BYTES,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_age_s = max_days * DAY_S
        self._segment = max(4096, min(segment_bytes, max_bytes // 4))
        self._wall_ns = wall_ns
        self._path: Path | None = None
        self._fd = -1
        self._size = 0
        self._others = 0
        self._checked_s = 0.0
        self._began_s = 0.0

    @property
    def total_bytes(self) -> int:
        """All files of the stream, as of the last look, plus what was appended since."""
        return self._others + self._size

    def append(self, pieces: Sequence[bytes], *, durable: bool) -> None:
        """All of `pieces`, which make whole lines, or none; raises OSError (a full disk, a folder
        that went away).

        durable: wait until the disk has them.
        """
        if self._path is not None and not self._path.exists():
            self._close()
        if self._fd < 0:
            self._open()
        try:
            size = _write_all(self._fd, pieces)
            if durable:
                os.fdatasync(self._fd)
        except OSError:
            os.ftruncate(self._fd, self._size)
            raise
        self._size += size
        now_s = self._wall_ns() / 1e9
        if self._size >= self._segment or now_s - self._began_s > SEGMENT_S:
            self._rotate()
        elif now_s - self._checked_s > MAINTENANCE_S:
            self._keep_within_limits()

    def close(self) -> None:
        self._close()

    def _open(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        now = self._wall_ns()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now / 1e9))
        self._path = self._folder / f"{stamp}.{now % 1_000_000_000:09d}Z-{os.getpid()}.jsonl"
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._size = os.fstat(self._fd).st_size
        self._began_s = now / 1e9
        self._keep_within_limits()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._size, self._path = -1, 0, None

    def _rotate(self) -> None:
        """The lines are written: what fails from here on must not have them written again."""
        with contextlib.suppress(OSError):
            os.fsync(self._fd)
        self._close()
        self._keep_within_limits()

    def _keep_within_limits(self) -> None:
        """Compress what nobody writes to any more, then forget the oldest. What cannot be done now
        (a full disk takes no compressed copy) is left to the next time."""
        self._checked_s = self._wall_ns() / 1e9
        with contextlib.suppress(OSError):
            for path in self._finished():
                if path.suffix == ".jsonl":
                    _compress(path)
            self._forget()

    def _forget(self) -> None:
        files = [(path, stat) for path in self._finished() if (stat := _stat(path)) is not None]
        self._others = sum(stat.st_size for _, stat in files)
        for path, stat in files:
            too_old = self._checked_s - stat.st_mtime > self._max_age_s
            if too_old or self._others + self._segment > self._max_bytes:
                path.unlink(missing_ok=True)
                self._others -= stat.st_size

    def _finished(self) -> Iterator[Path]:
        """Files that no living process holds, oldest first."""
        for path in sorted(self._folder.glob("*.jsonl*")):
            if path.name.endswith(".tmp"):
                continue
            if path != self._path and not _held(path):
                yield path


def _stat(path: Path) -> os.stat_result | None:
    with contextlib.suppress(FileNotFoundError):
        return path.stat()
    return None


def _write_all(fd: int, pieces: Sequence[bytes]) -> int:
    """How many bytes that was. They are not put together first: a copy of megabytes is memory that
    the kernel has to find each time, which costs several times what writing does."""
    size = 0
    for start in range(0, len(pieces), AT_ONCE):
        part = pieces[start : start + AT_ONCE]
        expected = sum(map(len, part))
        written = os.writev(fd, part)
        if written < expected:
            rest = memoryview(b"".join(part))[written:]
            while rest:
                rest = rest[os.write(fd, rest) :]
        size += expected
    return size


def _held(path: Path) -> bool:
    """Whether a process has this file open for appending (it then holds the lock)."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(fd)


def _compress(path: Path) -> None:
    """`x.jsonl` to `x.jsonl.gz`, with its times; the original goes once that is complete.

    Holds the file meanwhile; what somebody else holds by now (a purge) is left to the next time,
    and so is what there is no room for.
    """
    with path.open("rb") as source:
        try:
            fcntl.flock(source, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        stat = os.fstat(source.fileno())
        temporary = path.with_name(path.name + ".gz.tmp")
        try:
            _zip(source, temporary)
        except OSError:
            temporary.unlink(missing_ok=True)
            return
        os.utime(temporary, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        temporary.replace(path.with_name(path.name + ".gz"))
        path.unlink()


def _zip(source: BinaryIO, target: Path) -> None:
    from isal import isal_zlib

    packing = isal_zlib.compressobj(COMPRESSION, wbits=GZIP)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
        while part := source.read(1 << 20):
            file.write(packing.compress(part))
        file.write(packing.flush())
