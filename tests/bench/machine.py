"""The machine that figures were measured on, and how much of it others had."""

from __future__ import annotations

import os
import platform
import resource
import time
from importlib import metadata
from pathlib import Path

import msgspec

LOOK_S = 0.25
"""How long one look at the machine's load takes: ticks are 10 ms, and a tenth must show."""
BUSY = 0.15
VERSIONS = ("observant-host", "aiohttp", "msgspec", "opentelemetry-sdk", "prometheus-client")


class Machine(msgspec.Struct, frozen=True):
    cpu: str
    cores: int
    memory_mib: int
    kernel: str
    python: str
    versions: dict[str, str]


def this_machine() -> Machine:
    return Machine(
        cpu=_field("/proc/cpuinfo", "model name") or platform.machine(),
        cores=os.cpu_count() or 1,
        memory_mib=int((_field("/proc/meminfo", "MemTotal") or "0 kB").split()[0]) // 1024,
        kernel=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions={name: metadata.version(name) for name in VERSIONS},
    )


def _field(path: str, name: str) -> str | None:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    values = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(values, None)


def wait_until_quiet(within_s: float) -> None:
    """Until others use little of the machine, or `within_s` has passed: the run then says so."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        watch = Watch()
        time.sleep(LOOK_S)
        if watch.others() < BUSY:
            return


class Watch:
    """From here on: the share of the machine that neither we nor our ended children used."""

    def __init__(self) -> None:
        self._busy_s, self._all_s = _machine_s()
        self._own_s = _own_s()

    def others(self) -> float:
        busy_s, all_s = _machine_s()
        foreign_s = busy_s - self._busy_s - (_own_s() - self._own_s)
        return max(0.0, foreign_s / max(all_s - self._all_s, 0.01))


def _machine_s() -> tuple[float, float]:
    """Seconds of all cores so far, busy and in all. Source: proc(5), /proc/stat."""
    first = Path("/proc/stat").read_text().splitlines()[0]
    fields = [int(field) for field in first.split()[1:9]]
    idle = fields[3] + fields[4]
    hertz = os.sysconf("SC_CLK_TCK")
    return (sum(fields) - idle) / hertz, sum(fields) / hertz


def _own_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
