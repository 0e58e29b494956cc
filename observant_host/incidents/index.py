"""A SQLite index over the record, so that a million spans answer in seconds.

Throwaway: the record is the truth, this is built from it on demand and brought up to date by what
is new in each file. Delete it and it is built again; another schema, or a damaged file, likewise.
Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from observant_host.incidents import files
from observant_host.incidents.otlp import RecordedSpan, spans_or_none
from observant_host.telemetry.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

SCHEMA_VERSION: Final = 1
BUSY_S: Final = 60.0
"""Another reader may be indexing the same folder: a gigabyte takes half a minute."""
BATCH: Final = 5000
CACHE_KIB: Final = 65_536

CALL: Final = "observant_host.call"
DECISIONS: Final = frozenset(
    rule.span for rule in RULES.values() if rule.stream == "decisions" and rule.span
)
_NAMES: Final = DECISIONS | {CALL}
_NAMED: Final = re.compile(
    b'"(?:' + b"|".join(re.escape(name).encode() for name in sorted(_NAMES)) + b')"'
).search
_PEER: Final = "observant_host.peer.name"
_OUTCOME: Final = "observant_host.outcome"
_ERA: Final = "observant_host.peer.era"
_FEW: Final = {CALL: frozenset({_PEER, _OUTCOME, _ERA})}

_SCHEMA: Final = """
CREATE TABLE files (
  id INTEGER PRIMARY KEY, stem TEXT UNIQUE, inode INTEGER, size INTEGER, mtime_ns INTEGER,
  zipped INTEGER, offset INTEGER, head BLOB, bad INTEGER, twice INTEGER, tail INTEGER);
CREATE TABLE decisions (
  span INTEGER PRIMARY KEY, file INTEGER, name TEXT, peer TEXT, host TEXT, at_ns INTEGER,
  body BLOB);
CREATE INDEX decisions_at ON decisions (at_ns);
CREATE TABLE calls (
  span INTEGER PRIMARY KEY, file INTEGER, peer TEXT, host TEXT, era TEXT, outcome TEXT,
  at_ns INTEGER, trace TEXT);
CREATE INDEX calls_at ON calls (peer, at_ns);
"""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(RecordedSpan).decode


class Call(msgspec.Struct, frozen=True):
    """One routed call as an incident sees it; `trace_id` "" where it ended well."""

    host: str
    era: str
    outcome: str
    at_ns: int
    trace_id: str


class Index:
    """One index. `path` None: in memory. A context manager."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._db = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def refresh(self, found: Sequence[files.Found]) -> None:
        """Bring it up to date with these files; forgets those that are not among them."""
        try:
            self._refresh(found)
        except sqlite3.DatabaseError as error:
            if self._path is None or isinstance(error, sqlite3.OperationalError):
                raise
            self._begin_again()
            self._refresh(found)

    def unreadable(self) -> int:
        """Lines, and ends of files, that could not be read."""
        row = self._db.execute("SELECT coalesce(sum(bad + tail), 0) FROM files").fetchone()
        return int(row[0])

    def decisions(self, *, names: Iterable[str], until_ns: int) -> Iterator[RecordedSpan]:
        """Decisions of these kinds up to that moment, oldest first."""
        wanted = sorted(names)
        marks = ",".join("?" * len(wanted))
        rows = self._db.execute(
            f"SELECT body FROM decisions WHERE name IN ({marks}) AND at_ns <= ? "  # noqa: S608 - only question marks go in
            "ORDER BY at_ns, rowid",
            (*wanted, until_ns),
        )
        for (body,) in rows:
            yield _decode(body)

    def calls(self, peer: str, *, since_ns: int, until_ns: int) -> Iterator[Call]:
        """Calls of this server that ended in that time, oldest first."""
        rows = self._db.execute(
            "SELECT host, era, outcome, at_ns, coalesce(trace, '') FROM calls "
            "WHERE peer = ? AND at_ns BETWEEN ? AND ? ORDER BY at_ns",
            (peer, since_ns, until_ns),
        )
        for row in rows:
            yield Call(*row)

    def add(self, spans: Iterable[RecordedSpan]) -> None:
        """Spans that are in no file (a tracing backend's)."""
        with self._db:
            self._insert(0, list(spans))

    # Building

    def _open(self) -> sqlite3.Connection:
        if self._path is not None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._path.exists():
                self._path.touch(mode=0o600)
        db = sqlite3.connect(self._path or ":memory:", timeout=BUSY_S, check_same_thread=False)
        try:
            self._prepare(db)
        except sqlite3.DatabaseError:
            db.close()
            if self._path is None:
                raise
            self._path.unlink(missing_ok=True)
            return self._open()
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        db.execute("PRAGMA synchronous = OFF")  # a lost index is built again
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version == SCHEMA_VERSION:
            return
        with db:
            db.execute("BEGIN IMMEDIATE")
            for name in ("files", "decisions", "calls"):
                db.execute(f"DROP TABLE IF EXISTS {name}")
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _begin_again(self) -> None:
        self.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        self._db = self._open()

    def _refresh(self, found: Sequence[files.Found]) -> None:
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._forget_what_changed(found)
            for one in found:
                self._read(one)

    def _forget_what_changed(self, found: Sequence[files.Found]) -> None:
        """Files that went away or were rewritten; then also those whose spans were in both."""
        now = {one.stem: one for one in found}
        known = self._db.execute(
            "SELECT id, stem, inode, size, mtime_ns, zipped, offset, head FROM files"
        )
        gone = [row[0] for row in known.fetchall() if _changed(row, now.get(row[1]))]
        if not gone:
            return
        shared = self._db.execute("SELECT id FROM files WHERE twice > 0").fetchall()
        for number in {*gone, *(row[0] for row in shared)}:
            for table in ("decisions", "calls"):
                self._db.execute(f"DELETE FROM {table} WHERE file = ?", (number,))  # noqa: S608 - our own two names
            self._db.execute("DELETE FROM files WHERE id = ?", (number,))

    def _read(self, found: files.Found) -> None:
        row = self._db.execute(
            "SELECT id, size, mtime_ns, zipped, offset, tail FROM files WHERE stem = ?",
            (found.stem,),
        ).fetchone()
        if row is not None and row[1:4] == (found.size, found.mtime_ns, found.zipped):
            return
        if row is None:
            cursor = self._db.execute(
                "INSERT INTO files VALUES (NULL, ?, 0, 0, 0, 0, 0, x'', 0, 0, 0)", (found.stem,)
            )
            number, offset = cursor.lastrowid or 0, 0
        else:
            number, offset = row[0], row[4]
        read = self._lines(number, found, offset)
        self._db.execute(
            "UPDATE files SET inode = ?, size = ?, mtime_ns = ?, zipped = ?, offset = ?, "
            "head = ?, bad = bad + ?, twice = twice + ?, tail = ? WHERE id = ?",
            (found.inode, found.size, found.mtime_ns, found.zipped, read.offset,
             files.head(found), read.bad, read.twice, read.tail, number),
        )  # fmt: skip

    def _lines(self, number: int, found: files.Found, offset: int) -> _Read:
        read = _Read(offset)
        waiting: list[RecordedSpan] = []
        try:
            with files.opened_at(found, offset) as text:
                for line in files.lines(text, offset):
                    spans = _wanted(line.data)
                    if not line.whole and spans_or_none(line.data) is None:
                        read.tail = 1  # torn, or still being written
                        break
                    read.offset = line.end
                    read.bad += spans is None
                    waiting += spans or ()
                    if len(waiting) >= BATCH:
                        read.twice += self._insert(number, waiting)
                        waiting.clear()
        except files.BROKEN:
            read.tail = 1
        read.twice += self._insert(number, waiting)
        return read

    def _insert(self, number: int, spans: Sequence[RecordedSpan]) -> int:
        """How many of them were there already."""
        before = self._db.total_changes
        decisions = [_decision(number, span) for span in spans if span.name in DECISIONS]
        calls = [_call(number, span) for span in spans if span.name == CALL]
        insert = "INSERT OR IGNORE INTO"
        self._db.executemany(f"{insert} decisions VALUES (?, ?, ?, ?, ?, ?, ?)", decisions)
        self._db.executemany(f"{insert} calls VALUES (?, ?, ?, ?, ?, ?, ?, ?)", calls)
        return len(decisions) + len(calls) - (self._db.total_changes - before)


