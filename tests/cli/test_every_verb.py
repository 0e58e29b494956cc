"""Each verb that operates a running host, once: its decision, and what a restart keeps."""

from __future__ import annotations

import getpass
import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from observant_host.cli.main import run
from observant_host.cli.operate_commands import VERBS
from observant_host.demo.stage import Stage
from observant_host.incidents.record import read_timeline
from tests.cli.serving import started
from tests.support.running import config_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SERVERS = {
    "first": {"tools": "echo,mute"},
    "held": {},
    "moved": {},
    "off": {},
    "part": {"tools": "echo,only"},
    "old": {"era": "legacy"},
}
DONE = (
    ("probe", "first"),
    ("restart", "first"),
    ("retry", "first"),
    ("capture", "first", "--for", "5m"),
    ("hold", "held"),
    ("hold", "first", "--for", "2h"),
    ("enable", "first"),
    ("drain", "moved"),
    ("disable", "off", "--for", "8h"),
    ("disable", "part/only"),
    ("disable", "part/echo"),
    ("enable", "part/echo"),
    ("allow", "old", "--until", "30d"),
    ("log-level", "debug", "--for", "30m"),
    ("reload", "--dry-run"),
    ("reload",),
)
WITHOUT_REASON = ("probe", "reload")
"""They look, or do what a file says: only who it was is on record."""
PATIENCE_S = 30


def expected() -> list[tuple[str, str, str]]:
    """(verb, server, reason) of what is decided, in its order."""
    found = []
    for verb, *words in (*DONE, ("cancel", "first")):
        server = "" if verb in ("reload", "log-level") else words[0].split("/")[0]
        reason = "" if verb in WITHOUT_REASON else why(verb)
        if words != ["--dry-run"]:
            found.append((verb, server, reason))
    return found


def why(verb: str) -> str:
    return f"{verb} was to be tried"


def obeyed(stage: Stage, *words: str) -> None:
    """One command, as a person gives it beside the running host."""
    reason = () if words[0] in WITHOUT_REASON else ("--reason", why(words[0]))
    assert run([*words, *reason, "-c", str(stage.config)]) == 0, words


def told(stage: Stage, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """The document that a command answers with, whatever its exit code."""
    capsys.readouterr()
    run([*words, "--json", "-c", str(stage.config)])
    return json.loads(capsys.readouterr().out)


def test_each_is_on_record_with_who_and_why_and_what_is_to_stand_stands_after_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "observant-host.toml"
    path.write_text(config_of(tmp_path, SERVERS))
    stage = Stage(tmp_path, path, tmp_path / "state", tmp_path / "none", tmp_path / "none")
    for life in range(2):
        with started(stage) as host:
            host.until("host_lifecycle", what="published")
            if life == 0:
                for words in DONE:
                    obeyed(stage, *words)
                a_call_is_cancelled(stage, capsys)
            what_lasts_stands(stage, capsys)
    spans = [
        one for one in read_timeline([stage.state_dir]) if one.name == "observant_host.operator"
    ]
    assert [said(one.attributes) for one in spans] == expected()
    who = {one.attributes["observant_host.operator.principal"] for one in spans}
    assert who == {f"cli:{getpass.getuser()}"}


def test_every_verb_for_one_server_is_among_them() -> None:
    assert VERBS.keys() <= {words[0] for words in DONE}


def said(attributes: dict[str, Any]) -> tuple[str, str, str]:
    verb = attributes["observant_host.operator.verb"]
    reason = attributes.get("observant_host.operator.reason", "")
    return verb, attributes.get("observant_host.peer.name", ""), reason


def a_call_is_cancelled(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """`calls` shows an open one, `cancel` ends it, and who made it is told by whom and why."""
    argv = (sys.executable, "-m", "observant_host", "call", "first/mute", "-c", str(stage.config))
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as calling:
        ends = time.monotonic() + PATIENCE_S
        while not (found := told(stage, capsys, "calls")["in_flight"]):
            assert time.monotonic() < ends
            assert calling.poll() is None
        obeyed(stage, "cancel", found[0]["id"])
        _, err = calling.communicate(timeout=PATIENCE_S)
    assert f"cancelled by cli:{getpass.getuser()}: {why('cancel')}" in err
    assert calling.returncode == 130


def what_lasts_stands(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    views = {one["name"]: one for one in told(stage, capsys, "status")["servers"]}
    assert "held by cli:" in views["held"]["detail"]
    assert "drained by cli:" in views["moved"]["detail"]
    assert "disabled by cli:" in views["off"]["detail"]
    assert views["moved"]["state"] == views["off"]["state"] == "disabled"
    assert (views["old"]["state"], views["old"]["era"]) == ("ready", "legacy")
    assert "held" not in views["first"]["detail"]
    assert told(stage, capsys, "call", "part/only")["outcome"] == "invalid"
    assert told(stage, capsys, "call", "part/echo", "--args", '{"text": "x"}')["outcome"] == "ok"
