"""Every command that asks: with a running host, without one, and standalone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import pytest

from observant_host.cli.main import run
from observant_host.cli.status_command import usage
from tests.cli.serving import Serving, serving, stage_in

if TYPE_CHECKING:
    from pathlib import Path


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)


Ask = Callable[..., Ended]


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("host")) as running:
        running.until("host_lifecycle", what="published")
        yield running


@pytest.fixture
def ask(host: Serving, capsys: pytest.CaptureFixture[str]) -> Ask:
    """A command against the running host; every one must say that it used it."""

    def asked(*argv: str, running: bool = True) -> Ended:
        code = run([*argv, "--config", str(host.stage.config)])
        said = capsys.readouterr()
        assert ("asking the running host" in said.err) == running
        assert "\x1b" not in said.out + said.err
        return Ended(code, said.out, said.err)

    return asked


def test_status_has_a_line_for_each_server_and_a_sentence_for_who_needs_somebody(ask: Ask) -> None:
    ended = ask("status")
    assert ended.code == 0
    names = [line.split()[0] for line in ended.out.splitlines()[1:7]]
    assert names == ["library", "web", "archive", "attic", "forecast", "billing"]
    assert "allow_legacy" in ended.out


def test_status_json_is_the_documented_object(ask: Ask) -> None:
    servers = ask("status", "--json").json["servers"]
    expected = [
        "name",
        "transport",
        "state",
        "cause",
        "era",
        "version",
        "reason",
        "detail",
        "since",
        "generation",
        "allow_legacy",
        "fingerprint",
        "server_info",
        "capabilities",
        "tools",
        "layers",
        "evidence",
        "pid",
        "trace_id",
    ]
    assert all(set(expected) <= one.keys() for one in servers)
    layers = {"process", "transport", "era", "listing", "listen", "last_call"}
    assert servers[0]["layers"].keys() == layers
    evidence = servers[0]["evidence"][0]
    assert {"step", "version", "outcome", "rpc_code", "excerpt", "late"} <= evidence.keys()


def test_status_of_one_server_shows_its_evidence(ask: Ask) -> None:
    ended = ask("status", "archive")
    assert "server/discover at 2026-07-28 -> an error that says nothing about the era" in ended.out
    assert "initialize" in ended.out
    assert "legacy allowed  yes" in ended.out


def test_status_of_one_server_shows_what_its_processes_use(ask: Ask) -> None:
    told = r"uses +\d+ MiB of memory in (1 process|\d+ processes), \d+ open files"
    assert re.search(told, ask("status", "archive").out)


def test_a_server_without_processes_of_ours_uses_nothing() -> None:
    assert usage(b'observant_host_peer_processes{peer="other"} 1.0\n', "remote") == ""


def test_status_of_an_unknown_server_says_so(ask: Ask) -> None:
    ended = ask("status", "nobody")
    assert ended.code == 2
    assert "no server `nobody`" in ended.err


def test_tools_shows_the_collision_and_who_is_missing(ask: Ask) -> None:
    ended = ask("tools")
    assert ended.code == 0
    assert "`search` belongs to library; also offered: `web/search`" in ended.out
    assert "missing: attic is unavailable (policy ambiguous_error)" in ended.out


def test_tools_json_keeps_the_servers_objects(ask: Ask) -> None:
    document = ask("tools", "--json").json
    assert document["digest"].startswith("sha256:")
    search = next(one for one in document["tools"] if one["name"] == "search")
    assert search["server"] == "library"
    assert search["pin"] == "unlocked"
    assert search["tool"]["inputSchema"]["required"] == ["query"]


@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_tools_for_a_model_have_names_that_it_takes(ask: Ask, shape: str) -> None:
    tools = json.loads(ask("tools", "--format", shape).out)
    names = [one["function"]["name"] if shape == "openai" else one["name"] for one in tools]
    assert "search" in names
    assert all("/" not in name for name in names)


def test_tools_cost_adds_up(ask: Ask) -> None:
    assert "tokens in all" in ask("tools", "--cost").out


def test_prompts_and_resources_answer_though_there_are_none(ask: Ask) -> None:
    assert ask("prompts").out.startswith("NAME")
    assert ask("prompts", "--json").json["prompts"] == []
    assert ask("resources").out.startswith("URI")
    assert ask("resources", "--json").json["resources"] == []


def test_a_call_prints_the_text_and_tells_the_rest_on_stderr(ask: Ask) -> None:
    ended = ask("call", "web/search", "--args", '{"query": "tides"}')
    assert ended.code == 0
    assert ended.out.startswith("web.search(query='tides')")
    assert "ok from web modern" in ended.err


def test_call_json_is_the_documented_object_with_the_result_as_sent(ask: Ask) -> None:
    document = ask("call", "find_record", "--args", '{"number": "7"}', "--json").json
    assert (document["outcome"], document["delivery"], document["fault"]) == (
        "ok",
        "replied",
        "none",
    )
    assert (document["server"], document["era"], document["attempts"]) == ("archive", "legacy", 1)
    assert document["result"]["content"][0]["type"] == "text"
    assert document["error"] is None


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("serch", 2, "search"), ("attic/open_box", 3, "attic"), ("billing/nothing", 2, "billing")],
)
def test_a_call_that_cannot_be_made_says_why(ask: Ask, name: str, code: int, said: str) -> None:
    ended = ask("call", name)
    assert ended.code == code
    assert ended.out == ""
    assert said in ended.err


def test_probe_ends_with_3_where_a_server_is_not_ready(ask: Ask) -> None:
    assert ask("probe", "attic").code == 3
    assert ask("probe", "library").code == 0
    assert ask("probe", "attic", "--required-only").code == 0
    assert ask("probe", "web", "--json").json["servers"][0]["state"] == "ready"


def test_probe_suggests_lines_that_the_configuration_accepts(ask: Ask) -> None:
    from observant_host.config.parse import read_toml

    ended = ask("probe", "attic", "--suggest-legacy")
    table = ended.out[ended.out.rindex("[servers.attic]") :]
    read_toml(table.encode(), name="suggestion", folder=".")
    assert 'allow_legacy = ["2025-06-18"]' in table
    assert "legacy_fingerprint" in table


def test_the_running_host_looks_with_the_file_that_it_runs_with(
    host: Serving,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As its sentence advises: without --config, in any folder."""
    (tmp_path / "observant-host").symlink_to(host.stage.state_dir)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "empty"))
    monkeypatch.chdir(tmp_path)
    run(["probe", "attic", "--suggest-legacy"])
    said = capsys.readouterr()
    assert "[servers.attic]" in said.out
    assert "error:" not in said.err


