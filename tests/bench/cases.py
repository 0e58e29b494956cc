"""What is run: each case is one piece of work done in several ways, each way a process of its own.

A way is called once a round and gives its figures. What it needs besides (a server, a sink) starts
and ends with it, so that the machine's load can be told apart from others'.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from tests.bench import gateway, starting
from tests.bench.load import request_of
from tests.bench.programs.driving import forget_peak, memory_mib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

HERE = Path(__file__).parent
PATIENCE_S = 300
STATES = ("metrics", "ratio", "on", "own-ratio", "own", "otlp")
"""Of telemetry, as `programs/ours.py` says."""
CALLS = {
    "stdio": {
        "bare": {1: 1500, 16: 12_000},
        "mcp": {1: 400, 16: 1500},
        "metrics": {1: 1000, 16: 6000},
        "ratio": {1: 800, 16: 5000},
        "on": {1: 600, 16: 3000},
        "own-ratio": {1: 800, 16: 5000},
        "own": {1: 600, 16: 3000},
        "otlp": {1: 600, 16: 3000},
    },
    "http": {
        "bare": {1: 500, 16: 3000},
        "mcp": {1: 150, 16: 600},
        "metrics": {1: 400, 16: 3000},
        "ratio": {1: 400, 16: 2500},
        "on": {1: 300, 16: 2000},
        "own-ratio": {1: 400, 16: 2500},
        "own": {1: 300, 16: 2000},
        "otlp": {1: 300, 16: 2000},
    },
}
"""How many calls of each way: some tenths of a second of it, whatever it costs."""
PACE = 500
PACED_S = 2
CLOSED = {"direct": 12_000, "static aiohttp app": 6000, "fastmcp proxy": 400}
CLOSED_OURS = 3000
MIB = 1 << 20
LARGE = 16 * MIB - 4096
"""With its envelope it is just below the longest message that a host takes unasked."""
LARGE_CALLS = 3


class Case(NamedTuple):
    """`rounds`: as many at the most; what varies little and takes long needs few."""

    title: str
    ways: Mapping[str, Callable[[], dict[str, float]]]
    rounds: int = 99


class ProgramError(RuntimeError):
    """A measured program failed, or said nothing."""


def program(python: str, name: str, given: Mapping[str, Any]) -> dict[str, float]:
    """The figures that `programs/NAME.py` prints."""
    argv = [python, str(HERE / "programs" / f"{name}.py"), json.dumps(given)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not said:
        raise ProgramError(
            f"{name} with {python} ended with {done.returncode}: {done.stderr[-900:]}"
        )
    return json.loads(said[-1].removeprefix("RESULT "))


@contextmanager
def serving(python: str, name: str, *arguments: str) -> Iterator[int]:
    """The port of `servers/NAME.py`, as long as it is needed."""
    argv = [python, str(HERE / "servers" / f"{name}.py"), *arguments]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def sink(python: str) -> Any:
    return serving(python, "sink")


def traces_url(port: int) -> str:
    return f"http://127.0.0.1:{port}/v1/traces"


class Cases:
    """Every case by name, with these interpreters. `scale` multiplies calls."""

    def __init__(self, pythons: Mapping[str, str], scale: float = 1.0) -> None:
        self._pythons, self._scale = pythons, scale

    def all(self) -> dict[str, Case]:
        starts = {
            f"start{count}": Case(
                f"{count} servers to ready",
                {way: partial(self._start, way, count) for way in ("bare", "ours", "as_run")},
            )
            for count in (50, 500)
        }
        return {
            "stdio": self._calls("stdio"),
            "http": self._calls("http"),
            "gateway-stdio": self._gateway("stdio", ("metrics", "on", "otlp"), others=True),
            "gateway-http": self._gateway("http", ("metrics", "on"), others=False),
            **starts,
            "memory": Case(
                "resident memory with 50 servers",
                {way: partial(self._memory, way) for way in ("mcp", "ours")},
            ),
            "import": Case("import", {way: partial(self._import, way) for way in ("mcp", "ours")}),
            "large-stdio": Case(
                "16 MiB over stdio",
                {way: partial(self._large, way) for way in ("bare", "mcp", "ours")},
            ),
            "large-http": Case("16 MiB through to HTTP", {"ours": self._large_through}),
            "catalogue": Case("10,000 tools", {"ours": self._catalogue}),
        }

    def _calls(self, transport: str) -> Case:
        ways = CALLS[transport]
        return Case(f"{transport} calls", {way: partial(self.call, transport, way) for way in ways})

    def call(
        self, transport: str, way: str, at: Mapping[int, int] | None = None
    ) -> dict[str, float]:
        """Figures of a client's calls; `at`: in flight to how many."""
        wanted = at or CALLS[transport][way]
        given: dict[str, Any] = {
            "transport": transport,
            "at": {one: max(50, int(calls * self._scale)) for one, calls in wanted.items()},
        }
        with ExitStack() as stack:
            given["target"] = starting.server_command(python=self._pythons["bare"])
            if transport == "http":
                port = stack.enter_context(serving(self._pythons["bare"], "http_server"))
                given["target"] = f"http://127.0.0.1:{port}/mcp"
            if way == "bare":
                return program(self._pythons["bare"], "bare", given)
            if way not in STATES:
                return program(self._pythons[way], "rival", {**given, "library": way})
            if way == "otlp":
                given["sink"] = traces_url(stack.enter_context(sink(self._pythons["bare"])))
            return program(sys.executable, "ours", {**given, "state": way})

    def _gateway(self, transport: str, states: tuple[str, ...], *, others: bool) -> Case:
        floors = ("direct", "static aiohttp app", "fastmcp proxy") if others else ("direct",)
        ways = {way: partial(self._through, transport, way) for way in (*floors, *states)}
        return Case(f"through the gateway to {transport}", ways)

    def _through(self, transport: str, way: str) -> dict[str, float]:
        with self.subject(transport, way) as subject:
            load = partial(gateway.measured, subject, python=self._pythons["bare"])
            calls = max(100, int(CLOSED.get(way, CLOSED_OURS) * self._scale))
            closed = load(calls=calls, warm=calls // 4)
            if way == "fastmcp proxy":  # it cannot keep the pace
                return _named(closed, "@16")
            paced = load(calls=int(PACE * PACED_S * max(self._scale, 0.5)), rate=PACE, warm=0)
            return _named(closed, "@16") | _named(paced, f"={PACE}")

    def paced(
        self, subject: gateway.Subject, rate: float, seconds: float, *, connections: int = 64
    ) -> dict[str, float]:
        """An open loop that goes on over refusals."""
        options = ("--connections", str(connections), "--over-limit")
        calls, python = int(rate * seconds), self._pythons["bare"]
        told = gateway.measured(
            subject, calls=calls, rate=rate, warm=0, python=python, options=options
        )
        return _named(told, "")

    @contextmanager
    def subject(self, transport: str, way: str) -> Iterator[gateway.Subject]:
        """A gateway or what is measured beside it, ready."""
        bare = self._pythons["bare"]
        server = starting.server_command(python=bare)
        subjects = str(HERE / "subjects.py")
        with ExitStack() as stack:
            if way == "direct":
                made: Any = gateway.beside("raw", [bare, subjects, "raw"], tool="t0")
            elif way == "static aiohttp app":
                made = gateway.beside("static", [bare, subjects, "static"], tool="t0")
            elif way == "fastmcp proxy":
                argv = [self._pythons["fastmcp"], subjects, "fastmcp", "--", *server]
                made = gateway.beside("fastmcp", argv, tool="t0")
            else:
                profile = {"on": "full", "otlp": "full"}.get(way, way)
                keys = gateway.PROFILES[profile]
                if way == "otlp":
                    port = stack.enter_context(sink(bare))
                    keys += f'\notlp_endpoint = "{traces_url(port)}"'
                where: dict[str, Any] = {"server": server}
                if transport == "http":
                    port = stack.enter_context(serving(bare, "http_server"))
                    where = {"url": f"http://127.0.0.1:{port}/mcp"}
                made = gateway.gateway(keys, tool="t0", **where)
            yield stack.enter_context(made)

    def _start(self, way: str, count: int) -> dict[str, float]:
        client: Any = {"mcp": "official_sdk"}.get(way, way)
        python = self._pythons["mcp"] if way == "mcp" else sys.executable
        found = starting.started(client, count, python=python)
        return {
            "ready_ms": found["ready_s"] * 1e3,
            "cpu_ms": found["cpu_s"] * 1e3,
            "stall_ms": found["stall_ms"],
            "threads_each": (found["threads"] - 1) / count,
            "memory_mib": found["rss_mib"],
        }

    def _memory(self, way: str) -> dict[str, float]:
        return self._start(way, 50)

    def _import(self, way: str) -> dict[str, float]:
        client: Any = {"mcp": "official_sdk"}.get(way, way)
        python = self._pythons["mcp"] if way == "mcp" else sys.executable
        return starting.imported(client, python=python)

    def _large(self, way: str) -> dict[str, float]:
        python = sys.executable if way == "ours" else self._pythons[way]
        return program(python, "large", {"client": way, "target": self._large_server()})

    def _large_server(self) -> list[str]:
        return [*starting.server_command(python=self._pythons["bare"]), "--size", str(LARGE)]

    def _large_through(self) -> dict[str, float]:
        """CPU and memory of the gateway's process."""
        keys = gateway.PROFILES["metrics"]
        with gateway.gateway(keys, server=self._large_server(), tool="t0") as subject:
            before, cpu_ms = memory_mib(subject.pid)[0], []
            forget_peak(subject.pid)
            for number in range(LARGE_CALLS):
                began = gateway.cpu_ns(subject.pid)
                _ask_once(subject)
                cpu_ms.append((gateway.cpu_ns(subject.pid) - began) / 1e6)
                if number == 0:
                    added = memory_mib(subject.pid)[1] - before
        return {"cpu_ms": min(cpu_ms), "bodies": added * MIB / LARGE}

    def _catalogue(self) -> dict[str, float]:
        code = (
            "import json, sys; sys.path.append(sys.argv[1]); from tests.bench.catalogue import "
            "measured; print(json.dumps(measured()))"
        )
        packages = next((Path(self._pythons["bare"]).parents[1] / "lib").glob("*/site-packages"))
        argv = [sys.executable, "-c", code, str(packages)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode:
            raise ProgramError(done.stderr[-900:])
        found = json.loads(done.stdout)
        return {
            **found,
            "all_ms": found["decode_ms"] + found["merge_ms"],
            "changed_ms": found["change_decode_ms"] + found["again_ms"],
            "copied_ms": found["change_decode_ms"] + found["dict_copy_ms"],
        }


def _ask_once(subject: gateway.Subject) -> None:
    parts = urlsplit(subject.url)
    with socket.create_connection((parts.hostname, parts.port), PATIENCE_S) as connection:
        connection.sendall(request_of(subject.url, subject.tool))
        answer = HTTPResponse(connection)
        answer.begin()
        if answer.status != 200 or len(answer.read()) < LARGE:
            raise ProgramError(f"the large answer did not come through: {answer.status}")


def _named(told: Mapping[str, float], end: str) -> dict[str, float]:
    names = {"calls_per_s": "calls_s"}
    return {f"{names.get(name, name)}{end}": value for name, value in told.items()}
