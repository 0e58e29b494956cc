"""The pure parts: which environment a child gets, what is said of its end, what is kept of it."""

from __future__ import annotations

import pytest

from observant_host.telemetry.masking import Masker
from observant_host.transports.endings import UNENDING, end_detail, exit_phrase
from observant_host.transports.environment import BASE_NAMES, base_environment
from observant_host.transports.stderr_tail import KEPT_BYTES, SHOWN_CHARS, StderrTail


def test_the_base_is_passed_on_and_secrets_of_the_host_are_not() -> None:
    host = dict.fromkeys(BASE_NAMES, "x") | {
        "LC_ALL": "C",
        "XDG_CACHE_HOME": "/c",
        "AWS_SECRET_ACCESS_KEY": "s",
        "GITHUB_TOKEN": "s",
        "npm_config__authToken": "s",
        "OBSERVANT_HOST_CONFIG": "/x",
        "UV_PUBLISH_TOKEN": "s",
    }
    assert base_environment(host, (), {}).keys() == BASE_NAMES | {"LC_ALL", "XDG_CACHE_HOME"}


def test_the_configuration_wins_and_inherit_takes_names_and_globs() -> None:
    host = {"PATH": "/bin", "A_ONE": "1", "A_TWO": "2", "B": "3", "b": "4"}
    assert base_environment(host, ("A_*", "B"), {"PATH": "/opt", "NEW": "n"}) == {
        "PATH": "/opt",
        "A_ONE": "1",
        "A_TWO": "2",
        "B": "3",
        "NEW": "n",
    }


def test_exported_shell_functions_are_not_passed_on() -> None:
    assert base_environment({"TERM": "() { :; }; echo"}, (), {}) == {}


def test_proxy_variables_are_known_in_both_cases() -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        assert {name, name.upper()} <= BASE_NAMES


@pytest.mark.parametrize(
    ("code", "phrase"),
    [
        (0, "exited with status 0"),
        (127, "exited with status 127"),
        (-9, "was ended by signal 9 (SIGKILL)"),
        (137, "exited with status 137 (what it had started was ended by SIGKILL)"),
        (-250, "was ended by signal 250"),
        (None, "ended, its exit status is unknown"),
    ],
)
def test_an_exit_code_becomes_a_phrase(code: int | None, phrase: str) -> None:
    assert exit_phrase(code) == phrase


def test_the_end_of_a_life_is_one_sentence() -> None:
    def said(kind: str, *, code: int | None = None, exited: bool = True, tail: str = "") -> str:
        return end_detail("s", kind, exit_code=code, exited=exited, stderr_tail=tail)  # type: ignore[arg-type] # kinds as text

    assert said("exit", code=1, tail="a\n\n b \nc\nd\n") == (
        'server "s" exited with status 1; its last words on stderr: b / c / d'
    )
    assert said("closed", code=0) == 'server "s" was closed and exited with status 0'
    assert said("closed", exited=False) == f'server "s" {UNENDING}'
    assert "closed its stdout" in said("eof", exited=False)
    assert "closed its stdin" in said("lost", exited=False)
    assert len(said("exit", code=1, tail="x" * 5000)) < 400


def test_the_tail_of_stderr_is_bounded_whole_lines_and_without_control_sequences() -> None:
    tail = StderrTail(Masker())
    assert tail.text() == ""
    for number in range(20_000):
        tail.add(f"\x1b[3{number % 8}mline {number}\x1b[0m\r\n".encode())
    tail.add(b"\x1b]0;title\x07caf\xe9\x00 end")
    shown = tail.text()
    assert len(shown) <= SHOWN_CHARS
    assert shown.startswith("line ")
    assert shown.endswith("line 19999\ncaf\ufffd end")
    assert tail._size <= KEPT_BYTES + 64 * 1024


def test_one_endless_line_of_stderr_is_cut_too() -> None:
    tail = StderrTail(Masker())
    for _ in range(100):
        tail.add(b"x" * 65536)
    assert len(tail.text()) == SHOWN_CHARS
    assert tail._size <= KEPT_BYTES + 65536


def test_secrets_in_stderr_are_masked_however_they_were_cut_or_coloured() -> None:
    tail = StderrTail(Masker(["tok3n-abc"]))
    tail.add(b"key=tok3")
    tail.add(b"n-abc and tok3\x1b[1mn-abc\n")
    assert tail.text() == "key=*** and ***"
    long = StderrTail(Masker(["tok3n-abc"]))
    long.add(b"tok3n-abc" + b"y" * (SHOWN_CHARS - 4))
    assert "n-abc" not in long.text()
