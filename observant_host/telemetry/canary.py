"""One span sent through the ways out that are configured, and looked for where it should arrive."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from observant_host.telemetry import export, setup
from observant_host.telemetry.facade import Telemetry
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.masking import Cleaner, Masker
from observant_host.telemetry.otlp_json import OtlpJson
from observant_host.telemetry.recorder import Recorder
from observant_host.telemetry.vocabulary import HostLifecycle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from observant_host.config import TelemetrySettings
    from observant_host.telemetry.propagation import TraceContext

CANARY: Final = HostLifecycle(what="canary", detail="sent by doctor to see whether it arrives")
ASIDE: Final = "opentelemetry"
"""The logger whose complaints say why a collector took nothing."""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """Why the canary did not arrive, "" where it did; None where it was not sent there."""

    record: str | None = None
    otlp: str | None = None


async def send(settings: TelemetrySettings, *, state_dir: Path | None, version: str) -> Arrival:
    """Through the record (None: not asked for) and to the collector (where there is one)."""
    record = await _recorded(settings, state_dir, version) if state_dir is not None else None
    otlp = await _exported(settings, version) if export.wanted(settings.otlp_endpoint) else None
    return Arrival(record=record, otlp=otlp)


async def _recorded(settings: TelemetrySettings, state_dir: Path, version: str) -> str:
    who = setup.resource(version=version, instance=setup.instance_of(state_dir) or "")
    encoder = OtlpJson(who, version=version, cleaner=Cleaner(Masker()))
    recorder = Recorder(state_dir, settings=settings, encoder=encoder)
    telemetry = Telemetry(starter=OwnIds(), sinks=[recorder], closing=[recorder])
    place = telemetry.count(CANARY)
    await telemetry.flush()
    trouble = recorder.trouble
    await telemetry.close()
    if trouble:
        return trouble
    return "" if _found(state_dir, place) else "it was written, but is not in any file"


def _found(state_dir: Path, place: TraceContext) -> bool:
    needle = f'"traceId":"{place.trace_hex}"'.encode()
    files = (state_dir / "decisions").glob(f"*-{os.getpid()}.jsonl")
    return any(
        needle in line and msgspec.json.decode(line)
        for path in files
        for line in path.read_bytes().splitlines()
    )


async def _exported(settings: TelemetrySettings, version: str) -> str:
    if (problem := export.suspicious(settings.otlp_endpoint)) is not None:
        return problem
    with _complaints() as said:
        who = setup.resource(version=version, instance="doctor")
        endpoint = settings.otlp_endpoint
        made = export.Export(
            export.otlp_sender(endpoint, resource=who, version=version, masker=Masker())
        )
        telemetry = Telemetry(starter=OwnIds(), sinks=[made], closing=[made])
        telemetry.count(CANARY)
        await telemetry.close()
        if made.counts["exported"]:
            return ""
    return said[0] if said else "no answer"


@contextmanager
def _complaints() -> Iterator[list[str]]:
    """What the exporter says meanwhile, kept off the terminal."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]  # a handler of one line
    logger = logging.getLogger(ASIDE)
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
