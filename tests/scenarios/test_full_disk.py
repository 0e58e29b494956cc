"""A disk that is full under a running host: nothing stops, the alertable gauge says so, and every
decision is on disk once there is room again."""

from __future__ import annotations

import json
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from observant_host.incidents.record import read_timeline
from tests.support.running import config_of, file_in, running

SINK = 'observant_host_telemetry_sink_up{sink="recorder"}'


def own_mounts() -> tuple[str, ...]:
    """A prefix that runs a command where it may mount; skips where the kernel does not let us."""
    prefix = ("unshare", "--user", "--map-root-user", "--mount")
    works = (
        shutil.which("unshare")
        and not subprocess.run((*prefix, "true"), check=False, capture_output=True).returncode
    )
    if not works:
        pytest.skip("no user namespaces here")
    return prefix


def fill(path: Path) -> None:
    """Until nothing more fits."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(1024)):
            pass


async def test_a_full_disk_stops_no_call_and_costs_no_decision(tmp_path: Path) -> None:
    file_in(tmp_path).write_text(config_of(tmp_path, {"a": {"tools": "echo,die"}}))
    record = tmp_path / "state" / "decisions"
    record.mkdir(parents=True)
    small = f'mount -t tmpfs -o size=64k tmpfs {record} && exec "$@"'
    async with running(tmp_path, before=(*own_mounts(), "sh", "-c", small, "sh")) as host:
        inside = Path(f"/proc/{host.process.pid}/root{record}")
        filling = inside / "filling"
        fill(filling)
        await host.call("a/die")
        await host.ready("a", generation=2)
        await host.shows(SINK, "0.0")
        line = await host.until("host_lifecycle", what="sink_down")
        assert line["detail"] == "recorder: No space left on device"
        assert line["level"] == "warning"
        assert (await host.call("a/echo", text="x"))["outcome"] == "ok"
        filling.unlink()
        await host.shows(SINK, "1.0")
        await host.until("host_lifecycle", what="sink_up", detail="recorder")
        assert await host.metric('observant_host_record_lost_total{stream="decisions"}') == "0.0"
        files = {path.name: path.read_bytes() for path in inside.iterdir()}
    kept = tmp_path / "kept" / "decisions"
    kept.mkdir(parents=True)
    for name, data in files.items():
        (kept / name).write_bytes(data)
    spans = read_timeline([kept.parent])
    assert [one.name for one in spans if one.name == "observant_host.peer.restart"]
    whats = [one.attributes.get("observant_host.host.what") for one in spans]
    assert [one for one in whats if one in ("sink_down", "sink_up")] == ["sink_down", "sink_up"]
    for data in files.values():
        for text in data.splitlines():
            json.loads(text)


async def test_a_folder_that_is_taken_away_stops_no_call_and_comes_back(tmp_path: Path) -> None:
    file_in(tmp_path).write_text(config_of(tmp_path, {"a": {"tools": "echo,die"}}))
    record = tmp_path / "state" / "decisions"
    async with running(tmp_path) as host:
        shutil.rmtree(record)
        record.write_text("in the way")
        await host.call("a/die")
        await host.ready("a", generation=2)
        await host.shows(SINK, "0.0")
        assert (await host.call("a/echo", text="x"))["outcome"] == "ok"
        record.unlink()
        await host.shows(SINK, "1.0")
    spans = read_timeline([tmp_path / "state"])
    assert [one.name for one in spans if one.name == "observant_host.peer.restart"]