class _Read(msgspec.Struct):
    offset: int
    bad: int = 0
    twice: int = 0
    tail: int = 0


def _changed(row: tuple[Any, ...], now: files.Found | None) -> bool:
    """Whether a file is not the one that was read, grown or compressed since."""
    if now is None:
        return True
    _, _, inode, size, mtime_ns, zipped, offset, head = row
    if zipped:
        return bool((inode, size, mtime_ns) != (now.inode, now.size, now.mtime_ns))
    if now.zipped:
        return not files.head(now).startswith(head)
    return bool(inode != now.inode or now.size < offset)


def _wanted(line: bytes) -> list[RecordedSpan] | None:
    """Spans of a line that the index keeps; None where the line cannot be read.

    Most spans are requests of ours, which no incident needs: they are not decoded.
    """
    if _NAMED(line) is None:
        text = line.strip()
        return [] if not text or text.endswith(b"}") else None
    return spans_or_none(line, _FEW, _NAMES)


def _key(span: RecordedSpan) -> int:
    """The span's 64-bit id as SQLite takes it; of what is no id, a digest of it."""
    with suppress(ValueError):
        if len(span.span_id) == 16:
            return _signed(int(span.span_id, 16))
    text = f"{span.trace_id}/{span.span_id}".encode(errors="replace")
    return _signed(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big"))


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _decision(number: int, span: RecordedSpan) -> tuple[object, ...]:
    peer = str(span.attributes.get(_PEER, ""))
    return _key(span), number, span.name, peer, span.instance, span.end_ns, _encode(span)


def _call(number: int, span: RecordedSpan) -> tuple[object, ...]:
    get = span.attributes.get
    outcome = str(get(_OUTCOME, "error" if span.error else "ok"))
    trace = None if outcome == "ok" else span.trace_id
    era = str(get(_ERA, "unknown"))
    return _key(span), number, str(get(_PEER, "")), span.instance, era, outcome, span.end_ns, trace


def forget(folder: Path, name: str) -> None:
    """Delete an index; it is built again when it is next needed."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        (folder / f"{name}{suffix}").unlink(missing_ok=True)
