"""What an operator asks before deploying: how much one host takes, and what happens beyond."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tests.bench import gateway, starting
from tests.bench.cases import Case, program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.cases import Cases

RATES = (500, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 8000, 10_000, 12_000)
STEP_S = 2.0
ADDED_P99_MS = 5.0
TRIES = 2
"""What else the machine does may spoil one."""
KEPT_UP = 0.97
"""Of the calls that were due: an endpoint that answers fewer is over its capacity."""
CONNECTIONS = 256
"""Beyond it the load itself would wait, and never see a refusal."""
SERVERS = 10
MOST = 1000
RECORDED = 40_000
ROUNDS = 3


def cases(own: Cases) -> dict[str, Case]:
    rates = {way: partial(_rate, own, way) for way in ("metrics", "on")}
    starts = {way: partial(_start, way) for way in ("cold", "warm")}
    return {
        "capacity-rate": Case("calls a second before one server", rates, ROUNDS),
        "capacity-start": Case(f"start of `run` with {SERVERS} servers", starts, ROUNDS),
        "capacity-servers": Case("many servers", {str(MOST): _many}, 1),
        "capacity-disk": Case("disk of the record", {"on": _disk}, 1),
    }


def _rate(own: Cases, way: str) -> dict[str, float]:
    """The highest rate whose p99 is near that of a direct client, its CPU, and twice that rate."""
    with own.subject("stdio", "direct") as direct, own.subject("stdio", way) as subject:
        gateway.measured(subject, calls=2000)
        found: dict[str, float] = {}
        for rate in RATES:
            tried = (_step(own, direct, subject, rate) for _ in range(TRIES))
            step = next((one for one in tried if one is not None), None)
            if step is None:
                break
            found = step
        if not found:
            return {"rate": 0.0}
        twice = own.paced(subject, 2 * found["rate"], STEP_S, connections=CONNECTIONS)
        after = own.paced(subject, found["rate"] / 2, STEP_S)
    over = {f"twice_{name}": twice[name] for name in ("p50_ms", "p99_ms", "calls_s", "refused")}
    return {**found, **over, "after_p99_ms": after["p99_ms"]}


def _step(
    own: Cases, direct: gateway.Subject, subject: gateway.Subject, rate: float
) -> dict[str, float] | None:
    """Figures at this rate; None where it is too much."""
    base, through = own.paced(direct, rate, STEP_S), own.paced(subject, rate, STEP_S)
    added = through["p99_ms"] - base["p99_ms"]
    if added > ADDED_P99_MS or through["calls_s"] < KEPT_UP * rate:
        return None
    cores = through["cpu_us"] * rate / 1e6
    figures = {"rate": rate, "added_p99_ms": added, "cores": cores}
    return {**figures, "calls_s_core": rate / max(cores, 0.01)}


def _start(way: str) -> dict[str, float]:
    """Seconds from starting the program until it is ready: cold without compiled bytecode."""
    command, *args = starting.server_command()
    tables = [
        f"[servers.s{number}]\ncommand = {command!r}\nargs = {args!r}"
        for number in range(1, SERVERS)
    ]
    with _bytecode(cold=way == "cold"):
        began = time.perf_counter()
        keys = gateway.PROFILES["full"]
        with gateway.gateway(keys, server=[command, *args], tool="t0", more="\n".join(tables)):
            return {"ready_ms": (time.perf_counter() - began) * 1e3}


@contextmanager
def _bytecode(*, cold: bool) -> Iterator[None]:
    """Programs started meanwhile find compiled modules, or none."""
    kept = {
        name: os.environ.get(name) for name in ("PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE")
    }
    with tempfile.TemporaryDirectory() as folder:
        if cold:
            os.environ["PYTHONPYCACHEPREFIX"] = folder
        try:
            yield
        finally:
            for name, value in kept.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def _many() -> dict[str, float]:
    found = starting.started("ours", MOST)
    return {
        "servers": MOST,
        "ready_ms": found["ready_s"] * 1e3,
        "stall_ms": found["stall_ms"],
        "memory_mib": found["rss_mib"],
    }


def _disk() -> dict[str, float]:
    given = {"calls": RECORDED, "target": starting.server_command()}
    return program(sys.executable, "disk", given)
