"""`doctor`: each verdict from its facts, and the whole over a real configuration."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from datetime import date
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from observant_host.cli.doctor_checks import (
    Check,
    Facts,
    Folder,
    Tool,
    Url,
    all_checks,
    package_of,
)
from observant_host.cli.doctor_pipeline import MENDS, Pipeline, Running, judge
from observant_host.cli.doctor_urls import look_at_urls
from observant_host.config import (
    EraPolicy,
    HostConfig,
    HttpServer,
    ServerConfig,
    StdioServer,
    fingerprint,
)
from observant_host.telemetry.canary import Arrival
from tests.support import canary
from tests.support.running import command_line, config_of, file_in, running
from tests.telemetry.test_export import Collector

if TYPE_CHECKING:
    from pathlib import Path

TODAY = date(2026, 12, 1)
FINE = Folder("/state", writable=True, mode=0o700)


def server(launch: StdioServer | HttpServer | None, **keys: Any) -> ServerConfig:
    return ServerConfig(name="a", launch=launch, fingerprint=fingerprint(launch), **keys)


def facts(*servers: ServerConfig, **keys: Any) -> Facts:
    given = {
        "config": HostConfig(servers=servers),
        "tools": {"a": Tool("/bin/x")},
        "missing_cwd": frozenset(),
        "state": FINE,
        "descriptors": (1024, 4096),
        "today": TODAY,
        **keys,
    }
    return Facts(**given)


def verdicts(*servers: ServerConfig, check: str, **keys: Any) -> list[tuple[str, str, str]]:
    found = all_checks(facts(*servers, **keys))
    return [(one.result, one.finding, one.fix) for one in found if one.check == check]


def command(*words: str, **keys: Any) -> ServerConfig:
    return server(StdioServer(command=words, **keys))


def test_a_problem_of_the_configuration_is_a_failure() -> None:
    off = server(None, problem="servers.a is broken")
    assert verdicts(off, check="config") == [
        ("failed", "servers.a is broken", "mend what the sentence names, then run doctor again")
    ]


def test_disabled_servers_are_not_checked() -> None:
    off = server(None, problem="x", enabled=False)
    assert [one for one in all_checks(facts(off)) if one.server] == []


@pytest.mark.parametrize(
    ("program", "tool", "expected"),
    [
        ("x", Tool("/bin/x"), ("ok", "x is /bin/x", "")),
        ("npx", Tool("/n/npx", "v20.1.0"), ("ok", "npx is /n/npx (v20.1.0)", "")),
        (
            "npx",
            Tool("/n/npx", "v16.1.0"),
            ("warning", "npx is /n/npx (v16.1.0): too old", "install Node.js 18 or later"),
        ),
        (
            "/o/uvx",
            Tool(None),
            ("failed", "/o/uvx is not found", "install uv (https://docs.astral.sh/uv)"),
        ),
        (
            "thing",
            Tool(None),
            ("failed", "thing is not found", "install it, or give its full path as `command`"),
        ),
        (
            "npx -y x",
            Tool(None),
            (
                "failed",
                "npx -y x is not found",
                "`command` is one program; put what follows it into `args`",
            ),
        ),
    ],
)
def test_the_command_is_looked_for(
    program: str, tool: Tool, expected: tuple[str, str, str]
) -> None:
    assert verdicts(command(program), check="command", tools={"a": tool}) == [expected]


def test_a_missing_folder_is_named() -> None:
    one = command("x", cwd="/nowhere")
    assert verdicts(one, check="cwd", missing_cwd=frozenset({"a"})) == [
        ("failed", "the folder /nowhere is not there", "make the folder, or correct `cwd`")
    ]


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (("npx", "-y", "pkg"), "pkg"),
        (("/n/npx", "--package", "p@1", "bin"), "p@1"),
        (("npx", "--registry", "http://x", "p"), "p"),
        (("uvx", "--from", "git+https://x", "bin"), "git+https://x"),
        (("uv", "tool", "run", "p"), "p"),
        (("uv", "run", "x.py"), None),
        (("npx", "-y"), None),
        (("npx", "-p"), None),
        (("python", "-m", "x"), None),
    ],
)
def test_the_package_of_a_launcher_is_found(words: tuple[str, ...], package: str | None) -> None:
    assert package_of(words) == package


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("npx", "-y", "@s/p"), [("hint", "@s/p is not pinned", "@s/p@X.Y.Z")]),
        (("npx", "-y", "@s/p@latest"), [("hint", "@s/p@latest is not pinned", "@s/p@X.Y.Z")]),
        (("npx", "-y", "@s/p@1.2.3"), []),
        (("uvx", "p"), [("hint", "p is not pinned", "p==X.Y.Z")]),
        (("uvx", "p==1"), []),
        (("uvx", "--from", "git+https://x/y", "z"), []),
        (
            ("uvx", "docling-mcp==3.3.0"),
            [("warning", "docling-mcp speaks HTTP unless told otherwise", "--transport stdio")],
        ),
        (("uvx", "docling-mcp==3.3.0", "--transport", "stdio"), []),
        (("python", "x.py"), []),
    ],
)
def test_packages_are_to_be_pinned_and_told_to_speak_on_pipes(
    words: tuple[str, ...], said: list[tuple[str, str, str]]
) -> None:
    found = verdicts(command(*words), check="package")
    assert len(found) == len(said)
    for (result, finding, fix), (wanted, part, way) in zip(found, said, strict=True):
        assert result == wanted
        assert part in finding
        assert way in fix


def test_inherited_variables_that_are_not_set_are_named() -> None:
    one = command("x", env_inherit=("A", "B", "AWS_*"))
    (found,) = verdicts(one, check="environment", variables={"A": "1"})
    assert found[:2] == ("warning", "env_inherit names variables that are not set here: B")


@pytest.mark.parametrize(
    ("url", "result"),
    [
        ("https://x.example/mcp", "ok"),
        ("http://127.0.0.1:8/mcp", "ok"),
        ("http://x.example/mcp", "warning"),
    ],
)
def test_headers_are_not_to_be_sent_unencrypted(url: str, result: str) -> None:
    one = server(HttpServer(url=url, headers={"A": "b"}))
    assert [found[0] for found in verdicts(one, check="url")] == [result]


@pytest.mark.parametrize(
    ("found", "check", "part"),
    [
        (Url(unreachable="Connection refused"), "connect", "Connection refused"),
        (Url(ca_problem="No such file"), "ca_bundle", "No such file"),
        (Url(missing_program="token-helper"), "headers_command", "token-helper is not found"),
    ],
)
def test_what_keeps_a_url_from_being_used_is_a_failure(found: Url, check: str, part: str) -> None:
    one = server(HttpServer(url="https://x.example/mcp"))
    ((result, finding, fix),) = verdicts(one, check=check, urls={"a": found})
    assert result == "failed"
    assert part in finding
    assert fix


def test_a_url_is_connected_to_and_sent_nothing(tmp_path: Path) -> None:
    with socket.socket() as listening, socket.socket() as closed:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        closed.bind(("127.0.0.1", 0))
        urls = [f"http://127.0.0.1:{one.getsockname()[1]}/mcp" for one in (listening, closed)]
        fine = HttpServer(url=urls[0], headers_command=(sys.executable,))
        odd = HttpServer(
            url=urls[1], ca_bundle=str(tmp_path / "none.pem"), headers_command=("nowhere-at-all",)
        )
        servers = [server(fine), msgspec.structs.replace(server(odd), name="b")]
        found = look_at_urls([*servers, command("true")])
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(5)
            assert connection.recv(100) == b""
    assert found["a"] == Url()
    assert found["b"].unreachable
    assert found["b"].ca_problem
    assert found["b"].missing_program == "nowhere-at-all"


@pytest.mark.parametrize(
    ("era", "result", "part"),
    [
        ({}, "hint", "the allowance has no end"),
        ({"legacy_expires": date(2026, 11, 30)}, "failed", "ended on 2026-11-30"),
        ({"legacy_expires": TODAY}, "warning", "ends on 2026-12-01"),
        ({"legacy_expires": date(2026, 12, 15)}, "warning", "ends on 2026-12-15"),
        ({"legacy_expires": date(2026, 12, 16)}, "ok", "holds until 2026-12-16"),
    ],
)
def test_the_end_of_an_allowance_is_watched(era: dict[str, Any], result: str, part: str) -> None:
    one = command("x")
    one = msgspec.structs.replace(one, era=EraPolicy(allow_legacy=("2025-11-25",), **era))
    (found,) = verdicts(one, check="allowance")
    assert found[0] == result
    assert part in found[1]


def test_an_allowance_for_another_command_or_against_expect_era_is_named() -> None:
    era = EraPolicy(
        allow_legacy=("2025-11-25",),
        legacy_fingerprint="sha256:" + "0" * 64,
        expect_era="modern",
        legacy_expires=date(2027, 1, 1),
    )
    one = msgspec.structs.replace(command("x"), era=era)
    found = verdicts(one, check="allowance")
    assert [result for result, _, _ in found] == ["warning", "failed", "ok"]
    assert one.fingerprint in found[1][1]
    same = msgspec.structs.replace(era, legacy_fingerprint=one.fingerprint, expect_era=None)
    again = msgspec.structs.replace(one, era=same)
    assert [result for result, _, _ in verdicts(again, check="allowance")] == ["ok"]


@pytest.mark.parametrize(
    ("folder", "result"),
    [
        (FINE, "ok"),
        (Folder("/state", writable=True), "ok"),
        (Folder("/state", writable=True, mode=0o755), "warning"),
        (Folder("/state", writable=False), "failed"),
    ],
)
def test_the_state_folder_is_private_and_writable(folder: Folder, result: str) -> None:
    assert [found[0] for found in verdicts(check="state", state=folder)] == [result]


def test_a_running_host_is_named() -> None:
    (found,) = verdicts(check="instance", state=Folder("/s", writable=True, holder="42"))
    assert found[1] == "a host is running there (pid 42)"


@pytest.mark.parametrize(
    ("limits", "result"), [((1024, 4096), "ok"), ((100, 4096), "ok"), ((100, 130), "failed")]
)
def test_open_files_are_counted(limits: tuple[int, int], result: str) -> None:
    assert [f[0] for f in verdicts(command("x"), check="open files", descriptors=limits)] == [
        result
    ]


def test_a_wrong_clock_is_named() -> None:
    assert verdicts(check="clock", today=date(1970, 1, 1))[0][0] == "failed"
    assert verdicts(check="clock")[0][0] == "ok"


@pytest.mark.parametrize(
    ("endpoint", "unreachable", "expected"),
    [
        (None, None, []),
        ("http://c:4318", None, ["ok"]),
        ("http://c", "refused", ["failed"]),
        ("http://c:4317", "refused", ["failed"]),
    ],
)
def test_the_collector_is_asked_for(
    endpoint: str | None, unreachable: str | None, expected: list[str]
) -> None:
    found = verdicts(check="otlp", otlp_endpoint=endpoint, unreachable=unreachable)
    assert [result for result, _, _ in found] == expected
    if endpoint and "4317" in endpoint:
        assert found[0][2] == "use port 4318"


def test_remarks_about_the_configuration_are_warnings() -> None:
    assert all_checks(facts(warnings=("x",)))[0] == Check("warning", "config", "x")


def run(folder: Path, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "observant_host", "doctor", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=folder,
        env=canary.environment(folder, **{"OBSERVANT_HOST_SERVICE__LISTEN": "127.0.0.1:0", **more}),
    )


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
