"""`config show` and `config check` as a person and a script see them; secrets never."""

from __future__ import annotations

import json
from pathlib import Path

from observant_host.config.parse import read_toml
from tests.support import canary
from tests.support.commands import Ended, command

TOML = '[host]\nimport = ["a.json"]\n[servers.git]\ncall_timeout_s = "2m"\n'
JSON = '{"mcpServers": {"git": {"command": "uvx", "env": {"TOKEN": "abcdef"}, "icon": "x"}}}'


def run(folder: Path, *argv: str, **variables: str) -> Ended:
    return command(*argv, cwd=folder, env=canary.environment(folder, **variables))


def written(folder: Path, toml: str = TOML) -> Path:
    (folder / "a.json").write_text(JSON)
    path = folder / "oh.toml"
    path.write_text(toml)
    return path


def test_show_says_where_each_value_came_from(tmp_path: Path) -> None:
    path = written(tmp_path)
    done = run(
        tmp_path,
        *("config", "show", "--origin", "-c", "oh.toml"),
        OBSERVANT_HOST_SERVICE__LISTEN="127.0.0.1:9",
    )
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert f"# {path}" in lines
    assert 'listen = "127.0.0.1:9"  # variable OBSERVANT_HOST_SERVICE__LISTEN' in lines
    assert f'command = "uvx"  # import {tmp_path}/a.json' in lines
    assert f"call_timeout_s = 120  # file {path}:4" in lines
    assert "queue_max = 256  # default" in lines
    assert f'TOKEN = "***"  # import {tmp_path}/a.json' in lines
    assert f"note: {tmp_path}/a.json: without meaning here: icon (1 server)" in done.stderr


def test_what_show_prints_is_toml_that_we_read(tmp_path: Path) -> None:
    written(tmp_path)
    shown = run(tmp_path, "config", "show", "-c", "oh.toml").stdout
    assert "  # " not in shown
    file = read_toml(shown.encode(), name="shown.toml", folder="/")
    assert file.servers == ("git",)
    assert file.leaves["servers", "git", "call_timeout_s"].raw == 120


def test_show_gives_a_machine_values_and_origins(tmp_path: Path) -> None:
    path = written(tmp_path)
    shown = json.loads(run(tmp_path, "config", "show", "--json", "-c", "oh.toml").stdout)
    assert shown["config"]["servers"]["git"]["call_timeout_s"] == 120
    assert shown["config"]["servers"]["git"]["env"] == {"TOKEN": "***"}
    assert shown["origins"]["servers.git.call_timeout_s"] == f"file {path}:4"
    assert shown["files"] == [str(path), str(tmp_path / "a.json")]
    (server,) = shown["servers"]
    assert server["fingerprint"].startswith("sha256:")
    assert server["problem"] is None


def test_check_is_content_with_a_good_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    done = run(tmp_path, "config", "check", "-c", "oh.toml")
    assert done.returncode == 0
    assert done.stdout == f"{path}: 1 server, 1 enabled, nothing wrong\n"


def test_check_names_servers_that_cannot_be_used(tmp_path: Path) -> None:
    written(tmp_path, TOML + '[servers.off]\ncommand = "${NOPE}"\n')
    done = run(tmp_path, "config", "check", "-c", "oh.toml")
    assert done.returncode == 2
    assert "1 of them cannot be used" in done.stdout
    assert "servers.off.command cannot be used: the variable NOPE is not set" in done.stderr
    seen = json.loads(run(tmp_path, "config", "check", "--json", "-c", "oh.toml").stdout)
    assert seen["ok"] is False
    assert len(seen["problems"]) == 1
    assert [one["problem"] is None for one in seen["servers"]] == [True, False]
    shown = run(tmp_path, "config", "show", "-c", "oh.toml").stdout
    assert "# cannot be used: " in shown


def test_check_reports_all_mistakes_of_a_file(tmp_path: Path) -> None:
    written(tmp_path, "[hots]\n[service]\nlisten = 1\n")
    done = run(tmp_path, "config", "check", "-c", "oh.toml")
    assert done.returncode == 2
    assert 'did you mean "host"?' in done.stderr
    assert "service.listen expects an address" in done.stderr
    seen = json.loads(run(tmp_path, "config", "check", "--json", "-c", "oh.toml").stdout)
    assert seen["ok"] is False
    assert len(seen["problems"]) == 2


def test_check_says_that_run_would_refuse_to_listen(tmp_path: Path) -> None:
    path = tmp_path / "oh.toml"
    path.write_text('[service]\nlisten = "0.0.0.0:8700"\n')
    ended = run(tmp_path, "config", "check", "-c", "oh.toml")
    assert ended.returncode == 2
    assert "0.0.0.0:8700 can be reached from other machines" in ended.stderr
    assert "`run` would not serve" in ended.stdout
    path.write_text('[service]\nlisten = "0.0.0.0:8700"\n[tokens.a]\nenv = "A"\nscopes = ["mcp"]\n')
    assert run(tmp_path, "config", "check", "-c", "oh.toml").returncode == 0


def test_the_group_has_help() -> None:
    done = run(Path.cwd(), "config", "--help")
    assert "show" in done.stdout
    assert "check" in done.stdout


def test_no_output_holds_a_secret(tmp_path: Path) -> None:
    path = str(canary.plant(tmp_path))
    broken = str(canary.plant_broken(tmp_path))
    for argv in (
        ("config", "show", "-c", path),
        ("config", "show", "--origin", "-c", path),
        ("config", "show", "--json", "-c", path),
        ("-vv", "config", "check", "-c", path),
        ("config", "check", "--json", "-c", path),
        ("-vv", "config", "check", "-c", broken),
        ("config", "check", "--json", "-c", broken),
    ):
        done = run(tmp_path, *argv)
        assert done.stdout or done.stderr
        canary.assert_silent(done.stdout, done.stderr)
