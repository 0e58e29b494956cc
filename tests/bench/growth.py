"""How costs grow: with calls in flight, with servers, with series of metrics."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from tests.bench import starting
from tests.bench.cases import Case, program

if TYPE_CHECKING:
    from tests.bench.cases import Cases

IN_FLIGHT = (1, 4, 16, 64, 256)
CALLS = {"bare": 5000, "metrics": 2500, "on": 1500}
"""At each number in flight; a quarter of it where each call waits for its own answer."""
SERVERS = (1, 50, 200)
IDLE_S = 4
SERIES = {"1k": 10, "10k": 100, "30k": 440}
"""About so many series to how many servers of twenty tools have them."""
ROUNDS = 3
"""A curve shows what it has to with few rounds."""


def cases(own: Cases) -> dict[str, Case]:
    calls = {way: partial(_calls, own, way) for way in CALLS}
    idle = {str(count): partial(_idle, count) for count in SERVERS}
    scrapes = {name: partial(_scrape, servers) for name, servers in SERIES.items()}
    return {
        "growth-calls": Case("CPU and calls/s by calls in flight", calls, ROUNDS),
        "growth-servers": Case("idle CPU and memory by servers", idle, ROUNDS),
        "growth-scrape": Case("scrape time by series", scrapes, ROUNDS),
    }


def _calls(own: Cases, way: str) -> dict[str, float]:
    counts = {at: CALLS[way] // (4 if at == 1 else 1) for at in IN_FLIGHT}
    return own.call("stdio", way, counts)


def _idle(servers: int) -> dict[str, float]:
    given = {"servers": servers, "seconds": IDLE_S, "target": starting.server_command()}
    return program(sys.executable, "idle", given)


def _scrape(servers: int) -> dict[str, float]:
    return program(sys.executable, "scraping", {"servers": servers})
