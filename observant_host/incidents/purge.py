"""Deleting from the record: what is older than a moment, or about one server, for good.

A file is written anew under a name of its own and then takes the old one's place, so that a crash
leaves one of the two whole. Files that a living process writes are left alone: a running host is
asked to finish its own first. Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import fcntl
import gzip
import os
import re
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from observant_host.incidents import files, index
from observant_host.incidents.answer import INDEX_NAME
from observant_host.incidents.otlp import spans_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from observant_host.incidents.otlp import RecordedSpan

    Cut = Callable[[bytes], "Left | None"]
    """What is left of a line; None where it cannot be read."""

_PEER: Final = "observant_host.peer.name"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What goes: spans that ended before that moment, of that server; both where both are given."""

    before_ns: int | None = None
    server: str | None = None

    def __post_init__(self) -> None:
        if self.before_ns is None and self.server is None:
            raise ValueError("say before when, or of which server")

    def has(self, span: RecordedSpan) -> bool:
        old = self.before_ns is None or span.end_ns < self.before_ns
        return old and (self.server is None or span.attributes.get(_PEER) == self.server)


class Purged(msgspec.Struct):
    """What went. `held` are files that a living process writes, `unreadable` lines that nobody
    could tell what they were about: they went too."""

    spans: int = 0
    unreadable: int = 0
    files: int = 0
    freed_bytes: int = 0
    held: int = 0


def purge(state_dir: Path, wanted: Wanted, *, dry_run: bool = False) -> Purged:
    """Delete from both streams of this folder, and its index. Raises OSError (a full disk)."""
    gone = cut_files(files.find([state_dir], []), lambda line: _left(line, wanted), dry_run=dry_run)
    if not dry_run:
        index.forget(state_dir, INDEX_NAME)
    return gone


def cut_files(found: Iterable[files.Found], cut: Cut, *, dry_run: bool) -> Purged:
    """Delete from these files what `cut` leaves nothing of. Raises OSError."""
    gone = Purged()
    for one in found:
        try:
            with _ours(one.path) as raw:
                if raw is None:
                    gone.held += 1
                else:
                    _purge_file(raw, one, cut, gone, dry_run=dry_run)
        except FileNotFoundError:
            continue  # it was compressed or forgotten meanwhile
    return gone


@contextmanager
def _ours(path: Path) -> Iterator[IO[bytes] | None]:
    """The file, held so that nobody else changes it; None where somebody writes it."""
    with path.open("rb") as raw:
        try:
            fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield None
            return
        yield raw


def _purge_file(
    raw: IO[bytes], found: files.Found, cut: Cut, gone: Purged, *, dry_run: bool
) -> None:
    """Two passes, so that a file which keeps everything is not touched at all."""
    kept, spans, unreadable = _counted(raw, found, cut)
    if not spans and not unreadable:
        return
    gone.spans += spans
    gone.unreadable += unreadable
    gone.files += 1
    left = 0
    if not dry_run:
        left = _rewritten(raw, found, cut) if kept else 0
        found.path.unlink()
    gone.freed_bytes += found.size - left


def _counted(raw: IO[bytes], found: files.Found, cut: Cut) -> tuple[int, int, int]:
    """(lines of which something stays, spans that go, lines that cannot be read)"""
    kept = spans = unreadable = 0
    try:
        for line in _text(raw, found):
            left = cut(line)
            if left is None:
                unreadable += 1
            else:
                kept += bool(left.data)
                spans += left.gone
    except files.BROKEN:
        unreadable += 1
    return kept, spans, unreadable


def _rewritten(raw: IO[bytes], found: files.Found, cut: Cut) -> int:
    """The bytes of the new file, complete and on disk beside the old one."""
    target = _next_name(found.path)
    temporary = target.with_name(target.name + ".tmp")
    stat = os.fstat(raw.fileno())
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as plain:
            _copy(raw, found, cut, plain)
            plain.flush()
            os.fsync(plain.fileno())
            size = plain.tell()
        os.utime(temporary, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return size


def _copy(raw: IO[bytes], found: files.Found, cut: Cut, plain: IO[bytes]) -> None:
    out: Any = gzip.GzipFile("", "wb", 6, plain) if found.zipped else plain
    try:
        for line in _text(raw, found):
            if (left := cut(line)) is not None:
                out.write(left.data)
    except EOFError:
        pass  # cut off: what was left of it is copied
    finally:
        if found.zipped:
            out.close()


def _text(raw: IO[bytes], found: files.Found) -> Iterator[bytes]:
    raw.seek(0)
    text: Any = gzip.GzipFile(fileobj=raw) if found.zipped else raw
    for line in files.lines(text, 0):
        yield line.data


class Left(msgspec.Struct, frozen=True):
    """What is left of a line, and how many spans go from it."""

    data: bytes
    gone: int = 0


def _left(line: bytes, wanted: Wanted) -> Left | None:
    """None where the line cannot be read."""
    if not line.endswith(b"\n"):
        return None
    if wanted.server is not None and wanted.server.encode() not in line:
        return Left(line)
    spans = spans_or_none(line)
    if spans is None:
        return None
    going = list(map(wanted.has, spans))
    if not any(going):
        return Left(line)
    return Left(b"" if all(going) else _without(line, going), sum(going))


def _without(line: bytes, going: list[bool]) -> bytes:
    """The line without those of its spans."""
    request, goes = msgspec.json.decode(line), iter(going)
    for around in (request, request.get("trace", {})):  # as `spans_or_none` goes through them
        for part in (*around.get("resourceSpans", ()), *around.get("batches", ())):
            for scope in part.get("scopeSpans", ()):
                scope["spans"] = [span for span in scope.get("spans", ()) if not next(goes)]
    return msgspec.json.encode(request) + b"\n"


def _next_name(path: Path) -> Path:
    """`x.jsonl.gz`, `x.1.jsonl.gz`, `x.2.jsonl.gz`: sorted as before, and seen to be another."""
    stem, dot, rest = path.name.partition(".jsonl")
    numbered = re.fullmatch(r"(.*-\d+)\.(\d+)", stem)
    base, number = (numbered[1], int(numbered[2])) if numbered else (stem, 0)
    return path.with_name(f"{base}.{number + 1}{dot}{rest}")
