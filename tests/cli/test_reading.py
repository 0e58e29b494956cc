"""`prompts get` and `resources read`: one prompt, one resource, by their owners."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from observant_host.cli.call_command import content_lines
from observant_host.cli.main import run
from tests.support.peers import scripted

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    command, *arguments = scripted(prompts="greet", resources="file:///a")
    file = tmp_path / "observant-host.toml"
    file.write_text(
        f"[host]\nstate_dir = {json.dumps(str(tmp_path / 'state'))}\n"
        f"[servers.s]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
    )
    return file


def test_a_prompt_is_filled_in_by_its_server(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["prompts", "get", "greet", "--args", '{"who":"Ada"}', "--config", str(config)])
    said = capsys.readouterr()
    assert (code, said.out) == (0, '{"who": "Ada"}\n')


def test_a_resource_is_read_by_its_owner_or_from_a_named_server(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["resources", "read", "file:///a", "--config", str(config)]) == 0
    assert capsys.readouterr().out == "content of file:///a\n"
    other = ["resources", "read", "other:///b", "--server", "s", "--json"]
    assert run([*other, "--config", str(config)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["outcome"], document["server"]) == ("ok", "s")
    assert document["result"]["contents"][0]["text"] == "content of other:///b"


def test_what_nobody_has_is_said_with_its_exit_code(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["prompts", "get", "none", "--config", str(config)]) == 2
    assert "no prompt" in capsys.readouterr().err
    assert run(["resources", "read", "file:///none", "--config", str(config)]) == 2
    assert run(["prompts", "get", "--config", str(config)]) == 2
    assert "prompts get NAME" in capsys.readouterr().err


def test_a_call_that_may_have_been_executed_says_so_where_a_machine_reads_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *arguments = scripted(tools="kill")
    file = tmp_path / "observant-host.toml"
    file.write_text(
        f"[host]\nstate_dir = {json.dumps(str(tmp_path / 'state'))}\n"
        f"[servers.s]\ncommand = {json.dumps(command)}\nargs = {json.dumps(arguments)}\n"
    )
    assert run(["call", "kill", "--json", "--config", str(file)]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["error"]["message"].endswith(
        "; it may have been executed; do not simply repeat it"
    )
    assert (document["delivery"], document["attempts"], document["era"]) == (
        "sent_no_reply",
        1,
        "modern",
    )


def test_every_kind_of_content_has_a_line() -> None:
    result = {
        "contents": [{"uri": "a", "text": "plain"}, {"uri": "b", "blob": "AAAA"}],
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "hello"}},
            {"role": "user", "content": [{"type": "text", "text": "list"}]},
        ],
    }
    assert content_lines(result) == ["plain", "[b , 3 bytes]", "hello", "list"]
