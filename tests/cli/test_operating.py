"""`disable`, `enable`, `hold`, `retry`, `drain`, `restart` against a running host, and without."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest

from observant_host.cli.diagnose_commands import LONGEST_CAPTURE, LONGEST_LEVEL
from observant_host.cli.main import COMMANDS, cli, run
from observant_host.cli.operate_commands import VERBS, duration_s
from observant_host.cli.options import server_names
from observant_host.decisions.acts import RULINGS, Act
from observant_host.errors import InvalidCall
from observant_host.service.api.bodies import MAX_CAPTURE_S, MAX_LOG_LEVEL_S
from tests.cli.serving import Serving, serving, stage_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("host")) as running:
        running.until("host_lifecycle", what="published")
        yield running


def test_a_server_is_switched_off_with_a_reason_and_on_again(
    host: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    config = ("--config", str(host.stage.config))
    assert run(["disable", "web", "--for", "2h", "--reason", "moved away", *config]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("web is now disabled\ndisabled by cli:")
    assert "moved away" in said.out
    assert "asking the running host" in said.err
    assert run(["status", *config]) == 0
    assert "web: disabled by cli:" in capsys.readouterr().out
    assert run(["status", "web", *config]) == 0
    assert "moved away" in capsys.readouterr().out
    assert run(["call", "web/search", "--args", '{"query": "x"}', *config]) == 3
    assert "moved away" in capsys.readouterr().err
    assert run(["restart", "web", *config]) == 2
    assert "observant-host enable web" in capsys.readouterr().err
    assert run(["enable", "web", *config]) == 0
    assert capsys.readouterr().out == "web is now ready, era modern 2026-07-28\n"


def test_hold_is_shown_and_retry_ends_it(host: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    config = ("--config", str(host.stage.config), "-q")
    assert run(["hold", "library", "--for", "90", *config]) == 0
    assert "held by cli:" in capsys.readouterr().out
    assert run(["retry", "library", "--json", *config]) == 0
    view = json.loads(capsys.readouterr().out)
    assert (view["name"], view["state"]) == ("library", "ready")
    assert "held" not in view["detail"]


def test_restart_and_drain_end_a_life(host: Serving, capsys: pytest.CaptureFixture[str]) -> None:
    config = ("--config", str(host.stage.config), "--json")
    assert run(["restart", "archive", *config]) == 0
    assert json.loads(capsys.readouterr().out)["generation"] >= 2
    assert run(["drain", "archive", *config]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "disabled"
    assert run(["enable", "archive", *config]) == 0
    assert json.loads(capsys.readouterr().out)["era"] == "legacy"


def test_an_unknown_server_is_named_with_those_that_there_are(
    host: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["hold", "libary", "--config", str(host.stage.config)]) == 2
    assert "library" in capsys.readouterr().err


@pytest.mark.parametrize("name", list(VERBS))
def test_without_a_host_there_is_nothing_to_do_and_that_is_said(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = stage_in(tmp_path)
    assert run([name, "library", "--config", str(stage.config)]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert f"nothing to {name}" in said.err
    assert "`observant-host run`" in said.err
    assert "--standalone" not in said.err


def test_every_act_has_a_command_and_only_those_that_stand_take_a_time() -> None:
    assert set(VERBS) | {"probe"} == set(Act)
    for name, verb in VERBS.items():
        assert verb.stands == (name in RULINGS)
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        takes = {option for one in command.params for option in one.opts}
        assert ("--for" in takes) == verb.stands
        assert name in COMMANDS


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5h", 5400), ("2d", 172800), ("1w", 604800)]
)
def test_a_duration_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "0", "-5", "5y", "1h30m"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidCall, match="30m"):
        duration_s(text)


def test_a_duration_that_is_too_long_is_refused_with_the_longest() -> None:
    assert duration_s("24h", at_most="24h") == 86_400
    with pytest.raises(InvalidCall, match="--for 25h is too long; give at most 24h"):
        duration_s("25h", at_most="24h")


def test_the_longest_durations_are_those_of_the_api() -> None:
    assert duration_s(LONGEST_LEVEL) == MAX_LOG_LEVEL_S
    assert duration_s(LONGEST_CAPTURE) == MAX_CAPTURE_S


def test_the_shell_completes_the_names_of_servers(tmp_path: Path) -> None:
    stage = stage_in(tmp_path)
    for name in (*VERBS, "allow", "explain", "status", "probe"):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        argument = next(one for one in command.params if isinstance(one, click.Argument))
        ctx = click.Context(command)
        ctx.params["config"] = stage.config
        found = [item.value for item in argument.shell_complete(ctx, "a")]
        assert found == ["archive", "attic"]
        assert server_names(ctx, argument, "zz") == []
