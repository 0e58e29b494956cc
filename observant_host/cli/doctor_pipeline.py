"""`doctor` on what tells: does a span arrive where it should, are metrics served, is there room,
are the ports free? Finding out and judging are apart, so that every verdict can be tested."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from observant_host.cli import series
from observant_host.cli.doctor_checks import Check
from observant_host.cli.doctor_loop import Lag, judge_lag, lag_of
from observant_host.errors import HostError
from observant_host.telemetry.canary import Arrival
from observant_host.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from observant_host.config import HostConfig
    from observant_host.config_files import Loaded, Surroundings

ROOM: Final = 64 << 20
"""Free bytes below which a record is lost within minutes of traffic."""
MENDS: Final = {
    "recorder": "make room, or give the host the right to write below `state_dir`",
    "otlp": "start the collector, or correct `otlp_endpoint`",
    "log": "have something read the host's stderr",
}
"""Each goes on by itself once its cause is gone. What is not here fails by a fault of ours."""


class Running(msgspec.Struct, frozen=True):
    """What a running host said. `metrics`: why it serves none ("": it does). `down`: the sinks of
    its telemetry that take nothing now, and why ("" where it did not say). `lag` of its loop."""

    metrics: str = ""
    down: Mapping[str, str] = {}
    lag: Lag | None = None


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. `running` is None where no host runs.

    `taken` are addresses that the host is to listen on and somebody else does. `free_bytes` of the
    disk that holds the state folder, and how much the record may grow there.
    """

    arrival: Arrival
    endpoint: str | None = None
    running: Running | None = None
    taken: tuple[str, ...] = ()
    free_bytes: int | None = None
    record_bytes: int = 0


def look(loaded: Loaded, around: Surroundings) -> Pipeline:
    """Send the canary and look around. Writes one span to the record, and nothing else."""
    config = loaded.config
    folder = Path(config.host.state_dir or around.folder("state"))
    recorded = folder if config.telemetry.record and folder.is_dir() else None
    arrival, running = asyncio.run(_asked(config, folder, recorded))
    keeps = config.telemetry.record
    limits = config.telemetry.decisions_max_bytes + config.telemetry.traces_max_bytes
    return Pipeline(
        arrival=arrival,
        endpoint=config.telemetry.otlp_endpoint,
        running=running,
        taken=() if running is not None else tuple(_taken(config)),
        free_bytes=_free(folder) if keeps else None,
        record_bytes=limits,
    )


async def _asked(
    config: HostConfig, folder: Path, recorded: Path | None
) -> tuple[Arrival, Running | None]:
    from observant_host.telemetry import canary

    arrival = await canary.send(config.telemetry, state_dir=recorded, version=VERSION)
    return arrival, await _running(folder)


async def _running(folder: Path) -> Running | None:
    from observant_host.service.client import HostClient

    client = await HostClient.connect(folder)
    if client is None:
        return None
    try:
        shown = await client.metrics()
        if b"observant_host_build_info" not in shown:
            return Running("they are not there")
        recent = msgspec.json.decode(await client.recent())["recent"]
        return Running(down=_down(shown, recent), lag=lag_of(shown, recent))
    except HostError as error:
        return Running(str(error))
    finally:
        await client.close()


def _down(shown: bytes, recent: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Why is in the host's last decision about it."""
    down = {
        s: "" for s, up in series.by_label(shown, "telemetry_sink_up", "sink").items() if not up
    }
    for decision in recent:
        attributes = decision["attributes"]
        if attributes.get("observant_host.host.what") == "sink_down":
            sink, _, why = str(attributes.get("observant_host.host.detail", "")).partition(": ")
            if sink in down:
                down[sink] = why
    return down


def _taken(config: HostConfig) -> Iterator[str]:
    service = config.service
    for address in (service.listen, service.metrics_listen, service.admin_listen):
        host, _, port = (address or "").rpartition(":")
        if not port.isdigit() or port == "0":
            continue
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trying.bind((host.strip("[]"), int(port)))
            except OSError as error:
                yield f"{address}: {error.strerror or error}"


def _free(folder: Path) -> int | None:
    above = next((one for one in (folder, *folder.parents) if one.exists()), None)
    return shutil.disk_usage(above).free if above is not None else None


def judge(found: Pipeline) -> Iterator[Check]:
    """Every verdict about it."""
    yield from _record(found)
    yield from _otlp(found)
    if found.running is not None:
        yield from _of_host(found.running)
    for address in found.taken:
        fix = "stop what listens there, or choose another address ([service] listen, --listen)"
        yield Check("failed", "port", f"cannot listen on {address}", None, fix)


def _of_host(running: Running) -> Iterator[Check]:
    if running.metrics:
        text = f"the running host serves no metrics: {running.metrics}"
        yield Check("failed", "metrics", text, None, "look at its log; restart it")
    else:
        yield Check("ok", "metrics", "the running host serves them")
    if running.lag is not None:
        yield judge_lag(running.lag)
    for sink, why in running.down.items():
        text = f"the running host's sink `{sink}` takes nothing" + (f": {why}" if why else "")
        yield Check("failed", "sink", text, None, MENDS.get(sink, "look at its log; restart it"))


def _record(found: Pipeline) -> Iterator[Check]:
    if found.arrival.record == "":
        yield Check("ok", "record", "a span was written and read back")
    elif found.arrival.record is not None:
        text = f"a span could not be recorded: {found.arrival.record}"
        fix = "make room, or give the right to write below `state_dir`; nothing else waits for it"
        yield Check("failed", "record", text, None, fix)
    if found.free_bytes is None:
        return
    free, wanted = found.free_bytes >> 20, found.record_bytes >> 20
    said = f"{free:,} MiB are free; the record may grow to {wanted:,} MiB"
    fix = "make room, or set smaller decisions_max_bytes and traces_max_bytes"
    if found.free_bytes < ROOM:
        yield Check("failed", "disk", said, None, fix)
    elif found.free_bytes < found.record_bytes:
        yield Check("hint", "disk", said, None, fix)
    else:
        yield Check("ok", "disk", said)


def _otlp(found: Pipeline) -> Iterator[Check]:
    if found.arrival.otlp == "":
        yield Check("ok", "span", "the collector accepted a span")
    elif found.arrival.otlp is not None:
        text = f"the collector took no span: {found.arrival.otlp}"
        fix = "correct `otlp_endpoint` (HTTP, usually port 4318), or start the collector"
        yield Check("failed", "span", text, None, fix)
