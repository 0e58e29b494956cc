"""A real `observant-host run` in a process of its own, for tests that talk to it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from observant_host.demo.stage import SLOW_S, Stage, clear, configure

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
        return self.process.wait(20)


def stage_in(folder: Path, *, slow: bool = False) -> Stage:
    """The demo's child processes; without `slow` all answer at once, and starts are short."""
    stage = clear(folder)
    configure(stage, today=TOMORROW, listen="127.0.0.1:0", ferries_url="http://127.0.0.1:9/mcp")
    text = stage.config.read_text().partition("[servers.ferries]")[0]  # nobody runs it here
    if not slow:
        text = text.replace(f'"--slow", "{SLOW_S}", ', "")
        text = text.replace("probe_timeout_s = 1.0", "probe_timeout_s = 20")
    stage.config.write_text(text)
    return stage


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
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
