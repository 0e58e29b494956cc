"""What is built for whom: the command line, a library, a library that keeps a record."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest
from blockbuster import blockbuster_ctx

from observant_host.config import TelemetrySettings
from observant_host.telemetry import setup
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.vocabulary import HostLifecycle, PeerSnapshot, Request
from tests.telemetry.test_export import Collector

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = Request(peer="a", method="tools/call", era="modern", target="x")


@pytest.fixture(autouse=True)
def _no_standard_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


async def test_a_library_writes_no_file_and_no_stderr_unless_asked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    telemetry = setup.build(TelemetrySettings(), state_dir=tmp_path, version="1")
    telemetry.count(HostLifecycle(what="published"))
    await telemetry.close()
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")
    assert not [h for h in logging.getLogger().handlers if "Library" in type(h).__name__]


async def test_the_command_line_logs_to_stderr_records_and_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    telemetry = setup.build(
        TelemetrySettings(),
        state_dir=tmp_path,
        record=True,
        masker=Masker(["hunter22"]),
        instance="one",
        version="1.2",
        configure_sdk=True,
    )
    place = telemetry.count(HostLifecycle(what="published", detail="hunter22"))
    assert place.sampled
    text = (await telemetry.render())[0].decode()
    await telemetry.close()
    line = json.loads(capsys.readouterr().err)
    assert line["event"] == "host_lifecycle"
    assert line["detail"] == "***"
    record = next(tmp_path.glob("decisions/*.jsonl")).read_text()
    assert '"service.instance.id","value":{"stringValue":"one"}' in record
    assert "hunter22" not in record
    assert 'observant_host_telemetry_sink_up{sink="recorder"} 1.0' in text
    assert "observant_host_build_info{python=" in text


async def test_the_command_line_exports_where_an_endpoint_is_configured(tmp_path: Path) -> None:
    collector = Collector()
    telemetry = setup.build(
        TelemetrySettings(otlp_endpoint=collector.url),
        state_dir=tmp_path,
        record=True,
        version="1.2",
        configure_sdk=True,
    )
    place = telemetry.count(REQUEST)
    await telemetry.flush()
    text = (await telemetry.render())[0].decode()
    await telemetry.close()
    collector.close()
    assert collector.names() == ["tools/call x"]
    span = collector.batches[0].resource_spans[0].scope_spans[0].spans[0]
    assert span.trace_id.hex() == place.trace_hex
    assert place.trace_hex in next(tmp_path.glob("traces/*.jsonl")).read_text()
    assert 'observant_host_telemetry_spans_total{result="exported"} 1.0' in text
    assert 'observant_host_telemetry_sink_up{sink="otlp"} 1.0' in text


async def test_the_grpc_port_is_pointed_out_once(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = setup.build(
        TelemetrySettings(otlp_endpoint="http://127.0.0.1:4317"), configure_sdk=True
    )
    await telemetry.close()
    assert json.loads(capsys.readouterr().err)["event"] == "otlp_endpoint_suspicious"


async def test_console_lines_are_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = setup.build(TelemetrySettings(log_format="console"), configure_sdk=True)
    telemetry.count(HostLifecycle(what="published"))
    await telemetry.close()
    assert not capsys.readouterr().err.startswith("{")


async def test_a_disk_that_refuses_shows_in_the_metrics(tmp_path: Path) -> None:
    (tmp_path / "decisions").write_text("in the way")
    telemetry = setup.build(TelemetrySettings(), state_dir=tmp_path, record=True)
    telemetry.count(HostLifecycle(what="x"))
    await telemetry.flush()
    text = (await telemetry.render())[0].decode()
    assert 'observant_host_telemetry_sink_up{sink="recorder"} 0.0' in text
    await telemetry.close()


async def test_a_sink_that_breaks_shows_in_the_metrics_and_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = setup.build(TelemetrySettings(), state_dir=tmp_path, record=True)
    telemetry.count(HostLifecycle(what="x"))
    guard = next(sink for sink in telemetry._sinks if sink.name == "recorder")

    def broken(_: object) -> None:
        raise ValueError("a bug")

    guard._sink.emit = broken  # type: ignore[attr-defined]  # a bug, made on purpose
    with caplog.at_level(logging.WARNING, "observant_host"):
        telemetry.count(REQUEST)
    assert "telemetry_sink_down" in caplog.text
    assert "a bug" not in caplog.text
    text = (await telemetry.render())[0].decode()
    assert 'observant_host_telemetry_sink_up{sink="recorder"} 0.0' in text
    await telemetry.close()


async def test_building_telling_rendering_and_closing_never_block_the_loop(
    tmp_path: Path,
) -> None:
    setup.build(TelemetrySettings(), configure_sdk=True)  # imports are done once, before the loop
    with blockbuster_ctx("observant_host"):
        telemetry = setup.build(
            TelemetrySettings(), state_dir=tmp_path, record=True, configure_sdk=True
        )
        telemetry.peer_configured("a")
        telemetry.watch_peers(lambda: [PeerSnapshot(peer="a", state="ready")])
        with telemetry.operation(REQUEST):
            telemetry.count(HostLifecycle(what="x"))
        await telemetry.render()
        await telemetry.flush()
        await telemetry.close()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, {"service.name": "observant-host", "service.instance.id": "one"}),
        ({"OTEL_SERVICE_NAME": "tools"}, {"service.name": "tools"}),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,deployment.environment=pro%20d, bad ,=x"},
            {"service.name": "a", "deployment.environment": "pro d"},
        ),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "service.name=a,service.instance.id=pod-1",
             "OTEL_SERVICE_NAME": "b"},
            {"service.name": "b", "service.instance.id": "pod-1"},
        ),
    ],
)  # fmt: skip
def test_the_standard_variables_say_who_is_speaking(
    variables: dict[str, str], expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = setup.resource(version="1", instance="one")
    assert expected.items() <= found.items()
    assert found["observant_host.telemetry.schema"] == "1"
    assert not {"bad", ""} & set(found)
