"""The answer of `incidents`: from sources to one document. Everything here blocks."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.incidents import files, moments
from observant_host.incidents.account import Told, account, grouped, lost_in
from observant_host.incidents.index import Index
from observant_host.incidents.moments import iso_time, moment_of
from observant_host.incidents.tempo import Tempo
from observant_host.incidents.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from observant_host.incidents.episodes import Episode
    from observant_host.incidents.index import Call

INDEX_NAME: Final = "incidents.sqlite"
"""In the state folder; may be deleted at any time."""
DAY_NS: Final = 86_400_000_000_000
LOOK_BACK_NS: Final = DAY_NS
"""Before the window, of a Tempo: what a server was like before it fell. Files are read whole."""


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where the record lies: hosts' state folders, a collector's files or folders, a Tempo.

    index: where the index of the files is kept; None: in memory.
    """

    state_dirs: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    tempo: str | None = None
    index: Path | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Incidents that were open at some moment of this time, of one server or of all."""

    since_ns: int
    until_ns: int
    server: str | None = None


def index_path(sources: Sources, cache: Path) -> Path:
    """Where the index of these files belongs: with the record of one host, else in `cache`."""
    if len(sources.state_dirs) == 1 and not sources.files:
        return sources.state_dirs[0] / INDEX_NAME
    places = "\0".join(str(one.absolute()) for one in (*sources.state_dirs, *sources.files))
    return cache / f"incidents-{hashlib.sha256(places.encode()).hexdigest()[:16]}.sqlite"


def incidents(sources: Sources, question: Question) -> dict[str, Any]:
    """The document of `incidents --json`. Raises HostError where a Tempo cannot be asked."""
    index = _opened(sources)
    try:
        tempo = Tempo(sources.tempo) if sources.tempo is not None else None
        if tempo is not None:
            since_ns = max(0, question.since_ns - LOOK_BACK_NS)
            index.add(tempo.decisions(since_ns=since_ns, until_ns=question.until_ns))
        return _document(index, tempo, question)
    finally:
        index.close()


def _opened(sources: Sources) -> Index:
    """An index that is up to date; in memory where its place cannot be written."""
    found = files.find(sources.state_dirs, sources.files)
    place = sources.index if sources.tempo is None else None
    try:
        index = Index(place)
        index.refresh(found)
    except (OSError, sqlite3.OperationalError):
        index = Index(None)
        index.refresh(found)
    return index


def _document(index: Index, tempo: Tempo | None, question: Question) -> dict[str, Any]:
    spans = index.decisions(names=moments.NAMES, until_ns=question.until_ns)
    timeline = Timeline(moment for span in spans if (moment := moment_of(span)) is not None)

    def calls(peer: str, since_ns: int, until_ns: int) -> Iterator[Call]:
        yield from index.calls(peer, since_ns=since_ns, until_ns=until_ns)
        if tempo is not None:
            yield from tempo.calls(peer, since_ns, until_ns)

    told = Told(timeline=timeline, until_ns=question.until_ns, calls=calls)
    wanted = [group for group in grouped(timeline.episodes) if _asked_for(group, question)]
    lost = lost_in(timeline, timeline.hosts, since_ns=question.since_ns, until_ns=question.until_ns)
    return {
        "since": iso_time(question.since_ns),
        "until": iso_time(question.until_ns),
        "telemetry_lost": lost if timeline.hosts else None,
        "unreadable": index.unreadable(),
        "complete": tempo is None or not tempo.cut,
        "hosts": sorted(timeline.hosts),
        "incidents": [
            told_of
            for group in wanted
            if not _old_news(told_of := account(group, told), group, question)
        ],
    }


def _old_news(told_of: dict[str, Any], group: Iterable[Episode], question: Question) -> bool:
    """A server that a person allowed to be old stays old: that is told once."""
    allowed = (told_of["kind"], told_of["class"]) == ("downgrade", "allowance")
    return allowed and all(one.start_ns < question.since_ns for one in group)


def _asked_for(group: Iterable[Episode], question: Question) -> bool:
    return any(
        (question.server is None or one.peer == question.server)
        and (one.end_ns is None or one.end_ns >= question.since_ns)
        and one.start_ns <= question.until_ns
        for one in group
    )
