"""The files of a record and what is new in them: plain, compressed, growing, cut off, rewritten.

Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STREAMS: Final = ("decisions", "traces")
HEAD_BYTES: Final = 512
"""Of a file's beginning, to know it again after it was compressed: the first line's ids."""
LONGEST_LINE: Final = 64 * 1024 * 1024
"""A collector writes a whole batch on a line; what is longer is no line of ours."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One file as it lies there now. `stem` is its path without ".gz": rotation keeps it."""

    path: Path
    stem: str
    inode: int
    size: int
    mtime_ns: int

    @property
    def zipped(self) -> bool:
        return self.path.suffix == ".gz"


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line, and the offset (of what is uncompressed) at which the next begins."""

    data: bytes
    end: int
    whole: bool


def find(state_dirs: Sequence[Path], files: Sequence[Path]) -> list[Found]:
    """Files of these hosts' folders, and the given files or folders of a collector."""
    found: dict[str, Found] = {}
    for path in (*_of_hosts(state_dirs), *_of_collectors(files)):
        try:
            stat = path.stat()
        except OSError:
            continue
        stem = str(path.absolute()).removesuffix(".gz")
        known = found.get(stem)
        if known is None or known.zipped:  # both exist for the moment that compressing takes
            found[stem] = _found(path, stem, stat)
    return [found[stem] for stem in sorted(found)]


def _found(path: Path, stem: str, stat: os.stat_result) -> Found:
    return Found(
        path=path,
        stem=stem,
        inode=stat.st_ino,
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
    )


def _of_hosts(state_dirs: Sequence[Path]) -> Iterator[Path]:
    for folder in state_dirs:
        for stream in STREAMS:
            for pattern in ("*.jsonl", "*.jsonl.gz"):
                yield from (folder / stream).glob(pattern)


def _of_collectors(files: Sequence[Path]) -> Iterator[Path]:
    for given in files:
        if given.is_dir():
            for pattern in ("*.json", "*.jsonl", "*.json.gz", "*.jsonl.gz"):
                yield from given.glob(pattern)
        else:
            yield given


@contextmanager
def opened_at(found: Found, offset: int) -> Iterator[IO[bytes]]:
    """The file's text from there on. Raises OSError, EOFError, zlib.error."""
    with found.path.open("rb") as raw:
        text: Any = gzip.GzipFile(fileobj=raw) if found.zipped else raw
        text.seek(offset, os.SEEK_SET)
        yield text


def head(found: Found) -> bytes:
    """How the file begins; empty where it cannot be read."""
    try:
        with opened_at(found, 0) as text:
            return text.read(HEAD_BYTES)
    except BROKEN:
        return b""


def lines(text: IO[bytes], offset: int) -> Iterator[Line]:
    """Every line from `offset` on; the last is not `whole` where nothing ends it."""
    while data := text.readline(LONGEST_LINE):
        offset += len(data)
        yield Line(data, offset, data.endswith(b"\n"))


BROKEN: Final = (OSError, EOFError, zlib.error)
"""What a file that is cut off, damaged or not ours to read raises."""
