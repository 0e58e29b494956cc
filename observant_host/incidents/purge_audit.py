"""Deleting from the audit, which no purge of the record touches and nobody can ask of a host.

It says who did what, so that whoever may operate a host over the network must not be able to make
that unsaid: it is deleted with the rights of whoever owns the files. Blocks: call it in a thread.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.incidents import files
from observant_host.incidents.purge import Left, Purged, cut_files

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.incidents.purge import Wanted

FOLDER: Final = "audit"
BESIDE: Final = {
    "audit": "audit/*.jsonl*",
    "captures": "capture/*.jsonl",
    "what crashes left": "crash-*.log",
    "dumps of decisions": "flight-recorder-*.jsonl",
}
"""What the state folder holds beside the record, by its name: told with what a purge leaves."""


class _Line(msgspec.Struct):
    time: datetime
    duration_ms: float = 0.0
    server: str = ""


def purge_audit(state_dir: Path, wanted: Wanted, *, dry_run: bool = False) -> Purged:
    """Delete its lines; they are counted as spans. Raises OSError (a full disk)."""
    found = files.find([], [state_dir / FOLDER])
    return cut_files(found, lambda line: _left(line, wanted), dry_run=dry_run)


def beside(state_dir: Path) -> dict[str, int]:
    """How many files of each kind lie there that are no part of the record."""
    counts = {name: len(list(state_dir.glob(pattern))) for name, pattern in BESIDE.items()}
    return {name: count for name, count in counts.items() if count}


def _left(line: bytes, wanted: Wanted) -> Left | None:
    try:
        told = msgspec.json.decode(line, type=_Line)
    except msgspec.DecodeError:
        return None
    ended = told.time + timedelta(milliseconds=told.duration_ms)
    ended_ns = int(ended.timestamp() * 1e9)
    old = wanted.before_ns is None or ended_ns < wanted.before_ns
    goes = old and wanted.server in (None, told.server)
    return Left(b"", 1) if goes else Left(line)
