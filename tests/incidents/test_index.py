"""The index follows its files however they change, and is never the only copy of anything."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest

from observant_host.config import TelemetrySettings
from observant_host.incidents import files
from observant_host.incidents.index import CALL, DECISIONS, Index
from observant_host.telemetry import setup
from observant_host.telemetry.vocabulary import HostLifecycle, Request, RoutedCall

if TYPE_CHECKING:
    from pathlib import Path

ALWAYS = 2**62


async def written(folder: Path, *, decisions: int = 0, calls: int = 0) -> None:
    telemetry = setup.build(TelemetrySettings(), state_dir=folder, record=True, instance="one")
    for number in range(decisions):
        telemetry.count(HostLifecycle(what=f"w{number}"))
    for _ in range(calls):
        fact = RoutedCall(name="a/x", method="tools/call", peer="a", era="legacy")
        with telemetry.operation(fact) as op:
            with telemetry.operation(Request(peer="a", method="tools/call", era="legacy")):
                pass
            op.end_as("timeout", "timeout")
    await telemetry.close()


def refreshed(index: Index, folder: Path) -> tuple[int, int]:
    """(decisions, calls) of that folder."""
    index.refresh(files.find([folder], []))
    decisions = list(index.decisions(names=DECISIONS, until_ns=ALWAYS))
    calls = list(index.calls("a", since_ns=0, until_ns=ALWAYS))
    assert all(call.era == "legacy" and len(call.trace_id) == 32 for call in calls)
    return len(decisions), len(calls)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path / "index.sqlite")


async def test_only_what_incidents_need_is_kept(index: Index, tmp_path: Path) -> None:
    await written(tmp_path, decisions=2, calls=3)
    assert refreshed(index, tmp_path) == (2, 3)
    assert CALL not in DECISIONS
    assert list(index.calls("b", since_ns=0, until_ns=ALWAYS)) == []
    assert list(index.calls("a", since_ns=0, until_ns=5)) == []


async def test_what_is_appended_is_read_from_where_it_stopped(index: Index, tmp_path: Path) -> None:
    await written(tmp_path, decisions=1)
    assert refreshed(index, tmp_path) == (1, 0)
    await written(tmp_path / "more", decisions=3)
    (path,) = (tmp_path / "decisions").glob("*.jsonl")
    (more,) = (tmp_path / "more" / "decisions").glob("*.jsonl")
    text = more.read_bytes()
    with path.open("ab") as end:
        end.write(text[:-20])
    assert refreshed(index, tmp_path) == (3, 0)
    assert index.unreadable() == 1, "a line that is being written, or torn"
    with path.open("ab") as end:
        end.write(text[-20:])
    assert refreshed(index, tmp_path) == (4, 0)
    assert index.unreadable() == 0


async def test_a_file_that_is_compressed_is_the_same_file(index: Index, tmp_path: Path) -> None:
    await written(tmp_path, decisions=5)
    assert refreshed(index, tmp_path) == (5, 0)
    (path,) = (tmp_path / "decisions").glob("*.jsonl")
    path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
    assert refreshed(index, tmp_path) == (5, 0), "both are there while it is being compressed"
    path.unlink()
    assert refreshed(index, tmp_path) == (5, 0)
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(gzip.decompress(packed.read_bytes()).split(b"\n")[0] + b"\n"))
    assert refreshed(index, tmp_path) == (1, 0), "rewritten: read anew"


async def test_what_is_deleted_or_replaced_is_forgotten(index: Index, tmp_path: Path) -> None:
    await written(tmp_path, decisions=2, calls=2)
    await written(tmp_path, decisions=1)
    assert refreshed(index, tmp_path) == (3, 2)
    first, second = sorted((tmp_path / "decisions").glob("*.jsonl*"))
    first.unlink()
    assert refreshed(index, tmp_path) == (1, 2)
    fresh = second.with_suffix(".new")
    fresh.write_bytes(second.read_bytes())
    fresh.replace(second)
    assert refreshed(index, tmp_path) == (1, 2)


async def test_a_span_in_two_files_counts_once_and_outlives_either(
    index: Index, tmp_path: Path
) -> None:
    await written(tmp_path, decisions=2, calls=1)
    for path in tmp_path.rglob("*.jsonl"):
        path.with_name("copy.jsonl").write_bytes(path.read_bytes())
    assert refreshed(index, tmp_path) == (2, 1)
    for path in tmp_path.rglob("2*.jsonl"):
        path.unlink()
    assert refreshed(index, tmp_path) == (2, 1)
    for path in tmp_path.rglob("copy.jsonl"):
        path.unlink()
    assert refreshed(index, tmp_path) == (0, 0)


async def test_torn_foreign_and_unreadable_files_are_survived_and_counted(
    index: Index, tmp_path: Path
) -> None:
    await written(tmp_path, decisions=2)
    folder = tmp_path / "decisions"
    (path,) = folder.glob("*.jsonl")
    line = path.read_bytes().splitlines(keepends=True)[0]
    (folder / "a.jsonl").write_bytes(b"\xff\xfe\n\n{}\n[]\n" + line[:90] + b"\n")
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(line * 9)[:-9])
    (folder / "c.jsonl.gz").write_bytes(b"no gzip")
    (folder / "d.jsonl").mkdir()
    assert refreshed(index, tmp_path) == (2, 0)
    assert index.unreadable() == 6
    assert refreshed(index, tmp_path) == (2, 0)


async def test_a_last_line_that_nobody_ended_is_read_where_it_is_whole(
    index: Index, tmp_path: Path
) -> None:
    await written(tmp_path, decisions=2)
    (path,) = (tmp_path / "decisions").glob("*.jsonl")
    path.write_bytes(path.read_bytes().rstrip())
    assert refreshed(index, tmp_path) == (2, 0)
    assert index.unreadable() == 0


async def test_another_schema_or_a_damaged_index_is_built_anew(tmp_path: Path) -> None:
    await written(tmp_path, decisions=2)
    place = tmp_path / "index.sqlite"
    with Index(place) as index:
        assert refreshed(index, tmp_path) == (2, 0)
        index._db.execute("PRAGMA user_version = 0")
    with Index(place) as index:
        assert refreshed(index, tmp_path) == (2, 0)
    place.write_bytes(place.read_bytes()[:4096] + os.urandom(8192))
    with Index(place) as index:
        assert refreshed(index, tmp_path) == (2, 0)


async def test_where_no_index_can_be_written_the_answer_is_the_same(tmp_path: Path) -> None:
    from observant_host.incidents.answer import Question, Sources, incidents

    await written(tmp_path, decisions=2)
    (tmp_path / "in the way").write_text("")
    sources = Sources(state_dirs=(tmp_path,), index=tmp_path / "in the way" / "x.sqlite")
    found = incidents(sources, Question(since_ns=0, until_ns=ALWAYS))
    assert found["hosts"] == ["one"]
