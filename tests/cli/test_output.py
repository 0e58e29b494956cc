"""What a pipe gets, what a terminal gets, and what no server can do to either."""

from __future__ import annotations

import io
import os
import pty
import re
import termios

import msgspec
import pytest

from observant_host.cli.fitting import folded, width_of
from observant_host.cli.output import Screen, aligned, printable


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def plain() -> Screen:
    return Screen(out=io.StringIO(), err=io.StringIO())


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    return Screen(out=Terminal(), err=Terminal())


def shown(screen: Screen) -> str:
    assert isinstance(screen.out, io.StringIO)
    return screen.out.getvalue()


def remarked(screen: Screen) -> str:
    assert isinstance(screen.err, io.StringIO)
    return screen.err.getvalue()


def test_a_pipe_gets_aligned_plain_columns() -> None:
    assert aligned(("name", "era"), [("library", "modern"), ("x", "legacy")]) == (
        "NAME     ERA\nlibrary  modern\nx        legacy\n"
    )


def test_a_table_without_a_terminal_has_no_escape_codes(plain: Screen) -> None:
    plain.table(("state",), [("ready",)])
    plain.fail("something")
    assert "\x1b" not in shown(plain) + remarked(plain)


def test_a_table_on_a_terminal_is_coloured(terminal: Screen) -> None:
    terminal.table(("state",), [("ready",)])
    assert "\x1b[" in shown(terminal)


def test_no_color_is_honoured(terminal: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.table(("state",), [("ready",)])
    terminal.say("hello", style="red")
    assert "\x1b" not in shown(terminal) + remarked(terminal)
    assert not terminal.live


@pytest.mark.parametrize("nasty", ["\x1b[31mred\x1b[0m", "a\x07b", "c\x9b31m", "bell\x7f"])
def test_a_server_cannot_send_control_codes_to_a_terminal(terminal: Screen, nasty: str) -> None:
    terminal.table(("text",), [(nasty,)])
    terminal.answer(nasty)
    assert nasty not in shown(terminal)
    assert all(c not in shown(terminal) for c in "\x07\x7f\x9b")


@pytest.mark.parametrize(
    "sequence",
    ["\x1b[31m", "\x1b[2J", "\x9b1m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1b[?25l"],
)
def test_of_a_control_sequence_nothing_is_left(sequence: str) -> None:
    assert printable(f"a{sequence}b") == "ab"


def test_a_terminal_too_narrow_for_a_table_is_told_row_by_row(
    terminal: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    name, about = "summarise_quarterly_reports_for_department", "Summarise them all. " * 5
    terminal.table(
        ("name", "server", "about"), [(name, "reports", about), ("x", "y", "")], fold="about"
    )
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown(terminal)).splitlines()
    assert lines[:2] == [name, "    server reports"]
    assert lines[-2:] == ["x", "    server y"]
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines[2:-2]).split()) == about.strip()


def test_without_colours_the_last_column_is_continued_below_itself(
    terminal: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.table(("name", "about"), [("x", "one two three " * 4)], fold="about")
    assert shown(terminal).splitlines() == [
        "NAME  ABOUT",
        "x     one two three one two three one",
        "      two three one two three",
    ]


def test_sentences_are_folded_on_a_terminal_and_whole_in_a_pipe(
    terminal: Screen, plain: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    sentence = "what to do: take the long way round the hill, then ask again"
    for screen in (terminal, plain):
        screen.prose(sentence, hanging=12)
        screen.fail("there is no way over the hill today")
    assert shown(terminal).splitlines() == [
        "what to do: take the long way",
        "            round the hill,",
        "            then ask again",
    ]
    assert "error: there is no way over\n" in re.sub(r"\x1b\[[0-9;]*m", "", remarked(terminal))
    assert shown(plain) == sentence + "\n"


def test_a_path_is_never_broken() -> None:
    path = "/a/" + "b" * 50
    assert folded(f"see {path} there", 20) == f"see\n{path}\nthere"


def test_the_width_is_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert width_of(Terminal()) == 80, "which has no descriptor to ask"
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 72))
    with os.fdopen(theirs, "w") as stream:
        assert width_of(stream) == 72
    os.close(ours)


def test_the_answer_keeps_its_lines(plain: Screen) -> None:
    plain.answer("one\n\ttwo\rthree")
    assert shown(plain) == "one\n\ttwothree\n"


def test_markup_in_a_servers_words_is_only_text(terminal: Screen) -> None:
    terminal.table(("text",), [("[bold]not bold[/bold]",)])
    assert "[bold]not bold[/bold]" in shown(terminal)


def test_quiet_keeps_the_answer_and_the_errors(plain: Screen) -> None:
    plain.verbosity = -1
    plain.say("a remark")
    plain.answer("the answer")
    plain.fail("an error")
    assert shown(plain) == "the answer\n"
    assert remarked(plain) == "error: an error\n"


def test_details_come_only_when_asked_for(plain: Screen) -> None:
    plain.detail("hidden")
    plain.verbosity = 1
    plain.detail("seen")
    assert remarked(plain) == "seen\n"


def test_json_keeps_what_a_server_sent(plain: Screen) -> None:
    plain.json(
        {"result": msgspec.Raw(b'{"n":1.0,"big":123456789012345678901234567890,"z":1,"a":2}')}
    )
    assert '"n": 1.0' in shown(plain)
    assert "123456789012345678901234567890" in shown(plain)
    assert shown(plain).index('"z"') < shown(plain).index('"a"')


def test_newlines_cannot_break_a_row() -> None:
    assert printable("a\nb\tc\r\nd") == "a b c d"
