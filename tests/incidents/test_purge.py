"""Deleting from the record deletes that, and nothing else, beside a host that goes on writing."""

from __future__ import annotations

import gzip
import json
import stat
from typing import TYPE_CHECKING

import pytest

from observant_host.config import TelemetrySettings
from observant_host.incidents.answer import INDEX_NAME, Question, Sources, incidents
from observant_host.incidents.otlp import spans_of_line
from observant_host.incidents.purge import Purged, Wanted, purge
from observant_host.incidents.purge_audit import beside, purge_audit
from observant_host.incidents.record import read_timeline
from observant_host.telemetry import setup
from observant_host.telemetry.vocabulary import (
    HostLifecycle,
    NorthboundRequest,
    OperatorAct,
    Request,
)

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.telemetry.facade import Telemetry


def telling(folder: Path) -> Telemetry:
    return setup.build(TelemetrySettings(), state_dir=folder, record=True, instance="one")


def told_of(folder: Path) -> list[str]:
    return [
        str(span.attributes.get("observant_host.peer.name", "-"))
        for span in read_timeline([folder])
    ]


async def written(folder: Path, *peers: str) -> None:
    telemetry = telling(folder)
    for peer in peers:
        telemetry.count(OperatorAct(verb="hold", peer=peer, principal="ada"))
        telemetry.count(Request(peer=peer, method="tools/call", era="modern"))
    telemetry.count(HostLifecycle(what="stopped"))
    await telemetry.close()


def spans(folder: Path) -> int:
    plain = [path.read_bytes() for path in folder.rglob("*.jsonl")]
    packed = [gzip.decompress(path.read_bytes()) for path in folder.rglob("*.jsonl.gz")]
    return sum(
        len(list(spans_of_line(line))) for text in plain + packed for line in text.splitlines()
    )


