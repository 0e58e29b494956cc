"""The real command line as child processes: what a person types, and what comes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND_LIMIT_S = 240
"""`init` with nothing in any cache installs eleven servers first."""


class Person:
    """Somebody in a folder, with a home of their own and the launchers' caches given."""

    def __init__(self, folder: Path, variables: dict[str, str], python: str | None = None) -> None:
        self.folder = folder
        self.python = python or sys.executable
        own = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("STATE", "CONFIG")}
        self.environment = {**os.environ, **own, **variables}
        self.environment.pop("OBSERVANT_HOST_CONFIG", None)

    def types(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            self._command(*argv),
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_S,
            cwd=self.folder,
            env=self.environment,
            check=False,
        )

    def asks(self, *argv: str) -> Any:
        """The same with --json, which must end well."""
        done = self.types(*argv, "--json")
        assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def calls(self, name: str, arguments: dict[str, Any]) -> Any:
        """`call --json`, again for as long as the server is still being started."""
        ends = time.monotonic() + COMMAND_LIMIT_S
        argv = ("call", name, "--args", json.dumps(arguments), "--json")
        while True:
            done = self.types(*argv)
            if done.returncode != 3 or time.monotonic() > ends:
                break
        assert done.returncode == 0, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    @contextmanager
    def running(self, config: Path) -> Iterator[subprocess.Popen[str]]:
        """`run` until the block ends; entered once it has published, its log in `run.log`."""
        log = self.folder / "run.log"
        argv = self._command("run", "-c", str(config), "--listen", "127.0.0.1:0")
        with log.open("w") as file:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stderr=file, cwd=self.folder, env=self.environment
            )
        try:
            self._published(process, log)
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait(30)

    def _command(self, *argv: str) -> list[str]:
        return [self.python, "-m", "observant_host", *argv]

    @staticmethod
    def _published(process: subprocess.Popen[str], log: Path) -> None:
        ends = time.monotonic() + COMMAND_LIMIT_S
        while '"what": "published"' not in log.read_text().replace('":"', '": "'):
            assert process.poll() is None, f"run ended: {log.read_text()[-2000:]}"
            assert time.monotonic() < ends, "run has published nothing"
            time.sleep(0.05)


def marked(mark: str) -> list[str]:
    """Command lines of living processes with this mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found
