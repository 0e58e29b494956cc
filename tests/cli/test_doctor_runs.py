"""`doctor` over real configurations, pipelines and running hosts."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest

from observant_host.cli.doctor_pipeline import MENDS, Pipeline, Running, judge
from observant_host.telemetry.canary import Arrival
from tests.support import canary
from tests.support.commands import Ended, command
from tests.support.running import command_line, config_of, file_in, running
from tests.telemetry.test_export import Collector

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, *argv: str, **more: str) -> Ended:
    env = canary.environment(folder, **{"OBSERVANT_HOST_SERVICE__LISTEN": "127.0.0.1:0", **more})
    return command("doctor", *argv, cwd=folder, env=env)


def document(folder: Path, toml: str, **more: str) -> dict[str, Any]:
    (folder / "oh.toml").write_text(toml)
    found: dict[str, Any] = json.loads(run(folder, "--json", "-c", "oh.toml", **more).stdout)
    return found


def of(found: dict[str, Any], check: str) -> list[tuple[str, str]]:
    return [(one["result"], one["finding"]) for one in found["checks"] if one["check"] == check]


def test_a_sound_machine_passes(tmp_path: Path) -> None:
    toml = f'[servers.a]\ncommand = "{sys.executable}"\nlegacy_reason = "x"\n'
    (tmp_path / "oh.toml").write_text(toml)
    done = run(tmp_path, "-c", "oh.toml", "--all")
    assert done.returncode == 0, done.stdout
    assert f"{tmp_path}/oh.toml is valid" in done.stdout
    quiet = run(tmp_path, "-c", "oh.toml")
    assert "failed" not in quiet.stdout


def test_commands_are_found_as_the_child_would_find_them(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("npx", "node", "tool"):
        (tmp_path / "bin" / name).write_text(
            f"#!/bin/sh\necho {'v16.0.0' if name != 'npx' else 9}\n"
        )
        (tmp_path / "bin" / name).chmod(0o755)
    found = document(
        tmp_path,
        f'[servers.a]\ncommand = "npx"\nenv = {{ PATH = "{tmp_path}/bin" }}\n'
        '[servers.b]\ncommand = "./tool"\ncwd = "bin"\n'
        '[servers.c]\ncommand = "./tool"\n[servers.d]\ncommand = "no-such-program"\n'
        '[servers.e]\ncommand = "./tool"\ncwd = "no-such-folder"\n',
    )
    assert found["failed"] == 4
    assert of(found, "command") == [
        ("warning", f"npx is {tmp_path}/bin/npx (v16.0.0): too old"),
        ("ok", f"./tool is {tmp_path}/bin/tool"),
        ("failed", "./tool is not found"),
        ("failed", "no-such-program is not found"),
        ("failed", "./tool is not found"),
    ]
    assert [result for result, _ in of(found, "cwd")] == ["failed"]


def test_a_program_that_cannot_tell_its_version_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "uvx").write_bytes(b"\x7fnot a program")
    (tmp_path / "uvx").chmod(0o755)
    found = document(tmp_path, '[servers.a]\ncommand = "./uvx"\n')
    assert of(found, "command") == [("ok", f"./uvx is {tmp_path}/uvx")]


def test_a_broken_file_is_the_only_finding(tmp_path: Path) -> None:
    found = document(tmp_path, "[hots]\n")
    assert found["failed"] == 1
    assert of(found, "config")[0][0] == "failed"


def test_the_collector_and_the_running_host_are_asked_by_their_sockets(tmp_path: Path) -> None:
    state = tmp_path / "s"
    state.mkdir(mode=0o700)
    (state / "instance.lock").write_text("4242\n")
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket(socket.AF_UNIX) as host:
        host.bind(str(state / "host.sock"))
        host.listen()
        port = listening.getsockname()[1]
        toml = f'[host]\nstate_dir = "s"\n[telemetry]\notlp_endpoint = "http://127.0.0.1:{port}"\n'
        found = document(tmp_path, toml)
    assert of(found, "otlp") == [("ok", f"http://127.0.0.1:{port} can be reached")]
    assert of(found, "instance") == [("ok", "a host is running there (pid 4242)")]
    gone = document(tmp_path, toml)
    assert of(gone, "otlp")[0][0] == "failed"
    assert of(gone, "instance") == [("ok", "no host is running there")]
    plain = '[host]\nstate_dir = "s"\n'
    wrong = document(tmp_path, plain, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4317")
    assert "is the port for gRPC" in of(wrong, "otlp")[0][1]
    bad = document(tmp_path, plain, OTEL_EXPORTER_OTLP_ENDPOINT="http://[x")
    assert "is no URL" in of(bad, "otlp")[0][1]


@pytest.mark.parametrize(
    ("found", "check", "result", "said"),
    [
        ({"arrival": Arrival(record="")}, "record", "ok", "read back"),
        ({"arrival": Arrival(record="No space left on device")}, "record", "failed", "No space"),
        ({"arrival": Arrival(otlp="")}, "span", "ok", "accepted"),
        ({"arrival": Arrival(otlp="no answer")}, "span", "failed", "no answer"),
        ({"running": Running()}, "metrics", "ok", "serves them"),
        ({"running": Running("gone")}, "metrics", "failed", "gone"),
        ({"taken": ("127.0.0.1:1: in use",)}, "port", "failed", "cannot listen on 127.0.0.1:1"),
        ({"free_bytes": 2 << 30, "record_bytes": 1 << 30}, "disk", "ok", "2,048 MiB are free"),
        ({"free_bytes": 1 << 29, "record_bytes": 1 << 30}, "disk", "hint", "512 MiB are free"),
        ({"free_bytes": 1 << 20, "record_bytes": 1 << 30}, "disk", "failed", "1 MiB are free"),
    ],
)
def test_each_finding_about_the_pipeline_has_its_verdict_and_a_fix(
    found: dict[str, Any], check: str, result: str, said: str
) -> None:
    (one,) = judge(Pipeline(**{"arrival": Arrival(), **found}))
    assert (one.check, one.result) == (check, result)
    assert said in one.finding
    assert bool(one.fix) == (result != "ok")


def test_a_sink_that_is_down_is_named_with_its_reason_and_a_fix() -> None:
    down = {"recorder": "No space left on device", "metric": ""}
    _, *told = judge(Pipeline(arrival=Arrival(), running=Running(down=down)))
    assert [(one.check, one.result, one.finding, one.fix) for one in told] == [
        (
            *("sink", "failed"),
            "the running host's sink `recorder` takes nothing: No space left on device",
            MENDS["recorder"],
        ),
        (
            *("sink", "failed", "the running host's sink `metric` takes nothing"),
            "look at its log; restart it",
        ),
    ]


def test_nothing_is_said_of_what_is_not_asked_for() -> None:
    assert list(judge(Pipeline(arrival=Arrival()))) == []


def test_a_canary_goes_through_the_record_and_to_the_collector(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir(mode=0o700)
    collector = Collector()
    plain = '[host]\nstate_dir = "s"\n'
    found = document(tmp_path, f'{plain}[telemetry]\notlp_endpoint = "{collector.url}"\n')
    assert of(found, "record") == [("ok", "a span was written and read back")]
    assert of(found, "span") == [("ok", "the collector accepted a span")]
    assert collector.names() == ["observant_host.host.lifecycle"]
    collector.status = 404
    found = document(tmp_path, f'{plain}[telemetry]\notlp_endpoint = "{collector.url}"\n')
    assert "404" in of(found, "span")[0][1]
    collector.close()
    (tmp_path / "s" / "decisions").rename(tmp_path / "aside")
    (tmp_path / "s" / "decisions").write_text("in the way")
    found = document(tmp_path, plain)
    assert of(found, "record") == [("failed", "a span could not be recorded: File exists")]
    assert of(found, "span") == []


def test_an_address_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        found = document(tmp_path, "", OBSERVANT_HOST_SERVICE__LISTEN=address)
    assert of(found, "port") == [("failed", f"cannot listen on {address}: Address already in use")]


async def test_a_running_host_is_asked_for_its_metrics(tmp_path: Path) -> None:
    file_in(tmp_path).write_text(config_of(tmp_path, {"a": {"tools": "echo"}}))
    async with running(tmp_path):
        code, out, _ = await command_line("doctor", "-c", str(file_in(tmp_path)), "--json")
    found = json.loads(out)
    assert code == 0, found
    assert of(found, "metrics") == [("ok", "the running host serves them")]
    assert of(found, "record") == [("ok", "a span was written and read back")]
    assert of(found, "sink") == []


async def test_a_running_host_whose_record_is_not_written_is_told(tmp_path: Path) -> None:
    file_in(tmp_path).write_text(config_of(tmp_path, {"a": {"tools": "echo,die"}}))
    record = tmp_path / "state" / "decisions"
    async with running(tmp_path) as host:
        shutil.rmtree(record)
        record.write_text("in the way")
        await host.call("a/die")
        await host.until("host_lifecycle", what="sink_down")
        code, out, _ = await command_line("doctor", "-c", str(file_in(tmp_path)), "--json")
    found = json.loads(out)
    assert code == 3
    assert of(found, "sink") == [
        ("failed", "the running host's sink `recorder` takes nothing: File exists")
    ]


def test_no_output_holds_a_secret(tmp_path: Path) -> None:
    path, broken = canary.plant(tmp_path), canary.plant_broken(tmp_path)
    for argv in (("--all", "-c", str(path)), ("--json", "-c", str(path)), ("-c", str(broken))):
        done = run(tmp_path, *argv)
        assert done.returncode == 3
        canary.assert_silent(done.stdout, done.stderr)
