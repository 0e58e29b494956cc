"""What a call costs through `observant-host run`, beside a bare server and a static aiohttp app.

python -m tests.bench.gateway                      every subject, 5 interleaved rounds, a table
python -m tests.bench.gateway --rounds 2 --only static,metrics,full

CPU is that of the subject's process alone, all its threads; servers behind it and the load are
processes of their own.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.peers import scripted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PATIENCE_S = 30.0
PROFILES = {
    "metrics": "record = false",
    "ratio": "record = true\nsample_ratio = 0.01",
    "full": "record = true\nsample_ratio = 1.0",
}
"""Of telemetry: what the gateway is told to keep."""
CONFIG = """version = 1
[host]
state_dir = "{state}"
[service]
listen = "127.0.0.1:0"
[telemetry]
{telemetry}
[servers.p0]
{server}
{more}
"""
LOAD = Path(__file__).with_name("load.py")
"""Run by its path: an interpreter with a faster event loop need not have what we have."""


class Subject(NamedTuple):
    """Something that serves `POST /mcp`."""

    name: str
    url: str
    pid: int
    tool: str
    token: str | None = None


@contextmanager
def gateway(
    profile: str,
    *,
    server: Sequence[str] = (),
    url: str = "",
    tool: str = "echo",
    more: str = "",
    token: str | None = None,
) -> Iterator[Subject]:
    """`observant-host run` before one stdio server, or the one at `url`, with a telemetry profile
    of PROFILES or lines of its own. `more` is further configuration."""
    command, *args = server or scripted(tools=tool)
    stdio = f"command = {json.dumps(command)}\nargs = {json.dumps(args)}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "observant-host.toml"
        path.write_text(
            CONFIG.format(
                state=Path(folder) / "state",
                telemetry=PROFILES.get(profile, profile),
                server=f"url = {json.dumps(url)}" if url else stdio,
                more=more,
            ),
            encoding="utf-8",
        )
        program = str(Path(sys.executable).parent / "observant-host")
        argv = [program, "run", "--config", str(path)]
        with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield Subject(profile, _ready(process), process.pid, tool, token)
            finally:
                process.terminate()
                assert process.stderr is not None
                process.stderr.read()


@contextmanager
def beside(name: str, argv: Sequence[str] = (), *, tool: str = "echo") -> Iterator[Subject]:
    """One of `subjects`: "raw", "static", or whatever `argv` starts."""
    argv = argv or [sys.executable, "-m", "tests.bench.subjects", name]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Subject(name, process.stdout.readline().strip(), process.pid, tool)
        finally:
            process.kill()


def measured(
    subject: Subject,
    *,
    calls: int,
    closed: int = 16,
    rate: float = 0.0,
    warm: int = 200,
    python: str = sys.executable,
    options: Sequence[str] = (),
) -> dict[str, Any]:
    """Of `tests.bench.load`, and "cpu_us": CPU of the subject's process for each call. `python`
    runs the load, with further `options`."""
    if warm:
        _load(subject, calls=warm, closed=closed, rate=0.0, argv=[python])
    before = cpu_ns(subject.pid)
    told = _load(subject, calls=calls, closed=closed, rate=rate, argv=[python, *options])
    return {**told, "cpu_us": round((cpu_ns(subject.pid) - before) / calls / 1000, 1)}


def cpu_ns(pid: int) -> int:
    """CPU time of a process so far, of all threads that it has."""
    return sum(
        int((task / "schedstat").read_text().split()[0])
        for task in Path(f"/proc/{pid}/task").iterdir()
    )


def _load(
    subject: Subject, *, calls: int, closed: int, rate: float, argv: Sequence[str]
) -> dict[str, Any]:
    python, *options = argv
    argv = [python, str(LOAD), subject.url, "--tool", subject.tool, *options]
    argv += ["--calls", str(calls), "--closed", str(closed), "--rate", str(rate)]
    argv += ["--token", subject.token] if subject.token else []
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _ready(process: subprocess.Popen[str]) -> str:
    """Its MCP endpoint, once it is ready."""
    assert process.stderr is not None
    for line in process.stderr:
        if '"what":"listening"' in line.replace(" ", ""):
            break
    host = line.partition("http://")[2].partition('"')[0].partition(",")[0]
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        asked = http.client.HTTPConnection(host, timeout=PATIENCE_S)
        asked.request("GET", "/readyz")
        if asked.getresponse().status == 200:
            return f"http://{host}/mcp"
        time.sleep(0.05)
    raise TimeoutError(line)


def rounds(
    subjects: Sequence[Subject], *, number: int, calls: int, rate: float, closed: int = 16
) -> dict[str, dict[str, float]]:
    """By subject: best calls/s and least CPU of a closed loop, then of an open one at `rate` the
    least of p50 and p99. Interleaved, the order turned each round."""
    found: dict[str, list[dict[str, Any]]] = {one.name: [] for one in subjects}
    for turn in range(number):
        for one in [*subjects[turn % len(subjects) :], *subjects[: turn % len(subjects)]]:
            full = measured(one, calls=calls, closed=closed)
            paced = measured(one, calls=max(200, calls // 4), rate=rate, warm=0)
            found[one.name].append(
                {**full, "paced_p50_ms": paced["p50_ms"], "paced_p99_ms": paced["p99_ms"]}
            )
    return {name: _summed(runs) for name, runs in found.items()}


def _summed(runs: list[dict[str, Any]]) -> dict[str, float]:
    keys = ("cpu_us", "p50_ms", "p99_ms", "paced_p50_ms", "paced_p99_ms")
    least = {key: min(run[key] for run in runs) for key in keys}
    median = {f"{key}_median": statistics.median(run[key] for run in runs) for key in keys}
    return {"calls_per_s": max(run["calls_per_s"] for run in runs), **least, **median}


def table(found: dict[str, dict[str, float]], *, against: str = "static") -> str:
    """Markdown; ratios of best to best."""
    rows = [
        "| subject | calls/s | of static | CPU us | of static | p50 / p99 ms | paced p50 / p99 |",
        "|---|---|---|---|---|---|---|",
    ]
    floor = found.get(against)
    for name, one in found.items():
        speed = f"{one['calls_per_s'] / floor['calls_per_s']:.2f}" if floor else "–"
        cost = f"{one['cpu_us'] / floor['cpu_us']:.2f}" if floor else "–"
        rows.append(
            f"| {name} | {one['calls_per_s']:.0f} | {speed} | {one['cpu_us']:.0f} | {cost} | "
            f"{one['p50_ms']} / {one['p99_ms']} | {one['paced_p50_ms']} / {one['paced_p99_ms']} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--only", default="raw,static,metrics,ratio,full")
    parser.add_argument("--server", help="a stdio server's command line, instead of our own")
    parser.add_argument("--tool", default="echo")
    given = parser.parse_args()
    server = given.server.split() if given.server else ()
    names = given.only.split(",")
    opened: list[Any] = []
    try:
        for name in names:
            one = (
                gateway(name, server=server, tool=given.tool)
                if name in PROFILES
                else beside(name, tool=given.tool)
            )
            opened.append((one, one.__enter__()))
        subjects = [subject for _, subject in opened]
        found = rounds(subjects, number=given.rounds, calls=given.calls, rate=given.rate)
    finally:
        for one, _ in reversed(opened):
            one.__exit__(None, None, None)
    print(table(found))


if __name__ == "__main__":
    main()
