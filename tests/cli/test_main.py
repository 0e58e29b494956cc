"""The entry: fast help, did-you-mean, exit codes, errors as sentences."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from observant_host import errors
from observant_host.cli import main as entry

HEAVY = ("aiohttp", "opentelemetry", "prometheus_client", "rich", "asyncio", "structlog")


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "observant_host", *argv],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_help_lists_every_command_and_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from observant_host.cli.main import run\n"
        "assert run(['--help']) == 0\n"
        f"print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    ).stdout
    for name in entry.COMMANDS:
        assert f"\n  {name} " in shown
    assert shown.rstrip().endswith("HEAVY []")


@pytest.mark.parametrize("name", entry.COMMANDS)
def test_every_command_has_help_with_examples(name: str) -> None:
    command = entry.cli.get_command(click.Context(entry.cli), name)
    assert command is not None
    ctx = click.Context(command, info_name=f"observant-host {name}")
    text = command.get_help(ctx)
    assert "Examples:" in text or isinstance(command, click.Group)
    assert f"observant-host {name}" in text


def test_the_list_of_commands_says_what_the_commands_say() -> None:
    for name, lazy in entry.COMMANDS.items():
        command = entry.cli.get_command(click.Context(entry.cli), name)
        assert command is not None
        assert command.name == name
        assert lazy.summary.endswith(".")


def test_a_misspelt_command_is_answered_with_the_right_one() -> None:
    ended = run("statsu")
    assert ended.returncode == 2
    assert "Did you mean `status`?" in ended.stderr
    assert ended.stdout == ""


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert version("observant-host") in run("--version").stdout


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError(["a.toml: servers.x.comand: unknown key"]), 2),
        (errors.InstanceLocked("another host holds the folder"), 3),
        (errors.SpawnFailed("no such program"), 3),
        (errors.RpcError(-32602, "no"), 1),
        (errors.InvalidCall("no such tool"), 2),
        (errors.InvalidResult("two results"), 2),
        (errors.Unavailable("down"), 3),
        (errors.CallTimeout("late", scope="call"), 4),
        (KeyboardInterrupt(), 130),
        (RuntimeError("surprise"), 1),
    ],
)
def test_each_error_has_its_exit_code_and_is_a_sentence(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(entry.cli, "main", fail)
    assert entry.run([]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    if not isinstance(error, KeyboardInterrupt):
        assert str(error) in said.err


def test_all_problems_of_a_configuration_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        raise errors.ConfigError(["first", "second"])

    monkeypatch.setattr(entry.cli, "main", fail)
    entry.run([])
    assert capsys.readouterr().err.splitlines() == ["error: first", "error: second"]


def test_a_reader_that_goes_away_is_no_error_message() -> None:
    ended = subprocess.run(
        f"{sys.executable} -m observant_host --help | head -1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.stderr == ""
    assert ended.stdout.startswith("Usage:")
