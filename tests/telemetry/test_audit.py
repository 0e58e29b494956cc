"""Every call that somebody made is one line, with no more of it than was asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from observant_host.config import TelemetrySettings
from observant_host.telemetry import audit, setup
from observant_host.telemetry.audit import Audit
from observant_host.telemetry.finished import Finished
from observant_host.telemetry.masking import Masker
from observant_host.telemetry.propagation import TraceContext
from observant_host.telemetry.vocabulary import ConfigLoaded, NorthboundRequest, RoutedCall

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from observant_host.telemetry.facade import Telemetry


def telemetry(folder: Path, mode: str) -> Telemetry:
    settings = TelemetrySettings(audit=mode, record=False)  # type: ignore[arg-type]  # a plain word
    return setup.build(settings, state_dir=folder, masker=Masker(["hunter22"]))


def lines(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "audit").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def call(told: Telemetry, params: dict[str, Any], *, principal: str | None = "ci") -> None:
    fact = RoutedCall(
        name="a/add", method="tools/call", peer="a", local_name="add", principal=principal
    )
    with told.operation(fact) as op:
        assert told.audit is not None
        told.audit.hold(op.context, params)
        op.end_as("tool_error", "tool_error")


async def test_a_line_says_who_called_what_where_and_how_it_ended(tmp_path: Path) -> None:
    told = telemetry(tmp_path, "metadata")
    with told.operation(NorthboundRequest(method="tools/call", principal="ci")):
        call(told, {"arguments": {"x": 1}})
    await told.close()
    (line,) = lines(tmp_path)
    assert line.pop("duration_ms") >= 0
    assert len(line.pop("trace_id")) == 32
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "principal": "ci",
        "method": "tools/call",
        "name": "a/add",
        "server": "a",
        "outcome": "tool_error",
    }


async def test_a_call_that_reached_no_server_has_its_line_too(tmp_path: Path) -> None:
    told = telemetry(tmp_path, "metadata")
    with told.operation(
        NorthboundRequest(method="tools/call", target="b/hidden", principal="ci")
    ) as op:
        op.end_as("rpc_error", "-32602")
    with told.operation(NorthboundRequest(method="tools/list", principal="ci")):
        pass
    told.count(ConfigLoaded(hash="x", successful=True))
    await told.close()
    (line,) = lines(tmp_path)
    assert (line["name"], line["outcome"], line["server"]) == ("b/hidden", "rpc_error", "")


async def test_arguments_are_there_where_asked_for_and_no_secret_in_them(tmp_path: Path) -> None:
    told = telemetry(tmp_path, "arguments")
    call(
        told,
        {
            "name": "add",
            "arguments": msgspec.Raw(b'{"x":[1,{"Api_Key":"k"}],"note":"it is hunter22"}'),
        },
    )
    call(told, {"arguments": {"text": "x" * 5000}})
    call(told, {"arguments": {}}, principal=None)
    await told.flush()
    first, second = lines(tmp_path)
    assert first["arguments"] == {
        "name": "add",
        "arguments": {"x": [1, {"Api_Key": "***"}], "note": "it is ***"},
    }
    assert second["arguments"]["omitted_bytes"] > 5000
    await told.close()


async def test_off_writes_nothing(tmp_path: Path) -> None:
    told = telemetry(tmp_path, "off")
    assert told.audit is None
    await told.close()
    assert not (tmp_path / "audit").exists()


async def test_what_the_disk_never_took_is_told(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("in the way")
    lost: list[int] = []
    sink = Audit(
        tmp_path, settings=TelemetrySettings(audit="metadata"), masker=Masker(), lost=lost.append
    )
    fact = RoutedCall(name="a", method="tools/call", peer="a", local_name="a", principal="ci")
    sink.emit(Finished(fact, TraceContext(1, 2)))
    await sink.flush()
    await sink.close()
    assert lost == [1]


async def test_a_thread_that_stands_still_costs_lines_and_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "LINES_WAITING", 0)
    monkeypatch.setattr(audit, "OPEN_CALLS", 2)
    lost: list[int] = []
    sink = Audit(
        tmp_path, settings=TelemetrySettings(audit="arguments"), masker=Masker(), lost=lost.append
    )
    for number in range(5):
        sink.hold(TraceContext(1, number), {})
    assert len(sink._held) == 2
    fact = RoutedCall(name="a", method="tools/call", peer="a", local_name="a", principal="ci")
    sink.emit(Finished(fact, TraceContext(1, 2)))
    await sink.close()
    assert lost == [1]


async def test_a_call_that_cannot_be_written_costs_its_own_line_only(tmp_path: Path) -> None:
    lost: list[int] = []
    sink = Audit(
        tmp_path, settings=TelemetrySettings(audit="arguments"), masker=Masker(), lost=lost.append
    )
    fact = RoutedCall(name="a", method="tools/call", peer="a", local_name="a", principal="ci")
    for number, params in enumerate(({"arguments": object()}, {"arguments": 1})):
        sink.hold(TraceContext(1, number), params)
        sink.emit(Finished(fact, TraceContext(1, number)))
    await sink.flush()
    await sink.close()
    assert [one["arguments"] for one in lines(tmp_path)] == [{"arguments": 1}]
    assert lost == [1]