async def test_all_about_one_server_goes_from_both_streams(tmp_path: Path) -> None:
    await written(tmp_path, "a", "b", "a")
    (packed,) = (tmp_path / "traces").glob("*.jsonl")
    packed.with_name(packed.name + ".gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    before = spans(tmp_path)
    gone = purge(tmp_path, Wanted(server="a"))
    assert (gone.spans, gone.files, gone.held, gone.unreadable) == (4, 2, 0, 0)
    assert gone.freed_bytes > 0
    assert spans(tmp_path) == before - 4
    assert told_of(tmp_path) == ["b", "-"]
    for path in tmp_path.rglob("*.jsonl*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert ".1.jsonl" in path.name, "a file that was changed is seen to be another"
    purge(tmp_path, Wanted(server="b"))
    assert all(".2.jsonl" in path.name for path in (tmp_path / "decisions").iterdir())


def test_of_a_line_that_tells_of_several_servers_the_others_stay(tmp_path: Path) -> None:
    """Also where it is a collector's, or a Tempo's, that somebody put there."""

    def span(number: int, peer: str) -> dict[str, object]:
        pair = {"key": "observant_host.peer.name", "value": {"stringValue": peer}}
        return {"traceId": f"{1:032x}", "spanId": f"{number:016x}", "attributes": [pair], "kind": 3}

    def part(*spans: object) -> dict[str, object]:
        return {"resource": {}, "scopeSpans": [{"spans": list(spans)}]}

    request = {
        "resourceSpans": [part(span(1, "a"), span(2, "b")), {}],
        "trace": {"batches": [part(span(3, "b")), part(span(4, "a"))]},
    }
    path = tmp_path / "traces" / "20260101T000000.000000000Z-1.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(request) + "\n")
    assert purge(tmp_path, Wanted(server="a")).spans == 2
    (left,) = path.parent.iterdir()
    assert json.loads(left.read_bytes()) == {
        "resourceSpans": [part(span(2, "b")), {}],
        "trace": {"batches": [part(span(3, "b")), part()]},
    }


async def test_what_is_older_goes_and_empty_files_go_whole(tmp_path: Path) -> None:
    await written(tmp_path, "old")
    moment = max(span.end_ns for span in read_timeline([tmp_path])) + 1
    await written(tmp_path, "new")
    gone = purge(tmp_path, Wanted(before_ns=moment))
    assert (gone.spans, gone.files) == (3, 2)
    assert told_of(tmp_path) == ["new", "-"]
    assert len(list((tmp_path / "decisions").iterdir())) == 1
    both = Wanted(before_ns=moment, server="new")
    assert purge(tmp_path, both) == Purged()


async def test_a_rehearsal_changes_nothing(tmp_path: Path) -> None:
    await written(tmp_path, "a")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    gone = purge(tmp_path, Wanted(server="a"), dry_run=True)
    assert (gone.spans, gone.files) == (2, 2)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == before


async def test_what_a_living_host_writes_is_left_alone_until_it_has_finished_it(
    tmp_path: Path,
) -> None:
    telemetry = telling(tmp_path)
    telemetry.count(OperatorAct(verb="hold", peer="a", principal="ada"))
    await telemetry.flush()
    assert purge(tmp_path, Wanted(server="a")) == Purged(held=1)
    await telemetry.rotate_record()
    gone = purge(tmp_path, Wanted(server="a"))
    assert (gone.spans, gone.held) == (1, 0)
    telemetry.count(OperatorAct(verb="hold", peer="b", principal="ada"))
    await telemetry.close()
    assert told_of(tmp_path) == ["b"]


async def test_lines_that_nobody_can_read_go_too_where_a_file_is_cleaned(tmp_path: Path) -> None:
    await written(tmp_path, "a", "b")
    (path,) = (tmp_path / "decisions").glob("*.jsonl")
    with path.open("ab") as end:
        end.write(b'{"peer":"a"\n{"torn about a')
    text = gzip.compress(path.read_bytes())
    path.with_name("cut.jsonl.gz").write_bytes(text[: len(text) - 12])
    gone = purge(tmp_path, Wanted(server="a"))
    assert gone.unreadable >= 3
    assert "a" not in told_of(tmp_path)
    assert not list(tmp_path.rglob("*.tmp"))


async def test_the_index_forgets_with_the_record(tmp_path: Path) -> None:
    await written(tmp_path, "a")
    sources = Sources(state_dirs=(tmp_path,), index=tmp_path / INDEX_NAME)
    incidents(sources, Question(since_ns=0, until_ns=2**62))
    assert (tmp_path / INDEX_NAME).exists()
    purge(tmp_path, Wanted(server="a"))
    assert not (tmp_path / INDEX_NAME).exists()


def test_everything_is_never_meant_by_saying_nothing() -> None:
    with pytest.raises(ValueError, match="before when"):
        Wanted()


def audit_line(server: str, time: str, **more: object) -> bytes:
    told = {"time": time, "principal": "ada", "server": server, "duration_ms": 2000.0, **more}
    return json.dumps(told).encode() + b"\n"


def audit_in(folder: Path, *lines: bytes) -> Path:
    path = folder / "audit" / "20260101T000000.000000000Z-7.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(lines))
    return path


def test_the_audit_stays_whatever_is_deleted_from_the_record(tmp_path: Path) -> None:
    path = audit_in(tmp_path, audit_line("a", "2026-01-01T00:00:00+00:00"))
    before = path.read_bytes()
    purge(tmp_path, Wanted(server="a"))
    assert path.read_bytes() == before
    assert beside(tmp_path) == {"audit": 1}


def test_lines_of_one_server_go_from_the_audit_by_the_moment_at_which_their_calls_ended(
    tmp_path: Path,
) -> None:
    old, new = "2026-01-01T00:00:00+00:00", "2026-01-01T00:00:09+00:00"
    kept = (audit_line("b", old), audit_line("a", new), audit_line("", old))
    path = audit_in(tmp_path, audit_line("a", old), *kept, b"{torn")
    moment = 1_767_225_603_000_000_000  # a second after the first call ended
    asked = Wanted(server="a", before_ns=moment)
    assert purge_audit(tmp_path, asked, dry_run=True).spans == 1
    assert path.read_bytes().count(b"\n") == 4
    gone = purge_audit(tmp_path, asked)
    assert (gone.spans, gone.unreadable, gone.files, gone.held) == (1, 1, 1, 0)
    (left,) = (tmp_path / "audit").iterdir()
    assert left.read_bytes() == b"".join(kept)
    assert stat.S_IMODE(left.stat().st_mode) == 0o600
    assert purge_audit(tmp_path, Wanted(before_ns=moment - 2 * 10**9)) == Purged()
    assert purge_audit(tmp_path, Wanted(before_ns=moment)).spans == 2
    assert purge_audit(tmp_path / "none", asked) == Purged()


async def test_a_running_host_lets_go_of_its_audit_when_its_record_is_purged(
    tmp_path: Path,
) -> None:
    told = setup.build(TelemetrySettings(audit="metadata"), state_dir=tmp_path, record=True)
    request = NorthboundRequest(method="tools/call", principal="ada", target="x")
    told.count(request)
    await told.flush()
    assert purge_audit(tmp_path, Wanted(server="")) == Purged(held=1)
    await told.rotate_record()
    told.count(request)
    await told.flush()
    gone = purge_audit(tmp_path, Wanted(server=""))
    assert (gone.spans, gone.held) == (1, 1)
    await told.close()
    assert purge_audit(tmp_path, Wanted(server="")).spans == 1
