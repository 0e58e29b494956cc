"""A real Alertmanager with the checked-in configuration, on a free port of loopback."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.dashboards.alert_files import ROOT
from tests.dashboards.prometheus import free_port, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

BINARIES = ("prometheus-alertmanager", "alertmanager")
"""Debian's name, and everybody else's."""


class Alertmanager:
    def __init__(self, url: str) -> None:
        self.url = url

    def post(self, alerts: Sequence[Mapping[str, str]]) -> None:
        """Alerts by their labels, as Prometheus would send them."""
        body = json.dumps([{"labels": dict(labels)} for labels in alerts]).encode()
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10):
            pass

    def alerts(self) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.url}/api/v2/alerts", timeout=10) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def ready(self) -> bool | None:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=2):
                return True
        except OSError:
            return None


@contextmanager
def alertmanager(folder: Path) -> Iterator[Alertmanager]:
    """Started on its own, without a cluster, until the block ends."""
    binary = next(filter(None, map(shutil.which, BINARIES)), None)
    if binary is None:
        pytest.skip("alertmanager is not installed (Debian package prometheus-alertmanager)")
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    log = (folder / "alertmanager.log").open("wb")
    process = subprocess.Popen(
        [
            *(binary, f"--config.file={ROOT / 'alertmanager.yml'}", "--cluster.listen-address="),
            *(f"--web.listen-address=127.0.0.1:{port}", f"--storage.path={folder / 'data'}"),
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    found = Alertmanager(f"http://127.0.0.1:{port}")

    def ready() -> bool | None:
        assert process.poll() is None, (folder / "alertmanager.log").read_text()
        return found.ready()

    try:
        until("Alertmanager is ready", ready)
        yield found
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            log.close()
