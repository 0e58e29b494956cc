"""On a real pseudo-terminal: colours, progress while servers start, changes while they serve."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from observant_host.cli.main import run
from tests.cli.serving import serving, stage_in

if TYPE_CHECKING:
    from collections.abc import Iterator

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PATIENCE_S = 60.0


class Watched:
    """A command whose stdout and stderr are one terminal of 120 columns."""

    def __init__(self, *argv: str, **variables: str) -> None:
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **variables}
        if "NO_COLOR" not in variables:
            environment.pop("NO_COLOR", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "observant_host", *argv],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
        )
        os.close(theirs)
        self.raw = ""

    @property
    def text(self) -> str:
        return ESCAPE.sub("", self.raw)

    def until(self, words: str) -> str:
        """Read until `words` were shown; fails when the command ends or patience does."""
        ends = time.monotonic() + PATIENCE_S
        while words not in self.text:
            assert time.monotonic() < ends, self.text
            assert self._read(), f"ended without {words!r}: {self.text}"
        return self.text

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], PATIENCE_S)[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # Linux says EIO when the other side is gone
            return False
        self.raw += data.decode(errors="replace")
        return bool(data)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)


@contextmanager
def watching(*argv: str, **variables: str) -> Iterator[Watched]:
    watched = Watched(*argv, **variables)
    try:
        yield watched
    finally:
        watched.close()


def test_run_shows_who_starts_then_a_summary_then_changes(tmp_path) -> None:
    late = tmp_path / "late"
    stage = stage_in(tmp_path / "stage", late=late)
    with watching("run", "-c", str(stage.config)) as terminal:
        terminal.until("starting")
        terminal.until("Ctrl-C stops")
        assert "serving 6 tools of 4 servers (of 6 configured)" in terminal.text
        assert "attic: unavailable (policy: ambiguous_error)" in terminal.text
        late.touch()
        terminal.until("forecast: ready, modern 2026-07-28 (discover_ok), 1 tool")
        assert '{"timestamp"' not in terminal.text
        terminal.process.send_signal(signal.SIGINT)
        terminal.until("stopping")
        assert terminal.end() == 0


def test_tables_are_coloured_and_no_color_is_honoured(tmp_path) -> None:
    stage = stage_in(tmp_path)
    argv = ("probe", "library", "-c", str(stage.config), "--standalone")
    with watching(*argv) as terminal:
        assert terminal.end() == 0
        assert "\x1b[32mready" in terminal.raw
    with watching(*argv, NO_COLOR="1") as terminal:
        assert terminal.end() == 0
        assert "\x1b" not in terminal.raw
        assert "library" in terminal.text


@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}], ids=["coloured", "plain"])
def test_nothing_is_wider_than_80_columns(tmp_path, variables: dict[str, str]) -> None:
    stage = stage_in(tmp_path)
    argv = ("probe", "library", "attic", "-c", str(stage.config), "--standalone")
    with watching(*argv, COLUMNS="80", **variables) as terminal:
        assert terminal.end() == 3
        lines = terminal.text.replace("\r", "\n").splitlines()
    told = [line for line in lines if len(line) > 80 and " " in line.strip()]
    assert told == []
    assert any("allow_legacy" in line for line in lines)


def test_watching_status_looks_again_until_ctrl_c(tmp_path) -> None:
    stage = stage_in(tmp_path)
    argv = ("status", "library", "--watch", "--standalone", "-c", str(stage.config))
    with watching(*argv) as terminal:
        terminal.until("layers")
        seen = terminal.text.count("layers")
        while terminal.text.count("layers") == seen:
            assert terminal._read()
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text


def test_watching_a_running_host_shows_what_changes_there(tmp_path) -> None:
    with serving(tmp_path) as host:
        host.until("host_lifecycle", what="published")
        config = ("-c", str(host.stage.config))
        with watching("status", "--watch", *config) as terminal:
            terminal.until("library")
            assert "moved away" not in terminal.text
            assert run(["disable", "web", "--reason", "moved away", *config]) == 0
            terminal.until("moved away")
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.end() == 130
            assert "Traceback" not in terminal.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_servers_start_ends_them_and_says_interrupted(tmp_path, number) -> None:
    stage = stage_in(tmp_path, late=tmp_path / "never")
    with watching("tools", "--standalone", "-c", str(stage.config)) as terminal:
        terminal.until("starting")
        terminal.until("forecast")
        terminal.process.send_signal(number)
        assert terminal.end() == 130
        assert "interrupted" in terminal.text
        assert "Traceback" not in terminal.text
