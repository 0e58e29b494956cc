"""What is packed for somebody who is to help, and what never is."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

from observant_host.incidents.otlp import spans_of_line
from tests.support import canary
from tests.support.commands import command
from tests.support.peers import program
from tests.support.running import command_line, config_of, file_in, running

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = {
    *("config.toml", "doctor.json", "servers.json", "recent.json", "log.jsonl", "metrics.txt"),
    *("decisions.jsonl", "versions.json", "README.txt"),
}


def unpacked(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        return {
            member.name.rpartition("/")[2]: file.read().decode()
            for member in archive
            if (file := archive.extractfile(member)) is not None
        }


async def test_beside_a_running_host_everything_is_in_it(tmp_path: Path) -> None:
    file_in(tmp_path).write_text(config_of(tmp_path, {"a": {"tools": "echo"}}))
    path = tmp_path / "bundle.tar.gz"
    async with running(tmp_path):
        words = ("bundle", "-c", str(file_in(tmp_path)), "--output", str(path))
        code, out, err = await command_line(*words)
        again = await command_line(*words)
    assert (code, err) == (0, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    parts = unpacked(path)
    assert set(parts) == EVERYTHING
    for name in EVERYTHING:
        assert name in out
        assert name in parts["README.txt"] or name == "README.txt"
    assert str(path) in out
    assert json.loads(parts["servers.json"])["servers"][0]["name"] == "a"
    assert "observant_host_peer_state" in parts["metrics.txt"]
    assert any(
        json.loads(line)["event"] == "era_decided"
        for line in parts["log.jsonl"].split("\n")
        if line
    )
    names = {
        s.name
        for line in parts["decisions.jsonl"].encode().splitlines()
        for s in spans_of_line(line)
    }
    assert "observant_host.era.decide" in names
    assert json.loads(parts["versions.json"])["packages"]["observant-host"]
    assert "config" in {check["check"] for check in json.loads(parts["doctor.json"])}
    assert again[0] == 1
    assert "cannot be written: File exists" in again[2]


async def test_without_a_running_host_it_says_what_is_not_there(tmp_path: Path) -> None:
    file_in(tmp_path).write_text(config_of(tmp_path, {"a": {"tools": "echo"}}))
    async with running(tmp_path):
        pass
    (tmp_path / "state" / "crash-20260101T000000Z-fatal-signal-7.log").write_text("stacks")
    path = tmp_path / "bundle.tar.gz"
    words = ("bundle", "-c", str(file_in(tmp_path)), "--output", str(path))
    code, out, _ = await command_line(*words)
    assert code == 0
    parts = unpacked(path)
    assert set(parts) == EVERYTHING - {
        "servers.json",
        "recent.json",
        "log.jsonl",
        "metrics.txt",
    } | {"crash-20260101T000000Z-fatal-signal-7.log"}
    assert out.count("not there: no host is running") == 4
    assert parts["README.txt"].count("not there: no host is running") == 4


async def test_a_broken_configuration_is_packed_as_its_problems(tmp_path: Path) -> None:
    broken = canary.plant_broken(tmp_path)
    path = tmp_path / "bundle.tar.gz"
    code, _, _ = await command_line("bundle", "-c", str(broken), "--output", str(path))
    assert code == 0
    parts = unpacked(path)
    assert set(parts) == {"config-problems.txt", "doctor.json", "versions.json", "README.txt"}
    assert "pasword" in parts["config-problems.txt"]
    canary.assert_silent(*parts.values())


def test_no_secret_is_in_any_part(tmp_path: Path) -> None:
    config = canary.plant(tmp_path, command=[*program("leaky.py", "serve")])
    (tmp_path / canary.SECRETS["token file"]).write_text("cnry-token-file-content")
    environment = canary.environment(
        tmp_path, OBSERVANT_HOST_SERVICE__LISTEN="127.0.0.1:0", OBSERVANT_HOST_LOG="debug"
    )
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "crash-2-fatal.log").write_text(canary.SECRETS["env literal"])

    def said(*words: str) -> str:
        done = command(*words, "-c", str(config), cwd=tmp_path, env=environment)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout + done.stderr

    argv = [sys.executable, "-m", "observant_host", "-vv", "run", "-c", str(config)]
    with subprocess.Popen(
        argv, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as host:
        assert host.stderr is not None
        next(line for line in host.stderr if '"published"' in line)
        said("call", "env/rpc_error")
        told = said("bundle", "--output", "bundle.tar.gz")
        host.terminate()
        host.communicate(timeout=30)
    parts = unpacked(tmp_path / "bundle.tar.gz")
    assert {*EVERYTHING, "crash-2-fatal.log"} == set(parts)
    canary.assert_silent(told, *parts.values())
    assert "cnry-token-file-content" not in told + "".join(parts.values())
