"""What docker-compose.yml starts, without an engine: the host and Prometheus by the same files.

Only addresses and paths are replaced, which in the containers are others.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import observant_host.demo.stage
from observant_host.service.client import HostClient
from tests.dashboards.faults import collector
from tests.dashboards.grafana import DASHBOARDS
from tests.dashboards.prometheus import free_port, prometheus, until
from tests.dashboards.test_deployment import SERVICES

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.prometheus, pytest.mark.timeout(120)]

SERVERS = Path(observant_host.demo.stage.__file__).parent / "servers"
TOKEN = "a token of nobody"


@contextmanager
def host(folder: Path, port: int, *, exports_to: str) -> Iterator[None]:
    """With the compose file's configuration, until the block ends."""
    text = (DASHBOARDS / "compose/observant-host.toml").read_text()
    for there, here in {
        "0.0.0.0:8700": f"127.0.0.1:{port}",
        "/run/secrets/metrics-token": str(folder / "token"),
        '"python"': json.dumps(sys.executable),
        "/opt/demo": str(SERVERS),
        "http://otel-collector:4318": exports_to,
    }.items():
        assert there in text
        text = text.replace(there, here)
    config = folder / "observant-host.toml"
    config.write_text(text)
    log = (folder / "host.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "observant_host", *SERVICES["host"]["command"][:2], str(config)],
        stdout=log,
        stderr=log,
        env={**os.environ, "XDG_STATE_HOME": str(folder)},
    )

    def ready() -> bool | None:
        assert process.poll() is None, (folder / "host.log").read_text()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
        except OSError:
            return None
        return True

    try:
        until("the host is ready", ready)
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()
            log.close()


def called() -> set[str]:
    """The tools that the service `calls` calls."""
    found = set()
    for line in SERVICES["calls"]["command"][0].splitlines():
        if "observant-host call" in line:
            words = shlex.split(line)
            found.add(words[words.index("-c") + 2])
    return found


async def offered(state_dir: Path) -> set[str]:
    async with HostClient(state_dir) as client:
        tools = json.loads(await client.catalogue("tools"))["tools"]
    return {name for tool in tools for name in (tool["name"], f"{tool['server']}/{tool['name']}")}


def test_prometheus_reads_the_host_with_the_token_and_nobody_without(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "token").write_text(TOKEN + "\n")
    text = (DASHBOARDS / "compose/prometheus.yml").read_text()
    for there, here in {
        "host:8700": f"127.0.0.1:{port}",
        "alertmanager:9093": f"127.0.0.1:{free_port()}",
        "/run/secrets/metrics-token": str(tmp_path / "token"),
        "5s": "1s",
    }.items():
        assert there in text
        text = text.replace(there, here)
    below = tmp_path / "prometheus"
    below.mkdir()
    for name in ("rules.yaml", "alerts.yaml"):
        (below / name).write_text((DASHBOARDS / f"prometheus/{name}").read_text())
    with (
        collector() as endpoint,
        host(tmp_path, port, exports_to=endpoint),
        prometheus(below, text) as asked,
    ):
        until(
            "Prometheus has scraped the host",
            lambda: asked.query("observant_host_peer_state == 1") or None,
        )
        assert asked.targets() == {"observant-host": "up"}
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)
        assert refused.value.code == 401
        assert called()
        assert called() <= asyncio.run(offered(tmp_path / "observant-host"))
    assert re.search(TOKEN, (tmp_path / "host.log").read_text()) is None
