"""A real `observant-host run` in a process of its own, for tests that talk to it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from observant_host.demo.stage import PROBE_TIMEOUT_S, SLOW_S, Stage, clear, configure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOMORROW = datetime.now(UTC).date() + timedelta(days=1)


class Serving:
    """One running host, started with the demo's servers. `events` are its log lines so far."""

    def __init__(self, process: subprocess.Popen[str], stage: Stage) -> None:
        self.process = process
        self.stage = stage
        self.events: list[dict] = []

    def until(self, event: str, **fields: object) -> dict:
        """Read log lines until one with these fields; fails when the host ends first."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == event and fields.items() <= self.events[-1].items():
                return self.events[-1]
        raise AssertionError(f"the host ended without {event} {fields}: {self.events[-3:]}")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait, give the exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)


def stage_in(folder: Path, *, late: Path | None = None) -> Stage:
    """The demo's child processes, none of them slow: a start is over once all have answered, on a
    busy machine too. With `late`, forecast is not waited for, and answers once that is there."""
    stage = clear(folder)
    configure(stage, today=TOMORROW, listen="127.0.0.1:0", ferries_url="http://127.0.0.1:9/mcp")
    text = stage.config.read_text().partition("[servers.ferries]")[0]  # nobody runs it here
    text = text.replace(f'"--slow", "{SLOW_S}", ', "")
    if late is None:
        text = text.replace(f"probe_timeout_s = {PROBE_TIMEOUT_S}", "probe_timeout_s = 20")
    stage.config.write_text(text if late is None else _waiting(text, late))
    return stage


def _waiting(text: str, late: Path) -> str:
    before, head, after = text.partition("[servers.forecast]")
    there = json.dumps(f'until [ -e "{late}" ]; do sleep 0.05; done; exec "$0" "$@"')
    program = json.dumps(sys.executable)
    after = after.replace(f"command = {program}", 'command = "/bin/sh"', 1)
    return before + head + after.replace("args = [", f'args = ["-c", {there}, {program}, ', 1)


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Serving]:
    """Run it until the block ends; `until("host_lifecycle", what="published")` waits for it."""
    with started(stage_in(folder), *options) as running:
        yield running


@contextmanager
def started(stage: Stage, *options: str) -> Iterator[Serving]:
    """The same, with the file that is there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "observant_host", "run", "-c", str(stage.config), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Serving(process, stage)
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
