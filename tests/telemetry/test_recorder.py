"""The record: complete, private, bounded, and never in anybody's way."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import os
import resource
import signal
import stat
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from blockbuster import blockbuster_ctx

from observant_host.config import TelemetrySettings
from observant_host.telemetry import stream_files
from observant_host.telemetry.facade import Finished, Telemetry, TraceContext
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.otlp_json import OtlpJson
from observant_host.telemetry.recorder import Recorder
from observant_host.telemetry.stream_files import StreamFiles
from observant_host.telemetry.vocabulary import HostLifecycle, Request, RoutedCall
from tests.telemetry.facts import ALL, Ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CALL = RoutedCall(name="x", method="tools/call", peer="a", attempts=1, era="modern")
REQUEST = Request(peer="a", method="tools/call", era="modern", target="x")


def make(
    folder: Path, *, monotonic: Callable[[], float] | None = None
) -> tuple[Telemetry, Recorder]:
    encoder = OtlpJson({"service.name": "x"}, version="0", cleaner=Cleaner(Masker()))
    more: dict[str, Any] = {} if monotonic is None else {"monotonic": monotonic}
    recorder = Recorder(folder, settings=TelemetrySettings(), encoder=encoder, **more)
    telemetry = Telemetry(starter=OwnIds(ratio=0.0), sinks=[recorder], closing=[recorder])
    return telemetry, recorder


def names(folder: Path, stream: str) -> list[str]:
    found = []
    for path in sorted((folder / stream).glob("*")):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in data.splitlines():
            spans = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
            found += [span["name"] for span in spans]
    return found


async def test_decisions_and_traffic_go_to_streams_of_their_own_though_nothing_is_sampled(
    tmp_path: Path,
) -> None:
    telemetry, _ = make(tmp_path)
    for fact in ALL:
        telemetry.count(fact)
    await telemetry.close()
    assert names(tmp_path, "decisions") == [
        "observant_host.era.decide",
        "observant_host.peer.state",
        "observant_host.peer.restart",
        "observant_host.watchdog.check",
        "observant_host.era.drop",
        "observant_host.operator",
        "observant_host.name.decide",
        "observant_host.config.load",
        "observant_host.host.lifecycle",
        "observant_host.loop.stalled",
        "observant_host.telemetry.lost",
        "observant_host.watchdog.check",
        "observant_host.subscription.gap",
    ]
    traces = names(tmp_path, "traces")
    assert "tools/call search" in traces
    assert "observant_host.call" in traces
    assert not [name for name in traces if name in names(tmp_path, "decisions")]


async def test_the_record_is_private_to_the_user(tmp_path: Path) -> None:
    telemetry, _ = make(tmp_path / "state")
    telemetry.count(HostLifecycle(what="x"))
    telemetry.count(REQUEST)
    await telemetry.close()
    for stream in ("decisions", "traces"):
        folder = tmp_path / "state" / stream
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]


async def test_a_decision_is_on_disk_without_being_asked(tmp_path: Path) -> None:
    telemetry, _ = make(tmp_path)
    telemetry.count(HostLifecycle(what="x"))
    async with asyncio.timeout(30):
        while not await asyncio.to_thread(_written, tmp_path):
            await asyncio.sleep(0.01)
    await telemetry.close()


def _written(folder: Path) -> bool:
    return any(path.stat().st_size for path in folder.glob("decisions/*.jsonl"))


async def test_telling_never_touches_the_disk_from_the_loop(tmp_path: Path) -> None:
    with blockbuster_ctx("observant_host"):
        telemetry, _ = make(tmp_path)
        for _ in range(100):
            telemetry.count(HostLifecycle(what="x"))
            telemetry.count(REQUEST)
        await telemetry.flush()
        await telemetry.close()
    assert len(names(tmp_path, "decisions")) == 100


async def test_a_flood_of_traffic_loses_traffic_and_says_so_but_no_decision(
    tmp_path: Path,
) -> None:
    telemetry, recorder = make(tmp_path)
    for number in range(10_000):
        telemetry.count(REQUEST)
        if number % 100 == 0:
            telemetry.count(HostLifecycle(what="x"))
    await telemetry.flush()
    await telemetry.close()
    assert len(names(tmp_path, "decisions")) == 100
    assert len(names(tmp_path, "traces")) + recorder.lost["traces"] == 10_000
    assert recorder.lost["decisions"] == 0


async def test_calls_that_are_told_in_one_go_are_recorded_as_one_by_one(tmp_path: Path) -> None:
    telemetry, recorder = make(tmp_path)
    samples = Finished(CALL, TraceContext(1, 1)), Finished(REQUEST, TraceContext(1, 1))
    keep = recorder.alike(*samples)
    for number in range(100):
        state = "a=b" if number % 10 == 0 else ""
        keep(Ended(number, TraceContext(1, 2, tracestate=state), TraceContext(1, 3)))
    await telemetry.close()
    assert names(tmp_path, "traces") == ["tools/call x", "observant_host.call"] * 100


async def test_calls_told_in_one_go_that_cannot_be_kept_are_counted_and_end_nothing(
    tmp_path: Path,
) -> None:
    telemetry, recorder = make(tmp_path)
    of_request = Finished(REQUEST, TraceContext(1, 1))
    done = Ended(1, TraceContext(1, 2), TraceContext(1, 3))
    no_text = msgspec.structs.replace(CALL, name="\ud800")
    recorder.alike(Finished(no_text, TraceContext(1, 1)), of_request)(done)
    assert recorder.lost == {"decisions": 0, "traces": 2}
    keep = recorder.alike(Finished(CALL, TraceContext(1, 1)), of_request)
    for _ in range(10_000):
        keep(done)
    await telemetry.close()
    assert len(names(tmp_path, "traces")) + recorder.lost["traces"] == 20_002


async def test_closing_twice_and_telling_after_closing_break_nothing(tmp_path: Path) -> None:
    telemetry, _ = make(tmp_path)
    telemetry.count(HostLifecycle(what="x"))
    await telemetry.close()
    await telemetry.close()
    telemetry.count(HostLifecycle(what="late"))
    await telemetry.flush()
    assert len(names(tmp_path, "decisions")) == 1


async def test_a_disk_that_refuses_is_retried_and_no_decision_is_lost(tmp_path: Path) -> None:
    now = [0.0]
    (tmp_path / "decisions").write_text("in the way")
    telemetry, recorder = make(tmp_path, monotonic=lambda: now[0])
    telemetry.count(HostLifecycle(what="first"))
    await telemetry.flush()
    assert not recorder.up
    (tmp_path / "decisions").unlink()
    now[0] = 0.5
    telemetry.count(HostLifecycle(what="second"))
    await telemetry.flush()
    assert not recorder.up
    now[0] = 1.5
    telemetry.count(HostLifecycle(what="third"))
    await telemetry.flush()
    assert recorder.up
    assert recorder.lost == {"decisions": 0, "traces": 0}
    await telemetry.close()
    assert len(names(tmp_path, "decisions")) == 3


async def test_decisions_kept_for_a_disk_that_refuses_are_bounded_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        __import__("observant_host.telemetry.recorder", fromlist=["x"]).KEPT, "decisions", 10
    )
    (tmp_path / "decisions").write_text("in the way")
    telemetry, recorder = make(tmp_path, monotonic=lambda: 0.0)
    for _ in range(25):
        telemetry.count(HostLifecycle(what="x"))
    await telemetry.flush()
    assert recorder.lost["decisions"] == 15
    await telemetry.close()


async def test_a_span_that_cannot_be_encoded_is_counted_and_ends_nothing(tmp_path: Path) -> None:
    telemetry, recorder = make(tmp_path)
    telemetry.count(HostLifecycle(what="\ud800 no text"))
    telemetry.count(HostLifecycle(what="fine"))
    await telemetry.close()
    assert recorder.lost["decisions"] + len(names(tmp_path, "decisions")) == 2
    assert names(tmp_path, "decisions")


async def test_the_folder_may_go_away_under_a_running_host(tmp_path: Path) -> None:
    telemetry, _ = make(tmp_path)
    telemetry.count(HostLifecycle(what="x"))
    await telemetry.flush()
    for path in (tmp_path / "decisions").iterdir():
        path.unlink()
    (tmp_path / "decisions").rmdir()
    telemetry.count(HostLifecycle(what="y"))
    await telemetry.flush()
    await telemetry.close()
    assert len(names(tmp_path, "decisions")) == 1


# The files of one stream

LINE = b"x" * 1023 + b"\n"


def files(folder: Path, **changes: Any) -> StreamFiles:
    wanted: dict[str, Any] = {"max_bytes": 1 << 20, "max_days": 1.0, "segment_bytes": 8192}
    return StreamFiles(folder, **(wanted | changes))


def test_a_full_file_is_compressed_and_a_new_one_begun(tmp_path: Path) -> None:
    stream = files(tmp_path)
    for _ in range(20):
        stream.append([LINE], durable=False)
    zipped = sorted(tmp_path.glob("*.jsonl.gz"))
    assert len(zipped) == 2
    assert gzip.decompress(zipped[0].read_bytes()) == LINE * 8
    assert [path.stat().st_size for path in tmp_path.glob("*.jsonl")] == [4 * 1024]
    assert stat.S_IMODE(zipped[0].stat().st_mode) == 0o600
    stream.close()


def test_the_oldest_go_when_the_budget_is_spent(tmp_path: Path) -> None:
    stream = files(tmp_path, max_bytes=64 * 1024)
    for _ in range(400):
        stream.append([os.urandom(1023).hex().encode()[:1023] + b"\n"], durable=False)
    on_disk = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert on_disk <= 64 * 1024
    assert stream.total_bytes == on_disk
    stream.close()


def test_files_over_their_age_go(tmp_path: Path) -> None:
    now = [2_000_000_000 * 10**9]
    old = tmp_path / "20000101T000000.000000000Z-1.jsonl.gz"
    old.write_bytes(gzip.compress(LINE))
    os.utime(old, (now[0] / 1e9 - 90_000, now[0] / 1e9 - 90_000))
    recent = tmp_path / "20000102T000000.000000000Z-1.jsonl.gz"
    recent.write_bytes(gzip.compress(LINE))
    os.utime(recent, (now[0] / 1e9 - 80_000, now[0] / 1e9 - 80_000))
    stream = files(tmp_path, wall_ns=lambda: now[0])
    stream.append([LINE], durable=True)
    assert not old.exists()
    assert recent.exists()
    now[0] += 10_000 * 10**9
    stream.append([LINE], durable=True)
    assert not recent.exists()
    stream.close()


def test_what_an_earlier_run_left_is_compressed_what_another_process_writes_is_left_alone(
    tmp_path: Path,
) -> None:
    left = tmp_path / "20000101T000000.000000000Z-1.jsonl"
    left.write_bytes(LINE)
    other = files(tmp_path)
    other.append([LINE], durable=False)
    mine = files(tmp_path)
    mine.append([LINE], durable=False)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".gz", ".jsonl", ".jsonl"]
    other.append([LINE], durable=False)
    other.close()
    mine.close()


def test_a_write_that_was_cut_off_leaves_no_torn_line(tmp_path: Path) -> None:
    """A real short write: the file may not grow beyond 5,000 bytes for a moment."""
    stream = files(tmp_path)
    stream.append([LINE], durable=False)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            stream.append([LINE] * 6, durable=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    path = next(tmp_path.glob("*.jsonl"))
    assert path.read_bytes() == LINE
    stream.append([LINE], durable=False)
    assert path.read_bytes() == LINE * 2
    stream.close()


def test_any_number_of_pieces_is_written_as_it_is(tmp_path: Path) -> None:
    pieces = [b"%d," % number for number in range(2 * stream_files.AT_ONCE + 1)]
    stream = files(tmp_path, segment_bytes=1 << 20, max_bytes=1 << 23)
    stream.append(pieces, durable=False)
    assert next(tmp_path.glob("*.jsonl")).read_bytes() == b"".join(pieces)
    assert stream.total_bytes == len(b"".join(pieces))
    stream.close()


def test_a_file_is_finished_after_a_day_however_small_it_is(tmp_path: Path) -> None:
    now = [time.time_ns()]
    stream = files(tmp_path, max_days=30.0, wall_ns=lambda: now[0])
    stream.append([LINE], durable=True)
    now[0] += 86_401 * 10**9
    stream.append([LINE], durable=True)
    (zipped,) = tmp_path.iterdir()
    assert gzip.decompress(zipped.read_bytes()) == LINE * 2
    stream.append([LINE], durable=True)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".gz", ".jsonl"]
    stream.close()


def test_what_was_written_is_not_written_again_where_there_is_no_room_to_compress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = files(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(stream_files, "_zip", no_space)
        for _ in range(10):
            stream.append([LINE], durable=False)
    left = sorted(tmp_path.iterdir())
    assert [path.suffix for path in left] == [".jsonl", ".jsonl"]
    assert sum(path.stat().st_size for path in left) == 10 * 1024
    stream.close()
    again = files(tmp_path)
    again.append([LINE], durable=False)
    assert len(list(tmp_path.glob("*.gz"))) == 2
    again.close()


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_line_that_a_crash_left_torn_is_kept_apart_from_what_follows(tmp_path: Path) -> None:
    torn = tmp_path / "20000101T000000.000000000Z-1.jsonl"
    torn.write_bytes(LINE + LINE[:100])
    stream = files(tmp_path)
    stream.append([LINE], durable=True)
    stream.close()
    (zipped,) = tmp_path.glob("*.gz")
    assert gzip.decompress(zipped.read_bytes()) == LINE + LINE[:100]
    assert [path.read_bytes() for path in tmp_path.glob("*.jsonl")] == [LINE]


async def test_what_a_disk_never_took_is_counted_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "decisions").write_text("in the way")
    telemetry, recorder = make(tmp_path)
    telemetry.count(HostLifecycle(what="x"))
    await telemetry.flush()
    assert recorder.trouble == "File exists"
    await telemetry.close()
    assert recorder.lost == {"decisions": 1, "traces": 0}
