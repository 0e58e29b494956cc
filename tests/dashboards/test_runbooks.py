"""A runbook is four parts, and every command in it exists as it is written there."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest

from observant_host.cli.main import COMMANDS, cli
from observant_host.config import keys
from tests.dashboards.alert_files import PREFIX, RUNBOOKS, alerts, blocks, names, queries

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]

COMING: tuple[str, ...] = ()
"""Commands that runbooks may name before they exist."""


def text_of(name: str) -> str:
    return (RUNBOOKS / f"{PREFIX}{name}.md").read_text()


def commands(text: str) -> Iterator[str]:
    """What stands after `observant-host` on each line of a console block."""
    for block in blocks(text, "console"):
        for line in block.splitlines():
            found = re.match(r"\$ observant-host (.*?)(?: \| .*)?$", line)
            if found:
                yield found[1]


def check(line: str) -> None:
    """Raises click.UsageError where the command line does not take it."""
    argv = shlex.split(line)
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group):
        name = argv.pop(0)
        inner = command.get_command(context, name)
        assert inner is not None, f"there is no command {name}"
        command = inner
    with command.make_context(command.name, argv, parent=context):
        pass


@pytest.mark.parametrize("name", names())
def test_a_runbook_has_four_parts_and_says_severity_and_owner(name: str) -> None:
    text = text_of(name)
    assert re.findall(r"(?m)^## (.*)$", text) == PARTS
    assert text.startswith(f"# {PREFIX}{name}\n")
    for one in alerts():
        if one.name == name:
            assert one.labels["severity"] in text.splitlines()[2]
            owner = {"yours": "yours:", "vendor": "the vendor's:", "decision": "a decision"}
            assert owner[one.labels["owner"]] in text.splitlines()[2]


@pytest.mark.parametrize("name", names())
def test_a_runbook_gives_queries_and_commands_to_find_out_and_commands_to_mend(name: str) -> None:
    diagnosis, mitigation = text_of(name).split("## Diagnosis")[1].split("## Mitigation")
    assert queries(diagnosis)
    assert list(commands(diagnosis))
    assert list(commands(mitigation))


@pytest.mark.parametrize("name", names())
def test_every_command_of_a_runbook_is_one_that_the_command_line_takes(name: str) -> None:
    for line in commands(text_of(name)):
        if shlex.split(line)[0] not in COMING:
            check(line)


def test_no_command_is_still_to_come_that_exists_by_now() -> None:
    assert not set(COMING) & COMMANDS.keys()


@pytest.mark.parametrize(
    "line", ["nonsense", "status --nonsense", "record nonsense", "hold", "reload SERVER"]
)
def test_a_command_that_does_not_exist_is_found_out(line: str) -> None:
    with pytest.raises((click.UsageError, AssertionError)):
        check(line)


def test_every_key_that_a_runbook_names_is_one_of_the_configuration() -> None:
    tables = [keys.SERVER, keys.ROOT.keys["host"], keys.ROOT.keys["service"]]
    tables.append(keys.ROOT.keys["telemetry"])
    known = {key for table in tables if isinstance(table, keys.Table) for key in table.keys}
    for name in names():
        for key in re.findall(
            r"`([a-z]+(?:_[a-z]+)*_(?:s|ms|mb|bytes|max|era|legacy|ratio))`", text_of(name)
        ):
            assert key in known or key in CODES, f"{name}: {key}"


CODES = frozenset({"rate_limited"})
"""Words with the shape of a key that are none."""
