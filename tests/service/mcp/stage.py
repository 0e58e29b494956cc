"""A host with real servers and a real listener, and an agent that speaks to it."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from observant_host.config import ServiceSettings
from tests.service.test_service import host_with, running
from tests.support.agent import Agent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from observant_host import Host
    from tests.service.test_service import Running

LOCAL = ServiceSettings(listen="127.0.0.1:0", drain_timeout_s=5)
CANONICAL = ServiceSettings(listen="127.0.0.1:0", drain_timeout_s=5, names="canonical")


class Stage(Agent):
    """`host` runs, `running` ends it."""

    def __init__(
        self, session: aiohttp.ClientSession, base: str, host: Host, running: Running
    ) -> None:
        super().__init__(session, base + "/mcp")
        self.base, self.host, self.running = base, host, running


def make_host(folder: Path | None = None, settings: ServiceSettings = LOCAL, **keys: Any) -> Host:
    return host_with(folder or Path(tempfile.mkdtemp()), settings=settings, **keys)


@contextlib.asynccontextmanager
async def staged(host: Host, state_dir: Path) -> AsyncIterator[Stage]:
    async with running(host, state_dir) as one:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Stage(session, (await one.listening)["admin"], host, one)


def heard(log: Path, event: str = "in") -> list[dict[str, Any]]:
    """What a scripted server wrote into its log."""
    if not log.exists():
        return []
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line for line in lines if line["ev"] == event]
