"""The gate: what a routed call costs, in figures that do not depend on the machine.

python -m tests.bench.gate            measures, and fails where a limit of limits.toml is passed
python -m tests.bench.gate --renew    writes limits.toml by what is measured now

Function calls and memory blocks are counted. CPU is a ratio to the least that could do the work in
the same minute, the minimum of interleaved rounds over the minimum. Nothing is downloaded.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench import gateway, limits, starting
from tests.bench.cases import Cases, program, serving
from tests.bench.samples import ENOUGH_ROUNDS, rotated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LIMITS = Path(__file__).with_name("limits.toml")
SCALE = 0.5
"""Of the calls of the full benchmark: the gate has to end in a minute."""
GATEWAY_CALLS = 800
WAYS = {
    "stdio: CPU to bare loop": ("stdio", "metrics"),
    "stdio, fully on: CPU to bare loop": ("stdio", "on"),
    "http: CPU to bare aiohttp": ("http", "metrics"),
}

AT_16: Mapping[tuple[str, str], int] = {
    ("stdio", "bare"): 8000,
    ("stdio", "metrics"): 4000,
    ("stdio", "on"): 2000,
    ("http", "bare"): 2000,
    ("http", "metrics"): 2000,
}


def counted() -> dict[str, float]:
    """What is the same on every machine."""
    with serving(sys.executable, "http_server") as port:
        url = f"http://127.0.0.1:{port}/mcp"
        plain, recorded = counts(), counts(record=True)
        http, through = counts(target=url), counts(door="gateway")
    return {
        "stdio: function calls a call": plain["calls"],
        "stdio, in line: function calls a call": plain["calls_in_line"],
        "stdio: memory blocks an open call": plain["blocks_open"],
        "stdio: memory blocks left by a call": plain["blocks_left"],
        "stdio, record: function calls a call": recorded["calls"],
        "http: function calls a call": http["calls"],
        "http: memory blocks left by a call": http["blocks_left"],
        "gateway: function calls a call": through["calls"],
    }


def counts(
    *, target: str | None = None, door: str = "library", record: bool = False, layer: str = ""
) -> dict[str, float]:
    """Of `programs/counting.py`; `target`: the URL of a server, else one over stdio."""
    given: dict[str, Any] = {"door": door, "record": record, "layer": layer}
    given["transport"] = "http" if target else "stdio"
    given["target"] = target or starting.server_command()
    return program(sys.executable, "counting", given)


def compared(rounds: int = ENOUGH_ROUNDS) -> dict[str, float]:
    """CPU of a call over that of the least that does the same work."""
    cases = Cases({"bare": sys.executable}, SCALE)
    least: dict[tuple[str, str], float] = {}
    ways = {("stdio", "bare"), ("http", "bare"), *WAYS.values()}
    runs = {way: _calls(cases, way) for way in sorted(ways)}
    with ExitStack() as stack:
        for way in ("static aiohttp app", "metrics"):
            subject = stack.enter_context(cases.subject("stdio", way))
            runs["gateway", way] = _through(subject)
        for number in range(rounds):
            for name in rotated(list(runs), number):
                least[name] = min(least.get(name, float("inf")), runs[name]())
    found = {name: least[way] / least[way[0], "bare"] for name, way in WAYS.items()}
    gate = least["gateway", "metrics"] / least["gateway", "static aiohttp app"]
    return {**found, "gateway: CPU to bare aiohttp app": gate}


def _calls(cases: Cases, way: tuple[str, str]) -> Callable[[], float]:
    transport, client = way
    at = {16: AT_16[way]}
    return lambda: cases.call(transport, client, at)["cpu_us@16"]


def _through(subject: gateway.Subject) -> Callable[[], float]:
    def run() -> float:
        cpu: float = gateway.measured(subject, calls=GATEWAY_CALLS, warm=100)["cpu_us"]
        return cpu

    return run


def main(argv: list[str]) -> int:
    figures = {**counted(), **compared()}
    for name, value in figures.items():
        print(f"{name}: {value:.4g}")
    if argv == ["--renew"]:
        LIMITS.write_text(limits.written(figures))
        return 0
    failures = limits.broken(limits.read(LIMITS.read_text()), figures)
    print("\n".join(failures) or "within every limit")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