def test_explain_tells_decisions_in_words_with_their_evidence(ask: Ask) -> None:
    ended = ask("explain", "archive")
    assert "unknown -> legacy 2025-06-18: initialize_ok (first decision, generation 1)" in ended.out
    assert "initialize at" in ended.out
    decisions = ask("explain", "archive", "--json").json["decisions"]
    assert decisions[0]["to"] == "legacy"
    assert decisions[0]["evidence"][0]["step"] == "discover"


def test_allow_serves_an_old_server_from_now_on(ask: Ask) -> None:
    ended = ask("allow", "attic", "--until", "1h", "--reason", "a test")
    assert ended.code == 0
    assert "attic is now ready, era legacy 2025-06-18 (initialize_ok)" in ended.out
    assert ask("call", "open_box", "--args", '{"label": "x"}').code == 0


def test_standalone_starts_only_the_owner_beside_the_running_host(ask: Ask) -> None:
    argv = ("call", "library/borrow", "--args", '{"title": "x"}', "--standalone")
    ended = ask(*argv, running=False)
    assert ended.code == 0
    assert "starting a copy of one server" in ended.err
    assert ended.out.startswith("library.borrow")


def test_without_a_host_status_offers_what_to_do(tmp_path, capsys) -> None:
    stage = stage_in(tmp_path)
    assert run(["status", "-c", str(stage.config)]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "`observant-host run`" in said.err
    assert "--standalone" in said.err


def test_without_a_host_a_call_starts_its_owner_and_leaves_a_record(tmp_path, capsys) -> None:
    stage = stage_in(tmp_path)
    argv = ["call", "archive/find_record", "--args", '{"number": "1"}', "-c", str(stage.config)]
    assert run(argv) == 0
    assert run(["explain", "archive", "-c", str(stage.config), "-q"]) == 0
    said = capsys.readouterr()
    assert "archive.find_record(number='1')" in said.out
    assert "initialize_ok" in said.out
    assert stage.asked("library") == []


def test_what_is_disabled_is_not_counted_among_the_copies(tmp_path, capsys) -> None:
    config = tmp_path / "oh.toml"
    config.write_text(
        f'[host]\nstate_dir = "{tmp_path}/state"\n'
        '[servers.off]\ncommand = "false"\nenabled = false\n'
    )
    assert run(["tools", "--standalone", "-c", str(config)]) == 0
    said = capsys.readouterr().err
    assert "starting copies of 0 servers" in said
    assert "off: it is disabled (enabled = false)" in said


def test_without_a_host_a_command_about_one_server_changes_no_name_of_the_others(tmp_path) -> None:
    stage = stage_in(tmp_path)
    memory = stage.state_dir / "memory.json"

    def names() -> dict[str, object]:
        return json.loads(memory.read_bytes())["grants"]

    assert run(["tools", "--standalone", "-c", str(stage.config)]) == 0
    before = names()
    assert before["tools"]
    for verb in (["probe", "web"], ["call", "web/search", "--args", '{"query": "x"}']):
        assert run([*verb, "-c", str(stage.config)]) == 0
        assert names() == before
    assert run(["allow", "attic", "-c", str(stage.config)]) == 0
    assert "attic" in json.loads(memory.read_bytes())["allowances"]
    assert names() == before


def test_without_a_host_a_look_for_an_old_server_is_recorded_with_who_and_why(
    tmp_path, capsys
) -> None:
    stage = stage_in(tmp_path)
    argv = ["probe", "attic", "--suggest-legacy", "--reason", "spring", "-c", str(stage.config)]
    assert run(argv) == 3
    assert run(["explain", "attic", "--json", "-c", str(stage.config)]) == 0
    said = capsys.readouterr().out
    told = json.loads(said[said.index('{\n  "server"') :])["decisions"]
    assert (told[-1]["to"], told[-1]["reason"]) == ("legacy", "initialize_ok")
    record = stage.record().decode(errors="replace")
    assert '"examine"' in record
    assert '"spring"' in record
    assert stage.asked("attic").count("initialize") == 1
    assert run(["incidents", "--json", "--server", "attic", "-c", str(stage.config)]) == 0
    (refusal,) = json.loads(capsys.readouterr().out)["incidents"]
    assert refusal["kind"] == "refusal", "it was looked at, and served nobody in that era"


def test_without_any_configuration_the_message_names_what_lies_here(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("OBSERVANT_HOST_CONFIG", raising=False)
    (tmp_path / ".mcp.json").write_text("{}")
    for command in (["run"], ["tools"], ["call", "x"], ["probe"]):
        assert run(command) == 2
        said = capsys.readouterr()
        assert "init --from .mcp.json" in said.err
        assert "--config" in said.err
