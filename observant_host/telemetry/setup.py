"""Builds a Telemetry: for the command line, for a library inside somebody's program, for tests."""

from __future__ import annotations

import hashlib
import os
import platform
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec

from observant_host.telemetry.facade import Telemetry
from observant_host.telemetry.finished import pair_of
from observant_host.telemetry.ids import OwnIds
from observant_host.telemetry.masking import Cleaner, Masker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from observant_host.config import TelemetrySettings
    from observant_host.telemetry.audit import Audit
    from observant_host.telemetry.export import Export
    from observant_host.telemetry.finished import Finished, OneOfMany, Sink, Starter
    from observant_host.telemetry.guard import Guarded
    from observant_host.telemetry.log_lines import StderrLines
    from observant_host.telemetry.logs import LogSink
    from observant_host.telemetry.otlp_json import OtlpJson
    from observant_host.telemetry.recorder import Recorder
    from observant_host.telemetry.rules import Value
    from observant_host.telemetry.scrape import SelfReport
    from observant_host.telemetry.vocabulary import Fact

SERVICE: Final = "observant-host"


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

    configure_sdk: True for the command line (spans exported by ourselves where an endpoint is
    configured, log lines on stderr); False for a library (the embedding program's provider and
    its `logging`).
    state_dir: where the record is written; nothing is written without it or with `record` False.
    instance: names this host among others (service.instance.id).
    """
    parts = _Parts(settings, masker or Masker(), version=version, instance=instance)
    parts.add_logs(to_stderr=configure_sdk)
    if record and state_dir is not None:
        parts.add_record(state_dir)
    if settings.audit != "off" and state_dir is not None:
        parts.add_audit(state_dir)
    parts.add_spans(configure_sdk=configure_sdk)
    return parts.telemetry()


class _Parts:
    """Puts the sinks together, and lets them report on each other."""

    def __init__(
        self, settings: TelemetrySettings, masker: Masker, *, version: str, instance: str
    ) -> None:
        self._settings = settings
        self._masker = masker
        self._version = version
        self._resource = resource(version=version, instance=instance)
        self._logs: LogSink | None = None
        self._lines: StderrLines | None = None
        self._recorder: Recorder | None = None
        self._export: Export | None = None
        self._audit: Audit | None = None
        self._starter: Starter = OwnIds()
        self._sinks: dict[str, Sink] = {}

    def add_logs(self, *, to_stderr: bool) -> None:
        from observant_host.telemetry import log_lines, logs

        render: Callable[[log_lines.Fields], str] = log_lines.as_plain
        if to_stderr:
            console = self._settings.log_format == "console"
            render = log_lines.as_console if console else log_lines.as_json
            self._lines = log_lines.StderrLines()
        self._logs = logs.LogSink(
            write=self._lines or log_lines.to_logging,
            cleaner=Cleaner(self._masker),
            level=self._settings.log_level,
            render=render,
            service=str(self._resource["service.name"]),
            heard=None if to_stderr else log_lines.is_heard,
        )
        if to_stderr:
            logs.take_over_library_logs(self._logs)
        self._sinks["log"] = self._logs

    def add_record(self, state_dir: Path) -> None:
        from observant_host.telemetry.recorder import Recorder

        encoder = self._encoder()
        self._recorder = Recorder(state_dir, settings=self._settings, encoder=encoder)
        self._sinks["recorder"] = self._recorder

    def add_audit(self, state_dir: Path) -> None:
        from observant_host.telemetry.audit import Audit

        def lost(lines: int) -> None:
            self._notice("audit_lost", lines=lines)

        self._audit = Audit(state_dir, settings=self._settings, masker=self._masker, lost=lost)

    def _arguments(self) -> Callable[[object], str] | None:
        if not self._settings.capture_arguments:
            return None
        from observant_host.telemetry.audit import shown_arguments

        masker = self._masker
        return lambda given: msgspec.json.encode(shown_arguments(given, masker)).decode()

    def _encoder(self) -> OtlpJson:
        from observant_host.telemetry.otlp_json import OtlpJson

        return OtlpJson(self._resource, version=self._version, cleaner=Cleaner(self._masker))

    def add_spans(self, *, configure_sdk: bool) -> None:
        if configure_sdk:
            self._export = self._configured_export()
        kept = self._recorder is not None or self._export is not None
        ratio = self._settings.sample_ratio if kept else 0.0
        own = OwnIds(ratio=ratio, decisions=True if self._export is not None else None)
        if configure_sdk:
            self._starter = own
            if self._export is not None:
                self._sinks["span"] = self._export
            return
        from observant_host.telemetry.spans import SpanSink

        spans = SpanSink(cleaner=Cleaner(self._masker), version=self._version, fallback=own)
        self._starter = spans
        self._sinks["span"] = spans

    def _configured_export(self) -> Export | None:
        from observant_host.telemetry import export

        endpoint = self._settings.otlp_endpoint
        for name in export.unspoken():
            detail = f"OTEL_TRACES_EXPORTER asks for {name}; this host has otlp and none"
            self._notice("otlp_endpoint_suspicious", detail=detail)
        if not export.wanted(endpoint):
            return None
        if (warning := export.suspicious(endpoint)) is not None:
            self._notice("otlp_endpoint_suspicious", detail=warning)
        sender = export.otlp_sender(
            endpoint, resource=self._resource, version=self._version, masker=self._masker
        )
        return export.Export(sender)

    def telemetry(self) -> Telemetry:
        from observant_host.telemetry.flight import FlightRecorder
        from observant_host.telemetry.guard import Guarded as Guard
        from observant_host.telemetry.metrics import MetricSink

        guards: dict[str, Guarded] = {}
        metrics = MetricSink(version=self._version, report=lambda: self._report(guards))
        for name, sink in {**self._sinks, "metric": metrics}.items():
            guards[name] = Guard(sink, changed=self._sink_changed)
        flight = FlightRecorder(encoder=self._encoder, cleaner=Cleaner(self._masker))
        closing = [self._export, self._recorder, self._audit, self._logs, self._lines]
        others: list[Sink] = [flight] if self._audit is None else [flight, self._audit]
        return Telemetry(
            starter=self._starter,
            sinks=[*guards.values(), *others],
            metrics=metrics,
            closing=[one for one in closing if one is not None],
            losses=self._losses,
            rotate=self._rotate,
            flight=flight,
            audit=self._audit,
            arguments=self._arguments(),
            down=lambda: self._down(guards),
            log_tail=lambda: tuple(self._lines.tail) if self._lines is not None else (),
            log=self._logs,
        )

    def _rotate(self) -> None:
        for one in (self._recorder, self._audit):
            if one is not None:
                one.rotate()

    def _losses(self) -> dict[str, int]:
        lost = dict(self._recorder.lost) if self._recorder is not None else {}
        if self._export is not None:
            counts = self._export.counts
            lost["otlp"] = counts.get("dropped", 0) + counts.get("failed", 0)
        return lost

    def _sink_changed(self, name: str, up: bool, error: BaseException | None) -> None:
        if name != "log":
            event = "telemetry_sink_up" if up else "telemetry_sink_down"
            self._notice(event, sink=name, error_type=type(error).__name__ if error else "")

    def _notice(self, event: str, **fields: object) -> None:
        if self._logs is not None:
            self._logs.notice("warning", event, **fields)

    def _up(self, guards: dict[str, Guarded]) -> dict[str, bool]:
        sinks = {name: guard.up for name, guard in guards.items()}
        if self._recorder is not None:
            sinks["recorder"] = sinks["recorder"] and self._recorder.up
        if self._lines is not None:
            sinks["log"] = sinks["log"] and self._lines.up
        if self._export is not None:
            sinks["otlp"] = self._export.up
        return sinks

    def _down(self, guards: dict[str, Guarded]) -> dict[str, str]:
        why = {"recorder": self._recorder.trouble} if self._recorder is not None else {}
        return {name: why.get(name, "") for name, up in self._up(guards).items() if not up}

    def _report(self, guards: dict[str, Guarded]) -> SelfReport:
        from observant_host.telemetry.scrape import SelfReport

        return SelfReport(
            sinks=self._up(guards),
            spans=self._export.counts if self._export is not None else {},
            record_bytes=self._recorder.bytes_on_disk if self._recorder is not None else {},
            record_lost=self._recorder.lost if self._recorder is not None else {},
        )


def resource(*, version: str, instance: str) -> dict[str, Value]:
    """Who is speaking: the resource attributes of spans and of the record.

    The standard variables win over our own names. Source: OpenTelemetry resource SDK
    specification, OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME.
    """
    named = os.environ.get("OTEL_SERVICE_NAME")
    return {
        "service.name": SERVICE,
        "service.version": version,
        "service.instance.id": instance,
        "host.name": platform.node(),
        **_resource_attributes(os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")),
        **({"service.name": named} if named else {}),
        "process.pid": os.getpid(),
        "observant_host.telemetry.schema": "1",
    }


def _resource_attributes(text: str) -> dict[str, str]:
    """`key=value,…`, percent-encoded; what is not of that form is left out."""
    pairs = (part.partition("=") for part in text.split(","))
    return {
        key.strip(): unquote(value.strip())
        for key, separator, value in pairs
        if separator and key.strip() and value.strip()
    }


def instance_of(state_dir: Path | None) -> str | None:
    """A host's name among others, the same over its restarts: from its machine and its folder.

    None where it has no folder. Source: OpenTelemetry resource conventions, service.instance.id.
    """
    if state_dir is None:
        return None
    place = f"{platform.node()}\0{state_dir.absolute()}"
    return hashlib.sha256(place.encode()).hexdigest()[:16]


class _Capture:
    name: Final = "log"

    def __init__(self) -> None:
        self.all: list[Finished] = []

    def wants(self, kind: type[Fact]) -> bool:
        return True

    def emit(self, done: Finished) -> None:
        self.all.append(done)

    def alike(self, call: Finished, request: Finished) -> Callable[[OneOfMany], None] | None:
        """As they would have come one by one."""

        def emit(done: OneOfMany) -> None:
            self.all += pair_of(done, call, request)

        return emit


def silent() -> Telemetry:
    """For tests: tells nobody, still gives ids."""
    return Telemetry(starter=OwnIds())


def capturing() -> tuple[Telemetry, list[Finished]]:
    """For tests: everything told, in order, in the list beside it."""
    capture = _Capture()
    return Telemetry(starter=OwnIds(), sinks=(capture,)), capture.all
