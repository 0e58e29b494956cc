"""A real Prometheus on a free port of loopback, for as long as a block lasts.

Sync on purpose: tests start it beside hosts in processes of their own, and only ask it over HTTP.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

READY_S = 30.0
POLL_S = 0.2


def needed(program: str) -> str:
    """Its path; the test is skipped where it is not installed."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (Debian packages prometheus, its alertmanager)")
    return found


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def until(what: str, ask: Callable[[], T | None], *, within_s: float = READY_S) -> T:
    """Ask until there is an answer; fails with `what` when the time is over."""
    end = time.monotonic() + within_s
    while (found := ask()) is None:
        assert time.monotonic() < end, f"not within {within_s:g} s: {what}"
        time.sleep(POLL_S)
    return found


class Refused(Exception):
    """Prometheus' own words about a query."""


class Prometheus:
    """Its HTTP API. Times are seconds since the epoch."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **parameters: object) -> Any:
        """`data` of an answer. Raises Refused with its error."""
        body = urllib.parse.urlencode(parameters).encode() or None
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}", body, timeout=10) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            raise Refused(json.load(error).get("error", str(error))) from None
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expr: str, *, at: float | None = None) -> list[dict[str, Any]]:
        given = {} if at is None else {"time": at}
        found = self.ask("query", query=expr, **given)
        return found["result"] if found["resultType"] == "vector" else [found["result"]]

    def query_range(self, expr: str, *, seconds: float, step: float) -> list[dict[str, Any]]:
        """The last `seconds`."""
        now = time.time()
        return self.ask("query_range", query=expr, start=now - seconds, end=now, step=step)[
            "result"
        ]

    def format_query(self, expr: str) -> str:
        """`expr` in Prometheus' own layout: it has parsed."""
        return self.ask("format_query", query=expr)

    def targets(self) -> dict[str, str]:
        """Health by job of every target."""
        active = self.ask_get("targets")["activeTargets"]
        return {one["labels"]["job"]: one["health"] for one in active}

    def exemplars(self, expr: str, *, seconds: float) -> list[dict[str, Any]]:
        now = time.time()
        return self.ask("query_exemplars", query=expr, start=now - seconds, end=now)

    def ask_get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]

    def reload(self) -> None:
        """Read configuration and rules again; needs `--web.enable-lifecycle`."""
        with urllib.request.urlopen(f"{self.url}/-/reload", b"", timeout=10):
            pass

    def ready(self) -> bool | None:
        """True once it answers queries, else None."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2):
                return True
        except OSError:
            return None


@contextmanager
def prometheus(folder: Path, config: str, *flags: str) -> Iterator[Prometheus]:
    """Started with this configuration (JSON is YAML too) until the block ends.

    `folder` gets its files; relative paths in `config` start there.
    """
    binary = needed("prometheus")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "prometheus.yml"
    file.write_text(config)
    port = free_port()
    log = (folder / "prometheus.log").open("wb")
    process = subprocess.Popen(
        [
            *(binary, f"--config.file={file}", f"--web.listen-address=127.0.0.1:{port}"),
            *(f"--storage.tsdb.path={folder / 'tsdb'}", "--enable-feature=exemplar-storage"),
            *("--log.level=warn", *flags),
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    found = Prometheus(f"http://127.0.0.1:{port}")

    def ready() -> bool | None:
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        return found.ready()

    try:
        until("Prometheus is ready", ready)
        yield found
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            log.close()
